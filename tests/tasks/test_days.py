"""Every state that a day can be in, and the alarm that goes with it."""

import shutil
from datetime import date, timedelta

import polars as pl
import pytest

from optstream.catalogue import find_catalogue
from optstream.errors import LedgerError
from optstream.ledger import Key
from optstream.stream import Calendar
from tasks.ingest.clock import clock_ahead, foresee
from tasks.monitor.alarms import Severity
from tasks.monitor.facts import lost_files
from tasks.operate.doctor import examine
from tasks.plan.dry_run import dry_run
from tasks.release.run import Status
from tests.tasks.two_regions import STEPS

ONE, TWO = date(2016, 6, 1), date(2016, 6, 2)
FINE = {1: "published", 2: "published"}


def skipped(watched):
    watched.released(TWO)


def incomplete(watched):
    watched.released(ONE)
    (watched.folder / f"dumps/region=84/date={TWO}/_SUCCESS").unlink()


def absent(watched):
    watched.released(ONE)
    for leaf in ("84", "11"):
        shutil.rmtree(watched.folder / f"dumps/region={leaf}/date={TWO}")


def accepted(watched):
    watched.released(TWO)
    watched.configure("max_runtime", "accepted_gaps = [2016-06-01]\nmax_runtime")


def broken(watched):
    file = watched.folder / f"dumps/region=84/date={TWO}/part-0.parquet"
    pl.read_parquet(file).with_columns(load_mw=pl.lit(None, pl.Float64)).write_parquet(file)
    watched.at("2016-06-03T01:00:00")
    watched.released(ONE, TWO)


def held(watched):
    watched.configure('folder = "published"\n', 'folder = "published"\nnot_before = "20:00"\n')
    watched.released(ONE, TWO)


def unlisted(watched):
    watched.released(ONE, TWO)
    (watched.folder / "published/catalogue.json").unlink()


def unreadable(watched):
    watched.released(ONE, TWO)
    (watched.folder / "published/catalogue.json").write_text("{")


@pytest.mark.parametrize(
    ("prepare", "clock", "states", "alarms"),
    [
        (skipped, "2016-06-03T12:00", {1: "missing", 2: "published"}, [("missing", 1, None)]),
        # 06:00 in Paris is 04:00 UTC
        (skipped, "2016-06-03T03:59", {1: "missing", 2: "published"}, [("missing", 1, None)]),
        (skipped, "2016-06-02T03:59", {1: "waiting", 2: "published"}, []),
        (incomplete, "2016-06-03T03:59:59", {1: "published", 2: "waiting"}, []),
        (incomplete, "2016-06-03T04:00:00", {1: "published", 2: "late"}, [("late", 2, "84")]),
        (absent, "2016-06-03T12:00", {1: "published", 2: "late"}, [("late", 2, "FR")]),
        (accepted, "2016-06-03T12:00", {1: "missing", 2: "published"}, []),
        # before it is due
        (broken, "2016-06-03T01:00", {1: "published", 2: "failed"}, [("failed", 2, None)]),
        # of the first day the hour is past
        (held, "2016-06-03T18:59:00", {1: "published", 2: "held"}, []),
        (held, "2016-06-03T19:00:01", {1: "published", 2: "failed"}, [("failed", 2, None)]),
        (unlisted, "2016-06-03T12:00", FINE, [("unlisted", 1, None), ("unlisted", 2, None)]),
        (unreadable, "2016-06-03T12:00", FINE, [("unlisted", None, None)]),
    ],
)
def test_states_and_alarms(watched, prepare, clock, states, alarms):
    prepare(watched)
    watched.at(clock)
    watched.assert_shows(states, alarms)
    if prepare is absent:
        assert [day.levels for day in watched.watch().days if day.day == TWO] == [(1, 2)]


