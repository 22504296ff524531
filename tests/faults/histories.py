"""The nights whose faults are tried: each history passes writes that the others do not."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

from tests.faults.world import DAYS

Step = Mapping[str, Any]
"""Fields of `Night`."""


@dataclass(frozen=True)
class History:
    """Nights in their order; a fault at a point meets the last. voids: whether days may be given up."""

    name: str
    steps: Sequence[Step]
    mechanism: str = "OptStream"
    voids: bool = False

    @property
    def days(self) -> list[date]:
        return sorted({day for step in self.steps for day in step["days"]})


def killed_in(point: str) -> History:
    """A run died there an hour before the next."""
    steps = [{"days": DAYS[:1], "act": "kill", "point": point}, {"days": DAYS[:1], "hours": 1.0}]
    return History(f"killed {point}", steps)


SINGLY = [{"days": [day]} for day in DAYS[:3]]
RAISES = {"days": DAYS[:1], "raises": True}
FIRST = History("a first day", SINGLY[:1])
SHARPENED = History("days that sharpen those before", SINGLY, "HistoryInformed")
RAW = History("days with raw state", SINGLY, "PeGaSus")
REDRAWN = killed_in("before commit in Ledger.record_drawn, 1")
DRAWN = killed_in("after commit in Ledger.record_drawn, 1")
UNSYNCED = killed_in("after mkdir in make_private_folder < DrawingFile.preallocate, 3")
"""A folder is there that nobody synced."""
AT_POINTS = (
    FIRST,
    RAW,
    SHARPENED,
    History("a day after a gap, with joint noise", [SINGLY[0], SINGLY[2]], "HistoryInformed"),
    History("two days in a chunk", [{"days": DAYS[:2]}]),
    REDRAWN,
    DRAWN,
    History("a draw that raises", [RAISES], voids=True),
)
ON_DISKS = (
    FIRST,
    History(
        "three days, one taken back and released again",
        [
            SINGLY[0],
            {"days": DAYS[1:3]},
            {"days": DAYS[1:2], "withdraw": True},
            {"days": DAYS[1:2], "restate": True},
        ],
    ),
    SHARPENED,
    RAW,
    History("a day after a draw that raises", [RAISES, SINGLY[1]], voids=True),
    UNSYNCED,
    REDRAWN,
    DRAWN,
    killed_in("after link in write_new < LocalTransaction.create_new, 1"),
)
