"""Ends of steps where the clock changes: what it shows then, or what it showed at the start and a step."""

from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import numpy as np
import polars as pl
import pytest

from tasks.ingest.arrivals import EVERY
from tasks.ingest.sandbox import clock_before_ingest
from tests.tasks.conftest import DAY

pytestmark = pytest.mark.slow

PARIS, NEW_YORK, SANTIAGO = "Europe/Paris", "America/New_York", "America/Santiago"
CHANGES = {
    (PARIS, "spring"): date(2025, 3, 30),
    (PARIS, "autumn"): date(2025, 10, 26),
    (NEW_YORK, "spring"): date(2025, 3, 9),
    (NEW_YORK, "autumn"): date(2025, 11, 2),
    (SANTIAGO, "spring"): date(2025, 9, 6),  # as the day ends
    (SANTIAGO, "autumn"): date(2025, 4, 5),
}
SHOWN, ADDED = "what the clock shows", "a step after the start"
EITHER_CHANGE = pytest.mark.parametrize("day", [day for (zone, _), day in CHANGES.items() if zone == PARIS])
EITHER = pytest.mark.parametrize("written", [SHOWN, ADDED])
A_DAY = timedelta(days=1)
ABSENT = [("metered", ""), ("aggregated", "missing_rows = 'zero'")]
ROWS_MAY_BE_ABSENT = pytest.mark.parametrize(("schema", "keys"), ABSENT)


@pytest.fixture
def stream_in(small, load_text):
    """The small stream with steps of an hour, readings of whole units, days of fixed slots."""

    def make(zone=PARIS, keys="stamps = 'end'", **changes):
        stream = small(day="fixed", resolution="1", marker=keys, **{"step": "1h", **changes})
        text = stream.settings.file.read_text()
        stream.settings = load_text(text, (f'time_zone = "{PARIS}"', f'time_zone = "{zone}"'))
        return stream

    return make


def rows_of(day, written, minutes=60, zone=PARIS):
    """The starts by the wall clock of the steps that pass on a day, and their stamps."""
    step, at = timedelta(minutes=minutes), datetime(*day.timetuple()[:3], tzinfo=ZoneInfo(zone))
    at, end = at.astimezone(UTC), (at + A_DAY).astimezone(UTC)
    rows = []
    while at < end:
        start, shown = (one.astimezone(ZoneInfo(zone)).replace(tzinfo=None) for one in (at, at + step))
        rows.append((start, shown if written == SHOWN else start + step))
        at += step
    return rows


def stamps_of(*given, **named):
    return [stamp for _, stamp in rows_of(*given, **named)]


def write(stream, day, stamps, form="text"):
    """A leaf has the numbers of its rows as readings."""
    for leaf in ("84", "11"):
        rows = pl.DataFrame({"timestamp": stamps, "load": np.arange(len(stamps)) % 97 + 1})
        if stream.settings.metered:
            rows = rows.with_columns(customer_id=pl.lit(f"of {leaf}"))
        if form == "falling text":
            rows = rows.reverse()
        path = stream.write(leaf, rows, day)
        if form != "parquet":
            path.unlink()
            rows.write_csv(path.with_suffix(".csv"), datetime_format="%Y-%m-%d %H:%M")


