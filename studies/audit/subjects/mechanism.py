"""One of our mechanisms as the subject of an audit: whatever it measures, over consecutive periods."""

from collections.abc import Sequence
from dataclasses import dataclass

from optstream.errors import ParameterError
from optstream.mechanisms.base import Mechanism
from optstream.noise import NoiseSource, simulated_noise
from optstream.privacy import Spend, worst_window
from optstream.stream import PrivatePeriod
from studies.audit.subjects.histories import History, release, sampled
from studies.audit.subjects.neighbours import Neighbours
from studies.audit.subjects.subject import Outputs

PRICED_RUNS = 3


@dataclass(frozen=True, eq=False)
class MechanismSubject:
    """One of our mechanisms on a pair of neighbours; its claim is the accountant's figure.

    Periods are released in a row, each with the state that the one before left. An adversary sees the
    measurements: points, sums, and which steps were measured.

    Args:
        name: Of the mechanism.
        mechanisms: One for each period of the neighbours (they differ where days do).
        pair: The neighbours.
        claims: Another epsilon that the mechanism is held to; None for the accountant's figure.

    Raises:
        ParameterError: For another number of mechanisms, or if a model does not protect the neighbours.
    """

    name: str
    mechanisms: Sequence[Mechanism]
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
        """The pair's neighbouring streams."""
        return self.pair.name

    @property
    def accountant(self) -> float:
        """What the accountant says that any window loses: epsilon, at `delta`."""
        return float(max(one.model.to_epsilon(one.epsilon) for one in self.mechanisms))

    @property
    def delta(self) -> float:
        """At which the mechanism is held to its epsilon."""
        return float(self.mechanisms[0].model.delta)

    @property
    def claimed(self) -> float:
        """What the mechanism is held to."""
        return self.accountant if self.claims is None else self.claims

    @property
    def charged(self) -> float | None:
        """What the accountant charges a window as short as this very change; None where the outcome decides.

        Never below what an audit finds, and often far below `accountant`.
        """
        model, noise = self.mechanisms[0].model, simulated_noise(0)
        charges = {
            model.to_epsilon(worst_window(spends, self.pair.span).epsilon)
            for spends in (self._spends(side, noise) for side in (0, 1) for _ in range(PRICED_RUNS))
        }
        return float(charges.pop()) if len(charges) == 1 else None

    def sample(self, side: int, n_runs: int, noise: NoiseSource) -> Outputs:
        """Return what an adversary sees of independent runs of one side.

        side: 0 or 1. n_runs: how many runs. noise: handed to the mechanisms. Returns all measurements of each
        run, in units of the resolution; answers: which steps were measured.
        """
        return sampled(self._history(side), n_runs, noise)

    def _history(self, side: int) -> History:
        resolution = self.mechanisms[0].model.resolution
        return [
            (mechanism, PrivatePeriod.from_values(values, resolution=resolution, first_step=first_step))
            for mechanism, values, first_step in zip(
                self.mechanisms, self.pair.sides[side], self.pair.first_steps, strict=True
            )
        ]

    def _spends(self, side: int, noise: NoiseSource) -> list[Spend]:
        history = self._history(side)
        return [spend for measured in release(history, [noise] * len(history)) for spend in measured.spends]
