"""Power cuts: a history is recorded once on a disk that writes everything down, then cut at many places."""

import random
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from optstream.catalogue import find_catalogue
from optstream.catalogue.layout import CATALOGUE
from tests.faults.disk import Disk, Keep, Operation, Rules, after_cut, mounted, read_log
from tests.faults.judge import Judge, Sight
from tests.faults.life import ON_DISKS, Bench, History, Life, Tally, killed_in
from tests.faults.world import World, make_world
from tests.servers import Cluster, made_cluster

SECTOR = 512
"""Bytes that a disk writes whole or not at all."""
SERVER = "server"
"""The folder of the disk that holds PostgreSQL's data."""


def lost(_operation: Operation) -> None:
    """Nothing but what was synced."""


def only_names(operation: Operation) -> Operation | None:
    """Files under their new names, and empty."""
    return operation if operation.is_of_names else None


def names_of_zeros(operation: Operation) -> Operation:
    """Files under their new names, of their new length, and zeros wherever nothing was synced before.

    Never in the place of what was synced: a disk's sectors are old or new, as PostgreSQL expects.
    """
    if operation.kind != "write":
        return operation
    return operation._replace(other=operation.other + len(operation.value), value=b"")


def only_contents(operation: Operation) -> Operation | None:
    """What was written, under the old names."""
    return operation if operation.is_of_content else None


