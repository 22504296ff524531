"""New estimates by the real flows: each night for the days before it, for all days at a backfill's end."""

from datetime import date, timedelta

import pytest
from prefect.settings import PREFECT_API_URL, temporary_settings

from flows.orchestration import release
from optstream.catalogue import check_files, read_catalogue, read_published
from optstream.ledger import open_ledger
from tasks.config import load_settings
from tests.faults.world import STREAM, configured, deliver
from tests.flows.command import invoke

DAYS = [date(2016, 5, 30) + timedelta(days=number) for number in range(5)]


@pytest.fixture
def here(tmp_path, monkeypatch):
    """Five days of two months, of HistoryInformed; the last two are sharpened."""
    monkeypatch.chdir(tmp_path)
    text = configured(mechanism="HistoryInformed")
    (tmp_path / "optstream.toml").write_text(text + "[release]\nrevise_days = 2\n")
    settings = load_settings(tmp_path / "optstream.toml")
    deliver(settings, DAYS)
    return tmp_path


def vintages(here):
    return [entry.vintage for entry in read_catalogue(here / "published").entries]


@pytest.mark.usefixtures("prefect_api")
@pytest.mark.nightly
def test_a_backfill_sharpens_all_its_days_at_its_end_and_a_night_after_it_the_last_again(here, monkeypatch):
    monkeypatch.setattr(release, "REVISED_AT_ONCE", 2)
    filled = invoke("backfill", "--from", str(DAYS[0]), "--to", str(DAYS[3]))
    assert filled.exit_code == 0, filled.output
    assert vintages(here) == [1, 1, 1, 0]
    assert filled.output.count("revise, ") == 2
    night = invoke("run", "--date", str(DAYS[4]))
    assert night.exit_code == 0, night.output
    assert vintages(here) == [1, 1, 2, 1, 0]
    before = (here / "published/catalogue.json").read_bytes()
    assert invoke("run", "--date", str(DAYS[4])).exit_code == 0
    assert (here / "published/catalogue.json").read_bytes() == before
    read_published(here / "published", verify=True)
    assert check_files(here / "published") == []
    ledger = open_ledger(load_settings(here / "optstream.toml").ledger_url)
    assert ledger.verify() == []
    assert len(ledger.vintages(STREAM)) == 4
    assert invoke("ledger", "verify").exit_code == 0


def test_a_backfill_that_died_before_its_new_estimates_makes_them_the_next_time(here, monkeypatch):
    span = ("backfill", "--from", str(DAYS[0]), "--to", str(DAYS[2]))
    with temporary_settings({PREFECT_API_URL: None}):
        with monkeypatch.context() as dying:
            dying.setattr(release, "revised", lambda run, asked: [])
            assert invoke(*span).exit_code == 0
        assert vintages(here) == [0, 0, 0]
        again = invoke(*span)
        assert again.exit_code == 0, again.output
        assert "nothing to do" not in again.output
        assert vintages(here) == [1, 1, 0]
        assert "nothing to do" in invoke(*span).output


@pytest.mark.usefixtures("prefect_api")
@pytest.mark.nightly
def test_a_new_estimate_that_fails_is_said_and_costs_no_day(here):
    assert invoke("run", "--date", str(DAYS[0])).exit_code == 0
    for path in (here / f"trusted/measurements/{STREAM}/{DAYS[0]}-r0").iterdir():
        path.unlink()
    failed = invoke("run", "--date", str(DAYS[1]))
    assert failed.exit_code == 1
    assert "is gone" in failed.output.replace("\n", " ")
    assert read_published(here / "published", verify=True)["date"].n_unique() == 2
