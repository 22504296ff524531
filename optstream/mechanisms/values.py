"""From what a caller hands over to a private period."""

from numpy.typing import ArrayLike

from optstream.errors import ParameterError
from optstream.privacy import PrivacyModel
from optstream.stream import PrivatePeriod


def as_period(values: ArrayLike | PrivatePeriod, model: PrivacyModel, first_step: int) -> PrivatePeriod:
    """Return readings (n_series, n_steps) as a private period, rounded to the model's resolution.

    Whatever is too large is clamped, and NaN counts as 0 (`quantise`): whether there is a release must not
    depend on a reading. Raises ParameterError for values that are no numbers by their type, and for a
    period of another resolution or first step.
    """
    if not isinstance(values, PrivatePeriod):
        return PrivatePeriod.from_values(values, resolution=model.resolution, first_step=first_step)
    if first_step not in (0, values.first_step):
        raise ParameterError(
            f"first_step is {first_step}, and the period begins at {values.first_step}: leave it out"
        )
    if values.resolution != model.resolution:
        raise ParameterError(
            f"the period's resolution {values.resolution} is not the model's {model.resolution}"
        )
    return values
