"""The loop that looks at every stream, so that no request waits for a ledger."""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from pathlib import Path
from threading import Event

from optstream.errors import OptStreamError
from tasks.pages.metrics import metrics_text
from tasks.pages.snapshot import Snapshot, StreamRun, take_snapshot

RunsOf = Callable[[str, date | None], tuple[StreamRun, ...]]
"""The last runs of a stream, or those of a day."""
LOG = logging.getLogger("optstream.ui")
MOST_ROUNDS_LATE = 10


class UnknownStreamError(OptStreamError):
    """No configuration describes a stream of this name."""


@dataclass
class Looks:
    """The newest look at each stream; `seconds` between two rounds, `textfile` for the node exporter."""

    configurations: Sequence[Path]
    seconds: float
    clock: Callable[[], datetime]
    textfile: Path | None = None
    runs: RunsOf | None = None
    _found: dict[Path, Snapshot] = field(default_factory=dict, init=False)
    _ended: datetime | None = field(default=None, init=False)
    _unwritten: str | None = field(default=None, init=False)

    @property
    def snapshots(self) -> tuple[Snapshot, ...]:
        """The newest of each stream that was looked at."""
        return tuple(self._found.values())

    def of(self, stream: str) -> Snapshot:
        """The newest look at a stream. Raises UnknownStreamError for one that is not shown."""
        for found in self.snapshots:
            if found.stream == stream:
                return found
        raise UnknownStreamError(f"no stream {stream!r:.80} is shown here")

    def runs_on(self, found: Snapshot, day: date) -> tuple[tuple[StreamRun, ...], str]:
        """Return the runs that had a day, and why not or ""; one that did not answer lately is not asked."""
        if self.runs is None or found.runs_problem is not None:
            return (), found.runs_problem or ""
        asked = _with_runs(found, self.runs, day)
        return asked.runs or (), asked.runs_problem or ""

    @property
    def is_alive(self) -> bool:
        """Whether a round ended lately."""
        late = MOST_ROUNDS_LATE * self.seconds
        return self._ended is not None and (self.clock() - self._ended).total_seconds() < late

    def look(self) -> None:
        """Look at every stream once; then write the text file, if there is one and it can be written."""
        for file in self.configurations:
            found = take_snapshot(file, self.clock(), self._found.get(file))
            self._found[file] = found if self.runs is None else _with_runs(found, self.runs)
        self._ended = self.clock()
        if self.textfile is not None:
            self._write(self.textfile)

    def _write(self, file: Path) -> None:
        """Replace the text file in one step, read at any moment; log once why that cannot be."""
        problem, part = None, file.with_name(f".{file.name}.part")
        try:
            part.write_bytes(metrics_text(self.snapshots, self.clock()))
            part.replace(file)
        except OSError as error:
            problem = error.strerror or type(error).__name__
        if problem not in (None, self._unwritten):
            LOG.warning("%s cannot be written (%s): fix its folder or disk", file, problem)
        self._unwritten = problem

    def run(self, stop: Event) -> None:
        """Look again and again, until `stop` is set."""
        while not stop.is_set():
            self.look()
            stop.wait(self.seconds)


def _with_runs(snapshot: Snapshot, runs: RunsOf, day: date | None = None) -> Snapshot:
    """The snapshot with the stream's runs, or those of a day, or with why they are not known."""
    try:
        return replace(snapshot, runs=runs(snapshot.stream, day), runs_problem=None)
    except Exception as error:  # noqa: BLE001 - the pages outlive the orchestrator; an address may be a secret
        problem = f"Prefect's API did not answer ({type(error).__name__})"
        return replace(snapshot, runs=(), runs_problem=problem)