def some(chance: random.Random) -> Keep:
    """Each by chance, later ones without earlier ones too; of half of the writes only some sectors."""
    share = chance.random()

    def keep(operation: Operation) -> Operation | None:
        if chance.random() > share:
            return None
        if operation.kind == "write" and len(operation.value) > SECTOR and chance.random() < 0.5:
            whole = SECTOR * chance.randint(1, len(operation.value) // SECTOR)
            return operation._replace(value=operation.value[:whole])
        return operation

    return keep


REMAINS: dict[str, Keep] = {
    "all unsynced lost": lost,
    "names without contents": only_names,
    "names of zeros": names_of_zeros,
    "contents without names": only_contents,
}


FIRST_FOLDER = {
    "sqlite": "after mkdir in _make_private < _sqlite, 1",
    "postgresql": "after mkdir in make_private_folder < exclusive_in, 1",
}
"""Where the trusted folder is made: with the ledger, or with the first key."""
HISTORIES = {database: (*ON_DISKS, killed_in(point)) for database, point in FIRST_FOLDER.items()}
"""By database."""
DEAF = {
    "sqlite": ("/trusted/ledger.sqlite", "/trusted/measurements", "/published"),
    "postgresql": (f"/{SERVER}/pg_wal", "/trusted/measurements", "/published"),
}
"""Files whose syncs a disk ignores that must be found out: parts of paths, by database."""


@dataclass(frozen=True)
class Recorded:
    """What a history did to the disk. settled: operations that made the empty world. ends: of its nights."""

    history: History
    world: World
    operations: Sequence[Operation]
    settled: int
    ends: Sequence[int]
    sights: Sequence[tuple[int, Mapping[Sight, str]]]

    @property
    def every_step(self) -> list[tuple[int, str]]:
        """Cuts just before the disk is asked for each durable step; all that is not synced is lost."""
        asked = range(self.settled, self.ends[-1])
        return [(at, "all unsynced lost") for at in asked if self.operations[at].kind == "sync"]


@dataclass
class CutBench:
    """Records histories and cuts them. folder: to be mounted on, the same place before and after the cut."""

    bench: Bench
    folder: Path
    cluster: Cluster | None = None
    template: Path | None = None
    rules: Rules = field(default_factory=Rules)

    @property
    def disk(self) -> Path:
        return self.folder / "disk"

    @property
    def histories(self) -> Sequence[History]:
        return HISTORIES["postgresql" if self.cluster else "sqlite"]

    def record(self, history: History) -> Recorded:
        """Let it happen. The place is empty afterwards."""
        log = self.folder / "log"
        log.unlink(missing_ok=True)
        self._clear()
        with mounted(self.disk, log), self._served(self.template, "on") as url:
            dumps = self.bench.folder / "dumps"
            world = make_world(self.disk / "world", dumps, url, history.mechanism)
            settled = len(read_log(log))
            life, ends = Life(self.bench, world=world), []
            for night in history.nights:
                how = life.happen(night)
                assert how == ("killed" if night.act else "ended"), (how, life.said)
                ends.append(len(read_log(log)))
        operations = read_log(log)
        sights = list(self._sights(world, operations[: ends[-1]]))
        return Recorded(history, world, operations, settled, ends, sights)

    def cut(self, recorded: Recorded, at: int, remains: str, seed: int, rules: Rules | None = None) -> Tally:
        """Cut the power before operation `at`, start the next runs, and judge."""
        keep = REMAINS.get(remains) or some(random.Random(seed))
        disk = after_cut(recorded.operations, recorded.settled, at, keep, rules or self.rules)
        self._clear()
        disk.write_to(self.disk)
        with self._served(None, "off"):
            life = Life(self.bench, world=recorded.world)
            for when, sight in recorded.sights:
                life.judge.seen |= sight if when < at else {}
            life.broken += life.judge.look()
            for night, begun in zip(recorded.history.nights, [0, *recorded.ends], strict=False):
                if begun < at:
                    life.note(night)
            life.end()
            voids = life.judge.voids()
        operation = recorded.operations[at : at + 1]
        place = f"{operation[0].kind} {operation[0].name}".strip() if operation else "the end"
        named = f"{recorded.history.name}, {remains}, before operation {at} ({place}), seed {seed}"
        return Tally(1, voids, [f"{line} [{named}]" for line in life.broken])

    def _clear(self) -> None:
        if self.disk.exists():
            shutil.rmtree(self.disk)
        self.disk.mkdir()

    @contextmanager
    def _served(self, template: Path | None, fsync: str) -> Iterator[str | None]:
        """PostgreSQL on the disk, if that is the database; begun from the template where one is given."""
        if self.cluster is None:
            yield None
            return
        if template is not None:
            subprocess.run(["cp", "-a", template, self.disk / SERVER], check=True)
        self.cluster.fsync = fsync
        self.cluster.start()
        try:
            yield self.cluster.new_url() if template is not None else ""
        finally:
            self.cluster.stop()

    def _sights(
        self, world: World, operations: Sequence[Operation]
    ) -> Iterator[tuple[int, Mapping[Sight, str]]]:
        """What readers find whenever another catalogue takes the old one's place."""
        disk = Disk()
        below = world.settings.published_folder.relative_to(self.disk).as_posix()
        for at, operation in enumerate(operations):
            disk.apply(operation)
            if operation.is_of_names and operation.name == CATALOGUE and operation.kind != "unname":
                with tempfile.TemporaryDirectory() as name:
                    disk.write_to(Path(name), f"{below}/")
                    folder = Path(name) / below
                    catalogue = find_catalogue(folder)
                    if catalogue is not None:
                        yield at, Judge(world).sights(catalogue, folder)


@contextmanager
def open_cuts(bench: Bench, binaries: Path | None = None) -> Iterator[CutBench]:
    """A place for a disk. binaries: PostgreSQL's, if it is to be the ledger's database."""
    # not below pytest's folder: PostgreSQL runs as nobody, who may not enter that
    folder = Path(tempfile.mkdtemp(prefix="optstream-disk-"))
    try:
        folder.chmod(0o711)
        if binaries is None:
            yield CutBench(bench, folder)
            return
        # small files of its log, for they are copied for every cut
        with made_cluster(binaries, "--wal-segsize=1") as cluster:
            data = cluster.folder / "data"
            template = data.rename(cluster.folder / "template")
            data.symlink_to(folder / "disk" / SERVER)
            yield CutBench(bench, folder, cluster, template, Rules(syncs_names=f"/{SERVER}/"))
    finally:
        shutil.rmtree(folder)


def by_chance(recorded: Recorded, chance: random.Random) -> Iterator[tuple[int, str]]:
    """Anywhere, and anything left; without end."""
    while True:
        yield chance.randint(recorded.settled, recorded.ends[-1]), chance.choice([*REMAINS, "some by chance"])
