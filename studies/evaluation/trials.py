"""One trial: a mechanism is run over days with simulated noise and compared with the truth.

Releases of single levels are raised to 0 where they lie below, every mechanism's alike: load is not negative,
and everybody knows. On a tree the bound is part of the fit.
"""

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from fractions import Fraction

import numpy as np

from optstream.estimation.estimate import BAND
from optstream.mechanisms.base import Mechanism
from optstream.noise import NoiseSource, simulated_noise
from optstream.privacy import Spend, worst_window
from optstream.stream import AggregationTree, Measured, State
from studies.evaluation.experiments import (
    EACH_REGION,
    HISTORIES,
    LEAD_DAYS,
    MONTHS,
    RAW,
    YEARS,
    Cell,
    on_series,
    on_tree,
)
from studies.evaluation.series import STEPS, Load, Values

LEARNED_DAYS = 28
"""Of a stream, after which its bands and revisions are looked at."""
REVISED_AFTER, REVISED_EVERY = (1, 7, 14), 7
DAYS_AFTER, MOST_LEAD_DAYS = 3, 35
"""Around a day unlike all others; a mechanism that learns is then past its first three lessons."""
FIRST = "the first day of a stream"


@dataclass(frozen=True)
class Result:
    """Metrics by name, one that ends in `_nation` of the root; and what the accountant says."""

    metrics: Mapping[str, float]
    plan: Fraction | None
    drawn: Fraction | None


@dataclass(frozen=True, eq=False)
class Released:
    """Values and their standard errors, (n_days, n_series, 48), MW, and what the last day left."""

    values: Values
    errors: Values | None
    drawn: Fraction | None = None
    state: State | None = None


def run_trial(cell: Cell, load: Load, seed: int) -> Result:
    """Run a trial on the load that its study needs. Raises ParameterError for a cell that cannot be run."""
    return STUDIES[cell.study](cell, load, simulated_noise(cell.entropy(seed)))


def release_days(
    mechanism: Mechanism,
    values: Values,
    first_day: int,
    noise: NoiseSource,
    *,
    only_measured: int = 0,
    accounted: bool = False,
    state: State | None = None,
    seen: Callable[[Measured], None] | None = None,
) -> Released:
    """Release days (n_days, n_series, 48) in a row. first_day: how many days the stream is old."""
    spends, found, errors = list[Spend](), list[Values](), list[Values]()
    for number, day in enumerate(values):
        measured = mechanism.measure(day, noise=noise, first_step=(first_day + number) * STEPS, state=state)
        state = measured.state
        spends += measured.spends if accounted else ()
        if seen:
            seen(measured)
        if number >= only_measured:
            release = mechanism.estimate(measured)
            found.append(release.values)
            own = release.standard_errors  # of the series, without a root that is derived from them
            errors += [] if own is None else [own[-values.shape[1] :]]
    drawn = worst_window(spends, STEPS).epsilon if accounted else None
    return Released(np.array(found), np.array(errors) if errors else None, drawn, state)


def errors_of(released: Values, truth: Values) -> dict[str, float]:
    """Return mean, median and 95th percentile of the absolute error a step, MW."""
    missed = np.abs(released - truth)
    middle, high = np.percentile(missed, [50, 95])
    return {"mae": float(missed.mean()), "median": float(middle), "p95": float(high)}


def mean_error(released: Values, truth: Values) -> float:
    """Return the mean absolute error a step, MW."""
    return float(np.abs(released - truth).mean())


def covered(released: Values, truth: Values, errors: Values) -> float:
    """Return the share of values that lie inside their bands of 95 %."""
    return float((np.abs(released - truth) <= BAND * errors).mean())


def violation(series: Values, tree: AggregationTree) -> float:
    """Return the greatest difference of a node from the sum of its children; series (…, n_nodes, n_steps)."""
    leaves = series[..., tree.leaf_indices, :]
    return float(np.abs(series - np.stack([tree.add_up(day) for day in leaves])).max())


def leaves_of(values: Values, truth: Values) -> Values:
    """Return the released leaves, raised to 0; a root above plain series is derived."""
    return np.maximum(values[:, -truth.shape[1] :], 0.0)


