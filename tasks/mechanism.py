"""From the configuration to the mechanism of a day."""

from collections.abc import Sequence
from datetime import date

from optstream.measurement import EquallySpaced, L1Sampling
from optstream.mechanisms import OptStream
from optstream.stream import Feature
from tasks.settings import Settings


def mechanism_for(settings: Settings, day: date) -> OptStream:
    """The mechanism that the configuration names, with the features of that day's length and clock.

    Raises ParameterError if the parameters do not fit each other.
    """
    sampling, features = _sampling(settings), settings.features(day)
    return OptStream(
        settings.model,
        settings.tree,
        sampling=sampling,
        features=features,
        level_shares=settings.level_shares,
        stage_shares=settings.stage_shares,
        weights=settings.mechanism.weights,
        calibration=settings.privacy.calibration,
        lower_bound=float(settings.lower_bound),
        shortest_period=_shortest_period(settings, features) if isinstance(sampling, L1Sampling) else None,
    )


def _sampling(settings: Settings) -> EquallySpaced | L1Sampling:
    given = settings.sampling
    if given.method == "equally_spaced":
        return EquallySpaced(given.n_samples)
    assert given.threshold is not None  # the settings refuse "l1" without
    return L1Sampling(given.n_samples, given.threshold, given.allocation or "even")


def _shortest_period(settings: Settings, features: Sequence[Feature]) -> int:
    """The same on every day, for the noise depends on it: the shortest day of the calendar.

    Without features a period counts as no longer than a window.
    """
    shortest = settings.shortest_day
    return shortest if features else min(shortest, settings.privacy.window)
