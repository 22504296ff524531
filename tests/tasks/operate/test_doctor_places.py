"""What the doctor says of folders and files."""

import fcntl
import os
import shutil

import pytest

from optstream.errors import ConfigurationError
from tasks.operate import doctor as places
from tasks.operate import permissions
from tasks.operate.permissions import check_trusted
from tests.failing import raising
from tests.tasks.operate.conftest import DAY


def test_a_sound_stream_has_no_finding_and_is_left_as_it_was(open_installation, around):
    def seen():
        """The public folder's own time too, which copies carry along."""
        public = (open_installation.folder / "published").stat().st_mtime_ns
        return public, {path: path.stat().st_mode for path in open_installation.folder.rglob("*")}

    before = seen()
    assert around(open_installation) == []
    assert seen() == before


@pytest.mark.parametrize("place", ["trusted", "trusted/ledger.sqlite", "trusted/input.key"])
@pytest.mark.parametrize("mode", [0o040, 0o001, 0o004])
def test_a_trusted_place_open_to_others_is_wrong_and_stops_every_run(open_installation, around, place, mode):
    check_trusted(open_installation.settings)
    path = open_installation.folder / place
    path.chmod(path.stat().st_mode | mode)
    ((severity, found, words),) = around(open_installation)
    remedy = f"chmod {'700' if place == 'trusted' else '600'} {path}"
    assert (severity, found) == ("wrong", str(path))
    assert remedy in words
    with pytest.raises(ConfigurationError, match=remedy):
        check_trusted(open_installation.settings)
    os.system(remedy)
    check_trusted(open_installation.settings)


@pytest.mark.parametrize("mode", [0o755, 0o720, 0o701])
def test_a_second_witness_that_others_may_enter_is_wrong_and_stops_every_run(open_installation, around, mode):
    """Whoever may write there can take back what it knows, and then restore an older ledger."""
    trusted = '[trusted]\nfolder = "trusted"'
    open_installation.configure(trusted, f'{trusted}\nwitness = "second"')
    second = open_installation.folder / "second"
    second.mkdir(mode=0o700)
    check_trusted(open_installation.settings)
    second.chmod(mode)
    ((severity, place, words),) = around(open_installation)
    assert (severity, place) == ("wrong", str(second))
    assert f"chmod 700 {second}" in words
    with pytest.raises(ConfigurationError, match="second has mode"):
        check_trusted(open_installation.settings)
    assert permissions.mode_of(second) == mode


def test_a_ledger_outside_the_trusted_folder_is_looked_at_too(open_installation, around):
    (open_installation.folder / "books").mkdir(mode=0o700)
    open_installation.copy_ledger().rename(open_installation.folder / "books/ledger.sqlite")
    for path in (open_installation.folder / "trusted").glob("ledger.sqlite*"):
        path.unlink()
    open_installation.configure("sqlite:///trusted/", "sqlite:///books/")
    (open_installation.folder / "books/ledger.sqlite").chmod(0o640)
    ((severity, place, _),) = around(open_installation)
    assert (severity, place) == ("wrong", str(open_installation.folder / "books/ledger.sqlite"))


def test_world_readable_raw_data_is_told_if_others_can_come_there(open_installation, around):
    (open_installation.folder / "dumps").chmod(0o755)
    ((severity, place, words),) = around(open_installation)
    assert severity == "warning"
    assert place.endswith(".parquet")
    assert "raw readings" in words
    check_trusted(open_installation.settings)
    open_installation.folder.chmod(0o700)
    assert around(open_installation) == []


def test_a_published_folder_inside_a_private_one_is_wrong(open_installation, around):
    for name, others in (("trusted", 1), ("dumps", 2)):
        moved = open_installation.folder / name / "published"
        shutil.copytree(open_installation.folder / "published", moved)
        text = (open_installation.folder / "optstream.toml").read_text()
        open_installation.configure('folder = "published"', f'folder = "{name}/published"')
        found = around(open_installation)
        assert len(found) == others
        assert found[0][:2] == ("wrong", str(moved))
        (open_installation.folder / "optstream.toml").write_text(text)
        shutil.rmtree(moved)


