"""The folder in which the commands are called."""

from pathlib import Path

import pytest

from tests.flows.command import invoke
from tests.tasks.two_regions import CONFIGURATION, Installation


@pytest.fixture
def empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with the example configuration, which keeps nothing back here, and nothing else."""
    monkeypatch.chdir(tmp_path)
    invoke("init", "--mechanism", "OptStream")
    file = tmp_path / "optstream.toml"
    file.write_text(file.read_text().replace('restatement_share = "1/10"', 'restatement_share = "0"'))
    return tmp_path


@pytest.fixture
def installation(empty: Path) -> Installation:
    """The small stream of two regions, in the current folder, without dumps."""
    (empty / "optstream.toml").write_text(CONFIGURATION)
    return Installation(empty)
