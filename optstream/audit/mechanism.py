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

PRICED_RUNS = 3


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
        """All measurements of each run, in units of the resolution; answers: which steps were measured."""
        buffered, periods = BufferedNoise(noise), self._periods(side)
        runs = [[_seen(measured) for measured in self._release(periods, buffered)] for _ in range(n_runs)]
        return Outputs(
            numbers=np.array([np.concatenate([numbers for numbers, _ in run]) for run in runs]),
            answers=np.array([np.concatenate([answers for _, answers in run]) for run in runs]),
        )

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


def _seen(measured: Measured) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """A period's numbers, then whether each step was measured at each node and what else was decided.

    A point stands at its step, so that runs that measured other steps compare.
    """
    levels = [_seen_at_once(part) for part in measured.parts or (measured,)]
    numbers, answers = zip(*levels, strict=True)
    return np.concatenate(numbers), np.concatenate(answers)


def _seen_at_once(measured: Measured) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    points = np.full((len(measured.points), measured.n_steps), np.nan)
    drawn = np.ones(measured.points.shape, dtype=bool)
    if measured.point_variances is not None:
        drawn &= np.isfinite(measured.point_variances)
    points[:, list(measured.positions)] = np.where(drawn, measured.points, np.nan)
    numbers = np.concatenate([points.ravel(), *(sums.ravel() for sums in measured.sums)])
    decided = [np.ravel(choice).astype(np.int64) for choice in (measured.choices or {}).values()]
    return numbers, np.concatenate([(~np.isnan(points)).astype(np.int64).ravel(), *decided])
