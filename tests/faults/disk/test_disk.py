"""The recording file system and the disks that are rebuilt of it, before anything is believed of them."""

import os
import tempfile
from pathlib import Path

import pytest

from tests.faults.disk.model import Rules, after_cut
from tests.faults.disk.mount import mounted, read_log, why_not

pytestmark = pytest.mark.skipif(why_not() is not None, reason=f"no file system of our own here: {why_not()}")


def sync(path):
    descriptor = os.open(path, os.O_RDONLY)
    os.fsync(descriptor)
    os.close(descriptor)


def recorded(tmp_path, do):
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

    operations = recorded(tmp_path, work)
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

    operations = recorded(tmp_path, work)
    assert left(operations, tmp_path) == {"in": None, "in/file": b"new"}
    without = operations[:-1]
    assert left(without, tmp_path) == {"in": None, "in/file": b"old"}
    # who never synced the folder in which the other lies has nothing
    unsynced = [one for one in operations if one.kind != "sync" or one.node != 1]
    assert left(unsynced, tmp_path) == {}
