"""Measurements of linear queries: sums of consecutive steps, at every node of a tree or of plain series.
Noise is drawn by its price: a step or a Gaussian spend; or is that of a whole stream, drawn before."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from optstream.errors import ParameterError
from optstream.measurement.ordered import Ordered, OrderTerms
from optstream.noise import NoiseSource, discrete_gaussian
from optstream.noise.order import VARIANCES
from optstream.privacy import CappedSpend, GaussianSpend, OrderSpend, PeriodSpend, Spend, StepSpend
from optstream.privacy.exact import round_up_to_float
from optstream.privacy.rules import PublicationRule, WindowBudget
from optstream.privacy.spends import CUSTOMERS
from optstream.stream import AggregationTree, Feature, FeatureSums, Measured, PrivatePeriod, State
from optstream.stream.private_period import open_customers, open_private_period

SAMPLES = "samples"
LinearSpend = StepSpend | OrderSpend | GaussianSpend


def query_weights(parts: Sequence[range], n_steps: int) -> tuple[int, ...]:
    """Return 1 for each step that a part covers, else 0; parts are disjoint. Privacy: none; all is public."""
    covered = {step for part in parts for step in part}
    if len(covered) != sum(map(len, parts)) or not covered <= set(range(n_steps)):
        raise ParameterError("the parts of a query must be disjoint and inside the period")
    return tuple(int(step in covered) for step in range(n_steps))


def check_price(
    spend: LinearSpend, parts: Sequence[range], n_series: int, first_step: int, n_steps: int
) -> None:
    """Refuse a spend or scale that prices another query than the sums of these parts, at n_series nodes.
    Privacy: none; choices and lengths are public."""
    priced = (spend.first_step, spend.weights) == (first_step, query_weights(parts, n_steps))
    if not isinstance(spend, StepSpend):
        priced = priced and spend.parts == tuple(parts)
    if isinstance(spend, OrderSpend):
        priced = priced and spend.n_nodes == n_series
    if not (priced and Fraction(float(spend.scale)) == spend.scale):
        raise ParameterError(f"the spend of stage {spend.stage!r} does not price the query it is for")


def linear_noise(
    spend: LinearSpend, shape: tuple[int, ...], noise: NoiseSource, ordered: Ordered | None = None
) -> NDArray[np.int64]:
    """Return noise, (n_series, n_answers), of the spend's own scale; series are independent; noise of a whole
    stream must be drawn already. Privacy: none; the answers are charged by Lemmas 3, 20 and 20a, or 15a and
    16b."""
    if isinstance(spend, OrderSpend):
        if ordered is None or ordered.noise.shape != shape:
            raise ParameterError("noise of a whole stream is drawn before the measurement, for its parts")
        return ordered.noise
    if isinstance(spend, GaussianSpend):
        return discrete_gaussian(noise, float(spend.scale), shape)
    return noise.discrete_laplace(float(spend.scale), shape)


def answer_variance(spend: LinearSpend) -> float:
    """Return the noise's variance in an answer, in units squared; for Gaussian noise a bound.
    Privacy: none; scales are public."""
    square = float(spend.scale) ** 2
    if isinstance(spend, OrderSpend):
        return VARIANCES[OrderTerms(spend.n_blocks, spend.longest).window - 1] * square
    return square if isinstance(spend, GaussianSpend) else 2.0 * square


# Noisy numbers of a period as its measurements.


def measured_of(
    period: PrivatePeriod,
    noise: NoiseSource,
    spends: Sequence[Spend],
    *,
    positions: Sequence[int] = (),
    points: NDArray[np.int64] | None = None,
    variances: NDArray[np.float64] | None = None,
    **others: Any,
) -> Measured:
    """Return a period's measurements, at the cost of these spends. Privacy: none; they are noisy."""
    nothing = np.zeros((period.n_leaves, 0), dtype=np.int64)
    return Measured(
        n_steps=period.n_steps,
        first_step=period.first_step,
        positions=tuple(positions),
        points=nothing if points is None else points,
        resolution=period.resolution,
        spends=tuple(spends),
        simulated=noise.simulated,
        point_variances=nothing.astype(np.float64) if variances is None else variances,
        **others,
    )


