"""What is destroyed in the trusted folder stays so: the folder is synced after the last name is gone."""

import pytest

from tasks.storage import private_files
from tasks.storage.private_files import DrawingFile, destroy_raw


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


def test_nothing_is_destroyed_where_nothing_is(tmp_path):
    destroy_raw(tmp_path / "day")
    DrawingFile(tmp_path / "day", 1).discard()
