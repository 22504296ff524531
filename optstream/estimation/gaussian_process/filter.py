"""What a stream's past measurements say of its next period: the blocks of the last weeks, a learned prior."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from optstream.estimation.gaussian_process.history import BlockHistory
from optstream.estimation.gaussian_process.hyperparameters import learn
from optstream.estimation.gaussian_process.posterior import Fitted, Question, explained, fit, series_of
from optstream.estimation.gaussian_process.prior import COMPONENTS, Component, TemporalPrior
from optstream.estimation.gaussian_process.training_data import seen_series, step_blocks
from optstream.estimation.gaussian_process.tree_posterior import Seen
from optstream.estimation.holding import UNKNOWN
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
"""A day is estimated anew for so long from what the newest day remembers; later, from its own memory too."""


@dataclass(frozen=True, eq=False)
class FilterState:
    """What a stream has measured and learned so far.

    Attributes:
        history: Blocks of the last weeks.
        prior: Learned or broad.
        days: The public clock.
        began: The first day of the stream; None before it.
        learned: The day on which the prior was learned; None before.
        events: Days that were unlike all others.
        covariates: What the night that measures or estimates knows of public covariates; the next one asks
            anew.
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
        """Return what `to_document` wrote; that of a stream that begins where there is nothing.

        components: those of the prior, with the medians that it starts from.

        A prior of other components, which another version learned, is forgotten, and that it was learned: the
        next night learns its own. Raises ParameterError for another number of series.
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

        The last day that is over is called an event if it was one; the prior is learned again when due: first
        after `FIRST_LEARNED_DAYS`, then each time after as many days as were known, at most `relearn_days`;
        never if that is 0. Costs no privacy, and nothing drawn later changes it.
        """
        if not self.history.n_blocks:
            return self
        judged = self.judged(first_step, scale)
        if not self.is_due(first_step, relearn_days):
            return judged
        seen, _ = seen_series(latest(self.history, MOST_LEARNED), self.days, scale, judged.events)
        return judged.taught(seen, first_step)

    def taught(self, seen: Seen, first_step: int) -> "FilterState":
        """Return the belief with a prior learned from what was seen and covariates do not explain."""
        left = explained(self.prior, seen, self.covariates, self.days)[0].seen
        return replace(self, prior=learn(self.prior, left), learned=self.day_of(first_step))

    def judged(self, first_step: int, scale: float | None) -> "FilterState":
        """Return whether the last day before this step's was an event, remembered as long as its blocks
        are.
        """
        history = latest(self.history, MOST_FITTED)
        return self.judged_by(
            lambda events: seen_series(history, self.days, scale, events)[0], history, first_step
        )

    def judged_by(
        self, seen: Callable[[tuple[int, ...]], Seen | None], history: BlockHistory, first_step: int
    ) -> "FilterState":
        """Return the same, by what was seen when these days are called events. history: whose days they
        are.
        """
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
        """Return the belief that a period leaves: its blocks beside those of the last `history_days` that an
        estimate of the `NEAR_DAYS` before it looks at.
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

        Where nothing was ever measured: the public scale or 0, with `UNKNOWN` variance. `own` may be blocks
        of later periods too, and the steps those of an earlier one: then it is a revised estimate.
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
        """Return the days that are called events when `fitted` is asked the same, theirs included; free."""
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
