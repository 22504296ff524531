"""The folder in which the commands are called."""

from pathlib import Path
from typing import Any

import pytest

from tasks.ingest import sandbox
from tests.flows.command import invoke
from tests.tasks.two_regions import CONFIGURATION, Installation


class KeptReader(sandbox._Process):
    """A process that reads dumps, kept for the next command; a new one takes most of a second."""

    answered = False

    def ask(self, *given: Any, **more: Any) -> Any:
        self.answered = False
        found = super().ask(*given, **more)
        self.answered = True
        return found

    def kill(self) -> None:
        if self.answered:
            sandbox.IDLE.append(self)
        else:
            super().kill()


@pytest.fixture(autouse=True)
def kept_readers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandbox, "_Process", lambda: sandbox._idle() or KeptReader())


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
