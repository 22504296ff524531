"""Every state that a day can be in, a lost file's too, and the alarm that goes with it."""

import shutil
from datetime import date, timedelta

import polars as pl
import pytest

from optstream.catalogue import find_catalogue, read_catalogue
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


def test_a_day_skipped_by_the_orchestrator_is_missing_once_it_is_due(watched):
    watched.released(TWO)
    watched.assert_shows({1: "missing", 2: "published"}, [("missing", 1, None)])
    # 06:00 in Paris is 04:00 UTC
    watched.at("2016-06-03T03:59:00")
    assert watched.states() == {1: "missing", 2: "published"}
    watched.at("2016-06-02T03:59:00")
    watched.assert_shows({1: "waiting", 2: "published"}, [])


@pytest.mark.parametrize(("clock", "state"), [("03:59:59", "waiting"), ("04:00:00", "late")])
def test_a_dump_is_late_from_the_very_minute_on(watched, clock, state):
    watched.released(ONE)
    (watched.folder / "dumps/region=84/date=2016-06-02/_SUCCESS").unlink()
    watched.at(f"2016-06-03T{clock}")
    assert watched.states() == {1: "published", 2: state}
    assert watched.alarms() == ([("late", 2, "84")] if state == "late" else [])


def test_a_day_without_any_dump_is_a_gap_of_the_root(watched):
    watched.released(ONE)
    for leaf in ("84", "11"):
        shutil.rmtree(watched.folder / f"dumps/region={leaf}/date=2016-06-02")
    (day,) = (day for day in watched.watch().days if day.day == TWO)
    assert (day.state.value, day.waiting_for, day.levels) == ("late", ("FR",), (1, 2))
    assert watched.alarms() == [("late", 2, "FR")]


def test_a_dump_that_breaks_its_contract_is_an_alarm_before_it_is_due(watched):
    broken = watched.folder / "dumps/region=84/date=2016-06-02/part-0.parquet"
    pl.read_parquet(broken).with_columns(load_mw=pl.lit(None, pl.Float64)).write_parquet(broken)
    watched.at("2016-06-03T01:00:00")
    watched.released(ONE, TWO)
    watched.assert_shows({1: "published", 2: "failed"}, [("failed", 2, None)])


def test_a_run_that_lives_runs_and_one_that_is_too_long_is_stuck(watched):
    watched.released(ONE)
    watched.release(TWO, steps=STEPS[:5], lease=timedelta(hours=3))
    watched.assert_shows({1: "published", 2: "running"}, [])
    watched.later(hours=1)
    assert watched.alarms() == []
    watched.later(seconds=1)
    assert watched.alarms() == [("stuck", 2, None)]


@pytest.mark.parametrize("steps", [5, 6])
def test_a_run_that_takes_up_an_old_day_is_not_stuck_for_what_another_left(watched, steps):
    """Reserved, or drawn, by a run that died yesterday: the one that lives has only begun."""
    watched.released(ONE)
    watched.release(TWO, steps=STEPS[:steps])
    watched.later(hours=20)
    watched.release(TWO, steps=STEPS[:steps], lease=timedelta(hours=3))
    assert watched.states()[2] == "running"
    assert "stuck" not in [kind for kind, *_ in watched.alarms()]
    watched.later(hours=1, seconds=1)
    assert ("stuck", 2, None) in watched.alarms()


def test_a_run_that_died_is_an_alarm_when_its_lease_is_over(watched):
    watched.released(ONE)
    watched.release(TWO, steps=STEPS[:6])
    assert watched.states() == {1: "published", 2: "running"}
    watched.later(minutes=15, seconds=1)
    watched.assert_shows({1: "published", 2: "failed"}, [("failed", 2, None)])
    watched.release(TWO)
    assert watched.alarms() == []


def test_a_held_day_is_no_alarm_until_its_hour_and_a_while(watched):
    watched.configure('folder = "published"\n', 'folder = "published"\nnot_before = "20:00"\n')
    watched.released(ONE, TWO)
    # of the first day the hour is past
    assert watched.states() == {1: "published", 2: "held"}
    watched.at("2016-06-03T18:59:00")
    assert (watched.states()[2], watched.alarms()) == ("held", [])
    watched.at("2016-06-03T19:00:01")
    assert (watched.states()[2], watched.alarms()) == ("failed", [("failed", 2, None)])


def test_void_withdrawn_and_restated(watched):
    watched.configure('restatement_share = "0"', 'restatement_share = "1/2"')
    watched.released(ONE)
    watched.release(TWO, steps=STEPS[:6])
    watched.ledger.void(Key("two-regions", str(TWO)), "a person said so", watched.now)
    watched.ledger.withdraw(Key("two-regions", str(ONE)), "a wrong meter", watched.now)
    assert watched.states() == {1: "withdrawn", 2: "void"}
    # the ledger alone was told: readers have the day all the same
    assert watched.alarms() == [("withdrawn", 1, None), ("void", 2, None)]
    watched.withdraw(ONE)
    assert watched.alarms() == [("void", 2, None)]
    watched.release(TWO, restate=True)
    watched.assert_shows({1: "withdrawn", 2: "restated"}, [])


