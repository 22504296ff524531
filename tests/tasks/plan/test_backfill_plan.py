"""What a span lacks and would cost, before anything is done; and what a run of it then does."""

import threading
from datetime import date, timedelta
from fractions import Fraction

import pytest

from optstream.catalogue.backends.local import LocalTransaction
from optstream.errors import LedgerError
from tasks.config import load_settings
from tasks.plan.backfill import cost_of, plan_backfill
from tasks.release import run as release
from tasks.release.reserve import look_at_folders
from tasks.release.stages import Status
from tests.tasks.two_regions import STEPS


@pytest.fixture
def there(installation):
    """The days of which the installation has dumps, three of them."""
    installation.simulate(date(2016, 6, 3))
    return sorted(
        date.fromisoformat(folder.name.removeprefix("date="))
        for folder in (installation.folder / "dumps/region=84").iterdir()
    )


def plan(installation, days):
    return plan_backfill(installation.settings, installation.ledger, days)


def test_every_day_of_the_span_is_told_apart(installation, there):
    installation.released(there[0])
    installation.release(there[1], steps=STEPS[:6])
    days = [there[0] - timedelta(days=1), *there]
    found = plan(installation, days)
    assert found.over == {"published": 1}
    assert found.begun == (there[1],)
    assert found.missing == tuple(there[2:])
    assert found.absent == (days[0],)
    assert found.to_run == tuple(there[1:])
    assert not list((installation.folder / "published").glob("data/*/*"))[1:]


def test_what_a_person_gave_up_or_took_back_is_not_run_again(installation, there):
    installation.released(there[0])
    installation.release(there[1], steps=STEPS[:6])
    installation.ledger.void("two-regions", str(there[1]), 0, "a person said so", installation.now)
    installation.ledger.withdraw("two-regions", str(there[0]), 0, "a wrong meter", installation.now)
    assert plan(installation, there).over == {"void": 1, "withdrawn": 1}
    assert plan(installation, there).to_run == tuple(there[2:])


def test_the_price_is_what_the_ledger_then_charges(installation, there):
    installation.released(there[0])
    priced = cost_of(installation.settings, installation.ledger, there[1:])
    assert priced.refused == ()
    assert 0 < priced.before <= priced.after <= priced.grant == 1
    works = installation.release(*there[1:])
    assert {work.outcome.status for work in works.values()} == {Status.PUBLISHED}
    assert installation.ledger.worst("people").epsilon == priced.after


def test_the_days_that_would_be_refused_are_those_that_are(installation, there):
    """Another stream over the same people has spent half of what the middle day's windows may lose."""
    other = installation.folder / "other.toml"
    text = (installation.folder / "optstream.toml").read_text()
    text = text.replace('name = "two-regions"', 'name = "another"').replace(
        'folder = "published"', 'folder = "elsewhere"'
    )
    other.write_text(text)
    settings = load_settings(other)
    run = release.Run(
        settings, installation.ledger, installation.run().noise, "other", lambda: installation.now
    )
    release.enrol(run)
    works = [release.Requested(there[1])]
    for step in STEPS:
        works = step(run, works)
    assert works[0].outcome.status is Status.PUBLISHED
    priced = cost_of(installation.settings, installation.ledger, there)
    assert there[1] in priced.refused
    done = installation.release(*there)
    refused = tuple(day for day, work in done.items() if work.outcome.status is Status.REFUSED)
    assert refused == priced.refused
    assert priced.before == Fraction(1)


def test_the_first_days_of_a_folder_may_be_published_by_another_run_meanwhile(
    installation, there, monkeypatch
):
    """Its files are there before its catalogue is: no catalogue was lost, so its turn is waited for."""
    running, listed, looked = threading.Event(), threading.Event(), threading.Event()
    genuine = LocalTransaction.replace_catalogue

    def slowly(turn, data):
        running.set()
        assert listed.wait(60)
        genuine(turn, data)

    monkeypatch.setattr(LocalTransaction, "replace_catalogue", slowly)
    done = {}

    def publish_first():
        done["first"] = installation.release(there[0], owner="first")[there[0]]

    def look():
        done["shown"] = look_at_folders(installation.run(owner="second"))
        looked.set()

    first, second = threading.Thread(target=publish_first), threading.Thread(target=look)
    first.start()
    assert running.wait(60)
    assert (installation.folder / "published/data").exists()
    second.start()
    assert not looked.wait(0.3)
    listed.set()
    first.join()
    second.join()
    assert done["first"].outcome.status is Status.PUBLISHED
    assert [entry.period for entry in done["shown"].catalogue.entries] == [there[0]]


def test_data_whose_catalogue_was_lost_are_refused(installation, there):
    installation.released(there[0])
    (installation.folder / "published/catalogue.json").unlink()
    with pytest.raises(LedgerError, match="holds data but no catalogue"):
        look_at_folders(installation.run())
