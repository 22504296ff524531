"""A publisher that dies, or hears no answer, anywhere leaves a whole folder, whose lock and modes stay."""

import fcntl
import os
import stat
import time

import pytest

from optstream.catalogue import check_files, find_catalogue, read_catalogue, read_published, replace_page
from optstream.catalogue.layout import LOCK
from optstream.errors import PublicationError
from optstream.storage import folders as lock
from optstream.storage.store import S3Store
from tests.failing import Death, at_each, dying_at
from tests.memory_store import MemoryStore
from tests.optstream.catalogue.conftest import put, put_days, take_back
from tests.optstream.catalogue.folders import DAY, NEXT, copied, make_folder

ON_DISK = [(os, ("replace", "link", "fsync", "unlink", "mkdir", "rmdir"))]
IN_STORE = [(kind, ("put_new", "put_instead", "delete")) for kind in (S3Store, MemoryStore)]


def losing_answer(n, points):
    """The n-th request is carried out, and its answer never comes."""

    def act(moment, point):
        if moment == "after":
            points.append(point)
            if len(points) == n + 1:
                raise TimeoutError(5, "on purpose")

    return act


def release(revision, *days):
    return lambda folder: put_days(folder, *days, revision=revision)[-1]


def revisions(folder):
    """The published days, each with its revision; all are whole."""
    rows = read_published(folder, verify=True)
    assert set(rows.group_by("date").len()["len"]) <= {12}
    return dict(rows.select("date", "revision").iter_rows())


RESTATED = [release(1, DAY), release(2, DAY), release(1, NEXT)]
"""A day in two revisions, and another day."""
WITHDRAWN = [{DAY: 2, NEXT: 1}, {NEXT: 1}]
SCENARIOS = {
    "a first publication": ([], release(1, DAY), release(1, DAY), [{DAY: 1}]),
    "days at once": (
        [release(1, DAY)], release(2, DAY, NEXT), release(2, DAY, NEXT), [{DAY: 1}, {DAY: 2, NEXT: 2}]
    ),
    "a withdrawal": (RESTATED, take_back, take_back, WITHDRAWN),
    "a withdrawal, and then a release": (
        RESTATED, take_back, release(3, DAY), [*WITHDRAWN, {DAY: 3, NEXT: 1}]
    ),
    "a release after a withdrawal": (
        [*RESTATED, take_back], release(3, DAY), release(3, DAY), [{NEXT: 1}, {DAY: 3, NEXT: 1}]
    ),
}  # fmt: skip
"""What was there, what is struck by faults, the call after each, and the states that readers may meet."""


def cases():
    """By night: most on a server, releases after withdrawals in stores, each step of days at once on disk."""
    faults = (dying_at, losing_answer)
    for number, scenario in enumerate(SCENARIOS):
        each = 3 if scenario == "days at once" else 1
        tried = [("path", dying_at, each, number < 4)]
        tried += [("path", dying_at, 1, False)] if each > 1 else []
        tried += [("memory", fault, 1, number < 3) for fault in faults]
        tried += [("s3", fault, 1, number == 0 and fault is losing_answer) for fault in faults]
        for kind, fault, apart, is_day in tried:
            marks = [] if is_day else [pytest.mark.nightly]
            yield pytest.param(kind, scenario, fault, apart, marks=marks)


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "scenario", "fault", "each"), list(cases()))
def test_a_fault_at_every_step_leaves_days_whole_and_its_call_completes(request, kind, scenario, fault, each):
    (before, work, following, states), folder = SCENARIOS[scenario], make_folder(kind, request)
    superseded = set()
    for step in before:
        step(folder.below("before"))
    for n in range(0, 300, each):
        name, points = copied(folder, n), []
        try:
            with at_each(IN_STORE if folder.in_store else ON_DISK, fault(n, points)):
                work(name)
            break
        except (Death, PublicationError):
            pass
        catalogue = find_catalogue(name)
        if catalogue is not None:
            assert revisions(name) in states, points
        following(name)
        assert check_files(name) == [], points
        assert revisions(name) == states[-1]
        assert not following(name).changed
        superseded.add(tuple(one.rpartition("/")[2] for one in folder.files() if f"{n}/superseded/" in one))
        if catalogue and catalogue.entry(DAY) and catalogue.entry(DAY).withdrawn:
            kept = [one for one in folder.files() if one.startswith(f"{n}/") and f"date={DAY}" in one]
            assert len(kept) == (DAY in states[-1]), "withdrawn bytes do not come back as superseded ones"
        if kind == "path":
            assert list((name / ".incoming").iterdir()) == []
            assert {path.name for path in name.rglob("date=*")} == {f"date={day}" for day in states[-1]}
    else:
        raise AssertionError("the work never gets through")
    assert work is take_back or len(superseded) == 1, "what is replaced is kept at every step"
    assert n >= len(points) > (4 if folder.in_store else 8)
    assert len({point.split()[0] for point in points}) > 1


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