# Measurements at every node of a tree.


def feature_stage(feature: Feature) -> str:
    """Return the stage under which a feature's spends are booked. Privacy: none."""
    return f"feature {feature.name}"


def measure_points_and_sums(
    period: PrivatePeriod,
    tree: AggregationTree,
    *,
    points: Mapping[int, Sequence[int]],
    features: Sequence[Feature],
    spends: Sequence[Spend],
    noise: NoiseSource,
    state: Mapping[str, Any] | None = None,
    ordered: Mapping[int, Ordered] | None = None,
) -> Measured:
    """Measure single steps and the features' sums at every node of each level that has a spend.

    points: for each level its sampled steps of the period, rising. spends: of each measured level and stage
    (`SAMPLES`, `feature_stage`) one step spend, or order spend of samples, whose noise is that of `ordered`.
    A level without one: zeros with infinite variance. A shape, first step or spend that does not fit raises
    ParameterError before the draw. Privacy: Lemma 3 (linear queries) for each step spend, Lemma 16b for each
    order spend.
    """
    check_leaves(period, tree)
    positions = tuple(sorted({step for chosen in points.values() for step in chosen}))
    linear = [spend for spend in spends if isinstance(spend, LinearSpend)]
    parts = {feature_stage(feature): feature.parts for feature in features}
    for spend in linear:
        own = tuple(range(step, step + 1) for step in points[spend.level])
        query = own if spend.stage == SAMPLES else parts[spend.stage]
        check_price(spend, query, len(tree.levels[spend.level]), period.first_step, period.n_steps)
    totals, n_nodes = tree.add_up(open_private_period(period)), len(tree.nodes)
    noisy_points = np.zeros((n_nodes, len(positions)), dtype=np.int64)
    point_variances = np.full(noisy_points.shape, np.inf)
    exact_sums = {feature_stage(feature): feature.sums(totals) for feature in features}
    sums = {stage: np.zeros(exact.shape, np.int64) for stage, exact in exact_sums.items()}
    sum_variances = {stage: np.full((n_nodes, 1), np.inf) for stage in sums}
    for spend in linear:
        nodes = slice(tree.levels[spend.level].start, tree.levels[spend.level].stop)
        if spend.stage == SAMPLES:
            chosen = list(points[spend.level])
            columns = np.searchsorted(positions, chosen)
            exact, drawn = totals[nodes][:, chosen], (ordered or {}).get(spend.level)
            noisy_points[nodes, columns] = exact + linear_noise(spend, exact.shape, noise, drawn)
            point_variances[nodes, columns] = answer_variance(spend)
        else:
            exact = exact_sums[spend.stage][nodes]
            sums[spend.stage][nodes] = exact + linear_noise(spend, exact.shape, noise)
            sum_variances[spend.stage][nodes] = answer_variance(spend)
    answers = FeatureSums(tuple(sums.values()), tuple(sum_variances.values()))
    return measured_of(
        period, noise, spends, positions=positions, points=noisy_points, variances=point_variances,
        answers=answers, state=state,
    )  # fmt: skip


def check_leaves(period: PrivatePeriod, tree: AggregationTree) -> None:
    """Raise ParameterError for other leaves than the tree's. Privacy: none; the shape is public."""
    if period.n_leaves != len(tree.leaves):
        raise ParameterError(
            f"values must have {len(tree.leaves)} leaves (rows, in tree.leaves order); got {period.n_leaves}"
        )


# Measurements of single steps of plain series, chosen by a public rule.


def measure_steps(
    period: PrivatePeriod,
    positions: Sequence[int],
    spend: LinearSpend,
    noise: NoiseSource,
    ordered: Ordered | None = None,
) -> Measured:
    """Measure these steps of every series, (n_series, n_positions), with the spend's own noise. A spend that
    prices other steps raises ParameterError before any draw. Privacy: Lemma 3 (linear queries); Lemma 16b for
    an order spend; Lemma 20 for a Gaussian one, in rho."""
    parts = [range(step, step + 1) for step in positions]
    check_price(spend, parts, period.n_leaves, period.first_step, period.n_steps)
    exact = open_private_period(period)[:, list(positions)]
    noisy = exact + linear_noise(spend, exact.shape, noise, ordered)
    variances = np.full(exact.shape, answer_variance(spend))
    return measured_of(period, noise, (spend,), positions=positions, points=noisy, variances=variances)


