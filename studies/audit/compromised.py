"""Days next to one whose noise is known: how much protection they lose, and which days must be marked.

PeGaSus over three days; the last day's noise is known. Who knows it counts it as a constant, so it is
the same in every run here, and the odds of the outputs are those given that noise. A window with a day that
is marked as lost is protected no more: then nothing of the leaked day is shown.
"""

from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from numpy.typing import NDArray

from optstream.ledger import Key, open_ledger
from optstream.measurement.grouping import GROUPER, ON_DEVIATION
from optstream.mechanisms import Hierarchical, PeGaSus
from optstream.noise import NoiseSource
from optstream.privacy import StepSpend
from optstream.stream import Measured, PrivatePeriod
from optstream.stream.private_period import raw_bytes
from studies.audit.histories import BufferedNoise, History, Outputs, Seen, outputs_of, release, seen
from studies.audit.stream import DAYS, made_up_stream
from tasks.operate.declare import compromise
from tasks.release.mechanism import Mechanism, mechanism_for
from tasks.release.run import LEASE, terms_of
from tasks.trusted.files import DrawingFile

NOW = datetime(2026, 1, 1, tzinfo=UTC)
LEAKED = len(DAYS) - 1
STREAM = {
    "step": "12h",
    "window": "1",
    "bounds": '["0", "100"]',
    "leaves": 'A = "all"',
    "schema": "aggregated",
    "mechanism": 'name = "PeGaSus"',
}
"""Two steps a day, and groups that go on over midnight: their threshold is 40, in units of alpha."""

JUMP = 10.0
"""The last reading: it ends the group."""
KNOWN = (3900, 2427)
"""The leaked comparison noises, in units of 0.01. Four readings of 0 are in the group when the leaked day
begins. With its reading of 0 their deviation is 0, and with `JUMP` too 16.67: the one joins and the other
does not if the threshold lies in (39, 40.94). If one of the four is 1, the deviations are 1.6 and 16.33, and
there is no such threshold: an outcome of one side has probability 0 on the other."""


def _tuned(mechanism: Mechanism) -> Hierarchical:
    """Return the mechanism with the threshold in `KNOWN`, and nearly all of epsilon for it."""
    assert isinstance(mechanism, Hierarchical)
    pattern = PeGaSus(mechanism.model, perturber_share="1/100", threshold="40")
    return replace(mechanism, mechanism=pattern)


Marks = Callable[[Sequence[Measured]], frozenset[int]]
"""Which days count as lost once the noise of the last one is known, by number."""


DAY_BEFORE = (0, 0, 0, None, 0, JUMP)
TWO_DAYS_BEFORE = (None, 0, 0, 0, 0, JUMP)
BEFORE_AN_END = (None, 100, 0, 0, 0, JUMP)
"""Readings of all steps; None where the streams differ, 0 on one side and alpha on the other. The 100 ends
the first day's group, and the next one runs into the leaked day."""


def compromised_subjects() -> tuple["BesideLeaked", ...]:
    """Days whose loss is held to epsilon wherever `optstream ledger compromised` does not mark them."""
    name = "leaked noise, days marked by the ledger"
    return (
        BesideLeaked(name, "the day before", DAY_BEFORE, marked_by_ledger),
        BesideLeaked(name, "two days before", TWO_DAYS_BEFORE, marked_by_ledger),
        BesideLeaked(name, "before a group that ended", BEFORE_AN_END, marked_by_ledger),
    )


def broken_compromised_subjects() -> tuple["BesideLeaked", ...]:
    """BROKEN ON PURPOSE: not all days that share a threshold with the leaked one are marked."""
    alone, two = frozenset({LEAKED}), frozenset({LEAKED - 1, LEAKED})
    return (
        BesideLeaked("leaked noise, that day alone marked", "the day before", DAY_BEFORE, lambda _: alone),
        BesideLeaked("leaked noise, two days marked", "two days before", TWO_DAYS_BEFORE, lambda _: two),
    )


