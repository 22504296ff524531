"""What a change of the clock will refuse is said from the first dump on, until it is put right."""

from datetime import date, timedelta

import polars as pl
import pytest

from optstream.stream import Calendar
from tasks.ingest.clock import clock_ahead, foresee
from tasks.operate.doctor import examine
from tasks.plan.dry_run import dry_run
from tasks.release.stages import Status

SPRING = date(2016, 3, 27)
ONE = timedelta(days=1)


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
    found = foresee(Calendar(minutes, zone, kind), SPRING - 7 * ONE, fits)
    assert found is None if said is None else found.startswith(said)


def test_wall_clock_dumps_are_warned_of_until_the_change_is_delivered_in_utc(watched):
    watched.at("2016-03-30T12:00")
    days = [SPRING - 2 * ONE, SPRING - ONE, SPRING, SPRING + ONE]
    watched.simulate(*days)
    instants = {path: pl.read_parquet(path) for path in watched.settings.input_folder.rglob("*.parquet")}
    local = pl.col("timestamp").dt.convert_time_zone("Europe/Paris").dt.replace_time_zone(None)
    for path, rows in instants.items():
        rows.with_columns(local).write_parquet(path)

    def doctor():
        return [
            one.rule
            for one in examine(watched.settings, {}, watched.now, lambda url: None)
            if one.place == "stream.day"
        ]

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
    after = watched.release(SPRING + ONE)[SPRING + ONE].outcome
    assert after.status is Status.PUBLISHED
    assert clock_ahead(watched.settings, watched.ledger, SPRING + ONE) is None
    assert doctor() == alarms() == []
