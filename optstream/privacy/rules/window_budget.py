"""A public rule that keeps every window under a cap while steps are still being chosen."""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray


class WindowBudget:
    """What the windows of a period have spent of a cap, over periods, earlier and later ones.

    A function of recorded outputs and public facts alone, hence free (Lemma 7). Amounts are integers, so
    nothing rounds: points, or grains of a budget.

    Args:
        cap: The most that a window may hold.
        window_length: Steps.
        first_step: Running index of the period's first step.
        n_steps: Of the period.
        taken: (running step, amount) of other periods.
    """

    def __init__(
        self, cap: int, window_length: int, first_step: int, n_steps: int, taken: Iterable[tuple[int, int]]
    ) -> None:
        self._cap, self._window, self._n_steps = cap, window_length, n_steps
        self._lead = window_length - 1
        self._spent = np.zeros(n_steps + 2 * self._lead, dtype=np.int64)
        for step, amount in taken:
            place = step - first_step + self._lead
            if 0 <= place < self._spent.size:
                self._spent[place] += amount

    def take(self, step: int, amount: int = 1) -> None:
        """Count an amount, points or grains, at a step, counted from the period's start."""
        self._spent[step + self._lead] += amount

    def headroom(self, step: int) -> int:
        """Return the most that may be taken at a step, counted from the period's start: what the fullest
        window around it has left; negative where one has too much.
        """
        running = np.concatenate(([0], np.cumsum(self._spent[step : step + 2 * self._window - 1])))
        fullest = np.max(running[self._window :] - running[: -self._window])
        return int(self._cap - fullest)

    def allowed(self) -> NDArray[np.bool_]:
        """Return which steps of the period, (n_steps,), have headroom for one more, and hold nothing yet."""
        ones = np.ones(self._window, dtype=np.int64)
        full = np.convolve(self._spent, ones, mode="valid") >= self._cap
        blocked = np.convolve(full, ones, mode="valid") > 0
        free = self._spent[self._lead : self._lead + self._n_steps] == 0
        allowed: NDArray[np.bool_] = ~blocked & free
        return allowed
