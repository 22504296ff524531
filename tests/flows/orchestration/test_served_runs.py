"""Runs from another terminal are on the server of `optstream serve`, for as long as that runs."""

from datetime import date

import pytest
from prefect.client.orchestration import get_client
from prefect.client.schemas.filters import FlowRunFilter

from flows.orchestration.environment import tags_of
from flows.orchestration.serve import found_by_runs
from tasks.config import load_settings
from tests.faults.world import configured, deliver
from tests.flows.served import optstream

DAYS = [date(2016, 5, 30), date(2016, 5, 31), date(2016, 6, 1), date(2016, 6, 2)]
pytestmark = pytest.mark.slow


def call(settings, *words):
    done = optstream(*words, "--config", str(settings.file))
    assert done.returncode == 0, done.stdout + done.stderr


def runs_of(stream):
    with get_client(sync_client=True) as client:
        named = FlowRunFilter.model_validate({"tags": {"all_": list(tags_of(stream))}})
        return {run.name for run in client.read_flow_runs(flow_run_filter=named)}


def test_run_and_backfill_find_the_server_while_it_is_served(prefect_api, tmp_path, monkeypatch):
    monkeypatch.setenv("PREFECT_API_URL", prefect_api)
    (tmp_path / "optstream.toml").write_text(configured().replace("two-regions", "found"))
    settings = load_settings(tmp_path / "optstream.toml")
    deliver(settings, DAYS)
    with found_by_runs([settings], own=False):
        call(settings, "run", "--date", str(DAYS[0]))
        call(settings, "backfill", "--from", str(DAYS[1]), "--to", str(DAYS[2]))
        shown = runs_of("found")
        assert shown == {
            "found 2016-05-30",
            "found backfill 2016-05-31 to 2016-06-01",
            "found 2016-05-31",
            "found 2016-06-01",
        }
    call(settings, "run", "--date", str(DAYS[3]))  # the file of one that ended, or was killed
    assert runs_of("found") == shown


def test_a_served_server_that_does_not_answer_stops_no_run(tmp_path, monkeypatch):
    monkeypatch.setenv("PREFECT_API_URL", "http://127.0.0.1:9/api")
    (tmp_path / "optstream.toml").write_text(configured())
    settings = load_settings(tmp_path / "optstream.toml")
    deliver(settings, DAYS[:1])
    with found_by_runs([settings], own=False):
        call(settings, "run", "--date", str(DAYS[0]))
