"""The cost and noise of releasing days, from the configuration alone; nothing is drawn."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from fractions import Fraction
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, InstanceOf, PlainSerializer, SerializationInfo

from optstream.catalogue.documents import Amount, OrAbsent
from optstream.catalogue.documents import Period as Day
from optstream.errors import ConfigurationError, LedgerError
from optstream.measurement.sums import answer_variance, scale_of
from optstream.noise import simulated_noise
from optstream.privacy import (
    CappedSpend,
    GaussianSpend,
    OrderSpend,
    PrivacyModel,
    Spend,
    StepSpend,
    worst_window,
)
from optstream.privacy.horizon import HorizonLoss
from optstream.privacy.spends import CUSTOMERS
from optstream.stream import period_from
from tasks.config import Settings
from tasks.config.schema import Budget
from tasks.ingest.sandbox import clock_before_ingest
from tasks.ledger import ledger_if_any
from tasks.plan.backfill import cost_of
from tasks.release.mechanism import Mechanism, clashes, learned_by, mechanism_for, plan_horizons, plan_of
from tasks.release.outcomes import Exact, Printed, is_none, left_out, listed
from tasks.trusted.covariates import read_covariates

# The documents. Noise, errors and sizes are in the unit of the readings.


def _in_epsilon(amount: Fraction, currency: str = "epsilon") -> dict[str, Any]:
    return {currency: str(amount), f"{currency}_float": float(amount)}


def _price(amount: Fraction, info: SerializationInfo[dict[str, str]]) -> dict[str, Any]:
    assert info.context is not None  # of `DryRun.to_json`
    return _in_epsilon(amount, info.context["currency"])


Price = Annotated[InstanceOf[Fraction], PlainSerializer(_price)]
"""An amount in the currency of the plan, which names its keys in JSON."""


class Noise(Printed):
    """The noise on `of`; joint_over: the most answers that share joint noise, 1 for other noise."""

    of: str
    scale: float
    deviation: float = Field(serialization_alias="standard_deviation")
    joint_over: int = Field(1, exclude_if=lambda over: over == 1)


class Stage(Printed):
    """What measuring one stage of a level costs the worst window, this period alone, and its noise."""

    name: str = Field(serialization_alias="stage")
    epsilon: Price = Field(serialization_alias="alone")
    noise: tuple[Noise, ...]


@dataclass(frozen=True)
class Band:
    """Standard deviation from noise alone over a level's nodes and steps; typical: root mean square."""

    typical: float
    least: float
    most: float


@dataclass(frozen=True)
class Expected:
    """Errors are root mean squares; size, of a typical node, and unmeasured need a public scale."""

    error: float
    size: float | None
    unmeasured: float | None = None


class Level(Printed):
    """A level of the tree, derived if it has no stages, or its margin; the draw may decide its noise."""

    level: int
    name: str
    n_nodes: int
    epsilon: Price = Field(serialization_alias="plan")
    stages: tuple[Stage, ...]
    band: Band | None = Field(serialization_alias="noise_only_standard_deviation")
    expected: Expected | None


class Period(Printed):
    """Days with the same plan, and the cost of one alone for the worst window."""

    days: tuple[Day, ...] = Field(serialization_alias="dates")
    n_steps: int
    epsilon: Price = Field(serialization_alias="alone")
    levels: tuple[Level, ...]


def _horizons(found: Sequence[tuple[int, HorizonLoss]], info: Any) -> list[dict[str, Any]]:
    return [
        {
            "n_days": n_days,
            "epsilon_float": loss.epsilon,
            "delta": str(loss.delta),
            "plain_sum": _price(loss.plain, info),
            "composed": loss.composed,
        }
        for n_days, loss in found
    ]


class Charged(Printed):
    """What the ledger has of the days, and which of the others its windows have no room for."""

    says: str
    refused: tuple[Day, ...] = Field((), serialization_alias="would_be_refused")


