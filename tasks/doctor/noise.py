"""Whether noise can be drawn here at all."""

from collections.abc import Iterator

from optstream.errors import NoiseError
from optstream.noise import NoiseSource
from tasks.doctor.finding import Finding, wrong
from tasks.release.guards.readiness import make_ready


def noise(source: NoiseSource) -> Iterator[Finding]:
    """A finding if the source does not give a sample; one is drawn and thrown away."""
    try:
        make_ready(source)
    except NoiseError as error:
        yield wrong(
            "the library of the noise", str(error), "mend the installation; no day can be drawn before"
        )
