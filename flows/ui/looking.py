"""The loop that looks at every stream, so that no request waits for a ledger."""

from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path
from threading import Event

from tasks.ui.prometheus import metrics_text
from tasks.ui.snapshot import Snapshot, take_snapshot

MOST_ROUNDS_LATE = 10


class Looks:
    """The newest look at each stream.

    Args:
        configurations: Their files.
        seconds: Between two rounds.
        clock: The time.
        textfile: Where metrics are written after each round, for the node exporter; None for nowhere.
    """

    def __init__(
        self,
        configurations: Sequence[Path],
        seconds: float,
        clock: Callable[[], datetime],
        textfile: Path | None = None,
    ) -> None:
        self.configurations, self.seconds, self.clock = configurations, seconds, clock
        self.textfile = textfile
        self._found: dict[Path, Snapshot] = {}
        self._ended: datetime | None = None

    @property
    def snapshots(self) -> tuple[Snapshot, ...]:
        """The newest of each stream that was looked at."""
        return tuple(self._found.values())

    @property
    def is_alive(self) -> bool:
        """Whether a round ended lately."""
        late = MOST_ROUNDS_LATE * self.seconds
        return self._ended is not None and (self.clock() - self._ended).total_seconds() < late

    def look(self) -> None:
        """Look at every stream once; then write the text file, if there is one."""
        for file in self.configurations:
            self._found[file] = take_snapshot(file, self.clock(), self._found.get(file))
        self._ended = self.clock()
        if self.textfile is not None:
            _replace(self.textfile, metrics_text(self.snapshots, self.clock()))

    def run(self, stop: Event) -> None:
        """Look again and again, until `stop` is set."""
        while not stop.is_set():
            self.look()
            stop.wait(self.seconds)


def _replace(file: Path, data: bytes) -> None:
    """Put the bytes in place in one step: the node exporter reads at any moment."""
    part = file.with_name(f".{file.name}.part")
    part.write_bytes(data)
    part.replace(file)