def test_an_accepted_gap_keeps_its_state_and_raises_nothing(watched):
    watched.released(TWO)
    watched.configure("max_runtime", "accepted_gaps = [2016-06-01]\nmax_runtime")
    watched.assert_shows({1: "missing", 2: "published"}, [])


def test_a_published_day_that_readers_cannot_find_is_an_alarm(watched):
    watched.released(ONE, TWO)
    (watched.folder / "published/catalogue.json").unlink()
    assert watched.alarms() == [("unlisted", 1, None), ("unlisted", 2, None)]
    (watched.folder / "published/catalogue.json").write_text("{}")
    assert watched.alarms() == [("unlisted", None, None)]


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
    stream = watched.settings.stream.name
    unsaid = [one for one in watched.watch().alarms if one.day is None]
    assert [(one.kind.value, one.node) for one in unsaid] == [("compromised", stream)], "no page says so yet"
    watched.write_pages()
    assert watched.alarms() == [("compromised", 2, None), ("budget", 3, None)]


def test_raw_readings_that_expire_warn_a_week_before(watched):
    watched.configure("[input]\n", "[input]\nraw_retention_days = 10\n")
    watched.released(TWO)
    # the first day's end and ten days: 2016-06-11 22:00 UTC
    kinds = {}
    for clock in ("2016-06-04T21:59:00", "2016-06-04T22:00:00", "2016-06-11T21:59:00", "2016-06-11T22:01:00"):
        watched.at(clock)
        kinds[clock] = [alarm for alarm in watched.watch().alarms if alarm.day == ONE][1:]
    assert [[alarm.kind.value for alarm in found] for found in kinds.values()] == [
        [],
        ["expiring"],
        ["expiring"],
        ["expired"],
    ]
    assert kinds["2016-06-04T22:00:00"][0].severity is Severity.WARNING
    assert "in 7 days" in kinds["2016-06-04T22:00:00"][0].words
    assert "in 0 days" in kinds["2016-06-11T21:59:00"][0].words


def test_looking_makes_no_ledger_and_changes_no_file(watched):
    before = watched.files(".")
    watched.watch()
    assert watched.files(".") == before
    watched.released(ONE)
    before = watched.files("dumps", "published", "trusted/measurements", "trusted/validation")
    watched.watch()
    assert watched.files("dumps", "published", "trusted/measurements", "trusted/validation") == before


FIRST, SECOND = date(2016, 6, 1), date(2016, 6, 2)


@pytest.fixture
def released(watched):
    watched.released(FIRST, SECOND)
    watched.write_pages()
    return watched


def file_of(installation, day=FIRST):
    return (
        installation.folder / "published" / read_catalogue(installation.folder / "published").entry(day).file
    )


def harm(path, how):
    if how == "missing":
        path.unlink()
    else:
        path.write_bytes(path.read_bytes()[:-1])


@pytest.mark.parametrize("how", ["missing", "not as long"])
def test_it_is_an_alarm_and_a_state_until_it_is_back(released, how):
    released.assert_shows({1: "published", 2: "published"}, [])
    harm(file_of(released), how)
    released.assert_shows({1: "lost", 2: "published"}, [("lost", 1, None)])
    (alarm,) = released.watch().alarms
    assert "optstream publish 2016-06-01" in alarm.words
    for _ in range(2):
        released.write_pages()
        assert released.alarms() == [("lost", 1, None)], "also after a night made the pages anew"
    assert how in alarm.words
    released.publish_again(FIRST)
    released.assert_shows({1: "published", 2: "published"}, [])


def test_a_day_that_is_withdrawn_while_the_folder_is_listed_is_not_lost(released):
    """The catalogue was read before, the folder is listed after."""
    before = find_catalogue(released.folder / "published")
    released.withdraw(FIRST)
    assert lost_files(released.settings, before) == {}
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

    def alarms():
        return [one.words for one in watched.watch(live=False).alarms if one.kind == "clock-ahead"]

    said = f"{SPRING} will be refused if"
    assert any(one.startswith(said) for one in dry_run(watched.settings, days[:1]).warnings)
    assert doctor()[0].startswith(said)
    watched.release(*days[:2])
    assert doctor()[0].startswith(said)
    assert alarms()[0].startswith(said)
    assert watched.release(SPRING)[SPRING].outcome.status is Status.REFUSED
    for path, rows in instants.items():
        if str(SPRING) in str(path):
            rows.write_parquet(path)
    assert watched.release(SPRING)[SPRING].outcome.status is Status.PUBLISHED
    after = watched.release(SPRING + A_DAY)[SPRING + A_DAY].outcome
    assert after.status is Status.PUBLISHED
    assert clock_ahead(watched.settings, watched.ledger, SPRING + A_DAY) is None
    assert doctor() == alarms() == []
