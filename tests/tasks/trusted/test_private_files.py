"""What is destroyed in the trusted folder stays so: the folder is synced after the last name is gone."""

import errno
import resource
import signal

import pytest

from tasks.trusted import files as private_files
from tasks.trusted.files import DrawingFile, destroy_raw, write_private


@pytest.fixture
def synced(monkeypatch):
    """What each synced folder held at that moment: what a power cut right after it leaves."""
    held = []
    genuine = private_files.sync_folder

    def note(folder):
        genuine(folder)
        held.append(sorted(path.name for path in folder.iterdir()))

    monkeypatch.setattr(private_files, "sync_folder", note)
    return held


def test_a_power_cut_does_not_bring_destroyed_raw_state_back(tmp_path, synced):
    file = DrawingFile(tmp_path / "day", 1)
    file.preallocate(100, 100)
    file.fill(b"measured", b"raw state")
    synced.clear()
    destroy_raw(tmp_path / "day")
    assert [name for name in synced[-1] if name.endswith(".raw")] == []


def test_a_power_cut_does_not_bring_a_discarded_draw_back(tmp_path, synced):
    file = DrawingFile(tmp_path / "day", 1)
    file.preallocate(100, 100)
    file.fill(b"measured", b"raw state")
    synced.clear()
    file.discard()
    assert synced[-1] == ["1.intact"]


def test_a_file_that_a_full_disk_cut_short_gives_its_space_back(tmp_path):
    """A run after the other would leave its part, and the disk stay full."""
    write_private(tmp_path / "staged", b"before")
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2**16, limits[1]))
    try:
        with pytest.raises(OSError, match="too large") as told:
            write_private(tmp_path / "staged", bytes(2**20))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, handler)
    assert told.value.errno == errno.EFBIG
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {"staged": b"before"}
