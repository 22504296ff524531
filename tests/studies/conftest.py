"""The studies' command line, called in the tests' own process; small streams, as the product's tests have."""

from typing import Any

from typer.testing import CliRunner

from studies.__main__ import app
from tests.flows.cli.conftest import here  # noqa: F401
from tests.tasks.conftest import load_text, small  # noqa: F401


def invoke(*words: str) -> Any:
    result = CliRunner().invoke(app, words, terminal_width=200)
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result