@pytest.mark.parametrize(("zone", "day"), [(zone, day) for (zone, _), day in CHANGES.items()])
@EITHER
@pytest.mark.parametrize(("minutes", "form"), [(60, "text"), (30, "falling text"), (30, "parquet")])
def test_sums_count_at_the_slots_in_which_their_steps_began(stream_in, zone, day, written, minutes, form):
    stream = stream_in(zone, step=f"{minutes}min" if minutes < 60 else "1h")
    rows = rows_of(day, written, minutes, zone)
    write(stream, day, [stamp for _, stamp in rows], form)
    expected = [0] * (1440 // minutes)
    in_file = list(enumerate(rows))
    for number, (start, _) in in_file if form == "falling text" else reversed(in_file):
        expected[(start.hour * 60 + start.minute) // minutes] = number + 1
    assert stream.verdict(day).units.tolist() == [expected, expected]


@EITHER_CHANGE
@EITHER
def test_finer_sums_make_the_steps_in_which_they_began(stream_in, day, written):
    stream = stream_in(keys="stamps = 'end'\nstep = '15min'\ncombine = 'sum'")
    rows = rows_of(day, written, 15)
    write(stream, day, [stamp for _, stamp in rows])
    first = {}
    for number, (start, _) in enumerate(rows):
        first.setdefault(start, number % 97 + 1)
    expected = [sum(value for start, value in first.items() if start.hour == hour) for hour in range(24)]
    assert stream.verdict(day).units.clip(max=100).tolist() == [[min(one, 100) for one in expected]] * 2


@EITHER_CHANGE
@EITHER
def test_sums_in_one_file_are_read_leaf_by_leaf(stream_in, day, written):
    """Each leaf's writer is its own; a row that another leaf lacks is no leaf's but its own."""
    stream = stream_in(keys="stamps = 'end'\nregion = 'zone'")
    own = {"84": rows_of(day, written), "11": rows_of(day, ADDED if written == SHOWN else SHOWN)}
    rows = [(stamp, number + 1, leaf) for leaf, of in own.items() for number, (_, stamp) in enumerate(of)]
    stream.write(EVERY, pl.DataFrame(rows, schema=["timestamp", "load", "zone"], orient="row"), day)
    assert len({tuple(one) for one in stream.verdict(day).units.tolist()}) == 1


@EITHER_CHANGE
@EITHER
def test_sums_in_a_file_of_many_days_are_read_day_by_day(stream_in, day, written):
    stream = stream_in(keys="stamps = 'end'\npath = '{region}_{date:%Y}.csv'")
    days = [day - A_DAY, day, day + A_DAY]
    rows = [(one, number + 1) for every in days for number, one in enumerate(rows_of(every, written))]
    lines = ["timestamp,load", *(f"{stamp:%Y-%m-%d %H:%M},{number}" for (_, stamp), number in rows)]
    stream.settings.input_folder.mkdir()
    for name in ("84_2025.csv", "11_2025.csv", "_SUCCESS"):
        (stream.settings.input_folder / name).write_text("\n".join(lines))
    first = {start: number for (start, _), number in reversed(rows)}
    for judged in stream.judge(*days):
        at = datetime(*judged.day.timetuple()[:3])
        expected = [first.get(at + timedelta(hours=hour), 0) for hour in range(24)]
        assert judged.units.tolist() == [expected, expected]


@EITHER_CHANGE
@pytest.mark.parametrize(
    ("written", "place", "n_times"), [(SHOWN, 0, 0), (SHOWN, 1, 2), (ADDED, 2, 0), (ADDED, 1, 2)]
)
def test_sums_that_are_whole_by_neither_are_refused(stream_in, day, written, place, n_times):
    """A row less or one twice, of stamps that are there once: of a repeated hour one may be left out."""
    stream, rows = stream_in(), stamps_of(day, written)
    changed = [one for one in rows if rows.count(one) == 1][place]
    write(stream, day, [one for one in rows for _ in range(n_times if one == changed else 1)])
    judged = stream.verdict(day)
    assert str(judged.error).partition(": ")[2].startswith("region=84/date=")
    assert any(rule in str(judged.error) for rule in ("must have a row", "must be there once"))


def test_a_supplier_of_the_same_slots_on_every_day_is_read_by_the_start_and_a_step(stream_in):
    day = CHANGES[PARIS, "spring"]
    stream = stream_in(step="30min")
    begins = datetime(*day.timetuple()[:3])
    write(stream, day, [begins + timedelta(minutes=30 * number) for number in range(1, 49)])
    assert stream.verdict(day).units.tolist() == [list(range(1, 49))] * 2


@pytest.mark.parametrize(("season", "written", "n_rows"), [("spring", SHOWN, 23), ("autumn", ADDED, 0)])
@ROWS_MAY_BE_ABSENT
def test_where_rows_may_be_absent_the_days_are_refused(stream_in, season, written, schema, keys, n_rows):
    """Read as one supplier writes, another's hour before the change counted an hour late."""
    day = CHANGES[PARIS, season]
    stream = stream_in(keys=f"stamps = 'end'\n{keys}", schema=schema)
    for one in (day - A_DAY, day, day + A_DAY):
        write(stream, one, stamps_of(one, written)[:n_rows])
    first, changed, last = stream.judge(day - A_DAY, day, day + A_DAY)
    assert first.error is last.error is None
    remedy = 'by the starts of steps, and say so in [[input.changes]] with stamps = "start"'
    assert remedy in str(changed.error)
    assert f"{day} will be refused if" in clock_before_ingest(stream.settings, day - A_DAY)


@EITHER_CHANGE
@ROWS_MAY_BE_ABSENT
def test_the_remedy_takes_the_day(stream_in, day, schema, keys):
    change = "[[input.changes]]\nvalid_from = {}\nstamps = '{}'".format
    changes = f"{change(day, 'start')}\n{change(day + A_DAY, 'end')}"
    stream = stream_in(keys=f"stamps = 'end'\n{keys}\n{changes}", schema=schema)
    write(stream, day, [start for start, _ in rows_of(day, SHOWN)])
    assert stream.verdict(day).units[0, :2].tolist() == [1, 2]


def test_a_day_that_ends_as_the_clock_changes_is_refused_too(stream_in):
    """Its last step ends at 1:00 by the clock: read as a start, the row was of no step of the day."""
    zone, days = "America/Havana", [date(2025, 3, 7), date(2025, 3, 8)]
    stream = stream_in(zone, schema="metered")
    for day in days:
        write(stream, day, stamps_of(day, SHOWN, zone=zone))
    before, changed = stream.judge(*days)
    assert before.error is None
    assert "the clock changes on this day or as it ends" in str(changed.error)


def test_steps_that_no_change_divides_are_taken(stream_in):
    stream = stream_in(schema="metered", step="6h")
    days = [DAY, CHANGES[PARIS, "spring"], CHANGES[PARIS, "autumn"]]
    for day in days:
        begins = datetime(*day.timetuple()[:3])
        write(stream, day, [begins + timedelta(hours=hour) for hour in (6, 12, 18, 24)])
    assert all(judged.units[0].tolist() == [1, 2, 3, 4] for judged in stream.judge(*days))
    assert clock_before_ingest(stream.settings, DAY) is None
