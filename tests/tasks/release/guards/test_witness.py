"""The looks before a draw: what they refuse wrongly, wait for without end, or read without need."""

import subprocess
import sys

from optstream.storage import lock
from tasks.release.run import Status
from tests.tasks.release.recovery.test_restored import FIRST, SECOND, refused
from tests.tasks.two_regions import Installation


def published(installation, day=FIRST):
    return installation.status(day) is Status.PUBLISHED


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
