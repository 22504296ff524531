"""From the configuration to the mechanism of a day."""

from collections.abc import Sequence
from datetime import date
from typing import Any

from optstream import mechanisms
from optstream.measurement import EquallySpaced, L1Sampling
from optstream.mechanisms import (
    Hierarchical,
    HistoryInformed,
    HistoryInformedTree,
    OptStream,
    PeGaSusTree,
)
from optstream.privacy import PrivacyModel
from optstream.stream import Feature
from optstream.stream.public_days import PublicDays
from tasks.config import Settings
from tasks.config.public_holidays import public_holidays

Mechanism = OptStream | Hierarchical


def mechanism_for(settings: Settings, day: date, revision: int = 0) -> Mechanism:
    """The mechanism that the configuration names, on its tree; OptStream with the features of that day.

    Raises ParameterError if the parameters do not fit each other, BudgetError for a restatement where no
    share of epsilon is kept back.
    """
    model = settings.model_of(revision)
    if settings.mechanism.name == "OptStream":
        return _optstream(settings, model, day)
    given = settings.mechanism.parameters
    if settings.mechanism.name == "Fourier":
        given |= {"calibration": settings.privacy.calibration, "shortest_period": settings.shortest_day}
        if settings.metered and model.unit == "customer":  # nothing keeps their rows of a day in one leaf
            given["leaves_per_period"] = len(settings.tree.leaves)
    if settings.mechanism.name == "HistoryInformed":
        return _history_informed(settings, model, day, given)
    on_tree = PeGaSusTree if given.pop("groups", "own") == "children" else Hierarchical
    pattern = getattr(mechanisms, settings.mechanism.name)(model, **given)
    return on_tree(pattern, settings.tree, settings.level_shares, float(settings.lower_bound))


def _history_informed(
    settings: Settings, model: PrivacyModel, day: date, given: dict[str, Any]
) -> HistoryInformedTree:
    """With the stream's own clock, and the holidays that it names or whose country it names."""
    named, country = given.pop("holidays"), given.pop("country", None)
    if country is not None:
        named = (*named, *public_holidays(country, range(day.year - 1, day.year + 2)))
    days = PublicDays.from_calendar(settings.calendar, named)
    pattern = HistoryInformed(model, days=days, **given)
    bound = float(settings.lower_bound)
    return HistoryInformedTree(pattern, settings.tree, settings.level_shares, bound)


def _optstream(settings: Settings, model: PrivacyModel, day: date) -> OptStream:
    sampling, features = _sampling(settings), settings.features(day)
    return OptStream(
        model,
        settings.tree,
        sampling=sampling,
        features=features,
        level_shares=settings.level_shares,
        stage_shares=settings.stage_shares,
        **settings.mechanism.parameters,
        calibration=settings.privacy.calibration,
        lower_bound=float(settings.lower_bound),
        shortest_period=_shortest_period(settings, features) if isinstance(sampling, L1Sampling) else None,
    )


def _sampling(settings: Settings) -> EquallySpaced | L1Sampling:
    given = settings.sampling
    assert given is not None  # the settings refuse OptStream without
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
