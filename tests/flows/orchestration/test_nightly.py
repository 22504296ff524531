"""A night of hours is one run; one of several streams has a run for each."""

from datetime import UTC, datetime

import pytest
from prefect import flow
from prefect.client.orchestration import get_client
from prefect.client.schemas.filters import FlowFilter, FlowRunFilter

from flows.orchestration.environment import tags_of
from flows.orchestration.nightly import night_document, nightly, nights
from flows.orchestration.release import in_one_run, in_prefect, with_prefect
from optstream.catalogue import find_catalogue
from tasks.monitor.facts import last_ended
from tasks.plan.backfill import UnreleasedError
from tests.flows.served import stream_of_hours
from tests.tasks.products import two_products


def runs(client, **wanted):
    """The flow runs of a filter."""
    return client.read_flow_runs(flow_run_filter=FlowRunFilter.model_validate(wanted))


def test_an_hours_run_has_no_runs_and_no_tasks_below_it(tmp_path, prefect_api):
    settings, _ = stream_of_hours(tmp_path / "one-run")
    state = nightly(str(settings.file), return_state=True)
    assert state.message.endswith(" published")
    with get_client(sync_client=True) as client:
        assert runs(client, tags={"all_": list(tags_of("one-run"))}) == []
        (run,) = runs(client, name={"any_": ["one-run night"]})
        own = FlowRunFilter.model_validate({"id": {"any_": [run.id]}})
        assert client.read_task_runs(flow_run_filter=own) == []


def test_one_night_releases_the_hours_of_several_streams(tmp_path, prefect_api):
    streams = [stream_of_hours(tmp_path / name)[0] for name in ("red", "blue")]
    state = nights([str(one.file) for one in streams], return_state=True)
    assert state.message == "looked at red, blue"
    for one in streams:
        last = last_ended(one, datetime.now(UTC))
        assert find_catalogue(one.published_folder).entry(last) is not None


def test_what_is_called_in_one_run_asks_prefect_for_nothing(prefect_api):
    @flow
    def asks():
        with in_one_run():
            within = in_prefect(), with_prefect()
        return within, (in_prefect(), with_prefect())

    assert asks() == ((False, False), (True, True))


NAMES = ("electricity", "gas")


@pytest.fixture
def products(tmp_path):
    """Electricity and gas, watched from yesterday on, with dumps of yesterday."""
    both = two_products(tmp_path)
    for one in both.values():
        yesterday = last_ended(one.settings, datetime.now(UTC))
        with (one.folder / "optstream.toml").open("a") as file:
            file.write(f"[watch]\nfirst_day = {yesterday}\n")
        one.simulate(yesterday)
    return both


def runs_of(stream, flow="optstream-nightly"):
    with get_client(sync_client=True) as client:
        return client.read_flow_runs(
            flow_filter=FlowFilter.model_validate({"name": {"any_": [flow]}}),
            flow_run_filter=FlowRunFilter.model_validate({"tags": {"all_": list(tags_of(stream))}}),
        )


def test_one_night_releases_all_and_one_that_fails_stops_no_other(products, prefect_api):
    files = [str(products[name].folder / "optstream.toml") for name in NAMES]
    before = {name: len(runs_of(name)) for name in NAMES}
    products["electricity"].configure('method = "equally_spaced"', 'method = "none"')
    with pytest.raises(UnreleasedError, match="optstream: the configuration"):
        nights(files)
    assert [one.state.value for one in products["gas"].ledger.outlines("gas")] == ["PUBLISHED"]
    products["electricity"].configure('method = "none"', 'method = "equally_spaced"')
    state = nights(files, return_state=True)
    assert state.message == "looked at electricity, gas"
    ledger = products["gas"].ledger
    assert [one.state.value for one in ledger.outlines("electricity")] == ["PUBLISHED"]
    assert ledger.worst("people").epsilon <= 1
    # each night is a flow run of its stream; that which could not be read had no name
    assert {name: len(runs_of(name)) - before[name] for name in NAMES} == {"electricity": 1, "gas": 2}


def test_a_server_is_told_of_one_night(products):
    streams = [products[name].settings for name in NAMES]
    night = night_document(streams, "pool")
    own = [night_document([one], "pool") for one in streams]
    assert night["name"] == "people"
    assert night["parameters"] == {"configs": [str(one.file) for one in streams]}
    assert night["tags"] == ["optstream", "stream:electricity", "stream:gas"]
    # the same hours are one look; other hours are looked at too
    assert night["schedules"] == own[0]["schedules"]
    products["gas"].configure("[input]", '[schedule]\ncron = "15 2 * * *"\n[input]')
    night = night_document([streams[0], products["gas"].settings], "pool")
    found = {one["cron"] for one in night["schedules"]}
    assert found > {one["cron"] for one in own[0]["schedules"]}
    assert any(cron.startswith("15 ") for cron in found)
