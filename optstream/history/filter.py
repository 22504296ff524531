"""The estimate of a period from the blocks of the last weeks and a learned prior."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import eye_array

from optstream.estimation.error_terms import ErrorProducts, ErrorTimes
from optstream.estimation.estimate import UNKNOWN
from optstream.estimation.groups import Groups, added, alike, leaves_below
from optstream.history.blocks import BlockHistory, Blocks
from optstream.history.learn import learn, noise_groups, run_blocks, seen_series, step_blocks
from optstream.history.posterior import MORE_NOISE, Fitted, LeafErrors, Question, explained, fit, series_of
from optstream.history.prior import COMPONENTS, Component, TemporalPrior
from optstream.history.robust import known_information
from optstream.history.tree import LeafCovariance, NoiseGroups, Rotation, Seen, TreePosterior, most_nodes
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
class DayMeanErrors:
    """`LeafErrors`, corrected for means over a day (`CovarianceOfSums`).

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
        leaf_errors: Of the leaves at the period's steps, then at runs of the days before it.
        n_steps: Of the period, which is a day.
    """

    leaf_errors: LeafErrors
    n_steps: int
    n_earlier: ClassVar[int] = 0
    of_nodes: ClassVar[bool] = False

    def products(self, leaves: Floats, times: Floats) -> ErrorProducts:
        """Return the covariance of sums, by weights of leaves and of times."""
        return self.every.of_sums(leaves, times)

    def variances(self, leaves: Floats, times: Floats) -> Floats:
        """Return the variances of the same sums, (p, q)."""
        return self.every.variances(leaves, times)

    @cached_property
    def every(self) -> ErrorProducts:
        """The covariance of all leaves at all times, for rows and their file."""
        n, n_leaves = self.n_steps, len(self.leaf_errors.fitted.posterior.seen.sizes)
        times = np.eye(self.leaf_errors.targets.clock.size)
        of_day, before = times[:, :n] @ self.uncertainty, times[:, n:].T
        even = times.copy()
        even[:, :n] = of_day[:, None] / n
        trusted = times + (self.leaf_errors.fitted.factor**-0.5 - 1.0) * even
        joint = of_day[:, None] * before[:, None, :]
        shared = np.concatenate([np.outer(of_day, of_day)[None], joint + joint.transpose(0, 2, 1)])
        if not self.leaf_errors.fitted.known.leaf_spans.are_many:
            leaves = np.eye(n_leaves)
            return self.leaf_errors.products(leaves, trusted).plus(self.more(leaves), shared)
        found = self.leaf_errors.products(eye_array(n_leaves, format="csr"), trusted)
        return replace(found, groups=(*found.groups, *self._more_in_groups(shared)))

    def more(self, leaves: Floats) -> Floats:
        """Return the additional covariance of leaves' day means, by weights (p, n_leaves): (1 + n_runs, p,
        p).

        That with itself, then with the sum of each run of days before it; covariances among those days are in
        their own files.
        """
        sizes = self.leaf_errors.fitted.posterior.seen.sizes
        divided = leaves - (leaves @ sizes / sizes.sum())[:, None]
        known, noisier = (
            one.with_first(divided, self._day_and_runs)
            for one in (self.leaf_errors.covariance, self._noisier)
        )
        return np.asarray(MORE_OF_DAYS * (known - (noisier - known) / MORE_NOISE))

    def _more_in_groups(self, shared: Floats) -> list[Groups]:
        """Return `more` of many leaves, times matrices of times, (1 + n_runs, n_asked, n_targets)."""
        sizes, less = self.leaf_errors.fitted.posterior.seen.sizes, MORE_OF_DAYS / MORE_NOISE
        every, known = eye_array(sizes.size, format="csr"), self.leaf_errors.covariance
        parts = (
            replace(divided, matrices=part * divided.matrices)
            for part, covariance in ((MORE_OF_DAYS + less, known), (-less, self._noisier))
            for one in covariance.in_groups(self._day_and_runs)
            for divided in one.of_sums(every).of_first(shared).divided(sizes)
        )
        return [added(some) for some in alike(parts)]

    @property
    def _day_and_runs(self) -> Floats:
        """Weights of the mean over the day, then of each run of days before it, (1 + n_runs, n_targets)."""
        n, n_targets = self.n_steps, self.leaf_errors.targets.clock.size
        times = np.zeros((1 + n_targets - n, n_targets))
        times[0, :n], times[1:, n:] = 1.0 / n, np.eye(n_targets - n)
        return times

    @cached_property
    def uncertainty(self) -> Floats:
        """The share of the day's uncertainty at each of its steps, (n_steps,), of mean 1.

        It is proportional to the mean of leaves' posterior standard deviations there.
        """
        posterior = self.leaf_errors.fitted.known.published
        steps = self.leaf_errors.targets.between(0, self.n_steps)
        found = np.sqrt(posterior.variances(steps, posterior.seen.tree.leaf_indices)).mean(axis=0)
        return np.asarray(found / found.mean() if found.any() else np.ones(self.n_steps))

    @cached_property
    def _noisier(self) -> LeafCovariance:
        """The covariance of leaves if the noise were larger by `MORE_NOISE`."""
        return LeafCovariance(self.leaf_errors.fitted.known.noisier_leaf_spans, self.leaf_errors.targets)


# From the blocks of every level to every node's series: one posterior over the whole tree.

TreeErrors = LeafErrors | DayMeanErrors
"""Error covariances of leaves."""
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

    def series(self, steps: range, errors: TreeErrors | None) -> tuple[Floats, Floats]:
        """Return posterior means, which add up, and variances of every node at these steps, in units."""
        targets = step_blocks(steps, self.days, self.events)
        if isinstance(errors, DayMeanErrors):
            moved = self.found.published_means(targets)
            times = np.eye(len(steps), errors.leaf_errors.targets.clock.size)
            many = errors.every.groups
            every = leaves_below(self.tree) if many else self.tree.add_up(np.eye(len(self.means)))
            variances = np.maximum(errors.variances(every, times), 0.0)  # below it by rounding alone
        else:
            moved, variances = series_of(self.found, targets)
        return self.tree.add_up(self.means[:, None]) + moved, variances

    def errors(self, targets: ErrorTimes, n_steps: int) -> TreeErrors | None:
        """Return the covariance of which `series` has the leaves' variances; None where it would be too
        large.

        `targets` are sums of steps, the period's n_steps first. Of a day of several steps it is
        `DayMeanErrors`.
        """
        if len(self.tree.nodes) > most_nodes(self.tree, n_steps):
            return None
        blocks = run_blocks(targets.starts, targets.lengths, self.days, self.events)
        errors = LeafErrors(self.found, blocks)
        return DayMeanErrors(errors, n_steps) if 1 < self.days.steps_per_day < 2 * n_steps else errors


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
