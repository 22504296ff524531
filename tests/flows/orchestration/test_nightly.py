"""A night of a stream by the hour is one run: each below it would cost calls of Prefect's API."""

from datetime import UTC, datetime
from functools import partial

import pytest
from prefect import flow
from prefect.client.orchestration import get_client
from prefect.client.schemas.filters import FlowRunFilter, TaskRunFilter

from flows.orchestration.environment import tags_of
from flows.orchestration.nightly import nightly, nights
from flows.orchestration.release import in_one_run, in_prefect, with_prefect
from optstream.catalogue import find_catalogue
from optstream.stream.period import day_of
from tasks.config import load_settings
from tasks.monitor.facts import last_ended
from tasks.operate.simulate import simulate
from tests.faults.world import configured

HOURLY = 'step = "1h"\nperiod = "hour"'


@pytest.fixture
def hours(tmp_path):
    """hours(name): the file of a stream by the hour, with dumps of its last day."""
    return partial(_stream, tmp_path)


def _stream(folder, name):
    here = folder / name
    here.mkdir()
    text = configured(f"sqlite:///{folder}/ledger.sqlite", mechanism="PeGaSus").replace("two-regions", name)
    file = here / "optstream.toml"
    file.write_text(text.replace('step = "1h"', HOURLY).replace('"people"', f'"{name}"'))
    settings = load_settings(file)
    day = day_of(last_ended(settings, datetime.now(UTC)))
    with file.open("a") as more:
        more.write(f"[watch]\nfirst_day = {day}\n[schedule]\ncatch_up_days = 1\n")
    simulate(settings.input_folder, leaves=("84", "11"), calendar=settings.calendar, days=[day], seed=1)
    return file


def test_an_hours_run_has_no_runs_and_no_tasks_below_it(hours, prefect_api):
    state = nightly(str(hours("one-run")), return_state=True)
    assert state.message.endswith(" published")
    with get_client(sync_client=True) as client:
        named = FlowRunFilter.model_validate({"tags": {"all_": list(tags_of("one-run"))}})
        assert client.read_flow_runs(flow_run_filter=named) == []
        (run,) = client.read_flow_runs(
            flow_run_filter=FlowRunFilter.model_validate({"name": {"any_": ["one-run night"]}})
        )
        below = TaskRunFilter.model_validate({})
        own = FlowRunFilter.model_validate({"id": {"any_": [run.id]}})
        assert client.read_task_runs(flow_run_filter=own, task_run_filter=below) == []


def test_one_night_releases_the_hours_of_several_streams(hours, prefect_api):
    files = [hours(name) for name in ("red", "blue")]
    state = nights([str(file) for file in files], return_state=True)
    assert state.message == "looked at red, blue"
    for file in files:
        settings = load_settings(file)
        last = last_ended(settings, datetime.now(UTC))
        assert find_catalogue(settings.published_folder).entry(last) is not None


def test_what_is_called_in_one_run_asks_prefect_for_nothing(prefect_api):
    @flow
    def asks():
        with in_one_run():
            within = in_prefect(), with_prefect()
        return within, (in_prefect(), with_prefect())

    assert asks() == ((False, False), (True, True))