class DryRun(Printed):
    """What days would cost and how noisy they would be; amounts are called by their currency.

    epsilon: what the plan, repeated, costs any window. points_known: False where the draw chooses them.
    horizons: what all readings of one customer lose in so many days. fits: whether the plan fits its share,
    and the days the ledger's windows.
    """

    model: InstanceOf[PrivacyModel] = Field(exclude=True)
    budget: InstanceOf[Budget] = Field(exclude=True)
    customers_error: float | None = Field(exclude=True)
    format: Literal["optstream.dry-run/2"] = "optstream.dry-run/2"
    stream: str
    window_steps: int = Field(default_factory=lambda known: known["model"].window_length)
    epsilon: Price = Field(serialization_alias="plan")
    grant: Price = Field(default_factory=lambda known: known["model"].budget)
    fits: bool
    points_known: bool
    periods: tuple[Period, ...]
    horizons: Annotated[tuple[tuple[int, InstanceOf[HorizonLoss]], ...], PlainSerializer(_horizons)]
    warnings: tuple[str, ...]
    ledger: Charged
    currency: str = Field(default_factory=lambda known: known["model"].currency)
    delta: OrAbsent[Amount] = left_out()
    at_delta: OrAbsent[Annotated[Fraction, PlainSerializer(_in_epsilon)]] = Field(
        None, serialization_alias="plan_at_delta", exclude_if=is_none
    )

    def to_json(self) -> dict[str, Any]:
        """Return the document of `--json`: each amount is called by its currency."""
        return self.model_dump(mode="json", context={"currency": self.currency})


def dry_run(settings: Settings, days: Sequence[date]) -> DryRun:
    """Price the release of these days; reads covariates, one dump's footer and the ledger, spends nothing."""
    mechanism, model = mechanism_for(settings, days[0]), settings.model
    alike: dict[Any, list[date]] = {}
    for day in dict.fromkeys(days):
        residue = settings.calendar.first_step(day) % settings.privacy.window
        parts = tuple(feature.parts for feature in settings.features(day))
        key = settings.calendar.n_steps(day), residue, parts, settings.tree_of(day)
        alike.setdefault(key, []).append(day)
    periods = tuple(_period(settings, same) for same in alike.values())
    counts = (one for one in plan_of(settings, mechanism, days[0]) if one.stage == CUSTOMERS)
    of_window = mechanism.epsilon + settings.reporting_epsilon(0)
    in_rho, charged = model.currency == "rho", charged_before(settings, days)
    return DryRun(
        model=model,
        budget=settings.budget,
        customers_error=next((math.sqrt(2) * float(scale_of(one)) for one in counts), None),
        stream=settings.stream.name,
        epsilon=of_window,
        fits=of_window <= model.budget and not charged.refused,
        points_known=mechanism.noise_is_known,
        periods=periods,
        horizons=plan_horizons(settings, days[0]),
        warnings=(
            *read_covariates(settings, max(days)).unread.values(),
            *warnings_of(settings, mechanism, [level.expected for level in periods[0].levels]),
            *clashes(settings, days),
            *filter(None, [clock_before_ingest(settings, days[0])]),
        ),
        ledger=charged,
        delta=model.delta if in_rho else None,
        at_delta=model.to_epsilon(of_window) if in_rho else None,
    )


def charged_before(settings: Settings, days: Sequence[date]) -> Charged:
    """Look into the ledger, if there is one, for charges in the windows of these days; makes none."""
    try:
        with ledger_if_any(settings) as ledger:
            if ledger is None:
                return Charged(says="there is no ledger yet: nothing is charged before these days")
            outlines = {period_from(one.period) for one in ledger.outlines(settings.stream.name)}
            known = [day for day in days if day in outlines]
            refused = cost_of(settings, ledger, [day for day in days if day not in outlines]).refused
    except LedgerError as error:
        return Charged(says=f"the ledger was not read, so a full window would not be seen: {error}")
    said = [f"{listed(known, 1)} in it already: a run charges none again"] if known else []
    if refused:
        words = "without room in a window, and will be refused: see `optstream ledger show`"
        said.append(f"{listed(refused, 1)} {words}")
    return Charged(says=f"the ledger has {'; '.join(said) or 'room for all these days'}", refused=refused)


def level_warnings(settings: Settings, day: date) -> tuple[str, ...]:
    """Return the warnings that a dry run of this day has; raises ParameterError as it does."""
    expected = [level.expected for level in _period(settings, [day]).levels]
    return warnings_of(settings, mechanism_for(settings, day), expected)


