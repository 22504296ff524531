"""The estimate of a period: posterior, self-check, and how far to trust it."""

import hashlib
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, wraps
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from optstream.history.blocks import Blocks
from optstream.history.covariates import CovariateEffect, effect_of
from optstream.history.draws import ErrorDraws
from optstream.history.prior import TemporalPrior
from optstream.history.robust import with_known_noise
from optstream.history.self_check import LEAST_GAIN, is_unlike, left_out, variance_factor
from optstream.history.tree import Seen, TreePosterior
from optstream.stream.covariate import Covariate
from optstream.stream.public_days import PublicDays

# A function that caches its last result alone.

Asked = TypeVar("Asked", bound=Hashable)
Answer = TypeVar("Answer")


def last_answer(function: Callable[[Asked], Answer]) -> Callable[[Asked], Answer]:
    """Return the function with its last result, but None, cached.

    Unlike `functools.lru_cache` it drops the last result before it computes another: of 10,000 nodes one
    takes most of a gigabyte.
    """
    kept: dict[Asked, Answer] = {}

    @wraps(function)
    def answered(question: Asked) -> Answer:
        answer = kept.get(question)
        if answer is None:
            kept.clear()
            answer = kept[question] = function(question)
        return answer

    return answered


Floats = NDArray[np.float64]
HEAVY = 2.5
"""Variance of what others leave of a measured value, over its noise's: below it noise is large enough that
its shape tells. From 3 on a surprise is the series' own as often, and nothing is gained."""

MORE_NOISE = 0.1
"""Relative increase of the noise by which its part of a variance is found."""


@dataclass(frozen=True, eq=False)
class Conditioned:
    """The posterior of some blocks, shared by all days that have these blocks.

    Attributes:
        posterior: Of the measured blocks, without the effect of public covariates.
        factor: Of its variances.
        effect: Of public covariates; None without them.
    """

    posterior: TreePosterior
    factor: float
    effect: CovariateEffect | None = None

    @cached_property
    def published(self) -> TreePosterior:
        """The posterior with the exact noise distribution."""
        return with_own_noise(self.posterior)

    @cached_property
    def noisier(self) -> TreePosterior:
        """The same if the noise were larger by `MORE_NOISE`."""
        seen = self.published.seen
        return self.published.revalued(seen.residuals, (1.0 + MORE_NOISE) * seen.noise)

    def draws(self, n: int, steps: Blocks) -> tuple[Floats, Floats]:
        """Return n draws of the leaves' errors at these steps, (n, n_leaves, n_steps) each, factor left out.

        As `ErrorDraws`: of the prior, and of noise and of the coefficients of covariates.
        """
        of_prior, of_noise = self._draws.setdefault(n, ErrorDraws(self.published, n)).at(steps)
        return of_prior, of_noise if self.effect is None else of_noise + self.effect.draws(steps, n)

    @cached_property
    def _draws(self) -> dict[int, ErrorDraws]:
        return {}


@dataclass(frozen=True, eq=False)
class Fitted:
    """A posterior, and its judgement of today's days.

    Attributes:
        known: With today's day called an event if it is `unlike` all others.
        unlike: Whether today's day is unlike all others.
    """

    known: Conditioned
    unlike: bool

    @property
    def posterior(self) -> TreePosterior:
        """The posterior of the measured blocks."""
        return self.known.posterior

    @property
    def factor(self) -> float:
        """What its variances are multiplied with."""
        return self.known.factor

    @property
    def effect(self) -> CovariateEffect | None:
        """What public covariates did; None without them."""
        return self.known.effect

    def means(self, steps: Blocks) -> Floats:
        """Return posterior means less prior means of every node at single steps, (n_nodes, n_steps)."""
        return self._with_effect(self.posterior.means(steps), steps)

    def published_means(self, steps: Blocks) -> Floats:
        """Return the same of the published posterior, with the exact noise distribution."""
        return self._with_effect(self.known.published.means(steps), steps)

    def _with_effect(self, means: Floats, steps: Blocks) -> Floats:
        return means if self.effect is None else means + self.effect.means(steps)


@dataclass(frozen=True, eq=False)
class Question:
    """The arguments of a period's estimate, compared for equality.

    today: the estimated days. watch: whether to test if they are unlike all others; a prior that has
    learned nothing knows no ordinary day. covariates: those known for all these days.
    """

    prior: TemporalPrior
    seen: Seen
    days: PublicDays
    today: tuple[int, ...]
    watch: bool
    covariates: tuple[Covariate, ...] = ()

    @cached_property
    def key(self) -> bytes:
        """A digest of all of it."""
        known = [one.key for one in self.covariates]
        plain = (self.days, self.today, self.watch, self.prior.components, known)
        digest = hashlib.sha256(repr(plain).encode())
        digest.update(self.prior.logs.tobytes() + self.seen.key)
        return digest.digest()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Question) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)


