"""From the configuration to the mechanism of a day."""

from collections.abc import Callable, Sequence
from dataclasses import fields
from datetime import date
from typing import Any

from optstream.measurement import EquallySpaced, L1Sampling
from optstream.mechanisms import Hierarchical, OptStream, on_tree
from optstream.stream.covariate import Covariate
from optstream.stream.public_days import PublicDays
from tasks.config import Settings

Mechanism = OptStream | Hierarchical


def mechanism_for(
    settings: Settings, day: date, revision: int = 0, covariates: Sequence[Covariate] = ()
) -> Mechanism:
    """The mechanism that the configuration names, on its tree: with its own keys, and of what the stream
    offers that day whatever it has a parameter for. covariates: only what a draw is prepared by has any;
    plans, charges and estimates are of none, whatever files hold.

    Raises ParameterError if the parameters do not fit each other, BudgetError for a restatement where no
    share of epsilon is kept back.
    """
    model, kind, tree = settings.model_of(revision), settings.mechanism.kind, settings.tree_of(day)
    bound = float(settings.least_units * settings.privacy.resolution)
    # a zone may have had other days than it has now, and a day of the archive is planned all the same: the
    # ledger charges what it is planned with, and refuses a window that has too little left
    lengths = tuple(sorted({*settings.period_lengths, settings.calendar.n_steps(day)}))
    offered: dict[str, Callable[[], Any]] = {
        "tree": lambda: tree,
        "level_shares": lambda: settings.level_shares,
        "stage_shares": lambda: settings.budget.stages,
        "lower_bound": lambda: bound,
        "shortest_period": lambda: lengths[0],
        "leaves_per_period": lambda: settings.leaves_per_period(day),
        "counts": lambda: settings.privacy.counts,
        "declared_leaves": lambda: settings.declared_leaves,
        "horizon": lambda: settings.noise_horizon,
        "period_lengths": lambda: lengths,
        "covariates": lambda: tuple(covariates),
        "sampling": lambda: _sampling(settings),
        "features": lambda: settings.features(day),
        "days": lambda: PublicDays.from_calendar(settings.calendar, settings.mechanism.holidays_around(day)),
    }
    own = settings.mechanism.parameters
    asked = {field.name for field in fields(kind)} - own.keys()
    given = {name: offer() for name, offer in offered.items() if name in asked}
    pattern = kind(model, **given, **own)
    built: Mechanism = on_tree(pattern, tree, settings.level_shares, bound)
    return built


def _sampling(settings: Settings) -> EquallySpaced | L1Sampling:
    given = settings.sampling
    assert given is not None  # the settings refuse a mechanism that samples without
    if given.method == "equally_spaced":
        return EquallySpaced(given.n_samples)
    assert given.threshold is not None  # the settings refuse "l1" without
    return L1Sampling(given.n_samples, given.threshold, given.allocation or "even")
