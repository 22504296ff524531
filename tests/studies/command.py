"""The studies' command line, called in the tests' own process."""

from typing import Any

from typer.testing import CliRunner

from studies.__main__ import app


def invoke(*words: str) -> Any:
    result = CliRunner().invoke(app, words, terminal_width=200)
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result
