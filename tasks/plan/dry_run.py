"""What releasing days would cost and how noisy it would be: from the configuration alone, nothing drawn."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from fractions import Fraction
from typing import Any

import numpy as np

from optstream.noise import simulated_noise
from optstream.privacy import CappedSpend, GaussianSpend, JointSpend, Spend, StepSpend, worst_window
from tasks.config import Settings
from tasks.ingest.sandbox import clock_before_ingest
from tasks.plan.candidates import check_population
from tasks.plan.expected import (
    Band,
    DryRun,
    Level,
    Noise,
    Period,
    Stage,
    dry_run_document,
    expected_errors,
    warnings_of,
)
from tasks.plan.long_spans import plan_horizons
from tasks.release.mechanism import Mechanism, mechanism_for
from tasks.trusted.covariates import read_covariates


def dry_run(settings: Settings, days: Sequence[date]) -> DryRun:
    """Price the release of these days. Reads public covariates, of a dump one footer, and no ledger; spends
    nothing.

    Raises ParameterError if the parameters do not fit each other.
    """
    mechanism = mechanism_for(settings, days[0])
    alike: dict[Any, list[date]] = {}
    for day in dict.fromkeys(days):
        residue = settings.calendar.first_step(day) % settings.privacy.window
        parts = tuple(feature.parts for feature in settings.features(day))
        tree = settings.tree_of(day)
        alike.setdefault((settings.calendar.n_steps(day), residue, parts, tree), []).append(day)
    periods = tuple(_period(settings, same) for same in alike.values())
    return DryRun(
        stream=settings.stream.name,
        epsilon=mechanism.epsilon,
        points_known=mechanism.noise_is_known,
        periods=periods,
        horizons=plan_horizons(settings, days[0]),
        warnings=(
            *(one.why for one in read_covariates(settings, max(days)).unread),
            *_warnings(settings, mechanism, periods[0]),
            *filter(None, [clock_before_ingest(settings, days[0])]),
        ),
        model=settings.model,
        kept_back=settings.budget.restatement_share,
    )


def level_warnings(settings: Settings, day: date) -> tuple[str, ...]:
    """Return the warnings that a dry run of this day has; raises ParameterError as it does."""
    return _warnings(settings, mechanism_for(settings, day), _period(settings, [day]))


def _warnings(settings: Settings, mechanism: Mechanism, period: Period) -> tuple[str, ...]:
    return warnings_of(settings, mechanism, [level.expected for level in period.levels])


def _period(settings: Settings, days: Sequence[date]) -> Period:
    mechanism, calendar = mechanism_for(settings, days[0]), settings.calendar
    n_steps, first_step = calendar.n_steps(days[0]), calendar.first_step(days[0])
    spends = mechanism.plan(n_steps, first_step)
    costs = {level: own.epsilon for level, own in mechanism.by_level.items()}
    bands = _bands(mechanism, n_steps, first_step)
    expected = expected_errors(settings, mechanism, bands, n_steps, first_step)
    levels = tuple(
        Level(
            level,
            len(nodes),
            costs.get(level, Fraction(0)),
            tuple(_stage(mechanism, spend, n_steps) for spend in spends if spend.level == level),
            bands[level] if bands else None,
            expected[level],
            mechanism.tree.level_name(level),
        )
        for level, nodes in enumerate(mechanism.tree.levels)
    )
    return Period(tuple(days), n_steps, _worst(mechanism.model, spends), levels)


def _worst(model: Any, spends: Sequence[Spend]) -> Fraction:
    return worst_window(spends, model.window_length).epsilon


def _stage(mechanism: Mechanism, spend: Spend, n_steps: int) -> Stage:
    """The plan's own scales, in the unit of the readings."""
    # how many of its answers share noise at most
    joint_over = max(map(len, spend.groups), default=1) if isinstance(spend, JointSpend) else 1
    is_gaussian, resolution = isinstance(spend, GaussianSpend), mechanism.model.resolution
    noise = tuple(
        Noise(of, float(scale * resolution), joint_over, is_gaussian)
        for of, scale in _scales(mechanism, spend, n_steps).items()
    )
    return Stage(spend.stage, _worst(mechanism.model, [spend]), noise)


def _scales(mechanism: Mechanism, spend: Spend, n_steps: int) -> dict[str, Fraction]:
    """Noise scales of a stage, by what they are added to."""
    if isinstance(spend, CappedSpend):
        # a step that is given only a part of the weight gets more noise
        return {"answers" if isinstance(spend.cap, int) and spend.cap > 1 else "answers, least": spend.scale}
    if isinstance(spend, StepSpend | JointSpend | GaussianSpend):
        return {"answers": spend.scale}
    return mechanism.by_level[spend.level].period_scales(n_steps)


def _bands(mechanism: Mechanism, n_steps: int, first_step: int) -> list[Band] | None:
    """How the noise goes through the estimate, by level, without the bound; None if the draw decides."""
    foreseen = mechanism.foreseen()
    if foreseen is None:
        return None
    # Zeros and seeded noise: only positions and variances of these measurements are used.
    zeros = np.zeros((len(mechanism.tree.leaves), n_steps))
    measured = foreseen.measure(zeros, noise=simulated_noise(0), first_step=first_step)
    variances = foreseen.noise_variances(measured)
    assert variances is not None  # it is known
    levels = (variances[nodes.start : nodes.stop] for nodes in mechanism.tree.levels)
    return [Band(*(math.sqrt(v) for v in (level.mean(), level.min(), level.max()))) for level in levels]


# What several products of one privacy budget would cost together, and how far each is from the truth.


@dataclass(frozen=True)
class Product:
    """A stream's dry run, and the share of epsilon that it plans with."""

    share: Fraction
    found: DryRun


@dataclass(frozen=True)
class SharedBudget:
    """The products of one privacy budget, by stream; amounts in the budget's currency."""

    population: str
    grant: Fraction
    products: tuple[Product, ...]

    @property
    def epsilon(self) -> Fraction:
        """What all plans, repeated without end, cost any window at most (Lemma 1)."""
        return sum((one.found.epsilon for one in self.products), Fraction(0))

    @property
    def fits(self) -> bool:
        """Whether no window will ever be charged more than the privacy budget."""
        return self.epsilon <= self.grant


def price_products(streams: Sequence[Settings], days: Sequence[Sequence[date]]) -> tuple[SharedBudget, ...]:
    """Price the release of days of several streams, an entry for each population; reads public covariates
    alone, spends nothing. days: of each stream.

    Raises ConfigurationError for streams of one population whose files do not agree, ParameterError as
    `dry_run`.
    """
    members: dict[str, list[tuple[Settings, Sequence[date]]]] = {}
    for settings, own in zip(streams, days, strict=True):
        members.setdefault(settings.privacy.population, []).append((settings, own))
    found = []
    for population, several in members.items():
        check_population([settings for settings, _ in several])
        products = tuple(Product(settings.stream_share, dry_run(settings, own)) for settings, own in several)
        found.append(SharedBudget(population, products[0].found.grant, products))
    return tuple(found)


def products_document(budgets: Sequence[SharedBudget]) -> dict[str, Any]:
    """`optstream run --dry-run --json` of several streams: versioned, for machines."""
    return {
        "format": "optstream.dry-runs/1",
        "populations": [
            {
                "population": budget.population,
                "currency": budget.products[0].found.currency,
                "grant": str(budget.grant),
                "plans": str(budget.epsilon),
                "fits": budget.fits,
                "streams": [
                    {"stream_share": str(one.share), **dry_run_document(one.found)} for one in budget.products
                ],
            }
            for budget in budgets
        ],
    }
