"""The command line, called in the tests' own process."""

import json
from typing import Any

from typer.testing import CliRunner

from flows.cli import output
from flows.cli.main import app
from tests.tasks.test_schemas import validator

output.QUIET_SECONDS = 3600.0  # a busy machine is no news to a test, which reads all that is printed


def invoke(*words: str) -> Any:
    """What the command says and how it exits; a JSON document fits the schema of its format."""
    result = CliRunner().invoke(app, words, terminal_width=200)
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    if "--json" in words and result.stdout.startswith("{"):
        document = json.loads(result.stdout)
        assert [error.message for error in validator(document["format"]).iter_errors(document)] == []
    return result
