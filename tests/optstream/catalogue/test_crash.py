"""A publisher that dies anywhere leaves a whole folder, whose lock and modes are as they were."""

import fcntl
import os
import shutil
import stat
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from optstream.catalogue import check_files, find_catalogue, read_catalogue, read_published, replace_page
from optstream.catalogue.layout import LOCK
from optstream.errors import PublicationError
from optstream.storage import folders as lock
from tests.optstream.catalogue.conftest import put_days
from tests.optstream.catalogue.folders import DAY, NEXT, take_back


class PowerCutError(BaseException):
    """Not an Exception: nothing may catch it and tidy up."""


def die_at(monkeypatch, n):
    """Let the process die instead of its n-th step on disk."""
    taken = []

    def dying(call):
        def step(*arguments, **keywords):
            if len(taken) >= n:
                raise PowerCutError
            taken.append(call.__name__)
            return call(*arguments, **keywords)

        return step

    for name in ("replace", "link", "fsync", "unlink", "mkdir", "rmdir"):
        monkeypatch.setattr(os, name, dying(getattr(os, name)))


def after_each_death(tmp_path, monkeypatch, before, work, each=1):
    """Yield a fresh folder after a death at step 0, 1, 2, …, or each n-th, until the work gets through."""
    begun = tmp_path / "begun"
    begun.mkdir()
    for step in before:
        step(begun)
    for n in range(0, 200, each):
        folder = shutil.copytree(begun, tmp_path / str(n))
        with monkeypatch.context() as patch:
            die_at(patch, n)
            try:
                work(folder)
                return
            except PowerCutError:
                pass
        yield folder
    raise AssertionError("the work never got through")


def release(revision, *days):
    return lambda folder: put_days(folder, *days, revision=revision)[-1]


def revisions(folder):
    """The published days, each with its revision; all are whole."""
    rows = read_published(folder, verify=True)
    assert set(rows.group_by("date").len()["len"]) <= {12}
    return dict(rows.select("date", "revision").iter_rows())


RESTATED = [release(1, DAY), release(2, DAY), release(1, NEXT)]
"""A day in two revisions, and another day."""
DEATHS = {
    "a first publication": ([], release(1, DAY), [{DAY: 1}], 15, 1),
    "days at once": ([release(1, DAY)], release(2, DAY, NEXT), [{DAY: 1}, {DAY: 2, NEXT: 2}], 25, 3),
    "a withdrawal": (RESTATED, take_back, [{DAY: 2, NEXT: 1}, {NEXT: 1}], 8, 1),
}
AT_NIGHT = {
    "days at once": (*DEATHS["days at once"][:-1], 1),
    "a release after a withdrawal": (
        [*RESTATED, take_back],
        release(3, DAY),
        [{NEXT: 1}, {DAY: 3, NEXT: 1}],
        10,
        1,
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("before", "work", "states", "least", "each"),
    [
        *(pytest.param(*one, id=name) for name, one in DEATHS.items()),
        *(
            pytest.param(*one, id=f"{name}, each step", marks=pytest.mark.nightly)
            for name, one in AT_NIGHT.items()
        ),
    ],
)
def test_death_at_every_step_leaves_whole_days_and_the_same_call_completes(
    tmp_path, monkeypatch, before, work, states, least, each
):
    n = 0
    for folder in after_each_death(tmp_path, monkeypatch, before, work, each):
        n += each
        if find_catalogue(folder) is not None:
            assert revisions(folder) in states
        work(folder)
        assert check_files(folder) == []
        assert list((folder / ".incoming").iterdir()) == []
        assert revisions(folder) == states[-1]
        assert {path.name for path in folder.rglob("date=*")} == {f"date={day}" for day in states[-1]}
        assert not work(folder).changed
    assert n > least


@pytest.mark.slow
def test_a_release_after_a_withdrawal_that_was_cut_short_completes_it(tmp_path, monkeypatch):
    """The withdrawn bytes must not come back as superseded ones."""
    for folder in after_each_death(tmp_path, monkeypatch, RESTATED, take_back):
        if read_catalogue(folder).entry(DAY).withdrawn:
            new = release(3, DAY)(folder).entry
            assert check_files(folder) == []
            kept = [path.name for path in folder.rglob("*.parquet") if path.parent.name == f"date={DAY}"]
            assert kept == [new.file.rpartition("/")[2]]


NOBODY = 65534
HOLD = """
import fcntl, os, sys
fcntl.flock(os.open(sys.argv[1], os.O_RDONLY), fcntl.LOCK_EX | fcntl.LOCK_NB)
print("held", flush=True)
sys.stdin.read()
"""


def as_nobody(path):
    """Whether another user can open a file and lock it, tried in a process that does nothing else."""
    process = os.fork()
    if process == 0:
        code = 1
        try:
            os.setgroups([])
            os.setgid(NOBODY)
            os.setuid(NOBODY)
            fcntl.flock(os.open(path, os.O_RDONLY), fcntl.LOCK_EX | fcntl.LOCK_NB)
            code = 0
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) == 0