@pytest.mark.parametrize("before", [None, 5, 6])
def test_a_run_that_lives_runs_and_is_stuck_after_a_while_whatever_another_left(watched, before):
    """Another run, that died the day before, left nothing, a reservation or a draw."""
    watched.released(ONE)
    if before is not None:
        watched.release(TWO, steps=STEPS[:before])
        watched.later(hours=20)
    watched.release(TWO, steps=STEPS[: before or 5], lease=timedelta(hours=3))
    assert watched.states()[2] == "running"
    watched.later(hours=1)
    assert "stuck" not in [kind for kind, *_ in watched.alarms()]
    watched.later(seconds=1)
    assert ("stuck", 2, None) in watched.alarms()


def test_a_run_that_died_is_an_alarm_when_its_lease_is_over(watched):
    watched.released(ONE)
    watched.release(TWO, steps=STEPS[:6])
    watched.assert_shows({1: "published", 2: "running"}, [])
    watched.later(minutes=15, seconds=1)
    watched.assert_shows({1: "published", 2: "failed"}, [("failed", 2, None)])
    watched.release(TWO)
    assert watched.alarms() == []


def test_void_withdrawn_and_restated(watched):
    watched.configure('restatement_share = "0"', 'restatement_share = "1/2"')
    watched.released(ONE)
    watched.release(TWO, steps=STEPS[:6])
    watched.ledger.void(Key("two-regions", str(TWO)), "a person said so", watched.now)
    watched.ledger.withdraw(Key("two-regions", str(ONE)), "a wrong meter", watched.now)
    # the ledger alone has it: readers have the day all the same
    watched.assert_shows({1: "withdrawn", 2: "void"}, [("withdrawn", 1, None), ("void", 2, None)])
    watched.withdraw(ONE)
    assert watched.alarms() == [("void", 2, None)]
    watched.release(TWO, restate=True)
    watched.assert_shows({1: "withdrawn", 2: "restated"}, [])


def test_an_older_copy_of_the_ledger_is_an_alarm_and_a_ledger_that_is_gone_an_error(watched):
    watched.released(ONE)
    copy = watched.copy_ledger()
    watched.release(TWO)
    assert watched.alarms() == []
    watched.bring_back(copy)
    assert ("ledger", None, None) in watched.alarms()
    (watched.folder / "trusted/ledger.sqlite").unlink()
    with pytest.raises(LedgerError, match="days are published and the ledger is gone"):
        watched.watch()


def test_noise_that_others_know_is_an_alarm_and_the_next_day_has_no_headroom(watched):
    watched.released(ONE, TWO)
    watched.compromise(TWO, "a stolen disk")
    assert ("compromised", None, "two-regions") in watched.alarms(), "no page says so yet"
    watched.write_pages()
    assert watched.alarms() == [("compromised", 2, None), ("budget", 3, None)]


@pytest.mark.parametrize(
    ("clock", "kind", "severity", "words"),
    [
        ("2016-06-04T21:59:00", None, None, None),
        ("2016-06-04T22:00:00", "expiring", Severity.WARNING, "in 7 days"),
        ("2016-06-11T21:59:00", "expiring", Severity.WARNING, "in 0 days"),
        ("2016-06-11T22:01:00", "expired", Severity.ALARM, "raw_retention_days is over"),
    ],
)
def test_raw_readings_that_expire_warn_a_week_before(watched, clock, kind, severity, words):
    """The first day's end and ten days: 2016-06-11 22:00 UTC."""
    watched.configure("[input]\n", "[input]\nraw_retention_days = 10\n")
    watched.released(TWO)
    missing, *found = [alarm for alarm in watched.at(clock).watch().alarms if alarm.day == ONE]
    assert missing.kind == "missing"
    assert [(alarm.kind, alarm.severity) for alarm in found] == ([(kind, severity)] if kind else [])
    assert all(words in alarm.words for alarm in found)


def test_looking_makes_no_ledger_and_changes_no_file(watched):
    before = watched.files(".")
    watched.watch()
    assert watched.files(".") == before
    watched.released(ONE)
    folders = ("dumps", "published", "trusted/measurements", "trusted/validation")
    before = watched.files(*folders)
    watched.watch()
    assert watched.files(*folders) == before


@pytest.fixture
def released(watched):
    watched.released(ONE, TWO)
    watched.write_pages()
    return watched