@last_answer
def fit(question: Question) -> Fitted:
    """Condition the prior, and test whether the days `today` are unlike all others.

    A day is called an event if its blocks alarm (`is_unlike`) and the event makes all blocks more likely;
    then it has a part that it shares with no other day: wider priors, for that day alone. The last results
    are cached for the next night, and for other days.
    """
    days, known = question.days, conditioned(replace(question, today=(), watch=False))
    posterior, seen = known.posterior, known.posterior.seen
    chosen = np.isin(seen.blocks.clock // days.steps_per_day, question.today)
    ordinary = not seen.blocks.events[chosen].any()
    if not (question.watch and ordinary and is_unlike(posterior, chosen, known.factor)):
        return Fitted(known, False)
    wider = TreePosterior(posterior.prior, replace(seen, blocks=called_event(seen.blocks, chosen, days)))
    if wider.log_likelihood < posterior.log_likelihood + LEAST_GAIN:
        return Fitted(known, False)
    return Fitted(replace(known, posterior=wider), True)


@last_answer
def conditioned(question: Question) -> Conditioned:
    """Condition the prior on a question's measurements, whatever its days; the last results are cached."""
    posterior, effect = explained(question.prior, question.seen, question.covariates, question.days)
    return Conditioned(posterior, variance_factor(posterior), effect)


def with_own_noise(posterior: TreePosterior) -> TreePosterior:
    """Return the posterior, with the exact noise distribution where noise outweighs the model's variance."""
    noise = posterior.seen.noise
    known = np.isfinite(noise)
    _, spread = left_out(posterior, 0)
    heavy = np.median(spread[known, 0] / noise[known]) < HEAVY
    found = with_known_noise(posterior) if heavy else posterior
    posterior.predictions.clear()  # of 10,000 nodes 0.1 GB, which is not read again
    return found


def explained(
    prior: TemporalPrior, seen: Seen, covariates: Sequence[Covariate], days: PublicDays
) -> tuple[TreePosterior, CovariateEffect | None]:
    """Return the posterior of the part that covariates leave unexplained, and their effect; None without
    them.

    The effect is learned with the exact noise distribution, which doubles its information at most; the
    posterior keeps the measured values, and their noise. Where the prior is no covariance, the broad one, and
    where the covariates cannot be separated, there is no effect: whether a day appears must not depend on it.
    """
    try:
        posterior = TreePosterior(prior, seen)
    except (ValueError, ArithmeticError):
        prior = TemporalPrior.broad(days.steps_per_day, prior.components)
        posterior = TreePosterior(prior, seen)
    try:
        effect = _effect(posterior, covariates, days) if covariates else None
    except (ValueError, ArithmeticError, LookupError):
        effect = None
    if effect is None:
        return posterior, None
    return posterior.revalued(seen.residuals - effect.explained, seen.noise), effect


def _effect(
    posterior: TreePosterior, covariates: Sequence[Covariate], days: PublicDays
) -> CovariateEffect | None:
    """Return the covariates' effect: with normal noise, then again around that with the exact noise.

    In this order, for a cut-off value would hide an effect that no covariate is known to have.
    """
    first = effect_of(posterior, covariates, days.steps_per_day)
    moved = 0.0 if first is None else first.explained
    known = with_own_noise(posterior.revalued(posterior.seen.residuals - moved, posterior.seen.noise))
    again = posterior.revalued(known.seen.residuals + moved, known.seen.noise)
    return effect_of(again, covariates, days.steps_per_day)


def called_event(blocks: Blocks, chosen: NDArray[np.bool_], days: PublicDays) -> Blocks:
    """Return the blocks with some days called events; days that follow each other are one event."""
    named = np.unique(blocks.clock[chosen | (blocks.events > 0)] // days.steps_per_day)
    return replace(blocks, events=event_numbers(blocks.clock, named, days))


def event_numbers(clock: NDArray[np.int64], events: Iterable[int], days: PublicDays) -> NDArray[np.int64]:
    """Return for each clock place the event that its day belongs to, 1 + its first day; 0 for none.

    So it has the same number whatever events an estimate knows of, and `ErrorDraws` the same draws.
    """
    named = np.array(sorted(events), dtype=np.int64)
    numbers = np.zeros(clock.size, dtype=np.int64)
    if named.size:
        is_first = np.diff(named, prepend=named[0] - 2) > 1
        firsts = named[is_first][np.cumsum(is_first) - 1]
        place = np.searchsorted(named, clock // days.steps_per_day)
        inside = np.isin(clock // days.steps_per_day, named)
        numbers[inside] = 1 + firsts[place[inside]]
    return numbers


def series_of(fitted: Fitted, targets: Blocks, times: Floats | None = None) -> tuple[Floats, Floats]:
    """Return posterior means less prior means of every node at single steps, and variances.

    The variances are those of weighted sums of the errors at these steps, (n_sums, n_steps), where `times`
    are given.
    """
    posterior = fitted.known.published
    variances = posterior.variances(targets, times=times)
    if fitted.effect is not None:
        variances = variances + fitted.effect.variances(targets, times)
    return fitted.published_means(targets), fitted.factor * variances
