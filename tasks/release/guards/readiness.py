"""Try out what a draw needs before it begins: what fails here has drawn nothing, and costs no day."""

from optstream.errors import NoiseError
from optstream.noise import NoiseSource
from tasks.storage.failures import is_failure, unexpected


def make_ready(noise: NoiseSource) -> None:
    """Load what noise needs, and throw a sample away: what fails here has drawn nothing. Raises NoiseError if
    the source refuses or its library does not load.
    """
    try:
        noise.discrete_laplace(1.0, (1,))
    except NoiseError:
        raise
    except BaseException as error:
        if not is_failure(error):
            raise
        raise NoiseError(
            f"no noise can be drawn here ({unexpected(error)}), and nothing was; `optstream doctor` tries it "
            "too. Mend the installation, then run again"
        ) from error
