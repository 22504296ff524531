"""A span: what it lacks and costs, what a stopped run leaves, when a night looks, and what it calls left."""

import threading
from contextlib import closing
from datetime import UTC, date, datetime, timedelta
from fractions import Fraction

import pytest

from optstream.catalogue.backends import LocalTransaction
from optstream.ledger import Key, open_ledger
from tasks.plan import backfill
from tasks.plan.backfill import cost_of, days_of_night, over_already, plan_backfill, words_of_left
from tasks.release.reserve import look_at_folders
from tasks.release.revise import due
from tasks.release.run import Requested, Status
from tests.tasks.two_regions import CONFIGURATION, DRAWN

DAY, NEXT, THIRD = DAYS = [date(2016, 6, day) for day in (1, 2, 3)]


@pytest.fixture
def there(installation):
    installation.simulate(THIRD)
    return installation


def test_every_day_of_the_span_is_distinguished_and_what_was_given_up_or_taken_back_not_run_again(there):
    there.released(DAY)
    there.release(NEXT, steps=DRAWN)
    before = DAY - timedelta(days=1)
    found = plan_backfill(there.settings, there.ledger, [before, *DAYS])
    assert (found.over, found.begun, found.missing) == ({"published": 1}, (NEXT,), (THIRD,))
    assert (found.absent, found.to_run) == ((before,), (NEXT, THIRD))
    assert not list((there.folder / "published").glob("data/*/*"))[1:]
    there.ledger.void(Key("two-regions", str(NEXT)), "a person said so", there.now)
    there.ledger.withdraw(Key("two-regions", str(DAY)), "a wrong meter", there.now)
    found = plan_backfill(there.settings, there.ledger, DAYS)
    assert (found.over, found.to_run) == ({"void": 1, "withdrawn": 1}, (THIRD,))


def test_the_price_is_what_the_ledger_then_charges(there):
    there.released(DAY)
    priced = cost_of(there.settings, there.ledger, DAYS[1:])
    assert priced.refused == ()
    assert 0 < priced.before <= priced.after <= priced.grant == 1
    assert there.statuses(*DAYS[1:]) == {Status.PUBLISHED}
    assert there.spent == priced.after


def test_the_days_that_would_be_refused_are_those_that_are(there):
    """Another stream over the same people has spent half of what the middle day's windows may lose."""
    own = (there.folder / "optstream.toml").read_text()
    there.configure('name = "two-regions"', 'name = "another"')
    there.configure('folder = "published"', 'folder = "elsewhere"')
    assert there.status(NEXT) is Status.PUBLISHED
    (there.folder / "optstream.toml").write_text(own)
    priced = cost_of(there.settings, there.ledger, DAYS)
    assert NEXT in priced.refused
    refused = tuple(day for day, work in there.release(*DAYS).items() if work.status is Status.REFUSED)
    assert refused == priced.refused
    assert priced.before == Fraction(1)


def test_the_first_days_of_a_folder_may_be_published_by_another_run_meanwhile(there, monkeypatch):
    """Its files are there before its catalogue is: no catalogue was lost, so its turn is waited for."""
    running, listed, looked = threading.Event(), threading.Event(), threading.Event()
    genuine, done = LocalTransaction.replace_catalogue, {}

    def slowly(turn, data):
        running.set()
        assert listed.wait(60)
        genuine(turn, data)

    def publish_first():
        done["first"] = there.status(DAY, owner="first")

    def look():
        done["shown"] = look_at_folders(there.run(owner="second"))
        looked.set()

    monkeypatch.setattr(LocalTransaction, "replace_catalogue", slowly)
    first, second = threading.Thread(target=publish_first), threading.Thread(target=look)
    first.start()
    assert running.wait(60)
    assert (there.folder / "published/data").exists()
    second.start()
    assert not looked.wait(0.3)
    listed.set()
    first.join()
    second.join()
    assert done["first"] is Status.PUBLISHED
    assert [entry.period for entry in done["shown"].catalogue.entries] == [DAY]


def test_a_stopped_run_says_what_is_left_and_until_when_it_is_held(there):
    there.release(DAY, steps=DRAWN)
    again, until = "optstream run …", there.now + timedelta(minutes=15)

    def words(at):
        return words_of_left(there.settings, there.ledger, DAYS[:2], at, again)

    first, held, last = words(there.now)
    assert "of 2 days 1 are under way and 1 were not begun" in first
    assert held == f"  {DAY} DRAWN: held by the stopped run until {until:%Y-%m-%d %H:%M:%S} UTC"
    assert f"go on after {until:%H:%M:%S} UTC with `{again}`" in last
    assert f"release-lease {DAY} " in last
    assert words(until)[1:] == [f"  {DAY} DRAWN: free", f"go on at any time with `{again}`"]


