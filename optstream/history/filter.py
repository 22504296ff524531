"""The estimate of a period from the blocks of the last weeks and a learned prior, of every node of a tree."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce, wraps
from hashlib import sha256
from typing import Any

import numpy as np
from numpy.typing import NDArray

from optstream.estimation.estimate import UNKNOWN
from optstream.history.blocks import BlockHistory, Blocks
from optstream.history.covariates import CovariateEffect, effect_of
from optstream.history.draws import ErrorDraws
from optstream.history.learn import STRENGTH_DEVIATION, learn
from optstream.history.posterior import Seen, TreePosterior
from optstream.history.prior import COMPONENTS, Component, TemporalPrior
from optstream.history.robust import with_known_noise
from optstream.history.self_check import LEAST_GAIN, is_unlike, variance_factors
from optstream.stream import AggregationTree
from optstream.stream.covariate import Covariate
from optstream.stream.public_days import PublicDays

Floats = NDArray[np.float64]
HEAVY = 2.5
"""Residual variance of a value given the others, over its noise's: below it the noise's shape is used.
From 3 on a surprise is the series' own as often, and nothing is gained."""
MORE_NOISE = 0.1  # relative increase of the noise that shows its part of a variance


@dataclass(frozen=True, eq=False)
class Fitted:
    """The posterior of some blocks, shared by all days that have these. posterior: without the effect of
    covariates. factor, by_level: of its variances. unlike: whether the day in question is an event."""

    posterior: TreePosterior
    factor: float
    by_level: Floats
    effect: CovariateEffect | None = None
    unlike: bool = False

    @property
    def wider(self) -> Floats:
        """The factor of each node's variances by its level over that of all, at least 1, (n_nodes, 1)."""
        levels = np.fmax(self.by_level / self.factor, 1.0)
        return np.asarray(levels[list(self.posterior.seen.tree.depths), None])

    @cached_property
    def published(self) -> TreePosterior:
        """The posterior with the exact noise distribution."""
        return with_own_noise(self.posterior)

    @cached_property
    def noisier(self) -> TreePosterior:
        """The same if the noise were larger by `MORE_NOISE`."""
        seen = self.published.seen
        return self.published.revalued(seen.residuals, (1.0 + MORE_NOISE) * seen.noise)

    def means(self, steps: Blocks) -> Floats:
        """Return posterior means less prior means of every node at single steps, (n_nodes, n_steps)."""
        return self._with_effect(self.posterior.means(steps), steps)

    def series(self, steps: Blocks) -> tuple[Floats, Floats]:
        """Return the `published_means`, and variances."""
        variances = self.published.variances(steps)
        if self.effect is not None:
            variances = variances + self.effect.variances(steps)
        return self.published_means(steps), self.factor * variances

    def published_means(self, steps: Blocks) -> Floats:
        """Return the published posterior's `means`."""
        return self._with_effect(self.published.means(steps), steps)

    def draws(self, n: int, steps: Blocks) -> tuple[Floats, Floats]:
        """Return n draws of the leaves' errors as `ErrorDraws`, covariates included, factor left out."""
        of_prior, of_noise = self._draws.setdefault(n, ErrorDraws(self.published, n)).at(steps)
        return of_prior, of_noise if self.effect is None else of_noise + self.effect.draws(steps, n)

    @cached_property
    def _draws(self) -> dict[int, ErrorDraws]:
        return {}

    def _with_effect(self, means: Floats, steps: Blocks) -> Floats:
        return means if self.effect is None else means + self.effect.means(steps)


def last_fit(function: Callable[..., Fitted]) -> Callable[..., Fitted]:
    """Return the function with its last result cached, dropped before another is computed, for memory."""
    kept: dict[bytes, Fitted] = {}

    @wraps(function)
    def fitted(
        prior: TemporalPrior, seen: Seen, covariates: tuple[Covariate, ...] = (), *others: object
    ) -> Fitted:
        plain = (prior.steps_per_day, prior.components, [one.key for one in covariates], others)
        learned = b"".join(one.tobytes() for one in (prior.logs, prior.hours, prior.spread))
        key = sha256(repr(plain).encode() + learned + seen.key).digest()
        if key not in kept:
            kept.clear()
            kept[key] = function(prior, seen, covariates, *others)
        return kept[key]

    return fitted