def test_a_lost_or_cut_file_is_an_alarm_and_a_state_until_it_is_back(released):
    released.assert_shows(FINE, [])
    file = released.folder / "published" / released.entry(ONE).file
    data = file.read_bytes()
    file.unlink()
    released.assert_shows({1: "lost", 2: "published"}, [("lost", 1, None)])
    assert "missing" in released.watch().alarms[0].words
    file.write_bytes(data[:-1])
    for _ in range(2):
        released.write_pages()
        released.assert_shows({1: "lost", 2: "published"}, [("lost", 1, None)])  # also by a night's pages
    (alarm,) = released.watch().alarms
    assert "not as long" in alarm.words
    assert f"optstream publish {ONE}" in alarm.words
    released.publish_again(ONE)
    released.assert_shows(FINE, [])


def test_a_day_that_is_withdrawn_while_the_folder_is_listed_is_not_lost(released):
    """The catalogue was read before, the folder is listed after."""
    before = find_catalogue(released.folder / "published")
    released.withdraw(ONE)
    assert lost_files(released.settings, before, None) == {}
    assert released.states() == {1: "withdrawn", 2: "published"}


def test_a_page_that_is_missing_or_behind_is_an_alarm(released):
    page, released.now = released.folder / "published/index.html", released.now + timedelta(hours=1)
    for data in (None, b"of other days"):
        page.unlink() if data is None else page.write_bytes(data)
        assert released.alarms() == [("lost", None, None)]
        assert "optstream report" in released.watch().alarms[0].words
        released.write_pages()
        assert released.alarms() == []


SPRING = date(2016, 3, 27)
A_DAY = timedelta(days=1)


@pytest.mark.parametrize(
    ("minutes", "zone", "kind", "fits", "said"),
    [
        (30, "Europe/Paris", "elapsed", True, None),
        (30, "Europe/Paris", "elapsed", False, "2016-03-27 will be refused if"),
        (30, "Europe/Paris", "fixed", False, "2016-03-27 will be refused if"),
        (1440, "Europe/Paris", "fixed", True, None),
        (1440, "Europe/Paris", "elapsed", True, "2016-03-27 will be refused: "),
        (60, "Australia/Lord_Howe", "elapsed", True, "2016-04-03 will be refused: "),
        (60, "Asia/Pyongyang", "elapsed", True, "2016-03-20 will be refused: 2015-08-14"),
        (30, "Asia/Kolkata", "elapsed", False, None),
    ],
)
def test_the_first_day_that_will_be_refused(minutes, zone, kind, fits, said):
    found = foresee(Calendar(minutes, zone, kind), SPRING - 7 * A_DAY, fits)
    assert found is None if said is None else found.startswith(said)


def test_wall_clock_dumps_are_warned_of_until_the_change_is_delivered_in_utc(watched):
    watched.at("2016-03-30T12:00")
    days = [SPRING - 2 * A_DAY, SPRING - A_DAY, SPRING, SPRING + A_DAY]
    watched.simulate(*days)
    instants = {path: pl.read_parquet(path) for path in watched.settings.input_folder.rglob("*.parquet")}
    local = pl.col("timestamp").dt.convert_time_zone("Europe/Paris").dt.replace_time_zone(None)
    for path, rows in instants.items():
        rows.with_columns(local).write_parquet(path)

    def doctor():
        return [one.rule for one in examine(watched.settings, {}, watched.now) if one.place == "stream.day"]

    said = f"{SPRING} will be refused if"
    assert any(one.startswith(said) for one in dry_run(watched.settings, days[:1]).warnings)
    assert doctor()[0].startswith(said)
    watched.release(*days[:2])
    assert doctor()[0].startswith(said)
    assert watched.of_kind("clock-ahead")[0].words.startswith(said)
    assert watched.status(SPRING) is Status.REFUSED
    for path, rows in instants.items():
        if str(SPRING) in str(path):
            rows.write_parquet(path)
    assert watched.statuses(SPRING, SPRING + A_DAY) == {Status.PUBLISHED}
    assert clock_ahead(watched.settings, watched.ledger, SPRING + A_DAY) is None
    assert doctor() == watched.of_kind("clock-ahead") == []