def test_the_reverse_does_not_load_and_the_doctor_says_so(open_installation):
    from tasks.operate.doctor import unusable

    for old, new in [
        ('folder = "trusted"', 'folder = "published/trusted"'),
        ('folder = "dumps"', 'folder = "published/dumps"'),
        ("sqlite:///trusted/", "sqlite:///published/"),
        # nor does anything that would name a seed
        ("[stream]", "[stream]\nseed = 1"),
        ("[stream]", '[noise]\nsource = "simulated"\n[stream]'),
    ]:
        text = (open_installation.folder / "optstream.toml").read_text()
        open_installation.configure(old, new)
        with pytest.raises(ConfigurationError) as caught:
            _ = open_installation.settings
        (finding,) = unusable("optstream.toml", caught.value)
        assert finding.is_bad
        assert "published" in finding.rule or "seed" in finding.rule or "noise" in finding.rule
        (open_installation.folder / "optstream.toml").write_text(text)


@pytest.mark.parametrize(
    "place", ["published", "published/data", "published/.incoming", "published/catalogue.json", "."]
)
def test_a_published_place_that_anybody_may_write_is_wrong_and_stops_every_run(
    open_installation, around, place
):
    check_trusted(open_installation.settings)
    path = open_installation.folder / place
    path.chmod(path.stat().st_mode | 0o002)
    ((severity, found, words),) = around(open_installation)
    assert (severity, found) == ("wrong", str(path))
    assert f"chmod o-w {path}" in words
    with pytest.raises(ConfigurationError, match=f"written by everybody.*\n.*chmod o-w {path}"):
        check_trusted(open_installation.settings)
    os.system(f"chmod o-w {path}")
    check_trusted(open_installation.settings)


def test_under_an_open_umask_a_run_makes_nothing_that_others_may_write(open_installation):
    """And what it makes in the trusted zone is its owner's alone."""
    before = os.umask(0)
    try:
        for name in ("published", "trusted"):
            shutil.rmtree(open_installation.folder / name)
        open_installation.release(DAY)
    finally:
        os.umask(before)
    check_trusted(open_installation.settings)
    modes = {
        path: path.stat().st_mode & 0o777 for path in (open_installation.folder / "published").rglob("*")
    }
    assert {oct(mode) for mode in modes.values()} == {"0o755", "0o644", "0o700", "0o600"}
    assert (open_installation.folder / "trusted").stat().st_mode & 0o777 == 0o700


def test_a_password_in_a_configuration_that_others_read_is_told_and_not_shown(open_installation, around):
    path = open_installation.folder / "optstream.toml"
    open_installation.configure(
        "sqlite:///trusted/ledger.sqlite", "postgresql://me:Geheim7@127.0.0.1:1/ledger"
    )
    found = around(open_installation)
    assert ("wrong", str(path)) in [entry[:2] for entry in found]
    assert "Geheim7" not in str(found)
    path.chmod(0o600)
    assert str(path) not in [place for _, place, _ in around(open_installation)]
    path.chmod(0o602)
    assert str(path) in [place for _, place, _ in around(open_installation)]


def test_a_file_system_without_links_or_locks_is_wrong_and_the_probe_is_gone(
    open_installation, around, monkeypatch
):
    refuse = raising(OSError(95, "Operation not supported"))
    before = sorted(open_installation.folder.rglob("*"))
    monkeypatch.setattr(places.os, "link", refuse)
    assert {words.split(",")[0] for _, _, words in around(open_installation)} == {
        "its file system has no hard links"
    }
    monkeypatch.setattr(fcntl, "flock", refuse)
    found = around(open_installation)
    assert [place for _, place, _ in found] == [
        str(open_installation.folder / "published"),
        str(open_installation.folder / "trusted"),
    ]
    assert "no hard links and no locks (flock)" in found[0][2]
    assert sorted(open_installation.folder.rglob("*")) == before


def test_the_mount_of_a_folder_is_the_innermost(tmp_path, monkeypatch):
    table = tmp_path / "mountinfo"
    table.write_text(
        f"22 1 8:1 / / rw - ext4 /dev/sda rw\n23 22 0:9 / {tmp_path / 'far'} rw shared:1 - nfs4 host:/x rw\n"
    )
    monkeypatch.setattr(places, "MOUNTS", table)
    (tmp_path / "far").mkdir()
    assert places._network_file_system(tmp_path / "far") == "nfs4"
    assert places._network_file_system(tmp_path) is None