@last_fit
def fit(
    prior: TemporalPrior,
    seen: Seen,
    covariates: tuple[Covariate, ...],
    today: tuple[int, ...] = (),
    watch: bool = False,
) -> Fitted:
    """Condition the prior, and test whether the days `today` are unlike all others, if asked to `watch`. An
    event is a day whose blocks alarm (`is_unlike`) and become more likely by it; it then has wider priors."""
    known, a_day = conditioned(prior, seen, covariates), prior.steps_per_day
    posterior, seen = known.posterior, known.posterior.seen
    clock, events = seen.blocks.clock, seen.blocks.events
    chosen = np.isin(clock // a_day, today)
    ordinary = not events[chosen].any()
    if not (watch and ordinary and is_unlike(posterior, chosen, known.factor)):
        return known
    named = np.unique(clock[chosen | (events > 0)] // a_day)
    wider = replace(seen, blocks=replace(seen.blocks, events=event_numbers(clock, named, a_day)))
    found = TreePosterior(posterior.prior, wider)
    if found.log_likelihood < posterior.log_likelihood + LEAST_GAIN:
        return known
    return replace(known, posterior=found, unlike=True)


@last_fit
def conditioned(prior: TemporalPrior, seen: Seen, covariates: tuple[Covariate, ...]) -> Fitted:
    """Condition the prior on measurements, whatever the days in question."""
    posterior, effect = explained(prior, seen, covariates)
    return Fitted(posterior, *variance_factors(posterior), effect)


def with_own_noise(posterior: TreePosterior) -> TreePosterior:
    """Return the posterior, with the exact noise distribution where noise outweighs the model's variance."""
    noise = posterior.seen.noise
    known = np.isfinite(noise)
    _, spread = posterior.left_out(0)
    heavy = np.median(spread[known, 0] / noise[known]) < HEAVY
    found = with_known_noise(posterior) if heavy else posterior
    posterior.predictions.clear()  # of 10,000 nodes 0.1 GB, which is not read again
    return found


def explained(
    prior: TemporalPrior, seen: Seen, covariates: Sequence[Covariate]
) -> tuple[TreePosterior, CovariateEffect | None]:
    """Return the posterior of the part that covariates leave unexplained, and their effect, if any.

    The effect is learned with normal noise, then around that with the exact noise distribution. Where the
    prior is no covariance, the broad one, and where covariates cannot be separated, there is no effect: no
    day may fail for it.
    """
    try:
        posterior = TreePosterior(prior, seen)
    except (ValueError, ArithmeticError):
        prior = TemporalPrior.broad(prior.steps_per_day, prior.components)
        posterior = TreePosterior(prior, seen)
    if not covariates:
        return posterior, None
    try:
        first = effect_of(posterior, covariates)
        moved = 0.0 if first is None else first.explained
        known = with_own_noise(posterior.revalued(seen.residuals - moved, seen.noise)).seen
        again = posterior.revalued(known.residuals + moved, known.noise)
        effect = effect_of(again, covariates)
    except (ValueError, ArithmeticError, LookupError):
        effect = None
    if effect is None:
        return posterior, None
    return posterior.revalued(seen.residuals - effect.explained, seen.noise), effect


def event_numbers(clock: NDArray[np.int64], events: Iterable[int], steps_per_day: int) -> NDArray[np.int64]:
    """Return for each clock place its event, 1 + its first day; 0 for none. Days in a row are one event."""
    named = np.array(sorted(events), dtype=np.int64)
    numbers = np.zeros(clock.size, dtype=np.int64)
    if named.size:
        is_first = np.diff(named, prepend=named[0] - 2) > 1
        firsts = named[is_first][np.cumsum(is_first) - 1]
        place = np.searchsorted(named, clock // steps_per_day)
        inside = np.isin(clock // steps_per_day, named)
        numbers[inside] = 1 + firsts[place[inside]]
    return numbers


FIRST_LEARNED_DAYS = 7  # days of blocks before anything is learned from them
LEAST_FITTED, MOST_FITTED = 336, 672  # blocks of one posterior: its time grows with the third power
FITTED_VALUES = 84_000
"""Nodes times blocks of one posterior, for memory: a large tree has fewer blocks, but `LEAST_FITTED`."""
MOVED = 168
"""Blocks between the windows of `around`: a window ends at the newest block, the next ones so many before."""
NEAR_DAYS = 14  # days for which a new estimate reads the newest day's state alone; later, its own state too

Histories = Mapping[int, BlockHistory]  # the blocks of each measured level
Look = Callable[[Histories, Iterable[int]], Seen | None]
"""Returns the measurements of levels at their common blocks, given event days."""


@dataclass(frozen=True, eq=False)
class FilterState:
    """What a stream has learned from its measurements so far. prior: learned or broad. days: the public
    clock. began: the first day of the stream; None before it. learned: the day on which the prior was
    learned; None before. events: days that were unlike all others. covariates: as known in the night that
    measures or estimates; not passed on."""

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
        days: PublicDays,
        components: tuple[Component, ...] = COMPONENTS,
    ) -> "FilterState":
        """Return the state that `to_document` wrote, or a new one; another prior's is forgotten."""
        given = document or {}
        prior, logs = TemporalPrior.broad(days.steps_per_day, components), given.get("prior")
        prior = replace(prior, spread=np.full(len(components), STRENGTH_DEVIATION**2))
        is_same = logs is not None and len(logs) == prior.logs.size
        if is_same:
            hours, spread = (np.array(given.get(key, ()), np.float64) for key in ("hours", "spread"))
            prior = replace(prior, logs=np.array(logs, np.float64), hours=hours, spread=spread)
        return cls(
            prior,
            days,
            given.get("began"),
            given.get("learned") if is_same else None,
            tuple(given.get("events") or ()),
            tuple(Covariate.from_document(one) for one in given.get("covariates", ())),
        )

    def to_document(self) -> dict[str, Any]:
        """Return the state as a JSON-ready document, public; covariates only where there are any."""
        known = {"covariates": [one.to_document() for one in self.covariates]} if self.covariates else {}
        learned = {"prior": self.prior.logs.tolist(), "began": self.began, "learned": self.learned}
        # hours and spread in any case, so that none of an earlier prior is left in a state
        parts = {"hours": self.prior.hours.tolist(), "spread": self.prior.spread.tolist()}
        return {**learned, **parts, "events": list(self.events), **known}

    def refreshed(
        self, look: Look, histories: Histories, first_step: int, relearn_days: int
    ) -> "FilterState":
        """Return the belief with which a period that begins at this step is measured. The last complete day
        is judged; the prior is learned again when due: first after `FIRST_LEARNED_DAYS`, then each time after
        half as many days as were known, at least as long, at most `relearn_days`; never if that is 0."""
        judged, today = self._judged(look, histories, first_step), self.days.day_of(first_step)
        if self.began is None or not relearn_days:
            return judged
        since, wait = self.began, FIRST_LEARNED_DAYS
        if self.learned is not None:
            since, wait = self.learned, min(relearn_days, max((self.learned - self.began) // 2, wait))
        seen = None
        if today - since >= wait:
            seen = look(_latest_of(histories, 3 * n_fitted(histories) // 4), judged.events)
        if seen is None:
            return judged
        left = explained(self.prior, seen, self.covariates)[0].seen
        return replace(judged, prior=learn(self.prior, left), learned=today)

    def _judged(self, look: Look, histories: Histories, first_step: int) -> "FilterState":
        """Return the state, the last day before this step's added to the events if it was one."""
        recent = _latest_of(histories, n_fitted(histories))
        history = next(iter(recent.values()))
        if not history.n_blocks:
            return self
        days = self.days.clock(history.starts) // self.days.steps_per_day
        last, today = int(days[-1]), self.days.day_of(first_step)
        kept = tuple(day for day in self.events if day >= days[0])
        if len(kept) >= len(set(days.tolist())):
            kept = ()  # all that is remembered is one event: it is how things are now
        known = None if self.learned is None or last in kept or last >= today else look(recent, kept)
        unlike = known is not None and fit(self.prior, known, self.covariates, (last,), True).unlike
        return replace(self, events=(*kept, last) if unlike else kept)

    def answer(self, seen: Seen, steps: range) -> tuple[Fitted, tuple[int, ...]]:
        """Return the posterior for these steps, and the days that are events, theirs included if they are."""
        today = tuple(range(self.days.day_of(steps.start), self.days.day_of(steps.stop - 1) + 1))
        found = fit(self.prior, seen, self.covariates, today, self.learned is not None)
        return found, tuple(sorted({*self.events, *(today if found.unlike else ())}))


def with_new_blocks(
    history: BlockHistory, own: BlockHistory, history_days: int, steps_per_day: int
) -> BlockHistory:
    """Return the blocks after a period that estimates of it and of the `NEAR_DAYS` before it read."""
    if not own.n_blocks:
        return history
    joined = history.joined(own)
    newest = int(joined.starts[-1])
    return in_sight(joined.between(newest - history_days * steps_per_day, newest + 1), steps_per_day)


def n_fitted(histories: Histories) -> int:
    """Return how many blocks the posterior of these levels has at most."""
    n_nodes = sum(len(history.sums) for history in histories.values())
    return max(LEAST_FITTED, min(MOST_FITTED, FITTED_VALUES // max(n_nodes, 1)))


def around(history: BlockHistory, steps: range, most: int) -> BlockHistory:
    """Return `most` blocks in a row: of a few such windows that whose middle is nearest to the steps."""
    behind = max(history.n_blocks - most, 0)
    middle = int(np.searchsorted(history.starts, (steps.start + steps.stop) // 2))
    moved = MOVED * max(round((behind + most // 2 - middle) / MOVED), 0)
    first = max(behind - moved, 0)
    return history.chosen(np.arange(first, min(first + most, history.n_blocks)))


def in_sight(history: BlockHistory, steps_per_day: int) -> BlockHistory:
    """Return the blocks that `around` can choose for a day at most `NEAR_DAYS` before the newest block's. All
    levels of a tree keep the same ones, for a change of the tree reads them together."""
    near = history.starts > history.starts[-1] - (NEAR_DAYS + 1) * steps_per_day
    return latest(history, MOST_FITTED + int(near.sum()))


def latest(history: BlockHistory, most: int) -> BlockHistory:
    return history.chosen(np.arange(max(history.n_blocks - most, 0), history.n_blocks))


def _latest_of(histories: Histories, most: int) -> dict[int, BlockHistory]:
    return {level: latest(history, most) for level, history in histories.items()}


# From the blocks of the last weeks to the measurements of each series, relative to its size.

SCALE_DEVIATION = 0.5  # how far, relative, a series may lie from its public scale
LEAST_NOISE = 1e-10  # least variance of the noise, relative to a size squared, for the numerics
SAME = 1e-9  # relative: noise scales that differ by less are one
OTHER_PLAN = 1.7
"""Factor between levels' scales that shows another plan; groups of joint noise make less of a difference."""


def star(n_series: int) -> AggregationTree:
    """Return a tree of series side by side, under a root that nobody measures."""
    return AggregationTree(("", *map(str, range(n_series))), (-1, *([0] * n_series)))


def step_blocks(steps: range, days: PublicDays, events: Iterable[int] = ()) -> Blocks:
    """Return single steps of one period as blocks, given the event days."""
    clock = days.clock(np.arange(steps.start, steps.stop))
    return Blocks.at(clock, kinds=days.kinds(clock), events=event_numbers(clock, events, days.steps_per_day))


def seen_tree(
    histories: Histories,
    tree: AggregationTree,
    days: PublicDays,
    scale: float | None,
    events: Iterable[int] = (),
) -> tuple[Seen, Floats] | None:
    """Return the measurements of a tree, and the leaves' prior means a step, (n_leaves,), in units, or None.

    Blocks are weighted so that all have the noise of the latest one; one weight serves all levels, each taken
    to have the mean of its noise. A node's prior mean is that of its blocks, joined with the public scale;
    its size the root of their mean square, less the noise.
    """
    common = common_blocks(histories)
    first = next(iter(common.values()))
    if not first.n_blocks:
        return None
    logs, longest = np.log([history.scales for history in common.values()]), int(first.lengths.max())
    mean = logs.mean(axis=0)
    alike = np.all(np.ptp(logs - mean, axis=1) < SAME)  # all levels weigh blocks alike
    shape = (len(tree.nodes), first.n_blocks)
    values, like_group = np.zeros(shape), np.ones(shape, dtype=np.int64)
    noise, means, sizes = np.full(shape[0], np.inf), np.zeros(shape[0]), np.zeros(shape[0])
    weight = np.zeros(first.n_blocks)
    for level, history in common.items():
        at, reference = slice(tree.levels[level].start, tree.levels[level].stop), history.scales[-1]
        weight = (reference / history.scales if alike else np.exp(mean[-1] - mean)) / longest
        scale_now = np.array(reference / longest) if alike else history.scales * weight
        variance = float(np.mean(2.0 * scale_now**2))
        values[at] = own = history.sums * weight
        steps = history.lengths * weight
        # the mean of blocks, joined with the public scale
        information = float(steps @ steps)
        precision, pulled = information / variance, own @ steps / variance
        if scale is not None:
            known = (SCALE_DEVIATION * scale) ** -2.0
            precision, pulled = precision + known, pulled + scale * known
        means[at] = pulled / precision
        square = ((own**2).sum(axis=1) - steps.size * variance) / information
        if scale is not None:  # noise of a square, Laplace noise having kurtosis 6, against the public scale
            sure = information**2 / (steps.size * variance * (5.0 * variance + 4.0 * np.mean(own**2)))
            square = (square * sure + scale**-2.0) / (sure + scale**-4.0)
        sizes[at] = np.sqrt(np.maximum(np.maximum(square, means[at] ** 2), 1.0 / precision))
        noise[at] = np.maximum(variance, LEAST_NOISE * sizes[at] ** 2)
        like_group[at] = history.like_group
    clock = days.clock(first.starts)
    numbers = event_numbers(clock, events, days.steps_per_day)
    blocks = Blocks.at(clock, first.lengths, kinds=days.kinds(clock), events=numbers, weight=weight)
    leaves = tree.leaf_indices
    residuals = values - tree.add_up(means[leaves, None]) * (blocks.lengths * blocks.weight)
    of_groups = like_group if (like_group > 1).any() else None
    return Seen(tree, blocks, residuals, noise, sizes[leaves], of_groups), means[leaves]


def common_blocks(histories: Histories) -> dict[int, BlockHistory]:
    """Return each level's part of the blocks that all have, of the plan of the latest common one. Blocks of a
    plan have noise about in the same proportions at all levels."""
    keys = {level: history.starts * 2**32 + history.lengths for level, history in histories.items()}
    shared = reduce(np.intersect1d, keys.values())
    kept = {level: history.chosen(np.isin(keys[level], shared)) for level, history in histories.items()}
    ratios = np.log([history.scales for history in kept.values()])
    ratios -= ratios[:1]
    alike = np.all(np.abs(ratios - ratios[:, -1:]) < np.log(OTHER_PLAN), axis=0)
    return {level: history.chosen(alike) for level, history in kept.items()}


# How far a day's mean may be off: not as a single value, and leaves more than the prior says.

MORE_OF_DAYS = 0.9
"""Factor of the prior's residual variance of leaves' days, apart from their shares of the sum."""


@dataclass(frozen=True, eq=False)
class PeriodErrors:
    """The errors of a posterior at the steps of a period, corrected for means over a day.

    An error w of a value becomes w - (1 - 1 / sqrt(factor)) u m, m the mean of w over its day, which then has
    the posterior's own variance; u (`uncertainty`) is the share of the uncertainty at the step, of mean 1.
    The prior's residual variance of a leaf's day, apart from its share of the sum of all, counts
    `MORE_OF_DAYS` times more (docs/decisions/0029-replicates.md). For a day of one step (`is_day` is False)
    neither applies.
    """

    fitted: Fitted
    steps: Blocks
    is_day: bool

    def series(self) -> tuple[Floats, Floats]:
        """Return posterior means less prior means, and variances, of every node, (n_nodes, n_steps)."""
        fitted, more, variances, share = self.fitted, np.zeros(1), self.variances, self._share_of_mean
        if self.is_day:
            more = self.more
            of_mean = self.with_mean.mean(axis=1, keepdims=True)
            variances = variances + share * (2.0 * self.with_mean + share * of_mean)
        if fitted.effect is not None:
            times = np.eye(share.size) + np.outer(share, np.full(share.size, 1.0 / share.size))
            variances = variances + fitted.effect.variances(self.steps, times)
        variances = fitted.wider * fitted.factor * variances + more[:, None] * self.uncertainty**2
        return fitted.published_means(self.steps), np.maximum(variances, 0.0)

    def draws(self, n: int) -> Floats:
        """Return draws of the errors of every node, (n, n_nodes, n_steps)."""
        seen = self.fitted.published.seen
        of_prior, of_rest = self.fitted.draws(n, self.steps)
        found = np.sqrt(self.fitted.factor) * (of_prior + of_rest)
        if self.is_day:
            found = found + found.mean(axis=2, keepdims=True) * self._share_of_mean
            # those of another replicate, which are independent
            means = np.roll(of_prior, 1, axis=0).mean(axis=2)
            apart = means - means.sum(axis=1, keepdims=True) * seen.sizes / seen.sizes.sum()
            found = found + np.sqrt(MORE_OF_DAYS) * apart[:, :, None] * self.uncertainty
        return np.stack([np.sqrt(self.fitted.wider) * seen.tree.add_up(one) for one in found])

    @property
    def _share_of_mean(self) -> Floats:
        """The share of the day's mean error that each step's error takes on, (n_steps,)."""
        return self.uncertainty * (self.fitted.factor**-0.5 - 1.0 if self.is_day else 0.0)

    @property
    def more(self) -> Floats:
        """The additional variance of day means, (n_nodes,)."""
        noisier = self.fitted.noisier
        known = self._apart(self.fitted.published, self.with_mean)
        less = self._apart(noisier, noisier.covariance_with_mean(self.steps))
        return MORE_OF_DAYS * (known - (less - known) / MORE_NOISE)

    def _apart(self, posterior: TreePosterior, with_mean: Floats) -> Floats:
        """Return the variance of each node's mean, apart from its share of the root's, (n_nodes,)."""
        variances, n = with_mean.mean(axis=1), self.steps.clock.size
        share = posterior.weights[:, 0] / posterior.weights[0, 0]
        with_root = posterior.covariance_with_root(self.steps, np.full(n, 1.0 / n))
        return np.asarray(variances - 2.0 * share * with_root + share**2 * variances[0])

    @cached_property
    def variances(self) -> Floats:
        """The published posterior's variances, covariates left out, (n_nodes, n_steps)."""
        return self.fitted.published.variances(self.steps)

    @cached_property
    def with_mean(self) -> Floats:
        """Its covariances with the mean of the day, (n_nodes, n_steps)."""
        return self.fitted.published.covariance_with_mean(self.steps)

    @cached_property
    def uncertainty(self) -> Floats:
        """The step's share of the mean of leaves' posterior standard deviations, (n_steps,), of mean 1."""
        found = np.sqrt(self.variances[self.fitted.published.seen.tree.leaf_indices]).mean(axis=0)
        return np.asarray(found / found.mean() if found.any() else np.ones(found.size))


def fit_tree(
    belief: FilterState, histories: Histories, tree: AggregationTree, steps: range, scale: float | None
) -> tuple[Floats, PeriodErrors] | None:
    """Return prior means of every node, and the errors of a period; None where nothing was measured."""
    known = seen_tree(histories, tree, belief.days, scale, belief.events)
    if known is None:
        return None
    found, events = belief.answer(known[0], steps)
    is_day = 1 < belief.days.steps_per_day < 2 * len(steps)
    errors = PeriodErrors(found, step_blocks(steps, belief.days, events), is_day)
    return tree.add_up(known[1][:, None]), errors


def nothing_measured(tree: AggregationTree, n_steps: int, scale: float | None) -> tuple[Floats, Floats]:
    """Return means and variances of every node where nothing was ever measured."""
    shape = (len(tree.leaves), n_steps)
    return tree.add_up(np.full(shape, scale or 0.0)), tree.add_up(np.full(shape, UNKNOWN))