def spent(plan: StepSpend | CappedSpend, weights: Sequence[int | Fraction]) -> StepSpend:
    """Return the plan's price at the chosen steps, by weight. Privacy: none; the choice was paid for."""
    return StepSpend(
        plan.level, plan.stage, plan.first_step, tuple(weights),
        plan.scale, plan.alpha_units, plan.leaves_changed,
    )  # fmt: skip


# Laplace measurements of single steps in the order of time, each chosen from earlier ones.


def measure_in_turn(
    period: PrivatePeriod,
    plan: CappedSpend,
    window_length: int,
    due: Callable[[int], bool],
    saw: Callable[[int, NDArray[np.int64]], object],
    noise: NoiseSource,
) -> Measured:
    """Measure, at every series, each step that is due and that the plan has headroom for, step by step; `due`
    knows the noisy values, (n_series,), of earlier steps from `saw` alone. The plan is settled to a step
    spend of the chosen steps. Privacy: Lemma 10 (samples chosen in turn): each measured step that changed
    loses at most the plan's unit charge, and any window holds at most `cap` of them."""
    exact, window = open_private_period(period), (window_length, period.first_step, period.n_steps)
    rule = WindowBudget(int(plan.cap), *window, [(step, 1) for step in plan.taken])
    scale, found = float(plan.scale), dict[int, NDArray[np.int64]]()
    for step in range(period.n_steps):
        if due(period.first_step + step) and rule.headroom(step) >= 1:
            found[step] = exact[:, step] + noise.discrete_laplace(scale, (len(exact),))
            rule.take(step)
            saw(period.first_step + step, found[step])
    chosen = np.array([*found.values()], dtype=np.int64).reshape(len(found), len(exact)).T
    variances = np.full(chosen.shape, 2.0 * scale**2)
    spends = (spent(plan, [int(step in found) for step in range(plan.n_steps)]),)
    return measured_of(period, noise, spends, positions=[*found], points=chosen, variances=variances)


# Publishing a step only where it lies far from the last release: budget distribution and absorption.


def measure_by_distance(
    period: PrivatePeriod,
    last_release: Sequence[int],
    distance: StepSpend,
    publications: CappedSpend,
    rule: PublicationRule,
    noise: NoiseSource,
) -> Measured:
    """Measure the steps that a noisy distance finds far from the last release, for all series at once.

    Noise is drawn in the order of time; a step to which the rule offers nothing is not charged.
    Privacy: Lemma 11 (publications by distance): a distance is one answer, which loses alpha / scale as a
    linear query does; no window pays more than its distances and the rule's budget.
    """
    if len(last_release) != period.n_leaves:
        raise ParameterError(
            f"the state holds a last release of {len(last_release)} series, and this period has "
            f"{period.n_leaves}"
        )
    whole = (period.first_step, period.n_steps)
    if any((spend.first_step, spend.n_steps) != whole for spend in (distance, publications)):
        raise ParameterError("the plan does not price the steps it is for")
    exact = open_private_period(period)
    last: NDArray[np.int64] = np.array(last_release, dtype=np.int64)
    offered, paid = [0] * period.n_steps, [Fraction(0)] * period.n_steps
    points, scales = dict[int, NDArray[np.int64]](), list[float]()
    for step in range(period.n_steps):
        if not (grains := rule.offer(step)):
            continue
        offered[step] = 1
        weight = Fraction(grains, rule.n_grains)
        scale = round_up_to_float(publications.scale / weight)
        if is_far(exact[:, step], last, scale, float(distance.scale), noise):
            last = points[step] = exact[:, step] + noise.discrete_laplace(scale, last.shape)
            rule.publish(step, grains)
            paid[step] = weight
            scales.append(scale)
    shape = (period.n_leaves, len(points))
    return measured_of(
        period,
        noise,
        (spent(distance, offered), spent(publications, paid)),
        positions=[*points],
        points=np.array([*points.values()], dtype=np.int64).reshape(shape[::-1]).T,
        variances=np.broadcast_to(2.0 * np.array(scales) ** 2, shape),
    )


