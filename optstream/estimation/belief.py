"""What a stream's past measurements say of its next period: the blocks of the last weeks, a learned prior."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from optstream.estimation.block_history import BlockHistory
from optstream.estimation.history_fit import fit_series, seen_series
from optstream.estimation.learning import learn
from optstream.estimation.temporal_prior import TemporalPrior
from optstream.stream.public_days import PublicDays

Floats = NDArray[np.float64]

FIRST_LEARNED_DAYS = 7
"""Days of blocks before anything is learned from them."""
MOST_LEARNED = 336
MOST_FITTED = 448
"""Blocks, the latest ones, that learning and estimates look at: their time grows with the third power."""


@dataclass(frozen=True, eq=False)
class Belief:
    """history: blocks of the last weeks. prior: learned or broad. days: the public clock. began, learned: the
    first day of the stream, and the day on which the prior was learned; None before.
    """

    history: BlockHistory
    prior: TemporalPrior
    days: PublicDays
    began: int | None = None
    learned: int | None = None

    @classmethod
    def from_document(cls, document: Mapping[str, Any] | None, n_series: int, days: PublicDays) -> "Belief":
        """What `to_document` wrote; that of a stream that begins where there is nothing.

        A prior of other components, which another version learned, is forgotten. Raises ParameterError for
        another number of series.
        """
        given = document or {}
        prior = TemporalPrior.broad(days.steps_per_day)
        logs = given.get("prior")
        if logs is not None and len(logs) == prior.logs.size:
            prior = replace(prior, logs=np.array(logs, dtype=np.float64))
        history = BlockHistory.from_document(given.get("history"), n_series)
        return cls(history, prior, days, given.get("began"), given.get("learned"))

    def to_document(self) -> dict[str, Any]:
        """JSON-ready and public."""
        return {
            "history": self.history.to_document(),
            "prior": self.prior.logs.tolist(),
            "began": self.began,
            "learned": self.learned,
        }

    def refreshed(self, first_step: int, relearn_days: int, scale: float | None) -> "Belief":
        """The belief with which a period that begins at this step is measured: learned again when due.

        First after `FIRST_LEARNED_DAYS`, then each time after as many days as were known, at most
        `relearn_days`; never if that is 0. Costs no privacy, and nothing drawn later changes it.
        """
        if not self.history.n_blocks or not self.is_due(first_step, relearn_days):
            return self
        seen, _ = seen_series(latest(self.history, MOST_LEARNED), self.days, scale)
        return replace(self, prior=learn(self.prior, seen), learned=self.day_of(first_step))

    def is_due(self, first_step: int, relearn_days: int) -> bool:
        """Whether the prior is to be learned before the period that begins at this step."""
        if self.began is None or not relearn_days:
            return False
        since, last = self.began, self.learned
        wait = FIRST_LEARNED_DAYS if last is None else min(relearn_days, max(last - since, 1))
        return self.day_of(first_step) - (since if last is None else last) >= wait

    def after(self, own: BlockHistory, history_days: int) -> "Belief":
        """The belief that a period leaves: its blocks beside those of the last `history_days`."""
        if not own.n_blocks:
            return self
        began = self.day_of(int(own.starts[0])) if self.began is None else self.began
        joined = self.history.joined(own)
        first = int(joined.starts[-1]) - history_days * self.days.steps_per_day
        return replace(self, history=joined.between(first, int(joined.starts[-1]) + 1), began=began)

    def fitted(self, own: BlockHistory, steps: range, scale: float | None) -> tuple[Floats, Floats]:
        """Posterior means and variances at these steps from all blocks, (n_series, n_steps), in units."""
        history = latest(self.history.joined(own), MOST_FITTED)
        return fit_series(self.prior, history, self.days, steps, scale)

    def day_of(self, step: int) -> int:
        """The day of a running step."""
        return int(self.days.clock(step)) // self.days.steps_per_day


def latest(history: BlockHistory, most: int) -> BlockHistory:
    """The last so many blocks."""
    return history.chosen(np.arange(history.n_blocks) >= history.n_blocks - most)
