"""The folder in which the commands are called."""

from pathlib import Path

import pytest

from tests.flows.command import invoke


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with the example configuration and nothing else."""
    monkeypatch.chdir(tmp_path)
    invoke("init")
    return tmp_path
