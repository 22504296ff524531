"""The studies' command line, called in the tests' own process; small streams, as the product's tests have."""

from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from studies.__main__ import app
from tests.tasks.conftest import load_text, small  # noqa: F401
from tests.tasks.two_regions import CONFIGURATION


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "optstream.toml").write_text(CONFIGURATION)
    return tmp_path


def invoke(*words: str) -> Any:
    result = CliRunner().invoke(app, words, terminal_width=200)
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result