def test_a_published_day_is_over_but_not_one_under_way_or_asked_for_again_or_with_a_page_behind(installation):
    installation.released(DAY)
    installation.write_pages()
    before = installation.files("published", "trusted/report")
    (ended,) = over_already(installation.run(), [DAY])
    assert ended.status is Status.UNCHANGED
    assert installation.files("published", "trusted/report") == before
    assert over_already(installation.run(), [DAY, NEXT]) is None
    assert over_already(installation.run(restate=True), [DAY]) is None
    (installation.folder / "published/index.html").write_text("of another day")
    assert over_already(installation.run(), [DAY]) is None
    installation.write_pages()
    installation.settings.report_file.unlink()
    assert over_already(installation.run(), [DAY]) is None
    installation.release(NEXT, steps=DRAWN)
    installation.write_pages()
    assert over_already(installation.run(), [DAY]) is not None
    assert over_already(installation.run(), [NEXT]) is None


def test_an_estimate_that_is_due_is_still_to_be_made(learning):
    learning.released(DAY, NEXT)
    learning.write_pages()
    assert over_already(learning.run(), [DAY, NEXT]) is None


def test_a_day_that_another_mechanism_measured_stays_due_and_is_no_work(installation):
    installation.released(DAY)
    installation.change_mechanism("HistoryInformed")
    installation.released(NEXT)
    installation.write_pages()
    assert [one.day for one in due(installation.run())] == [DAY]
    assert len(over_already(installation.run(), [DAY, NEXT])) == 2
    for path in installation.settings.measurements_of(DAY, 0).iterdir():
        path.unlink()
    assert over_already(installation.run(), [DAY, NEXT]) is None


EARLY = datetime(2016, 6, 2, 1, tzinfo=UTC)
LATE = datetime(2016, 6, 2, 10, tzinfo=UTC)  # noon in Paris


@pytest.fixture
def load(load_text):
    return lambda lines="": load_text(f"{CONFIGURATION}\n{lines}\n")


def times(crons):
    return sorted(
        (int(hour), int(minute))
        for cron in crons
        for minute in cron.split()[0].split(",")
        for hour in cron.split()[1].split(",")
    )


def test_a_night_looks_until_its_day_is_late(load):
    assert backfill.looks_of(load()) == ("0 3,4,5,6,7,8,9,10,11,12 * * *", "30 3,4,5,6,7,8,9,10,11 * * *")


@pytest.mark.parametrize(("begins", "until"), [(150, 395), (0, 1439), (59, 60)])
def test_every_look_and_a_last_one_at_the_hour(load, begins, until):
    watch = f'[watch]\nlate_after = "{until // 60:02d}:{until % 60:02d}"'
    crons = backfill.looks_of(load(f'[schedule]\ncron = "{begins % 60} {begins // 60} * * 1-5"\n{watch}'))
    expected = sorted({*range(begins, until, 30), until})
    assert times(crons) == [(minute // 60, minute % 60) for minute in expected]
    assert all(cron.endswith(" * * 1-5") for cron in crons)


def days(settings, now=EARLY):
    with closing(open_ledger(settings.ledger_url)) as ledger:
        return days_of_night(settings, ledger, now)


def test_a_night_takes_up_the_days_before_but_none_before_the_first_and_none_given_up(load):
    ago = lambda number: DAY - timedelta(days=number)  # noqa: E731
    # before anything was released it is of yesterday; in Paris the second of June is over at 22:00 UTC
    assert days(load()) == days(load(), datetime(2016, 6, 2, 21, 59, tzinfo=UTC)) == [DAY]
    assert days(load(), datetime(2016, 6, 2, 22, 0, tzinfo=UTC)) == [DAY + timedelta(days=1)]
    assert days(load(f"[watch]\nfirst_day = {ago(30)}")) == [ago(number) for number in (6, 5, 4, 3, 2, 1, 0)]
    assert days(load(f"[watch]\nfirst_day = {ago(2)}")) == [ago(2), ago(1), DAY]
    lines = f"[schedule]\ncatch_up_days = 3\n[watch]\nfirst_day = {ago(30)}\naccepted_gaps = [{ago(1)}]"
    assert days(load(lines)) == [ago(2), DAY]
    assert days(load(f"[watch]\nfirst_day = {DAY + timedelta(days=1)}")) == []


MAY_END_WELL = dict.fromkeys((Status.WAITING, Status.BUSY, None), True)  # None: no region has a dump
MAY_END_WELL |= dict.fromkeys((Status.REFUSED, Status.VOID, Status.FAILED), False)


@pytest.mark.parametrize(("status", "may_end_well"), MAY_END_WELL.items())
def test_only_a_day_that_may_end_well_has_time_until_it_is_late(load, status, may_end_well):
    words = f"{DAY} waiting: no dump" if status is None else f"{DAY} {status}: why"
    look = ([], [DAY]) if status is None else ([Requested(DAY).ended(status, "why")], [])
    early, late = (backfill.night_of(load(), *look, now) for now in (EARLY, LATE))
    assert early == (([words], []) if may_end_well else (["nothing to do"], [words]))
    assert late[1] == [words]
