"""Nights: runs of hours and of several streams, what a server has of them, and lost connections."""

import shutil
from contextlib import closing, suppress
from datetime import UTC, datetime, timedelta
from functools import partial

import pytest
import yaml
from prefect.client.orchestration import get_client
from prefect.client.schemas.filters import FlowFilter, FlowRunFilter
from sqlalchemy import Engine, create_engine, event, text

from flows.orchestration import release
from flows.orchestration.environment import HEARTBEAT, tags_of
from flows.orchestration.nightly import (
    MISSED_HEARTBEATS,
    night_document,
    nightly,
    nights,
    register,
    zombie_document,
)
from optstream.catalogue import find_catalogue
from optstream.errors import OptStreamError
from optstream.ledger import open_ledger
from tasks.config import load_settings
from tasks.config.templates import EXAMPLE
from tasks.monitor.facts import last_ended
from tasks.plan.backfill import UnreleasedError, looks_of
from tests.faults.world import configure
from tests.flows.served import CHECKOUT, optstream, stream_of_hours
from tests.tasks.two_regions import two_products


def runs(**filters):
    """Flow runs, and task runs below them, by a filter for flow runs, and one for flows."""
    flows = FlowFilter.model_validate({"name": {"any_": filters.pop("flows", ["optstream-nightly"])}})
    named = FlowRunFilter.model_validate(filters)
    with get_client(sync_client=True) as client:
        return (
            client.read_flow_runs(flow_filter=flows, flow_run_filter=named),
            client.read_task_runs(flow_run_filter=named),
        )


def tagged(stream, *flows):
    found, _ = runs(tags={"all_": list(tags_of(stream))}, flows=flows or ["optstream-nightly"])
    return len(found)


def test_an_hours_run_has_no_runs_and_no_tasks_below_it(tmp_path, prefect_api):
    settings, _ = stream_of_hours(tmp_path / "one-run")
    assert nightly(str(settings.file), return_state=True).message.endswith(" published")
    assert tagged("one-run", "optstream-backfill", "optstream-release", "optstream-nightly") == 0
    (_,), tasks = runs(name={"any_": ["one-run night"]})
    assert tasks == []


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


def test_one_night_releases_all_and_one_that_fails_stops_no_other(products, prefect_api):
    files = [str(products[name].folder / "optstream.toml") for name in NAMES]
    before = {name: tagged(name) for name in NAMES}
    products["electricity"].configure('method = "equally_spaced"', 'method = "none"')
    with pytest.raises(UnreleasedError, match="optstream: the configuration"):
        nights(files)
    assert [one.state.value for one in products["gas"].ledger.outlines("gas")] == ["PUBLISHED"]
    products["electricity"].configure('method = "none"', 'method = "equally_spaced"')
    assert nights(files, return_state=True).message == "looked at electricity, gas"
    ledger = products["gas"].ledger
    assert [one.state.value for one in ledger.outlines("electricity")] == ["PUBLISHED"]
    assert ledger.worst("people").epsilon <= 1
    # each night is a flow run of its stream; that which could not be read had no name
    assert {name: tagged(name) - before[name] for name in NAMES} == {"electricity": 1, "gas": 2}


def test_a_server_learns_of_one_night(products):
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


KEPT = {"entrypoint", "description", "tags", "parameters", "work_pool_name", "path"}


@pytest.fixture
def settings(tmp_path):
    return configure(tmp_path, EXAMPLE)


def test_the_files_say_what_serve_registers(settings, monkeypatch):
    document = yaml.safe_load((CHECKOUT / "prefect.yaml").read_text())
    assert document["pull"] == []
    assert document["deployments"] == [night_document([settings], config="{{ $OPTSTREAM_CONFIG }}")]
    assert yaml.safe_load((CHECKOUT / "automations.yaml").read_text())["automations"] == [zombie_document()]
    # silence is several heartbeats long
    for seconds in (30, 60, 300):
        document = night_document([settings], heartbeat=seconds)
        assert document["work_pool"]["job_variables"]["env"][HEARTBEAT] == str(seconds)
        assert zombie_document(seconds)["trigger"]["within"] == MISSED_HEARTBEATS * seconds
    assert MISSED_HEARTBEATS >= 2
    # no parameter or variable is a secret
    monkeypatch.setenv("OPTSTREAM_LEDGER_URL", "postgresql://user:secret@host/ledger")
    assert "secret" not in str(night_document([load_settings(settings.file)]))


