"""Filling in a span by the real flow: months as subflows; remaining days reported, nothing done twice."""

import json
import logging
from concurrent.futures import Future
from concurrent.futures.process import BrokenProcessPool
from contextlib import nullcontext
from datetime import UTC, date, datetime, timedelta

import polars as pl
import pytest
from prefect.client.orchestration import get_client
from prefect.client.schemas.sorting import FlowRunSort
from prefect.settings import PREFECT_API_URL, temporary_settings

from flows.orchestration import release
from flows.orchestration.backfill import POOL, backfill, release_month
from optstream.catalogue import check_files, read_catalogue, read_published
from optstream.errors import ConfigurationError, ParameterError
from optstream.ledger import open_ledger
from tasks.config import load_settings
from tests.faults.world import configured, deliver
from tests.flows.command import invoke
from tests.tasks.two_regions import DRAWN, Installation

FIRST, LAST = date(2016, 5, 30), date(2016, 6, 1)
DAYS = [FIRST, FIRST + timedelta(days=1), LAST]
ABSENT = LAST + timedelta(days=1)
SPAN = ("--from", str(FIRST), "--to", str(ABSENT))


@pytest.fixture
def here(tmp_path, monkeypatch):
    """Three days of two months, of which one is refused, and one more without dumps."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "optstream.toml").write_text(configured())
    settings = load_settings(tmp_path / "optstream.toml")
    deliver(settings, DAYS)
    broken = tmp_path / f"dumps/region=84/date={FIRST}/part-0.parquet"
    pl.read_parquet(broken).with_columns(load_mw=pl.lit(None, pl.Float64)).write_parquet(broken)
    return tmp_path


def published(here):
    return sorted(set(read_published(here / "published", verify=True)["date"]))


@pytest.fixture
def logged():
    """What runs log, as the server's pages show it."""
    lines, log = [], logging.getLogger("prefect.flow_runs")
    handler = logging.Handler()
    handler.emit = lambda record: lines.append(record.getMessage())
    log.addHandler(handler)
    yield lines
    log.removeHandler(handler)


@pytest.mark.usefixtures("prefect_api")
def test_a_span_is_filled_in_once_and_what_is_left_is_listed(here, logged):
    priced = invoke("backfill", *SPAN, "--dry-run")
    assert priced.exit_code == 0
    assert "3 days to release, 0 to finish, 1 without a dump" in priced.output
    assert "no reading was read, nothing drawn or charged" in priced.output
    assert not (here / "published").exists()

    first = invoke("backfill", *SPAN)
    assert first.exit_code == 1
    assert "2016-05-30 to 2016-05-31: 1 published, 1 refused; 2 of 3 days" in first.output
    assert "must not be null or NaN" in " ".join(first.output.split())
    assert f"without a dump (1): {ABSENT}" in first.output
    assert first.output.splitlines()[-1].startswith("2 days in ")
    assert published(here) == [FIRST + timedelta(days=number) for number in (1, 2)]
    assert check_files(here / "published") == []
    with get_client(sync_client=True) as client:
        runs = client.read_flow_runs(sort=FlowRunSort.START_TIME_DESC, limit=3)
    assert [run.name for run in runs] == [
        "two-regions 2016-06-01",
        "two-regions 2016-05-30 to 2016-05-31",
        f"two-regions backfill {FIRST} to {ABSENT}",
    ]
    assert {f"{day} published" for day in published(here)} <= {said.partition(":")[0] for said in logged}
    assert any(said.startswith(f"{FIRST} refused: ") for said in logged)

    before = (here / "published/catalogue.json").read_bytes()
    events = open_ledger(load_settings(here / "optstream.toml").ledger_url).head("two-regions")
    again = invoke("backfill", "--from", "2016-05-31", "--to", str(LAST))
    assert again.exit_code == 0
    assert "0 days to release, 0 to finish, 0 without a dump, 2 published" in again.output
    assert "nothing to do; nothing changed, nothing spent" in again.output
    assert (here / "published/catalogue.json").read_bytes() == before
    assert open_ledger(load_settings(here / "optstream.toml").ledger_url).head("two-regions") == events


