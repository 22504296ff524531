"""Runs from another terminal are on the server of `optstream serve`, for as long as that runs."""

import json
import subprocess
import sys
from datetime import date

import pytest
from prefect.client.orchestration import get_client
from prefect.client.schemas.filters import FlowRunFilter

from flows.orchestration.environment import served, tags_of
from flows.orchestration.serve import found_by_runs
from tasks.config import load_settings
from tests.faults.world import configured, deliver
from tests.flows.served import CHECKOUT, without_prefect

pytestmark = pytest.mark.slow

DAYS = [date(2016, 5, 30), date(2016, 5, 31), date(2016, 6, 1)]
PROGRAM = """
import json, sys
from typer.testing import CliRunner
from flows.cli.main import app
for words in json.loads(sys.argv[1]):
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, (done.output, done.exception)
"""


@pytest.fixture
def settings(tmp_path):
    (tmp_path / "optstream.toml").write_text(configured().replace("two-regions", "found"))
    settings = load_settings(tmp_path / "optstream.toml")
    deliver(settings, DAYS)
    return settings


def call(settings, *commands):
    """Commands in one process, as of a terminal that knows of no server."""
    words = json.dumps([[*command, "--config", str(settings.file)] for command in commands])
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, words],
        cwd=CHECKOUT,
        env=without_prefect(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_run_and_backfill_find_the_server_while_it_is_served(prefect_api, settings, monkeypatch):
    monkeypatch.setenv("PREFECT_API_URL", prefect_api)
    span = ("--from", str(DAYS[1]), "--to", str(DAYS[2]))
    with found_by_runs([settings], own=False):
        call(settings, ("run", "--date", str(DAYS[0])), ("backfill", *span))
        assert served(settings.trusted_folder)["PREFECT_API_URL"] == prefect_api
    assert served(settings.trusted_folder) == {}, "of one that ended, or was killed"
    with get_client(sync_client=True) as client:
        named = FlowRunFilter.model_validate({"tags": {"all_": list(tags_of("found"))}})
        assert {run.name for run in client.read_flow_runs(flow_run_filter=named)} == {
            "found 2016-05-30",
            "found backfill 2016-05-31 to 2016-06-01",
            "found 2016-05-31",
            "found 2016-06-01",
        }


def test_a_served_server_that_does_not_answer_stops_no_run(settings, monkeypatch):
    monkeypatch.setenv("PREFECT_API_URL", "http://127.0.0.1:9/api")
    with found_by_runs([settings], own=False):
        call(settings, ("run", "--date", str(DAYS[0])))