def test_nobody_else_can_open_a_lock_that_an_older_version_made(tmp_path):
    """Who opens a file, even to read, can lock it."""
    (tmp_path / LOCK).touch()
    (tmp_path / LOCK).chmod(0o666)
    put(tmp_path, DAY)
    assert mode(tmp_path / LOCK) == 0o600
    assert put(tmp_path, NEXT).changed


def test_nobody_waits_without_end_nor_twice_and_the_message_names_lock_and_remedy(tmp_path, monkeypatch):
    put(tmp_path, DAY)
    waits, waited, sleep = [], [], time.sleep
    monkeypatch.setattr(lock.time, "sleep", lambda seconds: waits.append(seconds) or sleep(seconds))
    monkeypatch.setattr(lock, "LONGEST_WAIT", 0.1)
    with (tmp_path / LOCK).open("rb") as held:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        for work in (
            lambda: take_back(tmp_path),
            lambda: replace_page(tmp_path, lambda *_: b""),
            lambda: put(tmp_path, NEXT),
        ):
            with pytest.raises(PublicationError) as caught:
                work()
            assert f"its lock {tmp_path / LOCK} was held for 0 s by another process" in str(caught.value)
            assert "`lslocks` names it" in str(caught.value)
            waited.append(len(waits))
            # a slow machine may take longer than the wait between two attempts
            lock._GIVEN_UP.update(dict.fromkeys(lock._GIVEN_UP, time.monotonic() + 60.0))
    assert 0 < waited[0] == waited[-1], "only the first of them waits"
    assert [entry.period for entry in read_catalogue(tmp_path).entries] == [DAY]
    assert put(tmp_path, NEXT).changed
    assert check_files(tmp_path) == []
    assert not lock._GIVEN_UP


def test_a_lock_that_was_removed_while_it_was_waited_for_is_made_again(tmp_path, monkeypatch):
    """Else one who got the removed one, and one who made a new one, would publish at once."""
    put(tmp_path, DAY)
    path, genuine, locked = tmp_path / LOCK, fcntl.flock, []

    def remove_before(descriptor, how):
        if not locked:
            path.unlink()
        locked.append(os.fstat(descriptor).st_ino)
        genuine(descriptor, how)

    monkeypatch.setattr(fcntl, "flock", remove_before)
    put(tmp_path, NEXT)
    assert len(locked) == 2
    assert path.stat().st_ino == locked[1] != locked[0] or len(set(locked)) == 1


@pytest.mark.parametrize("umask", [0o000, 0o077, 0o022])
def test_modes_are_the_same_whatever_the_umask(tmp_path, umask):
    folder = tmp_path / "site" / "published"
    before = os.umask(umask)
    try:
        put(folder, DAY)
        put(folder, DAY, revision=2)
    finally:
        os.umask(before)
    own = {".lock": 0o600, ".incoming": 0o700}
    for path in [folder.parent, *folder.parent.rglob("*")]:
        expected = own.get(path.name, 0o755 if path.is_dir() else 0o644)
        assert (path, mode(path)) == (path, expected)


def test_what_an_operator_closed_stays_closed(tmp_path):
    folder = tmp_path / "published"
    put(folder, DAY)
    folder.chmod(0o750)
    (folder / "data").chmod(0o2750)
    put(folder, NEXT)
    assert mode(folder) == 0o750
    assert mode(folder / "data") == 0o2750
    assert mode(folder / "data" / f"date={NEXT}") == 0o2755, "a group's bit is inherited"