@pytest.mark.parametrize("server", [True, False])
@pytest.mark.nightly
def test_months_run_in_processes_and_an_interrupted_day_is_finished(here, server, request, monkeypatch):
    """One day was drawn by a run that let it go: it is published from what that run drew."""
    if server:
        request.getfixturevalue("prefect_api")
    else:
        monkeypatch.delenv("PREFECT_API_URL", raising=False)
    own = nullcontext() if server else temporary_settings({PREFECT_API_URL: None})
    gone = Installation(here, datetime.now(UTC) - timedelta(hours=1))
    gone.release(LAST, steps=DRAWN)
    drawn = gone.record(LAST).measurements_hash

    with own:
        result = invoke("backfill", *SPAN, "--workers", "2", "--json")
    document = json.loads(result.output)
    assert document["format"] == "optstream.backfill/1"
    assert document["without_dump"] == [str(ABSENT)]
    assert [day["status"] for day in document["days"]] == ["refused", "published", "published"]
    assert gone.record(LAST).measurements_hash == drawn
    assert published(here) == [FIRST + timedelta(days=number) for number in (1, 2)]


def test_a_cluster_needs_a_shared_ledger_and_a_server(here, monkeypatch):
    with pytest.raises(ConfigurationError, match="PostgreSQL"):
        invoke("backfill", *SPAN, "--dask", "tcp://127.0.0.1:1")
    assert not (here / "trusted").exists()
    file = here / "optstream.toml"
    file.write_text(file.read_text().replace("sqlite:///trusted/ledger.sqlite", "postgresql://nobody@/none"))
    monkeypatch.delenv("PREFECT_API_URL", raising=False)
    with pytest.raises(ConfigurationError, match="PREFECT_API_URL"):
        invoke("backfill", *SPAN, "--dask", "tcp://127.0.0.1:1")


def test_a_worker_of_another_trusted_folder_and_a_span_that_ends_first_release_nothing(here):
    mark = here / "trusted/.backfill-elsewhere"
    with pytest.raises(ConfigurationError, match="mount the same one"):
        release_month.fn(str(here / "optstream.toml"), "two-regions", [str(LAST)], 1.0, str(mark))
    # the flow is called by schedulers too: no exception of the command line
    with pytest.raises(ParameterError, match="the last day, 2016-06-01, comes before the first, 2016-06-02"):
        backfill.fn(str(here / "optstream.toml"), "2016-06-02", "2016-06-01")
    assert not (here / "trusted").exists()


class Broken:
    """A pool of processes of which one was killed."""

    def submit(self, *_asked):
        future = Future()
        future.set_exception(BrokenProcessPool())
        return future


def test_a_worker_that_is_killed_is_said_with_its_remedy(here):
    with temporary_settings({PREFECT_API_URL: None}), release.bound(POOL, Broken()):
        ended = backfill.fn(str(here / "optstream.toml"), str(FIRST), str(LAST), at_once=True)
    assert [day.day for day in ended] == DAYS
    assert all("run the same backfill again, with fewer --workers" in day.message for day in ended)
    assert not (here / "published").exists()


def vintages(here):
    return [entry.vintage for entry in read_catalogue(here / "published").entries]


def test_a_backfill_that_died_before_its_new_estimates_makes_them_the_next_time(tmp_path, monkeypatch):
    """Three days of two months, of which the last two are given new estimates."""
    monkeypatch.chdir(tmp_path)
    text = configured(mechanism="HistoryInformed")
    (tmp_path / "optstream.toml").write_text(text + "[release]\nrevise_days = 2\n")
    deliver(load_settings(tmp_path / "optstream.toml"), DAYS)
    span = ("backfill", "--from", str(FIRST), "--to", str(LAST))
    with temporary_settings({PREFECT_API_URL: None}):
        with monkeypatch.context() as dying:
            dying.setattr(release, "revised", lambda run, asked: [])
            assert invoke(*span).exit_code == 0
        assert vintages(tmp_path) == [0, 0, 0]
        again = invoke(*span)
        assert again.exit_code == 0, again.output
        assert "nothing to do" not in again.output
        assert vintages(tmp_path) == [1, 1, 0]
        assert "nothing to do" in invoke(*span).output
