"""The looks before a draw: what they refuse wrongly, wait for without end, or read without need."""

import subprocess
import sys
from datetime import date

import orjson
import pytest

from optstream.storage import lock
from tasks.release.lineage import told_releases
from tasks.release.stages import Status
from tests.tasks.release.recovery.test_restored import FIRST, SECOND, refused
from tests.tasks.two_regions import Installation


def published(installation, day=FIRST):
    return installation.release(day)[day].outcome.status is Status.PUBLISHED


def other_stream(installation, tmp_path_factory, name="other"):
    """An installation of its own: stream, population, ledger and folders."""
    other = Installation(tmp_path_factory.mktemp("other"), installation.now)
    text = (installation.folder / "optstream.toml").read_text()
    text = text.replace(str(installation.settings.ledger_url), "sqlite:///trusted/ledger.sqlite")
    text = text.replace('"two-regions"', f'"{name}"').replace('"people"', '"other-people"')
    (other.folder / "optstream.toml").write_text(text)
    other.simulate(FIRST, SECOND)
    return other


def test_two_populations_with_a_ledger_each_share_a_trusted_folder(installation, tmp_path_factory):
    other = other_stream(installation, tmp_path_factory)
    other.configure('folder = "trusted"', f'folder = "{installation.folder / "trusted"}"')
    other.configure("trusted/ledger.sqlite", "ledger.sqlite")
    assert published(installation)
    assert published(other)
    assert published(installation, SECOND)


@pytest.mark.parametrize("mistaken", [True, pytest.param(False, marks=pytest.mark.nightly)])
@pytest.mark.nightly
def test_a_former_published_folder_that_is_another_installation_s_is_not_looked_at(
    either, tmp_path_factory, mistaken
):
    """Named by mistake before the first release; or given up, and used by others since."""
    other = other_stream(either, tmp_path_factory)
    place = either.folder / "place"
    either.configure('folder = "published"', f'folder = "{place}"')
    other.configure('folder = "published"', f'folder = "{place}"')
    if not mistaken:
        assert published(either)
        place.rename(either.folder / "published")
    assert published(other)
    if mistaken:
        assert "belongs to stream 'other'" in refused(either, FIRST)
    either.configure(f'folder = "{place}"', 'folder = "published"')
    assert published(either, SECOND)


def test_a_lock_that_another_process_holds_is_waited_for_and_named(installation, monkeypatch):
    """A run that was stopped while it told the witness."""
    assert published(installation)
    monkeypatch.setattr(lock, "LONGEST_WAIT", 0.2)
    code = (
        "import fcntl, sys; f = open(sys.argv[1]); fcntl.flock(f, fcntl.LOCK_EX); print(); sys.stdin.read()"
    )
    file = installation.folder / "trusted/witness/.lock"
    holder = subprocess.Popen(
        [sys.executable, "-c", code, str(file)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    try:
        holder.stdout.readline()
        said = refused(installation)
    finally:
        holder.communicate()
    assert str(file) in said
    assert "held" in said
    assert installation.record(SECOND) is None
    assert published(installation, SECOND)


def test_the_lineage_of_many_days_is_read_as_far_as_it_concerns_the_days(installation, monkeypatch):
    """Ten years of many regions are gigabytes: of them the lines of the asked days alone are parsed."""
    assert published(installation)
    file = installation.folder / "trusted/lineage/events.jsonl"
    line = file.read_bytes()
    others = [date(2017, 1, day) for day in range(1, 31)]
    file.write_bytes(b"".join(line.replace(str(FIRST).encode(), str(day).encode()) for day in others) + line)
    genuine, parsed = orjson.loads, []
    monkeypatch.setattr(orjson, "loads", lambda text: parsed.append(text) or genuine(text))
    assert told_releases(installation.settings, [FIRST]) == {(str(FIRST), 0)}
    assert len(parsed) == 1
    assert len(told_releases(installation.settings)) == 31
