"""What is done with a cell: its mechanism is run on the span, trial by trial, and compared with the truth.

Single-level releases are raised to 0 where they lie below, every mechanism's alike: load is not negative,
and everybody knows. On a tree the bound is part of the fit.
"""

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

import numpy as np

from optstream.mechanisms.optstream import error_bound, suggest_n_samples
from optstream.noise import NoiseSource, simulated_noise
from studies.evaluation.build import on_finite_series, on_series, on_tree
from studies.evaluation.data import (
    FEBRUARY,
    JUNE,
    OCTOBER,
    STEPS_PER_DAY,
    YEAR,
    Load,
    Span,
    StudyData,
    Values,
)
from studies.evaluation.experiments import (
    CONTENDERS,
    LEAD_DAYS,
    POINTS_ONLY,
    RAW,
    Cell,
    Study,
    Trial,
    TrialResult,
)
from studies.evaluation.metrics import (
    LEARNED_DAYS,
    covered,
    forecast_errors,
    mean_absolute_error,
    relative_error,
    step_errors,
    violation,
)
from studies.evaluation.releases import Released, release_counts, release_days, side_by_side
from studies.evaluation.streams import stream, unusual

RELATIVE_FLOOR = 1.0
SPANS = {span.name: span for span in (FEBRUARY, JUNE, OCTOBER, YEAR)}


def run_trial(cell: Cell, data: StudyData, seed: int, trial: int) -> Trial:
    """Run one trial of a cell: its result, and what the mechanism's plan costs any window.

    Raises ParameterError for a cell that cannot be run.
    """
    noise = simulated_noise(cell.entropy(seed, trial))
    return _STUDIES[cell.study](cell, data, noise, trial)


def _regions(cell: Cell, data: StudyData, noise: NoiseSource, trial: int) -> Trial:
    """Return every region at full epsilon; and last week's release in the place of today's."""
    span = Span.named(cell.span, SPANS)
    lead = 0 if span == YEAR else CONTENDERS[cell.mechanism].lead_days
    rows = span.rows(data.load, lead)
    truth = data.load.values[rows.start : rows.stop]
    begin = max(lead - LEAD_DAYS, 0)  # before, a mechanism that learns is watched and nothing is compared
    released, plan = _single_level(
        cell, data.load, truth, rows.start, noise, accounted=_looks(cell, trial), only_measured=begin
    )
    found, real = released.values[lead - begin :], truth[lead:]
    metrics = step_errors(found, real)
    metrics["mean_load"] = float(real.mean())
    if lead:
        metrics["last_week"] = mean_absolute_error(released.values[:-LEAD_DAYS], real)
    if released.errors is not None:
        metrics["covered"] = covered(found, real, released.errors[lead - begin :])
    if cell.mechanism == POINTS_ONLY:
        metrics |= _bounds(cell, data)
    return TrialResult(trial, metrics, released.drawn, released.drawn_aligned), plan


def _bounds(cell: Cell, data: StudyData) -> dict[str, float]:
    """Return the bounds of Theorem 11 for these points, with the largest move and with the usual one (then it
    is no bound).
    """
    count, epsilon, alpha = cell.point.n_samples, Fraction(cell.point.epsilon), Fraction(cell.point.alpha)
    assert count is not None
    moves = {"bound": data.largest_move_mw, "bound_usual": data.usual_move_mw}
    return {name: error_bound(STEPS_PER_DAY, count, epsilon, alpha, move) for name, move in moves.items()} | {
        f"suggested_{name}": float(suggest_n_samples(STEPS_PER_DAY, epsilon, alpha, move).n_samples)
        for name, move in moves.items()
    }


def _hierarchy(cell: Cell, data: StudyData, noise: NoiseSource, trial: int) -> Trial:
    """Return the results of nation and regions, half of epsilon each."""
    needed = CONTENDERS[cell.mechanism].lead_days
    lead = needed if needed > LEAD_DAYS else 0  # others begin with the month
    tree, rows = data.load.tree, Span.named(cell.span, SPANS).rows(data.load, lead)
    load, start = data.load.values[rows.start : rows.stop], data.load.running_day(rows.start)
    mechanism = on_tree(cell, tree, data.load.public_days)
    looks = _looks(cell, trial)
    released = release_days(mechanism, load, start, noise, accounted=looks, only_measured=lead)
    truth, values = tree.add_up(load)[lead:], released.values
    metrics = {
        **step_errors(values[:, 1:], truth[:, 1:]),
        **{f"{name}_nation": value for name, value in step_errors(values[:, :1], truth[:, :1]).items()},
        "violation": violation(values, tree),
    }
    return TrialResult(trial, metrics, released.drawn, released.drawn_aligned), mechanism.epsilon


def _forecast(cell: Cell, data: StudyData, noise: NoiseSource, trial: int) -> Trial:
    """Return the results of one region's stream, real or released, forecast day by day and compared with the
    real next day.
    """
    rows = Span.named(cell.span, SPANS).rows(data.load, LEARNED_DAYS)
    load = replace(
        data.load, values=data.load.of_region(data.forecast_region), regions=(data.forecast_region,)
    )
    truth = load.values[rows.start : rows.stop]
    released, plan = _single_level(cell, load, truth, rows.start, noise, accounted=_looks(cell, trial))
    metrics = forecast_errors(released.values[:, 0], truth[:, 0])
    return TrialResult(trial, metrics, released.drawn, released.drawn_aligned), plan


def _counts(cell: Cell, data: StudyData, noise: NoiseSource, trial: int) -> Trial:
    """Return the results of one finite series, protected as a whole."""
    counts = data.counts[cell.span]
    mechanism = on_finite_series(cell, counts)
    released = release_counts(mechanism, counts.values, counts.published_steps, noise)
    published = np.maximum(released.values, 0.0)
    metrics = {
        **step_errors(published, counts.values),
        "relative": relative_error(published, counts.values, RELATIVE_FLOOR),
        "n_steps": float(counts.values.size),
    }
    return TrialResult(trial, metrics, released.drawn, released.drawn), mechanism.epsilon


def _single_level(
    cell: Cell, load: Load, truth: Values, row: int, noise: NoiseSource, *, accounted: bool,
    only_measured: int = 0,
) -> tuple[Released, Fraction | None]:  # fmt: skip
    if cell.mechanism == RAW:
        return Released(truth[only_measured:], None, None), None
    if CONTENDERS[cell.mechanism].each_region:
        mechanisms = [on_series(cell, [region], load.public_days) for region in load.regions]
        groups = [slice(row, row + 1) for row in range(len(load.regions))]
    else:
        mechanism = on_series(cell, load.regions, load.public_days, load.covariates)
        mechanisms, groups = [mechanism], [slice(None)]
    parts = []
    for one, group in zip(mechanisms, groups, strict=True):
        part = release_days(
            one, truth[:, group], load.running_day(row), noise, accounted=accounted,
            only_measured=only_measured,
        )  # fmt: skip
        leaves = part.values[:, -truth[:, group].shape[1] :]  # a root above plain series is derived
        parts.append(replace(part, values=np.maximum(leaves, 0.0)))
    return side_by_side(parts), mechanisms[0].epsilon


def _looks(cell: Cell, trial: int) -> bool:
    """Return whether the accountant looks at this trial: at the first of every cell."""
    return trial == cell.trials[0]


_STUDIES: dict[Study, Callable[[Cell, StudyData, NoiseSource, int], Trial]] = {
    "regions": _regions,
    "hierarchy": _hierarchy,
    "forecast": _forecast,
    "counts": _counts,
    "stream": stream,
    "unusual": unusual,
}