@pytest.mark.nightly
def test_a_server_takes_both_the_same(settings, prefect_api):
    """The file through Prefect's own command, then the same through the code, on a real server."""
    call = partial(prefect, api=prefect_api, home=settings.folder)
    call("work-pool", "create", "--type", "process", "optstream-french-load")
    assert "optstream-nightly/french-load" in call("--no-prompt", "deploy", "--all")
    call("automation", "create", "--from-file", "automations.yaml")
    by_file = known()
    register(night_document([settings]))
    assert known() == by_file
    assert len(by_file["schedules"]) == len(looks_of(settings))
    assert by_file["limit"] == (1, "CANCEL_NEW")

    # a changed configuration replaces what was there, whole
    text = EXAMPLE.replace("# [schedule]", "[schedule]")
    text = text.replace('# cron = "0 3 * * *"', 'cron = "*/5 2-4 * * *"')
    register(night_document([configure(settings.folder, text)]), 30)
    assert known()["schedules"] == [("*/5 2-4 * * *", "Europe/Paris", True)]
    assert known()["automations"] == [(True, 90.0)]


def prefect(*words, api, home):
    own = {"PREFECT_API_URL": api, "PREFECT_HOME": str(home / "prefect"), "COLUMNS": "200"}
    own |= {"OPTSTREAM_CONFIG": str(home / "optstream.toml")}
    done = optstream(*words, program=("-m", "prefect"), **own)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def known():
    with get_client(sync_client=True) as client:
        one = client.read_deployment_by_name("optstream-nightly/french-load")
        automations = client.read_automations_by_name(zombie_document()["name"])
    schedules = [(each.schedule.cron, each.schedule.timezone, each.active) for each in one.schedules]
    return {
        **one.model_dump(include=KEPT, mode="json"),
        "limit": (one.global_concurrency_limit.limit, one.concurrency_options.collision_strategy.value),
        "schedules": sorted(schedules),
        "variables": one.job_variables,
        "pull_steps": one.pull_steps or [],
        "automations": [(each.enabled, each.trigger.within.total_seconds()) for each in automations],
    }


N_HOURS = 3


def look(settings):
    with suppress(OptStreamError):  # an hour is left
        nightly.fn(str(settings.file))
    with closing(open_ledger(load_settings(settings.file).ledger_url)) as ledger:
        found = [one.state.value for one in ledger.outlines(settings.stream.name)]
    return found.count("PUBLISHED"), len(found)


@pytest.mark.server
@pytest.mark.nightly
def test_a_connection_that_is_cut_at_any_commit_costs_one_hour_at_most(
    tmp_path, postgresql_cluster, monkeypatch, prefect_api
):
    monkeypatch.setattr(release, "PAUSES", (0.1, 0.1))
    count, cut_at = [0], [0]
    elsewhere = postgresql_cluster.new_url().replace("postgresql:", "postgresql+psycopg:")
    other = create_engine(elsewhere)

    def committing(connection):
        if connection.engine is other or not connection.get_execution_options().get("ledger_writes"):
            return
        count[0] += 1
        if count[0] == cut_at[0]:
            own = connection.execute(text("SELECT pg_backend_pid()")).scalar_one()
            with other.connect() as apart:
                apart.execute(text(f"SELECT pg_terminate_backend({own}, 5000)"))

    event.listen(Engine, "commit", committing)
    try:
        monkeypatch.setenv("OPTSTREAM_LEDGER_URL", postgresql_cluster.new_url())
        settings, _ = stream_of_hours(tmp_path / "whole", N_HOURS)
        whole = look(settings)
        n_commits = count[0]
        assert whole[0] == whole[1] >= N_HOURS
        for number in range(1, n_commits + 1, max(1, n_commits // 12)):
            monkeypatch.setenv("OPTSTREAM_LEDGER_URL", postgresql_cluster.new_url())
            settings, _ = stream_of_hours(tmp_path / f"cut-{number}", N_HOURS)
            count[0], cut_at[0] = 0, number
            published, _ = look(settings)
            assert published >= whole[0] - 1, number
            cut_at[0] = 0
            assert look(settings)[0] >= whole[0] - 1, number
    finally:
        event.remove(Engine, "commit", committing)
        other.dispose()


def test_a_night_restates_a_day_of_long_ago_that_was_delivered_again(products, prefect_api):
    one = products["gas"]
    one.configure('restatement_share = "0"', 'restatement_share = "1/2"\nrevisions = 1')
    old = last_ended(one.settings, datetime.now(UTC)) - timedelta(days=100)
    one.simulate(old)
    one.now = datetime.now(UTC)
    one.release(old)
    again = one.folder / "dumps/revision=1"
    for day in sorted(one.folder.glob(f"dumps/region=*/date={old}")):
        shutil.copytree(day, again / day.relative_to(one.folder / "dumps"))
    assert f"{old} published" in nightly(str(one.folder / "optstream.toml"), return_state=True).message
    assert find_catalogue(one.settings.published_folder).entry(old).revision == 1
    assert nightly(str(one.folder / "optstream.toml"), return_state=True).message == "nothing to do"