def regions(cell: Cell, load: Load, noise: NoiseSource) -> Result:
    """Release every region at full epsilon; and last week's release in the place of today's."""
    lead = cell.lead_days
    rows = load.rows(*MONTHS[cell.span], lead)
    truth, begin = load.values[rows], lead - LEAD_DAYS  # before, what learns is watched, nothing compared
    parts, plan = [], None
    groups = [(name,) for name in load.regions] if cell.mechanism == EACH_REGION else [load.regions]
    for group in [] if cell.mechanism == RAW else groups:
        mechanism, own = on_series(cell, load, group), truth[:, [load.regions.index(name) for name in group]]
        part = release_days(mechanism, own, rows.start, noise, only_measured=begin, accounted=not cell.trial)
        parts.append(Released(leaves_of(part.values, own), part.errors, part.drawn))
        plan = mechanism.epsilon
    values = np.concatenate([part.values for part in parts], axis=1) if parts else truth[begin:]
    found, real = values[LEAD_DAYS:], truth[lead:]
    metrics = errors_of(found, real) | {"mean_load": float(real.mean())}
    metrics["last_week"] = mean_error(values[:-LEAD_DAYS], real)
    if len(parts) == 1 and parts[0].errors is not None:
        metrics["covered"] = covered(found, real, parts[0].errors[LEAD_DAYS:])
    return Result(metrics, plan, max((part.drawn for part in parts if part.drawn is not None), default=None))


def hierarchy(cell: Cell, load: Load, noise: NoiseSource) -> Result:
    """Release nation and regions, half of epsilon each."""
    lead = cell.lead_days if cell.mechanism in HISTORIES else 0  # others begin with the month
    rows = load.rows(*MONTHS[cell.span], lead)
    mechanism = on_tree(cell, load)
    released = release_days(
        mechanism, load.values[rows], rows.start, noise, only_measured=lead, accounted=not cell.trial
    )
    truth, values = load.tree.add_up(load.values[rows])[lead:], released.values
    nation = errors_of(values[:, :1], truth[:, :1])
    metrics = errors_of(values[:, 1:], truth[:, 1:]) | {f"{name}_nation": one for name, one in nation.items()}
    metrics["violation"] = violation(values, load.tree)
    return Result(metrics, mechanism.epsilon, released.drawn)


def stream(cell: Cell, load: Load, noise: NoiseSource) -> Result:
    """Release from a stream's first day: errors and bands of each year, and every seventh day revised."""
    first, last = YEARS[cell.span]
    truth = load.values[load.rows(first, last, 0)]
    mechanism = on_series(cell, load, load.regions)
    looked_at = range(LEARNED_DAYS, len(truth) - max(REVISED_AFTER), REVISED_EVERY)
    recent = deque[tuple[int, Measured]](maxlen=max(REVISED_AFTER) + 1)
    revised: dict[int, list[Values]] = {after: [] for after in REVISED_AFTER}

    def revise(measured: Measured) -> None:
        number = recent[-1][0] + 1 if recent else 0
        recent.append((number, measured))
        for after, found in revised.items():
            if number - after in looked_at:
                before, *later = [one for _, one in list(recent)[-after - 1 :]]
                found.append(mechanism.revise(before, later).values)

    learns = mechanism.revises
    released = release_days(mechanism, truth, 0, noise, accounted=True, seen=revise if learns else None)
    values, errors = leaves_of(released.values, truth), released.errors
    metrics = errors_of(values, truth) | {"first": mean_error(values[0], truth[0])}
    metrics["mean_load"] = float(truth.mean())
    years = np.array([(first + timedelta(days=number)).year for number in range(len(truth))])
    late = np.arange(len(truth)) >= LEARNED_DAYS
    for name, own in [("", years > 0), *((f"_{year}", years == year) for year in np.unique(years))]:
        metrics[f"mae{name}"] = mean_error(values[own], truth[own])
        if errors is not None:
            metrics[f"covered{name}"] = covered(values[own & late], truth[own & late], errors[own & late])
    if learns:
        days = list(looked_at)
        metrics["revised_0"] = mean_error(values[days], truth[days])
        for after, found in revised.items():
            metrics[f"revised_{after}"] = mean_error(np.maximum(found, 0.0), truth[days])
    return Result(metrics, mechanism.epsilon, released.drawn)


