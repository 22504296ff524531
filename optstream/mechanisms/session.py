"""Releases in memory, period after period, within one budget."""

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from numpy.typing import ArrayLike

from optstream.errors import BudgetError, ParameterError
from optstream.mechanisms.base import Mechanism, check_noise
from optstream.mechanisms.period_release import Release
from optstream.noise import NoiseSource
from optstream.privacy import PrivacyModel, Spend, worst_window
from optstream.stream import PrivatePeriod


class Session:
    """Releases of one population's streams, which share a budget; each goes on from its last period.

    It lives as long as the process: what is published belongs into a ledger (`optstream run`). Raises
    ParameterError for a missing noise.

    Attributes:
        spends: What all releases cost, or at most, where a draw failed.

    Args:
        model: The privacy guarantee of all releases together.
        noise: As for `Mechanism.measure`.

    Examples:
        >>> import optstream
        >>> model = optstream.PrivacyModel(epsilon=1, window=4, alpha=1, resolution=1)
        >>> session = Session(model, noise=optstream.simulated_noise(0))
        >>> trips = optstream.Laplace(model)
        >>> session.release(trips, [[5, 7, 6, 9]]).values
        array([[5., 5., 4., 6.]])
        >>> session.release(trips, [[4, 8, 7, 9]]).measured.first_step
        4
        >>> session.left(), session.left(range(4, 8))
        (Fraction(1, 4), Fraction(0, 1))
        >>> session.release(optstream.Laplace(model), [[1, 2, 3, 4]])
        Traceback (most recent call last):
            ...
        optstream.errors.BudgetError: a window of 4 would be charged 2, and the budget is epsilon 1: ...
    """

    def __init__(self, model: PrivacyModel, *, noise: NoiseSource | None = None) -> None:
        self.model, self.noise = model, check_noise(noise)
        self.spends: tuple[Spend, ...] = ()
        self._streams: dict[int, tuple[Mechanism, int, Any]] = {}

    def left(self, steps: range | None = None) -> Fraction:
        """Return the budget left, in the model's currency, in every window that meets one of these steps.

        Args:
            steps: Running indices; None for the step after the last released one.
        """
        end = max((first for _, first, _ in self._streams.values()), default=0)
        return self.model.budget - self._charged(self.spends, range(end, end + 1) if steps is None else steps)

    def release(self, mechanism: Mechanism, values: ArrayLike | PrivatePeriod) -> Release:
        """Release the next period of the mechanism's stream.

        Args:
            mechanism: One object for each stream, with the session's model, or a part of its budget
                (`PrivacyModel.with_budget`).
            values: As for `Mechanism.measure`.

        Raises:
            BudgetError: Before the draw, where some window would cost more than the budget.
            ParameterError: As `Mechanism.measure`, or for a mechanism of another privacy guarantee.
        """
        if mechanism.model.with_budget(self.model.budget) != self.model:
            raise ParameterError(
                "the mechanism's model must be the session's, but for its part of the budget: take "
                "PrivacyModel.with_budget of it"
            )
        _, first, state = self._streams.get(id(mechanism), (mechanism, 0, None))
        if not isinstance(values, PrivatePeriod):
            array = mechanism.in_order(values)
            values = PrivatePeriod.from_values(array, resolution=self.model.resolution, first_step=first)
        if values.first_step != first:
            raise ParameterError(f"the next period begins at {first}, and this one at {values.first_step}")
        before, plan = self.spends, mechanism.plan(values.n_steps, first, state)
        charged = self._charged((*before, *plan), range(first, first + values.n_steps))
        if charged > self.model.budget:
            raise BudgetError(
                f"a window of {self.model.window} would be charged {float(charged):.6g}, and the budget "
                f"is {self.model.in_words}: give each mechanism a part of it (PrivacyModel.with_budget), "
                "or release later steps; nothing was drawn"
            )
        self.spends = (*before, *plan)  # of a draw that fails, too
        release = mechanism.release(values, noise=self.noise, state=state)
        self.spends = (*before, *release.spends)
        self._streams[id(mechanism)] = (mechanism, first + values.n_steps, release.state)
        return release

    def _charged(self, spends: Sequence[Spend], steps: range) -> Fraction:
        return worst_window(spends, self.model.window, steps).epsilon