@dataclass(frozen=True, eq=False)
class BesideLeaked:
    """Two streams that differ at one step before the leaked day, by alpha."""

    name: str
    neighbours: str
    readings: tuple[float | None, ...]
    marks: Marks
    claimed: float = 1.0
    _marked: dict[tuple[bytes, ...], frozenset[int]] = field(default_factory=dict, repr=False)

    @cached_property
    def histories(self) -> tuple[History, History]:
        """Both sides: the mechanism of each day, and its readings."""
        with TemporaryDirectory() as folder:
            settings = made_up_stream(Path(folder), **STREAM)
            mechanisms = [_tuned(mechanism_for(settings, day)) for day in DAYS]
            first_steps = [settings.calendar.first_step(day) for day in DAYS]
        changed = float(settings.model.alpha)

        def history(differing: float) -> History:
            filled = np.array([differing if reading is None else reading for reading in self.readings])
            days = np.split(filled, len(DAYS))
            return [
                (
                    mechanism,
                    PrivatePeriod.from_values(own, resolution=settings.privacy.resolution, first_step=first),
                )
                for mechanism, own, first in zip(mechanisms, days, first_steps, strict=True)
            ]

        return history(0.0), history(changed)

    @property
    def accountant(self) -> float:
        """What the accountant says that a window loses while no noise is known."""
        return float(max(mechanism.epsilon for mechanism, _ in self.histories[0]))

    def sample(self, side: int, n_runs: int, noise: NoiseSource) -> Outputs:
        """Return all measurements of each run; of the leaked day only where the change is not marked."""
        history, buffered = self.histories[side], BufferedNoise(noise)
        return outputs_of(self._run(history, buffered) for _ in range(n_runs))

    def _run(self, history: History, noise: NoiseSource) -> list[Seen]:
        measured = release(history, [noise] * LEAKED + [_KnownNoise(self._comparison_scale)])
        shown = [seen(day) for day in measured]
        changed_day = self.readings.index(None) * len(DAYS) // len(self.readings)
        if changed_day in self._marks_of(measured):
            numbers, answers = shown[LEAKED]
            shown[LEAKED] = np.full_like(numbers, np.nan), np.full_like(answers, -1)
        return shown

    @cached_property
    def _comparison_scale(self) -> float:
        mechanism, period = self.histories[0][LEAKED]
        assert isinstance(mechanism, Hierarchical)
        plan = mechanism.plan(period.n_steps, period.first_step)
        (grouper,) = (spend for spend in plan if isinstance(spend, StepSpend) and spend.stage == GROUPER)
        return float(ON_DEVIATION * grouper.scale)

    def _marks_of(self, measured: Sequence[Measured]) -> frozenset[int]:
        """The marks depend on the groups, and on nothing else."""
        key = tuple(seen(day)[1].tobytes() for day in measured)
        if key not in self._marked:
            self._marked[key] = self.marks(measured)
        return self._marked[key]


class _KnownNoise:
    """The noise of the leaked day: its comparisons as `KNOWN`, everything else 0."""

    simulated = True

    def __init__(self, comparison_scale: float) -> None:
        self._scale, self._left = comparison_scale, list(KNOWN)

    def discrete_laplace(self, scale: float, size: tuple[int, ...]) -> NDArray[np.int64]:
        """Return the next of them."""
        drawn = np.zeros(size, dtype=np.int64)
        if scale == self._scale:
            for place in range(drawn.size):
                drawn[place] = self._left.pop(0)
        return drawn

    def uniform_below(self, bounds: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return 0: PeGaSus draws no joint noise."""
        return np.zeros_like(bounds)


def marked_by_ledger(measured: Sequence[Measured]) -> frozenset[int]:
    """Record the days in a ledger of their own, with their measurements, and mark the last one as leaked."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        settings = made_up_stream(folder, **STREAM)
        with closing(open_ledger(f"sqlite:///{folder}/ledger")) as ledger:
            ledger.enrol(terms_of(settings), NOW)
            for day, own in zip(DAYS, measured, strict=True):
                held = ledger.reserve(
                    Key(settings.stream.name, day.isoformat()), own.spends, "audit", NOW, LEASE
                )
                ledger.begin_draw(held, NOW)
                file = DrawingFile(settings.measurements_of(day, 0), held.fencing_token)
                file.preallocate(0, 0)
                digest = file.fill(own.to_bytes(), raw_bytes(own.state))
                ledger.record_drawn(held, digest, own.spends, NOW)
            marked = compromise(settings, ledger, DAYS[LEAKED], "a leak", NOW)
        return frozenset(DAYS.index(day) for day in marked)
