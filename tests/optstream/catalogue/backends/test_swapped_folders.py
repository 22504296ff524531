"""Published folders are swapped for links before each call: nothing outside is changed or removed."""

import os
import shutil
from contextlib import suppress

import pytest

from optstream.catalogue import check_files, replace_page
from optstream.errors import PublicationError
from tests.failing import at_each
from tests.optstream.catalogue.conftest import put, take_back
from tests.optstream.catalogue.folders import DAY, NEXT, make_page

CALLS = ("open", "stat", "lstat", "listdir", "scandir", "link", "replace", "rename", "unlink", "remove")
CALLS += ("mkdir", "rmdir", "utime", "chmod", "fchmod")
DATED = f"date={DAY}"


WORK = {
    "publish": (lambda folder: put(folder, NEXT), (".incoming", "data", "manifests")),
    "revise": (lambda folder: put(folder, DAY, revision=3), ("superseded", f"data/{DATED}")),
    "withdraw": (lambda folder: take_back(folder, head="h9"), (f"data/{DATED}", f"superseded/{DATED}")),
    "page": (lambda folder: replace_page(folder, make_page), (".incoming",)),
}
CASES = [(name, target) for name, (_, targets) in WORK.items() for target in targets]


@pytest.fixture
def begun(tmp_path):
    """A published folder with a day in two revisions, and what a crash left."""
    folder = tmp_path / "begun"
    put(folder, DAY)
    put(folder, DAY, revision=2)
    (folder / ".incoming/half").write_bytes(b"half")
    return folder


@pytest.fixture
def victim(tmp_path):
    """A folder of the trusted zone, with all names that are ever looked for."""
    folder = tmp_path / "trusted"
    for place in (folder, folder / DATED):
        place.mkdir()
        for name in ("ledger.sqlite", "input.key", f"release-{'0' * 64}.parquet", f"release-{'0' * 64}.json"):
            (place / name).write_bytes(b"precious")
    return folder


def seen(folder):
    """Everything below, with its bytes, mode and times."""
    found = {}
    for path in [folder, *folder.rglob("*")]:
        facts = path.lstat()
        data = path.read_bytes() if path.is_file() else sorted(one.name for one in path.iterdir())
        found[path] = (data, facts.st_mode, facts.st_mtime_ns, facts.st_nlink)
    return found


def swap(folder, target, victim):
    with suppress(OSError):
        (folder / target).rename(folder / "away")
    with suppress(OSError):
        (folder / target).symlink_to(victim)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "target"), CASES)
def test_a_folder_swapped_before_any_call_leads_nowhere(begun, victim, tmp_path, monkeypatch, name, target):
    work, before, folder = WORK[name][0], seen(victim), tmp_path / "published"
    monkeypatch.setattr(os, "fsync", lambda _descriptor: None)
    for n in range(1, 2000):
        shutil.copytree(begun, folder)
        calls = []

        def swap_at_last(moment, call, calls=calls, n=n):
            if moment == "before":
                calls.append(call)
                if len(calls) == n:
                    swap(folder, target, victim)

        with at_each([(os, CALLS)], swap_at_last), suppress(PublicationError):
            work(folder)
        assert seen(victim) == before, f"before call {n} of {name}, {calls[n - 1 : n]}: {target}"
        shutil.rmtree(folder)
        if len(calls) < n:
            break
    assert n > 20, "the hook saw the calls"
    assert len(calls) < n


@pytest.mark.parametrize("name", [".lock", ".incoming", "data", "manifests", "catalogue.json"])
def test_a_link_is_refused_by_name_and_the_day_is_published_once_it_is_gone(begun, victim, name):
    before, file = seen(victim), victim / "ledger.sqlite"
    (begun / name).rename(begun.parent / "away")
    (begun / name).symlink_to(file if "." in name[1:] or name == ".lock" else victim)
    with pytest.raises(PublicationError, match=rf"{name}\b"):
        put(begun, NEXT)
    assert seen(victim) == before
    (begun / name).unlink()
    (begun.parent / "away").rename(begun / name)
    assert put(begun, NEXT).changed
    assert check_files(begun) == []


def test_a_link_among_the_data_is_named_and_not_read(begun, victim):
    (begun / "data" / "date=2016-03-01").symlink_to(victim)
    (problem,) = check_files(begun)
    assert problem.startswith("'data/date=2016-03-01' is not listed")
