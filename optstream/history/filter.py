"""The estimate of a period from the blocks of the last weeks and a learned prior."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from optstream.estimation.estimate import UNKNOWN
from optstream.history.blocks import BlockHistory, Blocks
from optstream.history.learn import learn, noise_groups, seen_series, step_blocks
from optstream.history.posterior import MORE_NOISE, Fitted, Question, explained, fit, series_of
from optstream.history.prior import COMPONENTS, Component, TemporalPrior
from optstream.history.robust import known_information
from optstream.history.tree import NoiseGroups, Rotation, Seen, TreePosterior
from optstream.stream import AggregationTree
from optstream.stream.covariate import Covariate
from optstream.stream.public_days import PublicDays

Floats = NDArray[np.float64]

FIRST_LEARNED_DAYS = 7
"""Days of blocks before anything is learned from them."""
MOST_LEARNED = 252
MOST_FITTED = 336
"""Blocks that one posterior looks at: its time grows with the third power."""
MOVED = 168
"""Blocks between the windows of `around`: a window ends at the newest block, the next ones so many before."""
NEAR_DAYS = 14
"""Days for which a new estimate reads the newest day's state alone; later, its own state too."""


@dataclass(frozen=True, eq=False)
class FilterState:
    """The measurements of a stream so far, and its learned prior.

    Attributes:
        history: Blocks of the last weeks.
        prior: Learned or broad.
        days: The public clock.
        began: The first day of the stream; None before it.
        learned: The day on which the prior was learned; None before.
        events: Days that were unlike all others.
        covariates: Public covariates as known in the night that measures or estimates; not passed on.
    """

    history: BlockHistory
    prior: TemporalPrior
    days: PublicDays
    began: int | None = None
    learned: int | None = None
    events: tuple[int, ...] = ()
    covariates: tuple[Covariate, ...] = ()

    @classmethod
    def from_document(
        cls,
        document: Mapping[str, Any] | None,
        n_series: int,
        days: PublicDays,
        components: tuple[Component, ...] = COMPONENTS,
    ) -> "FilterState":
        """Return the state that `to_document` wrote; that of a new stream where there is none.

        A prior of other components, which another version learned, is forgotten, and that it was learned: the
        next night learns its own.
        """
        given = document or {}
        prior = TemporalPrior.broad(days.steps_per_day, components)
        began, learned, events = (given.get(key) for key in ("began", "learned", "events"))
        logs = given.get("prior")
        if logs is not None and len(logs) == prior.logs.size:
            prior = replace(prior, logs=np.array(logs, dtype=np.float64))
        else:
            learned = None  # no day is judged by what nothing was learned of
        history = BlockHistory.from_document(given.get("history"), n_series)
        covariates = tuple(Covariate.from_document(one) for one in given.get("covariates", ()))
        return cls(history, prior, days, began, learned, tuple(events or ()), covariates)

    def to_document(self) -> dict[str, Any]:
        """Return the state as a JSON-ready document, public; covariates only where there are any."""
        known = {"covariates": [one.to_document() for one in self.covariates]} if self.covariates else {}
        return {
            "history": self.history.to_document(),
            "prior": self.prior.logs.tolist(),
            "began": self.began,
            "learned": self.learned,
            "events": list(self.events),
            **known,
        }

    def refreshed(self, first_step: int, relearn_days: int, scale: float | None) -> "FilterState":
        """Return the belief with which a period that begins at this step is measured.

        The last complete day is called an event if it was one; the prior is learned again when due: first
        after `FIRST_LEARNED_DAYS`, then each time after as many days as were known, at most `relearn_days`;
        never if that is 0.
        """
        if not self.history.n_blocks:
            return self
        judged = self.judged(first_step, scale)
        if not self.is_due(first_step, relearn_days):
            return judged
        seen, _ = seen_series(latest(self.history, MOST_LEARNED), self.days, scale, judged.events)
        return judged.taught(seen, first_step)

    def taught(self, seen: Seen, first_step: int) -> "FilterState":
        """Return the belief with a prior learned from the measurements less the covariates' effect."""
        left = explained(self.prior, seen, self.covariates, self.days)[0].seen
        return replace(self, prior=learn(self.prior, left), learned=self.day_of(first_step))

    def judged(self, first_step: int, scale: float | None) -> "FilterState":
        """Return the state, the last day before this step's added to the events if it was one."""
        history = latest(self.history, MOST_FITTED)
        return self.judged_by(
            lambda events: seen_series(history, self.days, scale, events)[0], history, first_step
        )

    def judged_by(
        self, seen: Callable[[tuple[int, ...]], Seen | None], history: BlockHistory, first_step: int
    ) -> "FilterState":
        """Return `judged` of this history's days, by `seen`, the measurements given some event days."""
        days = self.days.clock(history.starts) // self.days.steps_per_day
        last, today = int(days[-1]), self.day_of(first_step)
        kept = tuple(day for day in self.events if day >= days[0])
        if len(kept) >= len(set(days.tolist())):
            kept = ()  # all that is remembered is one event: it is how things are now
        known = None if self.learned is None or last in kept or last >= today else seen(kept)
        unlike = known is not None and fit(self._question(known, (last,), True)).unlike
        return replace(self, events=(*kept, last) if unlike else kept)

    def is_due(self, first_step: int, relearn_days: int) -> bool:
        """Return whether the prior is to be learned before the period that begins at this step."""
        if self.began is None or not relearn_days:
            return False
        since, last = self.began, self.learned
        wait = FIRST_LEARNED_DAYS if last is None else min(relearn_days, max(last - since, 1))
        return self.day_of(first_step) - (since if last is None else last) >= wait

    def after(self, own: BlockHistory, history_days: int) -> "FilterState":
        """Return the state after a period: its blocks and those of the last `history_days` that an estimate
        of the `NEAR_DAYS` before it reads.
        """
        if not own.n_blocks:
            return self
        began = self.day_of(int(own.starts[0])) if self.began is None else self.began
        joined, steps_per_day = self.history.joined(own), self.days.steps_per_day
        newest = int(joined.starts[-1])
        kept = joined.between(newest - history_days * steps_per_day, newest + 1)
        return replace(self, history=in_sight(kept, steps_per_day), began=began)

    def fitted(
        self, own: BlockHistory, steps: range, history_days: int, scale: float | None
    ) -> tuple[Floats, Floats]:
        """Return posterior means and variances at these steps from all blocks, (n_series, n_steps), in units.

        Where nothing was ever measured: the public scale or 0, with `UNKNOWN` variance. With blocks of later
        periods and the steps of an earlier one it is a revised estimate.
        """
        history = around(self.after(own, history_days).history, steps)
        shape = (len(history.sums), len(steps))
        if not history.n_blocks:
            return np.full(shape, scale or 0.0), np.full(shape, UNKNOWN)
        seen, means = seen_series(history, self.days, scale, self.events)
        found, events = self.answer(seen, steps)
        moved, variances = series_of(found, step_blocks(steps, self.days, events))
        return means[:, None] + moved[1:], variances[1:]

    def events_with(
        self, own: BlockHistory, steps: range, history_days: int, scale: float | None
    ) -> tuple[int, ...]:
        """Return the event days of `fitted` with the same arguments, the steps' included."""
        history = around(self.after(own, history_days).history, steps)
        if not history.n_blocks:
            return self.events
        seen, _ = seen_series(history, self.days, scale, self.events)
        return tuple(sorted(self.answer(seen, steps)[1]))

    def answer(self, seen: Seen, steps: range) -> tuple[Fitted, set[int]]:
        """Return the posterior for these steps, and the days that are events, theirs included if they are."""
        today = tuple(range(self.day_of(steps.start), self.day_of(steps.stop - 1) + 1))
        found = fit(self._question(seen, today, self.learned is not None))
        return found, {*self.events, *today} if found.unlike else set(self.events)

    def _question(self, seen: Seen, today: tuple[int, ...], watch: bool) -> Question:
        return Question(self.prior, seen, self.days, today, watch, self.covariates)

    def day_of(self, step: int) -> int:
        """Return the day of a running step."""
        return self.days.day_of(step)


