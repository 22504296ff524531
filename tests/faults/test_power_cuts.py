"""A power cut loses what was not synced: no day is drawn twice, lost or changed by one."""

import os
import random
import tempfile
from pathlib import Path

import pytest

from tests.faults.cuts import DEAF, by_chance, open_cuts
from tests.faults.disk import Rules, after_cut, mounted, read_log, why_not
from tests.faults.life import UNSYNCED

pytestmark = pytest.mark.skipif(why_not() is not None, reason=f"no file system of our own here: {why_not()}")


def sync(path):
    descriptor = os.open(path, os.O_RDONLY)
    os.fsync(descriptor)
    os.close(descriptor)


def operations_of(tmp_path, do):
    """What a function does in an empty recording folder."""
    with mounted(tmp_path / "disk", tmp_path / "log"):
        do(tmp_path / "disk")
        return read_log(tmp_path / "log")


def left(operations, tmp_path, **rules):
    with tempfile.TemporaryDirectory(dir=tmp_path) as name:
        folder = Path(name)
        after_cut(operations, 0, len(operations), lambda _operation: None, Rules(**rules)).write_to(folder)
        return {
            path.relative_to(folder).as_posix(): path.read_bytes() if path.is_file() else None
            for path in folder.rglob("*")
        }


def test_only_what_was_synced_is_sure(tmp_path):
    def work(folder):
        for name in ("neither", "content", "both", "replaced"):
            (folder / name).write_bytes(b"old")
        sync(folder / "content")
        sync(folder / "both")
        sync(folder / "replaced")
        (folder / "replaced").rename(folder / "both")
        (folder / "neither").unlink()

    operations = operations_of(tmp_path, work)
    assert left(operations, tmp_path) == {}
    # as on usual file systems, where the sync of a file keeps its name
    assert left(operations, tmp_path, syncs_names="/")["content"] == b"old"


def test_a_name_is_as_durable_as_its_folder(tmp_path):
    def work(folder):
        (folder / "in").mkdir()
        (folder / "in" / "file").write_bytes(b"old")
        sync(folder / "in" / "file")
        sync(folder / "in")
        sync(folder)
        (folder / "aside").write_bytes(b"new")
        sync(folder / "aside")
        (folder / "aside").rename(folder / "in" / "file")
        sync(folder / "in")

    operations = operations_of(tmp_path, work)
    assert left(operations, tmp_path) == {"in": None, "in/file": b"new"}
    assert left(operations[:-1], tmp_path) == {"in": None, "in/file": b"old"}
    # who never synced the folder in which the other lies has nothing
    assert left([one for one in operations if one.kind != "sync" or one.node != 1], tmp_path) == {}


SEED = 20160601


@pytest.fixture(scope="module")
def cuts(sqlite_bench):
    with open_cuts(sqlite_bench) as opened:
        yield opened


@pytest.fixture(scope="module")
def recorded(cuts):
    """A first day, after a run that died in it."""
    return cuts.record(UNSYNCED)


def test_cuts_of_a_first_day(cuts, recorded):
    """At every eightieth durable step, an unsynced folder, a first page of zeros, and one of `by_chance`."""
    assert len(recorded.every_step) > 50
    gone = [operation.kind == "unname" and "-journal" in operation.name for operation in recorded.operations]
    places = [
        *recorded.every_step[4::80],
        (recorded.sights[0][0], "all unsynced lost"),
        (gone.index(True) - 1, "names of zeros"),
        next(by_chance(recorded, random.Random(SEED))),
    ]
    broken = [
        line
        for number, (at, remains) in enumerate(places)
        for line in cuts.cut(recorded, at, remains, SEED + number).broken
    ]
    assert broken == []


def test_a_disk_that_forgets_the_ledger_is_caught(cuts, recorded):
    """The control: without these syncs the judge finds what was lost."""
    deaf = Rules(deaf=(DEAF["sqlite"][0],))
    assert cuts.cut(recorded, recorded.ends[-1], "all unsynced lost", SEED, deaf).has_lost