def _period(settings: Settings, days: Sequence[date]) -> Period:
    mechanism, calendar = mechanism_for(settings, days[0]), settings.calendar
    n_steps, first_step = calendar.n_steps(days[0]), calendar.first_step(days[0])
    spends = mechanism.plan(n_steps, first_step)
    costs = {level: own.epsilon for level, own in mechanism.by_level.items()}
    bands = _bands(mechanism, n_steps, first_step)
    known = mechanism.with_learned(learned_by(settings), keeps_blocks=True)
    if (figures := known.expected_by_level()) is not None:
        expected = [Expected(*row) if np.isfinite(row).all() else None for row in figures.tolist()]
    elif bands is not None:
        expected = [Expected(band.typical, None) for band in bands]
    else:
        still = np.full((len(mechanism.tree.leaves), n_steps), float(sum(settings.privacy.bounds)) / 2)
        squares = squared_errors(mechanism, [still] * 3, first_step)
        expected = [Expected(error, None) for error in np.sqrt(squares).tolist()]
    levels = tuple(
        Level(
            level=level,
            name=mechanism.tree.level_name(level),
            n_nodes=len(nodes),
            epsilon=costs.get(level, Fraction(0)),
            stages=tuple(_stage(mechanism, spend, n_steps) for spend in spends if spend.level == level),
            band=bands[level] if bands else None,
            expected=expected[level],
        )
        for level, nodes in enumerate(mechanism.tree.levels)
    )
    plan = plan_of(settings, mechanism, days[0])
    alone = worst_window(plan, mechanism.model.window_length).epsilon
    return Period(days=tuple(days), n_steps=n_steps, epsilon=alone, levels=levels)


def _stage(mechanism: Mechanism, spend: Spend, n_steps: int) -> Stage:
    """The plan's own scales, in the unit of the readings."""
    joint_over, noise = 1, []
    if isinstance(spend, OrderSpend):  # how many answers of a window share noise at most
        joint_over = spend.n_blocks
    if isinstance(spend, CappedSpend) and not (isinstance(spend.cap, int) and spend.cap > 1):
        # a step that is given only a part of the weight gets more noise
        scales = {"answers, least": spend.scale}
    elif isinstance(spend, CappedSpend | StepSpend | OrderSpend | GaussianSpend):
        scales = {"answers": spend.scale}
    else:
        scales = mechanism.by_level[spend.level].period_scales(n_steps)
    for of, exact in scales.items():
        scale = float(exact * mechanism.model.resolution)
        variance = 2.0 * scale**2
        if isinstance(spend, OrderSpend | StepSpend | GaussianSpend):
            variance = answer_variance(spend) * float(mechanism.model.resolution) ** 2
        noise.append(Noise(of=of, scale=scale, deviation=math.sqrt(variance), joint_over=joint_over))
    alone = worst_window([spend], mechanism.model.window_length).epsilon
    return Stage(name=spend.stage, epsilon=alone, noise=tuple(noise))


def _bands(mechanism: Mechanism, n_steps: int, first_step: int) -> list[Band] | None:
    """The noise of the estimate by level, without the bound; None if the draw decides it."""
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


AS_GOOD_AS_NOTHING = 0.9  # of the error of publishing 0, or the public scale, everywhere


def is_useless(one: Expected | None) -> bool:
    return one is not None and one.unmeasured is not None and one.error >= AS_GOOD_AS_NOTHING * one.unmeasured


def squared_errors(
    mechanism: Mechanism, periods: Sequence[NDArray[np.float64]], first_step: int
) -> NDArray[np.float64]:
    """Return each level's mean squared error over made-up periods, root first; costs no privacy."""
    tree, state, noise, at = mechanism.tree, None, simulated_noise(0), first_step
    squares = np.zeros(len(tree.nodes))
    for values in periods:
        release = mechanism.release(values, noise=noise, first_step=at, state=state)
        squares += ((release.values - tree.add_up(values)) ** 2).mean(axis=1) / len(periods)
        state, at = release.state, at + values.shape[1]
    return np.array([squares[level.start : level.stop].mean() for level in tree.levels])


