"""The command line, called in the tests' own process."""

import json
from datetime import UTC, date, datetime
from typing import Any

from typer.testing import CliRunner

from flows.cli import output
from flows.cli.main import app
from optstream.errors import ContractError
from optstream.stream import PrivatePeriod
from tasks.config import Settings
from tasks.ingest import discover, ingest
from tasks.ingest.validate import validate
from tests.tasks.test_schemas import validator

output.QUIET_SECONDS = 3600.0  # a busy machine is no news to a test, which reads all that is printed


def judge(settings: Settings, day: date) -> PrivatePeriod | ContractError:
    """A day's dump, read and held against its contract: after that every release is the same."""
    (judged,) = validate(settings, ingest(settings, [discover(settings, [day])[day]]), now=datetime.now(UTC))
    return judged


def invoke(*words: str) -> Any:
    """What the command says and how it exits; a JSON document fits the schema of its format."""
    result = CliRunner().invoke(app, words, terminal_width=200)
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    if "--json" in words and result.stdout.startswith("{"):
        document = json.loads(result.stdout)
        assert [error.message for error in validator(document["format"]).iter_errors(document)] == []
    return result
