"""From the configuration to the mechanism of a day."""

from datetime import date

from optstream.measurement import EquallySpaced
from optstream.mechanisms import OptStream
from tasks.settings import Settings


def mechanism_for(settings: Settings, day: date) -> OptStream:
    """The mechanism that the configuration names, with the features of that day's length and clock.

    Raises ParameterError if the parameters do not fit each other.
    """
    return OptStream(
        settings.model,
        settings.tree,
        sampling=EquallySpaced(settings.sampling.n_samples),
        features=settings.features(day),
        level_shares=settings.level_shares,
        stage_shares=settings.stage_shares,
        weights=settings.mechanism.weights,
        calibration=settings.privacy.calibration,
        lower_bound=float(settings.lower_bound),
    )
