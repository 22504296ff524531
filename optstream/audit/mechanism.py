"""A mechanism of the house as the subject of an audit: whatever it measures, over consecutive periods."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from optstream.audit.neighbours import Neighbours
from optstream.audit.subject import BufferedNoise, Outputs
from optstream.errors import ParameterError
from optstream.noise import NoiseSource, simulated_noise
from optstream.privacy import PrivacyModel, Spend, worst_window
from optstream.stream import Measured, PrivatePeriod

PRICED_RUNS = 8


class Auditable(Protocol):
    """What the audit asks of a mechanism."""

    @property
    def model(self) -> PrivacyModel:
        """What it protects."""
        ...

    @property
    def epsilon(self) -> Fraction:
        """What the accountant says that its plan, repeated, costs any window."""
        ...

    def measure(
        self,
        values: ArrayLike | PrivatePeriod,
        *,
        noise: NoiseSource,
        first_step: int = 0,
        state: Mapping[str, Any] | None = None,
    ) -> Measured:
        """Draw the measurements of one period."""
        ...


@dataclass(frozen=True, eq=False)
class MechanismSubject:
    """A mechanism of the house on a pair of neighbours; its claim is the accountant's figure.

    mechanisms: one for each period of the neighbours (they differ where days do). Periods are released in a
    row, each with the state that the one before left. An adversary sees the measurements: points, sums, and
    which steps were measured. claims: another epsilon that it is held to, if not the accountant's.

    Raises ParameterError if the model does not protect the neighbours.
    """

    name: str
    mechanisms: Sequence[Auditable]
    pair: Neighbours
    claims: float | None = None

    def __post_init__(self) -> None:
        if len(self.mechanisms) != len(self.pair.lengths):
            raise ParameterError(
                f"an audit needs one mechanism for each of the {len(self.pair.lengths)} periods of its "
                f"neighbours; got {len(self.mechanisms)}"
            )
        for mechanism in self.mechanisms:
            self.pair.check(mechanism.model)

    @property
    def neighbours(self) -> str:
        """Of the pair."""
        return self.pair.name

    @property
    def accountant(self) -> float:
        """What the accountant says that any window loses."""
        return float(max(mechanism.epsilon for mechanism in self.mechanisms))

    @property
    def claimed(self) -> float:
        """What the mechanism is held to."""
        return self.accountant if self.claims is None else self.claims

    @property
    def charged(self) -> float | None:
        """What the accountant charges a window as short as this very change; None where that depends on
        the outcome. Never below what an audit finds, and often far below `accountant`.
        """
        model, noise = self.mechanisms[0].model, simulated_noise(0)
        charges = {
            worst_window(spends, self.pair.span, model.windows).epsilon
            for spends in (self._spends(side, noise) for side in (0, 1) for _ in range(PRICED_RUNS))
        }
        return float(charges.pop()) if len(charges) == 1 else None

    def sample(self, side: int, n_runs: int, noise: NoiseSource) -> Outputs:
        """All measurements of `n_runs` runs, in units of the resolution; answers: which steps were measured."""
        buffered, periods = BufferedNoise(noise), self._periods(side)
        numbers: NDArray[np.float64] | None = None
        answers = np.zeros((n_runs, sum(self.pair.lengths)), dtype=np.int64)
        for run in range(n_runs):
            released = self._release(periods, buffered)
            if numbers is None:
                numbers = np.full((n_runs, sum(_width(measured) for measured in released)), np.nan)
            column, step = 0, 0
            for measured in released:
                answers[run, [step + position for position in measured.positions]] = 1
                column = _write(numbers[run], column, measured)
                step += measured.n_steps
        if numbers is None:
            raise ParameterError("an audit draws at least one run at a time")
        return Outputs(numbers, answers)

    def _periods(self, side: int) -> list[PrivatePeriod]:
        resolution = self.mechanisms[0].model.resolution
        return [
            PrivatePeriod.from_values(values, resolution=resolution, first_step=first_step)
            for values, first_step in zip(self.pair.sides[side], self.pair.first_steps, strict=True)
        ]

    def _release(self, periods: Sequence[PrivatePeriod], noise: NoiseSource) -> list[Measured]:
        state: Mapping[str, Any] | None = None
        released = []
        for mechanism, period in zip(self.mechanisms, periods, strict=True):
            released.append(mechanism.measure(period, noise=noise, first_step=period.first_step, state=state))
            state = released[-1].state
        return released

    def _spends(self, side: int, noise: NoiseSource) -> list[Spend]:
        released = self._release(self._periods(side), noise)
        return [spend for measured in released for spend in measured.spends]


def _width(measured: Measured) -> int:
    n_nodes = measured.points.shape[0]
    return n_nodes * measured.n_steps + sum(sums.size for sums in measured.sums)


def _write(row: NDArray[np.float64], column: int, measured: Measured) -> int:
    """Write a period's numbers into a run's row, from `column` on; return where the next period begins.

    A point stands at its step, so that runs that sampled other steps compare.
    """
    n_nodes = measured.points.shape[0]
    end = column + n_nodes * measured.n_steps
    row[column:end].reshape(n_nodes, measured.n_steps)[:, list(measured.positions)] = measured.points
    for sums in measured.sums:
        row[end : end + sums.size] = sums.ravel()
        end += sums.size
    return end