def holder(path):
    """A process that holds the lock, until it is ended, and what it said."""
    command = [sys.executable, "-c", HOLD, str(path)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    return process, process.stdout.readline().decode().strip()


def end(process):
    process.kill()
    process.communicate()


@pytest.fixture
def public():
    """A folder that every user of the machine may come to."""
    folder = Path(tempfile.mkdtemp(prefix="optstream-public-"))
    folder.chmod(0o755)
    yield folder / "published"
    shutil.rmtree(folder)


def test_a_reader_cannot_hold_the_lock(public, put):
    put(public, DAY)
    assert stat.S_IMODE((public / LOCK).stat().st_mode) == 0o600
    if os.geteuid() == 0:  # only who may become another user can try
        assert as_nobody(public / "catalogue.json")
        assert not as_nobody(public / LOCK)
    assert put(public, NEXT).changed


def test_a_lock_that_an_older_version_made_is_closed_to_readers(tmp_path, put):
    tmp_path.joinpath(LOCK).touch()
    tmp_path.joinpath(LOCK).chmod(0o666)
    put(tmp_path, DAY)
    assert stat.S_IMODE((tmp_path / LOCK).stat().st_mode) == 0o600


def test_nobody_waits_without_end_nor_twice_and_the_message_names_lock_and_remedy(tmp_path, put, monkeypatch):
    put(tmp_path, DAY)
    waits, waited, sleep = [], [], time.sleep
    monkeypatch.setattr(lock.time, "sleep", lambda seconds: waits.append(seconds) or sleep(seconds))
    monkeypatch.setattr(lock, "LONGEST_WAIT", 0.1)
    process, said = holder(tmp_path / LOCK)
    try:
        assert said == "held"
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
    finally:
        end(process)
    assert 0 < waited[0] == waited[-1], "only the first of them waits"
    assert [entry.period for entry in read_catalogue(tmp_path).entries] == [DAY]
    assert put(tmp_path, NEXT).changed
    assert check_files(tmp_path) == []
    assert not lock._GIVEN_UP


def test_a_lock_that_was_removed_while_it_was_waited_for_is_made_anew(tmp_path, put, monkeypatch):
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
def test_modes_are_the_same_whatever_the_umask(tmp_path, put, umask):
    folder = tmp_path / "site" / "published"
    before = os.umask(umask)
    try:
        put(folder, DAY)
        put(folder, DAY, revision=2)
    finally:
        os.umask(before)
    modes = {
        path.relative_to(tmp_path).as_posix(): stat.S_IMODE(path.stat().st_mode)
        for path in folder.parent.rglob("*")
    }
    own = {"site/published/.lock": 0o600, "site/published/.incoming": 0o700}
    for name, mode in modes.items():
        expected = 0o755 if (tmp_path / name).is_dir() else 0o644
        assert (name, mode) == (name, own.get(name, expected))
    assert stat.S_IMODE(folder.parent.stat().st_mode) == 0o755


def test_what_an_operator_closed_stays_closed(tmp_path, put):
    folder = tmp_path / "published"
    put(folder, DAY)
    folder.chmod(0o750)
    (folder / "data").chmod(0o2750)
    put(folder, NEXT)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o750
    assert stat.S_IMODE((folder / "data").stat().st_mode) == 0o2750
    dated = (folder / "data" / f"date={NEXT}").stat().st_mode
    assert stat.S_IMODE(dated) == 0o2755, "a group's bit is inherited"
