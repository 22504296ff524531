"""What a day may know of the days around it: spends from the ledger, memory from stored measurements."""

import json
from contextlib import suppress
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from optstream.errors import LedgerError, ParameterError
from optstream.ledger import Ledger, ReleaseRecord
from optstream.privacy import Spend
from optstream.stream import Measured, State
from tasks.mechanism import Mechanism
from tasks.settings import Settings
from tasks.trusted_store import read_verified


@dataclass(frozen=True)
class Memory:
    """state: public, for the mechanism. folder, digest: where the period before keeps what is not public."""

    state: State | None = None
    folder: Path | None = None
    digest: str | None = None

    @property
    def size(self) -> int:
        """Bytes of the state as text."""
        return len(json.dumps(self.state))


def recall(settings: Settings, ledger: Ledger, mechanism: Mechanism, day: date, revision: int) -> Memory:
    """The memory for the release of a day.

    What was spent is read from the ledger alone. What only estimates need comes from the last period before
    that has measurements; if they are gone or of another format, the mechanism starts without it. A
    restatement goes on from the same day before, but without its raw state, which serves one draw, and that
    was the day's first.
    """
    earlier = ledger.drawn_before(settings.stream.name, settings.calendar.first_step(day))
    folder = earlier and settings.measurements_of(date.fromisoformat(earlier.period), earlier.revision)
    if earlier and (
        earlier.compromised is not None or earlier.amendment != ledger.promise_number(settings.stream.name)
    ):
        # nothing goes on from noise that others know; and what was remembered of other nodes, or in other
        # units, would be read as what it is not, or fail a draw after its first sample
        folder = None
    if revision:
        if not mechanism.adaptive:
            return Memory()
        spent = _spent(settings, ledger, day, revision)
        return Memory(mechanism.recall(spent, _remembered(folder, earlier)))
    if not mechanism.adaptive:
        # what another mechanism may have left is taken all the same, and so destroyed
        return Memory(None, folder, earlier and earlier.measurements_hash)
    spends = _spent(settings, ledger, day, revision)
    if earlier is None or folder is None:
        return Memory(mechanism.recall(spends))
    return Memory(mechanism.recall(spends, _remembered(folder, earlier)), folder, earlier.measurements_hash)


def _remembered(folder: Path | None, earlier: ReleaseRecord | None) -> State | None:
    """What a period left in public; None where its measurements are gone or of another format."""
    if folder is None or earlier is None:
        return None
    with suppress(LedgerError, ParameterError, OSError):
        return Measured.from_bytes(read_verified(folder, earlier.measurements_hash)).state
    return None


def _spent(settings: Settings, ledger: Ledger, day: date, revision: int) -> tuple[Spend, ...]:
    first_step, n_steps = settings.calendar.first_step(day), settings.calendar.n_steps(day)
    return ledger.charged_near(settings.stream.name, day.isoformat(), revision, first_step, n_steps)