def unusual(cell: Cell, load: Load, noise: NoiseSource) -> Result:
    """Release a day on which something happens and three days after it; and the same day without any past."""
    lead = MOST_LEAD_DAYS if cell.mechanism in HISTORIES else LEAD_DAYS
    day = date.fromisoformat(cell.span)
    rows = load.rows(day, day + timedelta(days=DAYS_AFTER), lead)
    past, days = np.split(load.values[rows], [lead])
    mechanism = on_series(cell, load, load.regions)

    def known(before: Values) -> State | None:
        return release_days(mechanism, before, rows.start, noise, only_measured=lead).state

    metrics, ordinary = dict[str, float](), known(past)
    for what, happen in HAPPENINGS.items():
        state = ordinary
        if what == JOINS:
            before = past.copy()
            before[:, _largest(days)] = 0.0
            state = known(before)
        truth = days.copy()
        happen(truth)
        values = release_days(mechanism, truth, rows.start + lead, noise, state=state).values
        values = leaves_of(values, truth)
        metrics[what] = mean_error(values[0], truth[0])
        metrics[f"{what}, after"] = mean_error(values[1:], truth[1:])
    metrics["mae"] = metrics[NOTHING]
    cold = release_days(mechanism, days[:1], rows.start + lead, noise)
    metrics[FIRST] = mean_error(leaves_of(cold.values, days[:1]), days[:1])
    return Result(metrics, mechanism.epsilon, None)


NOTHING, JOINS = "nothing", "a region joins"
CUSTOMER_MW, NOON, MORNING = 1000.0, 24, 20


def _largest(load: Values) -> int:
    return int(load[0].mean(axis=1).argmax())


def _nothing(load: Values) -> None:
    """The days as they were; where a region joins, the days before differ: the largest region is at 0."""


def _holiday(load: Values) -> None:
    """20 % less everywhere for a day."""
    load[0] *= 0.8


def _heat_wave(load: Values) -> None:
    """15 % more within a day, permanently."""
    load[0] *= 1.0 + 0.15 * np.arange(STEPS) / STEPS
    load[1:] *= 1.15


def _region_dark(load: Values) -> None:
    """The largest region at 5 % for 6 hours."""
    load[0, _largest(load), MORNING : MORNING + 12] *= 0.05


def _nation_dark(load: Values) -> None:
    """All at 10 % for 4 hours."""
    load[0, :, MORNING : MORNING + 8] *= 0.1


def _customer(load: Values) -> None:
    """1,000 MW more in the smallest region, permanently."""
    load[:, int(load[0].mean(axis=1).argmin())] += CUSTOMER_MW


def _step(load: Values) -> None:
    """The largest region 30 % higher from noon on, permanently."""
    region = _largest(load)
    load[0, region, NOON:] *= 1.3
    load[1:, region] *= 1.3


HAPPENINGS: dict[str, Callable[[Values], None]] = {
    NOTHING: _nothing,
    "a holiday nobody announced": _holiday,
    "a heat wave": _heat_wave,
    "a blackout of a region": _region_dark,
    "a blackout everywhere": _nation_dark,
    "a new large customer": _customer,
    "a step change": _step,
    JOINS: _nothing,
}
STUDIES: dict[str, Callable[[Cell, Load, NoiseSource], Result]] = {
    "regions": regions,
    "hierarchy": hierarchy,
    "stream": stream,
    "unusual": unusual,
}


def load_begins(cells: Iterable[Cell]) -> dict[str, date]:
    """Return the day from which each study's load is read; the steps of a stream are counted from it."""
    whole = YEARS["2013-2016"][0]
    begins = {"regions": date(2016, 1, 1), "hierarchy": date(2016, 1, 1), "stream": whole, "unusual": whole}
    return {study: begins[study] for study in {cell.study for cell in cells}}