def warnings_of(
    settings: Settings, mechanism: Mechanism, expected: Sequence[Expected | None]
) -> tuple[str, ...]:
    """Return the warnings before anything is spent: counts, useless levels, an unwritten lower bound."""
    tree, (low, high) = mechanism.tree, settings.privacy.bounds
    with_leaves = {int(tree.depths[leaf]) for leaf in tree.leaf_indices}
    found = [*filter(None, [settings.counts_warning])]
    is_written = "lower_bound" in settings.privacy.model_fields_set
    if low < 0 and not is_written and not settings.privacy.counts:  # no count is less than 0
        least = "the least sum of a leaf" if settings.metered else f'"{low}"'
        found.append(
            f"privacy.lower_bound is left out, so nothing below 0 is published, and readings may be {low}: "
            f'write {least} to keep negative values, or "0" where that is meant'
        )
    budget = settings.budget
    each, first = budget.restatement_share / budget.shares, 1 - budget.restatement_share
    if budget.revisions and 2 * each < first:
        noisier = float(first / each) ** (1 if settings.model.currency == "epsilon" else 0.5)
        found.append(
            f"budget.revisions: a planned revision has {each} of epsilon, and the first release, which it "
            f"replaces, {first}: its noise is {noisier:.3g} times as much; leave "
            "budget.restatement_share out for the same noise in all"
        )
    for level, one in enumerate(expected[: len(settings.published.levels) or None]):
        if one is None:
            continue
        called = tree.level_name(level)
        if is_useless(one):
            found.append(
                f"{called}: error {one.error:.3g} at a typical {one.size:.3g}: as good as nothing; "
                "give it a larger share of epsilon, a larger epsilon, or leave it out of published.levels"
            )
        # where rows are customers', bounds say nothing of a leaf
        elif level in with_leaves and not settings.metered and one.error > high - low:
            found.append(
                f"{called}: error {one.error:.3g}, and a reading lies between {float(low):g} and "
                f"{float(high):g} anyway: as good as nothing; publish fewer leaves or take a larger epsilon"
            )
    return tuple(found)


# The cost of several streams of one privacy budget together.


def _with_shares(products: Sequence[DryRun]) -> list[dict[str, Any]]:
    return [{"stream_share": str(one.budget.stream_share), **one.to_json()} for one in products]


class SharedBudget(Printed):
    """The streams of one budget; epsilon: what all plans, repeated, cost any window at most (Lemma 1)."""

    population: str
    currency: str
    grant: Exact
    epsilon: Exact = Field(serialization_alias="plans")
    fits: bool
    products: Annotated[tuple[InstanceOf[DryRun], ...], PlainSerializer(_with_shares)] = Field(
        serialization_alias="streams"
    )


class DryRuns(Printed):
    """What days of several streams would cost."""

    format: Literal["optstream.dry-runs/1"] = "optstream.dry-runs/1"
    populations: tuple[SharedBudget, ...]


def price_products(streams: Sequence[Settings], days: Sequence[Sequence[date]]) -> tuple[SharedBudget, ...]:
    """Price the release of days of several streams, an entry for each population; spends nothing."""
    members: dict[str, list[tuple[Settings, Sequence[date]]]] = {}
    for settings, own_days in zip(streams, days, strict=True):
        members.setdefault(settings.privacy.population, []).append((settings, own_days))
    for several in members.values():
        check_population([settings for settings, _ in several])
    found = []
    for population, several in members.items():
        priced = tuple(dry_run(*one) for one in several)
        currency, grant = priced[0].currency, priced[0].grant
        epsilon = sum((one.epsilon for one in priced), Fraction(0))
        fits = epsilon <= grant and not any(one.ledger.refused for one in priced)
        shared = {"grant": grant, "epsilon": epsilon, "fits": fits, "products": priced}
        found.append(SharedBudget(population=population, currency=currency, **shared))
    return tuple(found)


def check_population(streams: Sequence[Settings]) -> None:
    """Raise ConfigurationError where streams are not of one population, or one of them is there twice."""
    (first, *others), agreed = streams, ("population", "epsilon", "delta", "window")
    for other in others:
        differing = [key for key in agreed if getattr(other.privacy, key) != getattr(first.privacy, key)]
        if differing:
            raise ConfigurationError(
                f"{other.file} and {first.file} must have the same {', '.join(differing)}: "
                "only streams of one population share an epsilon; advise on others one by one"
            )
    names = [one.stream.name for one in streams]
    if len(set(names)) < len(names):
        raise ConfigurationError(f"the configurations must be of different streams; got {', '.join(names)}")