def around(history: BlockHistory, steps: range) -> BlockHistory:
    """Return the `MOST_FITTED` blocks in a row, of a few such windows, in whose middle the steps lie best.

    The newest days share a window, and so do those before them: a night conditions two or three times for its
    own day and a fortnight of new estimates.
    """
    behind = history.n_blocks - MOST_FITTED
    if behind <= 0:
        return history
    middle = int(np.searchsorted(history.starts, (steps.start + steps.stop) // 2))
    moved = MOVED * max(round((behind + MOST_FITTED // 2 - middle) / MOVED), 0)
    places = np.arange(history.n_blocks) - max(behind - moved, 0)
    return history.chosen((places >= 0) & (places < MOST_FITTED))


def in_sight(history: BlockHistory, steps_per_day: int) -> BlockHistory:
    """Return the blocks that `around` can choose for a day at most `NEAR_DAYS` before the newest block's.

    From the middle of such a day to the newest block there are fewer than that time and a day hold, n; a
    window begins at most `MOST_FITTED` blocks before that.
    """
    near = history.starts > history.starts[-1] - (NEAR_DAYS + 1) * steps_per_day
    return latest(history, MOST_FITTED + int(near.sum()))


def latest(history: BlockHistory, most: int) -> BlockHistory:
    """Return the last so many blocks."""
    return history.chosen(np.arange(history.n_blocks) >= history.n_blocks - most)


# How far a day's mean may be off: not as a single value, and leaves more than the prior says.


MORE_OF_DAYS = 0.9
"""Factor of the prior's residual variance of leaves' days, apart from their shares of the sum."""


@dataclass(frozen=True, eq=False)
class PeriodErrors:
    """The errors of a posterior at the steps of a period, corrected for means over a day.

    The factor of a posterior comes from single blocks, by which single values err. It does not hold for a
    day's mean, whose error is mostly noise, which is known: so an error w of a value becomes w - (1 - 1 /
    sqrt(factor)) u m, m the mean of w over its day, which then has the posterior's own variance. u, of mean 1
    over the day's steps, is the share of the uncertainty at the step (`uncertainty`): a step that was
    measured well has little of it. And the prior takes the leaves' own parts for independent and alike, where
    neighbours have the same weather: the prior's residual variance of a leaf's day, apart from its share of
    the sum of all, counts `MORE_OF_DAYS` times more, as an error of its own that goes with u over the day. On
    the French load that is so at every epsilon alike (docs/decisions/0021-errors-of-sums.md).

    For a day of one step none of this applies: there a single value is a day's mean. The prior's part of a
    variance V, which is homogeneous in prior and noise together, is V less its derivative by the logarithm of
    the noise.

    Attributes:
        fitted: The posterior.
        steps: Of the period.
        is_day: Whether the period is a day of several steps.
    """

    fitted: Fitted
    steps: Blocks
    is_day: bool

    def series(self) -> tuple[Floats, Floats]:
        """Return posterior means less prior means, and variances, of every node, (n_nodes, n_steps)."""
        if not self.is_day:
            return series_of(self.fitted, self.steps)
        means, variances = series_of(self.fitted, self.steps, np.eye(self.uncertainty.size) + self._to_mean)
        return means, np.maximum(variances + self._more[:, None] * self.uncertainty**2, 0.0)

    def draws(self, n: int) -> Floats:
        """Return draws of the errors of every node, (n, n_nodes, n_steps)."""
        known = self.fitted.known
        tree, sizes = known.published.seen.tree, known.published.seen.sizes
        of_prior, of_rest = known.draws(n, self.steps)
        found = np.sqrt(known.factor) * (of_prior + of_rest)
        if self.is_day:
            found = found + found @ self._to_mean.T
            # those of another replicate, which are independent
            means = np.roll(of_prior, 1, axis=0).mean(axis=2)
            apart = means - means.sum(axis=1, keepdims=True) * sizes / sizes.sum()
            found = found + np.sqrt(MORE_OF_DAYS) * apart[:, :, None] * self.uncertainty
        return np.stack([tree.add_up(one) for one in found])

    @property
    def _to_mean(self) -> Floats:
        """What is added to each step's error of that of the others, (n_steps, n_steps)."""
        n = self.uncertainty.size
        return np.outer(self.uncertainty, np.full(n, (self.fitted.factor**-0.5 - 1.0) / n))

    @property
    def _more(self) -> Floats:
        """The additional variance of day means, (n_nodes,)."""
        known, noisier = (
            self._apart(one) for one in (self.fitted.known.published, self.fitted.known.noisier)
        )
        return MORE_OF_DAYS * (known - (noisier - known) / MORE_NOISE)

    def _apart(self, posterior: TreePosterior) -> Floats:
        """Return the variance of each node's mean, apart from its share of the root's, (n_nodes,)."""
        n = self.uncertainty.size
        means = np.full((1, n), 1.0 / n)
        variances = posterior.variances(self.steps, times=means)[:, 0]
        share = posterior.weights[:, 0] / posterior.weights[0, 0]
        with_root = posterior.covariance_with_root(self.steps, means[0])
        return np.asarray(variances - 2.0 * share * with_root + share**2 * variances[0])

    @cached_property
    def uncertainty(self) -> Floats:
        """The share of the day's uncertainty at each of its steps, (n_steps,), of mean 1.

        It is proportional to the mean of leaves' posterior standard deviations there.
        """
        posterior = self.fitted.known.published
        variances = posterior.variances(self.steps, posterior.seen.tree.leaf_indices)
        found = np.sqrt(variances).mean(axis=0)
        return np.asarray(found / found.mean() if found.any() else np.ones(found.size))


# From the blocks of every level to every node's series: one posterior over the whole tree.

SAME = 1e-9
"""Relative: noise scales that differ by less are one."""
OTHER_PLAN = 1.7
"""Factor between levels' scales that shows another plan; groups of joint noise next to Laplace noise, whose
sizes differ by a third, make less of a difference."""
Look = Callable[..., tuple[Seen, *tuple[Floats, ...]] | None]
"""`seen_tree` or `counts.seen_counts`: the measurements, then the sizes."""


@dataclass(frozen=True, eq=False)
class TreeFit:
    """A period's posterior from the blocks of every level.

    Attributes:
        found: The posterior.
        means: (n_leaves,), prior means a step, in units.
        tree: Of all nodes.
        days: The public clock.
        events: Event days, the period's included if they are.
    """

    found: Fitted
    means: Floats
    tree: AggregationTree
    days: PublicDays
    events: set[int]

    def errors(self, steps: range) -> PeriodErrors:
        """Return the errors at these steps, of one period."""
        is_day = 1 < self.days.steps_per_day < 2 * len(steps)
        return PeriodErrors(self.found, step_blocks(steps, self.days, self.events), is_day)

    def series(self, steps: range) -> tuple[Floats, Floats]:
        """Return posterior means, which add up, and variances of every node at these steps, in units."""
        moved, variances = self.errors(steps).series()
        return self.tree.add_up(self.means[:, None]) + moved, variances


def fit_tree(
    belief: FilterState,
    histories: Mapping[int, BlockHistory],
    tree: AggregationTree,
    steps: range,
    scale: float | None,
) -> TreeFit | None:
    """Return the posterior at these steps; None where nothing was ever measured.

    `belief` is the tree's learned state, whose history is not read; a level that `histories` lacks was not
    measured.
    """
    known = seen_tree(histories, tree, belief.days, scale, belief.events)
    if known is None:
        return None
    seen, means = known
    found, events = belief.answer(seen, steps)
    return TreeFit(found, means, tree, belief.days, events)


def nothing_measured(tree: AggregationTree, n_steps: int, scale: float | None) -> tuple[Floats, Floats]:
    """Return means and variances of every node where nothing was ever measured, as `FilterState.fitted`."""
    shape = (len(tree.leaves), n_steps)
    return tree.add_up(np.full(shape, scale or 0.0)), tree.add_up(np.full(shape, UNKNOWN))


def events_of_tree(
    belief: FilterState,
    histories: Mapping[int, BlockHistory],
    tree: AggregationTree,
    steps: range,
    scale: float | None,
    look: Look,
) -> tuple[int, ...]:
    """Return the event days of `fit_tree` with the same arguments, the steps' included."""
    known = look(histories, tree, belief.days, scale, belief.events)
    return belief.events if known is None else tuple(sorted(belief.answer(known[0], steps)[1]))


def judged_tree(
    belief: FilterState,
    histories: Mapping[int, BlockHistory],
    tree: AggregationTree,
    first_step: int,
    scale: float | None,
    look: Look,
) -> FilterState:
    """Return the state judged as `FilterState.judged` does, for a tree."""
    recent = {level: latest(history, MOST_FITTED) for level, history in histories.items()}
    if not next(iter(recent.values())).n_blocks:
        return belief

    def seen(events: Iterable[int]) -> Seen | None:
        found = look(recent, tree, belief.days, scale, events)
        return found and found[0]

    return belief.judged_by(seen, next(iter(recent.values())), first_step)


def seen_tree(
    histories: Mapping[int, BlockHistory],
    tree: AggregationTree,
    days: PublicDays,
    scale: float | None,
    events: Iterable[int] = (),
) -> tuple[Seen, Floats] | None:
    """Return the measurements of a tree, and the leaves' prior means a step, (n_leaves,), in units, or None.

    Only blocks that all measured levels have, with noise about in the proportions of the latest: others, of
    another plan, are left out. One weight of a block serves all levels.
    """
    common = common_blocks(histories)
    if not next(iter(common.values())).n_blocks:
        return None
    n_nodes, n_leaves = len(tree.nodes), len(tree.leaves)
    n_blocks = next(iter(common.values())).n_blocks
    values, noise = np.zeros((n_nodes, n_blocks)), np.full(n_nodes, np.inf)
    means, sizes = np.zeros(n_nodes), np.zeros(n_nodes)
    groups = None
    blocks, weights = None, _weights([history.scales for history in common.values()])
    for level, history in common.items():
        at = slice(tree.levels[level].start, tree.levels[level].stop)
        seen, own = seen_series(history, days, scale, events, weights)
        blocks = seen.blocks
        values[at] = history.sums * blocks.weight
        own_groups = noise_groups(history, np.isin(np.arange(n_nodes), np.arange(at.start, at.stop)))
        if own_groups is not None:
            sizes_of = own_groups.sizes if groups is None else np.maximum(groups.sizes, own_groups.sizes)
            groups = NoiseGroups(own_groups.numbers, sizes_of)
        noise[at], means[at], sizes[at] = seen.noise[1:], own, seen.sizes
    assert blocks is not None
    leaves = tree.leaf_indices
    of_nodes = tree.add_up(means[leaves].reshape(n_leaves, 1))
    residuals = values - of_nodes * (blocks.lengths * blocks.weight)
    return Seen(tree, blocks, residuals, noise, sizes[leaves], groups), means[leaves]


def common_blocks(histories: Mapping[int, BlockHistory]) -> dict[int, BlockHistory]:
    """Return each level's part of the blocks that all have, of the plan of the latest common one."""
    kept = dict(histories)
    keys = [dict.fromkeys(_keys(history)) for history in kept.values()]
    shared = [key for key in keys[0] if all(key in other for other in keys[1:])]
    kept = {level: _at(history, shared) for level, history in kept.items()}
    scales = np.array([history.scales for history in kept.values()])
    if not scales.size:
        return kept
    ratios = scales / scales[0]
    away = np.abs(np.log(ratios / ratios[:, -1:]))
    alike = np.all(away < np.log(OTHER_PLAN), axis=0)
    return {level: history.chosen(alike) for level, history in kept.items()}


def _weights(scales: Sequence[Floats]) -> Floats | None:
    """Return how blocks are weighed by the noise of all levels; None where each level says the same."""
    logs = np.log(np.array(scales))
    shared = logs.mean(axis=0)
    if np.all(np.ptp(logs - shared, axis=1) < SAME):
        return None
    return np.asarray(np.exp(shared[-1] - shared))


def _keys(history: BlockHistory) -> list[tuple[int, int]]:
    return list(zip(history.starts.tolist(), history.lengths.tolist(), strict=True))


def _at(history: BlockHistory, keys: list[tuple[int, int]]) -> BlockHistory:
    places = {key: place for place, key in enumerate(_keys(history))}
    order = np.array([places[key] for key in keys], dtype=np.int64)
    return history.chosen(order)


# How far a plan's estimates are expected to miss, by the prior alone: known before anything is measured.

MOST_LOOKED_AT = 4
ROUNDS = 2
"""In which it is found how much of a heavy noise the estimate takes off (`robust_noise`)."""


@dataclass(frozen=True)
class PlannedNoise:
    """The noise of a block's mean, relative to a series' size.

    scale: Of the noise. sizes: of the groups that share it, and the part of the blocks in such; 1 for Laplace
    noise.
    """

    scale: float
    sizes: tuple[tuple[int, float], ...] = ((1, 1.0),)

    @property
    def variance(self) -> float:
        """The mean variance."""
        return self.scale**2 * sum(part * (size + 1) * (size + 2) / 3.0 for size, part in self.sizes)

    def noise_variance(self, model_variance: float) -> float:
        """Return the variance of normal noise with the same information, at this variance of the model."""
        information = sum(
            part * known_information(model_variance, self.scale, size) for size, part in self.sizes
        )
        least = 1.0 / sum(part / (size * self.scale**2) for size, part in self.sizes)
        return float(np.clip(1.0 / information - model_variance, least, self.variance))


@dataclass(frozen=True, eq=False)
class PlannedBlocks:
    """Blocks that will be known, and the steps that are judged by them; of days of one kind.

    The rotation is most of the work, and does not depend on the noise and the tree.
    """

    prior: TemporalPrior
    blocks: Blocks
    rotation: Rotation
    judged: Blocks

    @classmethod
    def of(
        cls, prior: TemporalPrior, starts: NDArray[np.int64], lengths: NDArray[np.int64], period: range
    ) -> "PlannedBlocks":
        """Return the plan of blocks with these clock places and lengths in steps, (n,)."""
        blocks = Blocks.at(starts, lengths, weight=1.0 / lengths)
        judged = Blocks.at(np.array(period, dtype=np.int64))
        return cls(prior, blocks, Rotation.of(prior, blocks), judged)

    def posterior(self, tree: AggregationTree, noise: NDArray[np.float64]) -> TreePosterior:
        """Return the posterior of a tree of leaves of size 1 whose nodes are measured with this noise."""
        shape = (len(tree.nodes), self.blocks.clock.size)
        seen = Seen(tree, self.blocks, np.zeros(shape), noise, np.ones(len(tree.leaves)))
        return TreePosterior(self.prior, seen, self.rotation)


def expected_error(plan: PlannedBlocks, noise: PlannedNoise | None) -> float:
    """Return the root mean square error of a step of a single series, relative to its size.

    Where nothing is measured, `noise` is None.
    """
    single = AggregationTree(("series",), (-1,))
    return float(expected_level_errors(plan, single, (noise,))[0])


def expected_level_errors(
    plan: PlannedBlocks, tree: AggregationTree, noise: Sequence[PlannedNoise | None]
) -> NDArray[np.float64]:
    """Return for each level the root mean square error of a node's step, relative to the node, (n_levels,).

    As `expected_error`, over a tree whose leaves are of size 1; noise is relative to a leaf's size, None for
    a level that is not measured. At most `MOST_LOOKED_AT` nodes of a level are used, spread over it.
    """
    variances = [np.inf if one is None else one.variance for one in noise]
    errors = level_errors(plan, tree, variances)
    leaves = [float(tree.leaves_below[level.start : level.stop].mean()) for level in tree.levels]
    for _ in range(ROUNDS):
        variances = [
            np.inf if one is None else one.noise_variance(float((missed * size) ** 2))
            for one, missed, size in zip(noise, errors, leaves, strict=True)
        ]
        errors = level_errors(plan, tree, variances)
    return errors


def level_errors(
    plan: PlannedBlocks, tree: AggregationTree, variances: Sequence[float]
) -> NDArray[np.float64]:
    """Return `expected_level_errors` for normal noise of these variances, relative to a leaf's."""
    looked_at = [
        np.unique(np.linspace(level.start, level.stop - 1, MOST_LOOKED_AT).astype(np.int64))
        for level in tree.levels
    ]
    posterior = plan.posterior(tree, np.array(variances)[np.array(tree.depths)])
    found = posterior.variances(plan.judged, np.concatenate(looked_at)).mean(axis=1)
    leaves = posterior.weights[np.concatenate(looked_at), 0]
    relative = np.split(found / leaves**2, np.cumsum([len(nodes) for nodes in looked_at])[:-1])
    return np.asarray(np.sqrt([level.mean() for level in relative]))
