"""The folder in which the commands are called."""

from pathlib import Path

import pytest

from tests.tasks.two_regions import CONFIGURATION, Installation


@pytest.fixture
def empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def installation(empty: Path) -> Installation:
    """The small stream of two regions, in the current folder, without dumps."""
    (empty / "optstream.toml").write_text(CONFIGURATION)
    return Installation(empty)