def is_far(
    exact: NDArray[np.int64],
    last: NDArray[np.int64],
    publication_scale: float,
    distance_scale: float,
    noise: NoiseSource,
) -> bool:
    """Return whether the noisy distance of a step exceeds a publication's error: a noise scale a series.
    Arrays are (n_series,), in units. Privacy: Lemma 11, a single answer; `last` is noisy."""
    away = sum(np.abs(exact - last).tolist()) + int(noise.discrete_laplace(distance_scale, (1,))[0])
    return bool(away > last.size * Fraction(publication_scale))


# A tree's levels: each as a private period of its own, and their measurements as one.


def level_period(period: PrivatePeriod, tree: AggregationTree, level: int) -> PrivatePeriod:
    """Return the nodes of one level, (n_nodes of the level, n_steps), private as the leaves are.
    Privacy: Lemma 2: one customer's change moves the level's nodes by as much as the leaves, in all."""
    check_leaves(period, tree)
    nodes = tree.levels[level]
    totals = tree.add_up(open_private_period(period))[nodes.start : nodes.stop]
    return PrivatePeriod(totals, resolution=period.resolution, first_step=period.first_step)


def combined(parts: Mapping[int, Measured], state: State | None, before: State | None) -> Measured:
    """Return the measurements of several levels, kept as `parts`, as those of one period. `before` is the
    mechanism's old state without raw entries. Privacy: none; the measurements are noisy."""
    levels = [
        replace(part, spends=tuple(replace(spend, level=level) for spend in part.spends))
        for level, part in parts.items()
    ]
    first = levels[0]
    return Measured(
        n_steps=first.n_steps,
        first_step=first.first_step,
        positions=(),
        points=np.zeros((0, 0), dtype=np.int64),
        resolution=first.resolution,
        spends=tuple(spend for part in levels for spend in part.spends),
        simulated=any(part.simulated for part in levels),
        answers=FeatureSums((), None),
        state=state,
        before=before,
        parts=tuple(levels),
    )


# How many customers stand behind each leaf of a period, with noise of a share of its own.

MOVED = 2
"""The most by which one customer moves the counts of a period together: out of one leaf, into another."""


def customers_spend(
    level: int, first_step: int, n_steps: int, epsilon: Fraction, n_periods: int
) -> PeriodSpend:
    """Return the price of a period's counts, at which no window loses more than `epsilon` by all counts.
    n_periods: the most of which one window has steps, over windows with a step of this one. Privacy: none;
    all is public."""
    scale = Fraction(round_up_to_float(MOVED * n_periods / epsilon))
    return PeriodSpend(level, CUSTOMERS, first_step, (Fraction(0), *[MOVED / scale] * n_steps))


def scale_of(spend: Spend) -> Fraction:
    """Return the scale of the noise that a spend of `customers_spend` prices. Privacy: none; it is public."""
    return MOVED / spend.whole_charge


def with_customers(measured: Measured, period: PrivatePeriod, spend: Spend, noise: NoiseSource) -> Measured:
    """Return the measurements with the noisy number of customers of each leaf, and its spend.
    Privacy: Lemma 24: every window with a step of the period loses MOVED / b, which is the spend's charge."""
    if (spend.stage, spend.first_step, spend.n_steps) != (CUSTOMERS, period.first_step, period.n_steps):
        raise ParameterError(f"the spend of stage {spend.stage!r} does not price this period's customers")
    exact = open_customers(period)
    noisy = exact + noise.discrete_laplace(float(scale_of(spend)), exact.shape)
    return replace(measured, customers=tuple(noisy.tolist()), spends=(*measured.spends, spend))
