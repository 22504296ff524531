"""CSV files: read exactly as the same rows in Parquet, each line by itself."""

import gzip
import re
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from fractions import Fraction
from itertools import product

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tasks.ingest.arrivals import EVERY
from tasks.ingest.clamping import reading
from tasks.ingest.text import LOOKED_AT, microseconds_of
from tests.tasks.conftest import DAY, NEXT
from tests.tasks.ingest.test_yearly_files import zipped

pytestmark = pytest.mark.slow

VALUES = [str(Decimal(number) / 8) for number in range(48)]
UNITS = np.arange(48) * 125
SPRING, AUTUMN = date(2025, 3, 30), date(2025, 10, 26)
NOON = int(datetime(DAY.year, DAY.month, DAY.day, 12).timestamp())
DATE_TIME = "timestamp = ['d', 't']", {"d": f"{DAY}", "t": "00:00"}
HOURS = "timestamp = ['d', 'h']\nstamps_format = '%Y-%m-%d %H'", {"d": DAY, "h": 5}
NUMBER = "timestamp = 'd'\nperiod_number = 'number'", {"d": f"{DAY}", "number": 1}
SECONDS = "timestamp = 'd'\nstamps_format = 'epoch'", {"d": NOON}
BOUNDS = Fraction(-20), Fraction("1234.5")


def lines_of(stream, values=VALUES, day=DAY):
    stamps = stream.settings.calendar.utc_times(day)
    return [f"{at:%Y-%m-%dT%H:%M:%SZ},{value}" for at, value in zip(stamps, values, strict=True)]


def write(stream, content, *regions, day=DAY, name="part-0.csv"):
    """Write the same file, as bytes, text or lines, for regions, 84 if none is named."""
    content = content if isinstance(content, str | bytes) else "\n".join(content)
    for region in regions or ["84"]:
        folder = stream.folder(region, day)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "_SUCCESS").touch()
        (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())


def thirds(stream, parts, day=DAY):
    """Rows of ten minutes, three a step with these values."""
    ten, starts = timedelta(minutes=10), stream.settings.calendar.utc_times(day)
    return [(at + number * ten, part) for at in starts for number, part in enumerate(parts)]


def written(rows):
    return ["timestamp,load", *(f"{at:%Y-%m-%dT%H:%MZ},{value}" for at, value in rows)]


def quoted(text):
    return "\n".join(",".join(f'"{field}"' for field in line.split(",")) for line in text.splitlines())


def ahead(stamp):
    zone = timezone(timedelta(minutes=90))
    return datetime.fromisoformat(stamp[0]).astimezone(zone).isoformat()


HEAD = "timestamp,load\n"
FORMS = {
    "plain": lambda text: text,
    "crlf": lambda text: text.replace("\n", "\r\n"),
    "mark": lambda text: "\ufeff" + text,
    "gzip": lambda text: gzip.compress(text.encode()),
    "zip": lambda text: zipped(("__MACOSX/._load.csv", b"\0"), ("a year.xls", text)),
    "utf-16": lambda text: text.encode("utf-16"),
    "latin-1": lambda text: text.replace("load\n", "load,é\n", 1).encode("latin-1"),
    "quoted": quoted,
    "preamble and footer": lambda text: f"Données de charge\x0c\n\n{text}\nNo responsibility is taken\n",
    "other columns": lambda text: text.replace("\n", ",x;y,\n").replace("load,x;y,", "load,note,"),
    "tabs": lambda text: text.replace(",", "\t"),
    "spaces": lambda text: text.replace(",", " , "),
    "offsets": lambda text: re.sub(r"\S+Z", ahead, text),
    "no seconds": lambda text: text.replace(":00Z", "Z").replace("T", " "),
    "commas": lambda text: text.replace(",", ";").replace(".", ","),
}


@pytest.mark.parametrize("form", FORMS)
def test_the_same_rows_in_any_form_give_the_same_integers(small, form):
    stream = small(marker='decimal = ","' if form == "commas" else "")
    name = {"gzip": "part-0.csv.gz", "zip": "part-0.zip", "tabs": "part-0.tsv"}.get(form, "part-0.csv")
    write(stream, FORMS[form](HEAD + "\n".join(lines_of(stream)) + "\n"), name=name)
    stream.write("11", stream.rows(2.0))
    assert np.array_equal(stream.verdict().units, [UNITS, np.full(48, 2000)])


FAULTS = [
    (lambda lines: [f"{lines[0].split(',')[0]},", *lines[1:]], "must not be null or NaN"),
    (lambda lines: [f"{lines[0].split(',')[0]},1 MW", *lines[1:]], "must not be null or NaN"),
    (lambda lines: [lines[0].replace("Z", ""), *lines[1:]], "must not be null"),
    ("time,load\n1,2\n", "columns 'timestamp' and 'load': must hold these columns; correct"),
    ("", "must hold these columns"),
    ("timestamp,load,customer_id\n", "must have the customer column if and only if"),
    (gzip.compress(b"timestamp,load\n" + b"2025-01-15,1\n" * 9999, mtime=0)[:-9], "readable text"),
    (gzip.compress(b"timestamp,load\n2025-01-15,1\n", mtime=0)[:-9], "must be readable text"),
    (zipped(("a.xls", "timestamp,load\n"))[:-9], "must be readable text"),
    (b"PK\x03\x04", "must be readable text"),
    (b"\x1f\x8bxyz", "must be readable text"),
]


def test_rows_of_sums_stop_a_day_as_those_of_parquet_and_a_file_that_is_none_is_named(small, days):
    stream, made = small(), dict(zip(days(len(FAULTS)), FAULTS, strict=True))
    for day, (spoilt, _) in made.items():
        content = HEAD + "\n".join(spoilt(lines_of(stream, day=day))) if callable(spoilt) else spoilt
        write(stream, content, day=day)
        stream.write("11", stream.rows(2.0, day), day)
    for judged in stream.judge(*made):
        spoilt, message = made[judged.day]
        place = f"region=84/date={judged.day}" + "/part-0.csv" * (not callable(spoilt))
        assert place in str(judged.error), message
        assert message in str(judged.error)


@pytest.mark.parametrize("customer", ["", "somebody,"])
@pytest.mark.parametrize("end", ["", ";"])
def test_a_text_without_its_header_shows_no_row(small, customer, end):
    stream = small(schema="metered" if customer else "aggregated")
    write(stream, "\n".join([f"{customer}{one}{end}" for one in lines_of(stream, ["31337.625"] * 48)]))
    stream.write("11", stream.metered("other", 2.0) if customer else stream.rows(2.0))
    judged = stream.verdict()
    assert "must hold these columns" in str(judged.error)
    assert not re.search("31337|somebody|T[0-9]{2}", str(judged.error))


@pytest.mark.parametrize("encoding", ["cp1252", "utf-8"])
@pytest.mark.parametrize("name", ["René".encode("cp1252"), "René".encode(), b"Ren\xc3"])
def test_no_line_of_metered_text_changes_how_another_is_decoded(small, load_text, encoding, name):
    stream = small(schema="metered", marker='region = "zone"')
    stream.settings = load_text(stream.settings.file.read_text(), ('11 = "FR"', '"Île" = "FR"'))
    stamps = [one[:-2] for one in lines_of(stream, ["1"] * 48)]
    rows = [f"{stamp},{{0}} {number},{{0}},1" for number in range(50) for stamp in stamps]
    own, other = ("\n".join(rows).format(zone) for zone in ("84", "Île"))
    lines = [b"timestamp,customer_id,zone,load", own.encode(), other.encode(encoding)]
    assert len(lines[1]) > LOOKED_AT
    lines.insert(1, stamps[0].encode() + b"," + name + b",84,1")
    write(stream, b"\n".join(lines), EVERY)
    assert np.array_equal(stream.verdict().units, [[51_000, *[50_000] * 47], [50_000] * 48])


BROKEN_LINES = [
    '"open,1,2',
    "one",
    "a,b,c,d,e,f,g",
    "\0,\0,\0",
    '"a""b',
    '"a\rb",x\r,"1"',
    '"\0",x,1',
    "\x0b\x0c\u2028,1,2",
    "x" * 200_000,
    "z\x01,z,5",
    "z,\x01\x01\xff\xfe,5",
    "",
    ",,",
]


@pytest.mark.parametrize("place", [1, 20])
def test_no_line_of_metered_text_stops_a_day_or_changes_another(small, days, place):
    stream, broken = small(schema="metered"), dict(zip(days(len(BROKEN_LINES)), BROKEN_LINES, strict=True))
    for day, line in broken.items():
        lines = [f"somebody,{one}" for one in lines_of(stream, day=day)]
        text = "\n".join(["customer_id,timestamp,load", *lines[: place - 1], line, *lines[place - 1 :]])
        write(stream, text.encode("utf-8", "surrogateescape"), day=day)
        stream.write("11", stream.metered("other", 2.0, day), day)
    for judged in stream.judge(*broken):
        assert np.array_equal(judged.units[0], UNITS), broken[judged.day]


@pytest.mark.parametrize("place", [1, 20])
@pytest.mark.parametrize(("day", "zone", "step"), [(DAY, "", 0), (DAY, "UTC", 2), (SPRING, "UTC", 2)])
def test_a_metered_stamp_without_an_offset_counts_by_itself(small, day, zone, step, place):
    """The first one decided for all: a customer's row could zero a leaf, or refuse the day."""
    stream = small(schema="metered", marker=f"stamps_zone = '{zone}'" if zone else "")
    n_steps = stream.settings.calendar.n_steps(day)
    for region, own in (("84", f"another,{day}T00:00,1"), ("11", "")):
        lines = [f"of {region},{one}" for one in lines_of(stream, VALUES[:n_steps], day=day)]
        rows = [*lines[: place - 1], own, *lines[place - 1 :]]
        write(stream, ["customer_id,timestamp,load", *rows], region, day=day)
    assert np.array_equal(stream.verdict(day).units[0], UNITS[:n_steps] + 1000 * (np.arange(n_steps) == step))


@pytest.mark.parametrize("own", ["", "{0:%Y-%m-%dT%H:%M}", "{0:%Y-%m-%dT%H:%MZ}", "{1}"])
def test_where_the_clock_changes_metered_text_is_refused_whatever_its_rows_hold(small, own):
    """Stamps by another clock had no step, and the day was released as zeros; seconds on fixed days, too."""
    keys = {"day": "fixed", "marker": "stamps_format = 'epoch'"} if own == "{1}" else {}
    stream = small(schema="metered", **keys)
    for day, region in product((DAY, SPRING, AUTUMN), ("84", "11")):
        at = datetime(day.year, day.month, day.day, 3, tzinfo=UTC)
        rows = [f"of {region},{own.format(at, int(at.timestamp()))},5"] if own else []
        write(stream, ["customer_id,timestamp,load", *rows], region, day=day)
    plain, *changed = stream.judge(DAY, SPRING, AUTUMN)
    assert plain.units.sum() == (10_000 if own else 0)
    for judged in changed:
        assert 'whose timestamps all have one needs input.stamps_zone = "UTC"' in str(judged.error)
    found = stream.ingest(DAY, SPRING, AUTUMN)
    assert [one.fits_clock for one in found] == [False] * 3, "it is foreseen on any day"


@pytest.mark.parametrize(
    ("stamps", "other", "counted"),
    [
        *((DATE_TIME, {lost: None}, 0) for lost in ("d", "t", "load", "customer_id")),
        (NUMBER, {"number": None}, 0),
        (NUMBER, {"number": 1.0}, 5000),
        (NUMBER, {"number": 1.9}, 0),
        (SECONDS, {"d": None}, 0),
        (SECONDS, {"d": float(NOON)}, 5000),
        (HOURS, {"h": 5.0}, 5000),
    ],
)
def test_no_row_of_metered_input_decides_the_type_of_a_column(small, load_text, stamps, other, counted):
    """One without a number turns integers into floats, or leaves its column without a type."""
    stream = small(schema="metered")
    stream.settings = load_text(stream.settings.file.read_text(), ('timestamp = "timestamp"', stamps[0]))
    row = pl.DataFrame({**stamps[1], "customer_id": "x", "load": 5.0})
    stream.write("11", row)
    changed = {name: pl.lit(value) for name, value in {"customer_id": "y", **other}.items()}
    stream.write("84", row.with_columns(**changed))
    assert stream.verdict().units.sum(axis=1).tolist() == [counted, 5000]


@pytest.mark.parametrize("step", ["", "step = '1h'\ncombine = 'sum'"])
def test_dates_are_stamps_of_rows_of_a_day_alone(small, step):
    stream = small(schema="metered", day="fixed", step="24h", marker=step)
    row = pl.DataFrame({"timestamp": [DAY], "customer_id": "x", "load": 5.0})
    for region in ("84", "11"):
        stream.write(region, row.with_columns(customer_id=pl.lit(region)))
    judged = stream.verdict()
    assert (judged.error is None) == (not step)
    assert not step or "timestamp" in str(judged.error)


@pytest.mark.parametrize("seconds", [10**9, 2_051_222_400, 9_199_999_999])
def test_seconds_since_1970_go_on_after_2033(seconds):
    text = pl.lit(f"{seconds}")
    assert pl.select(microseconds_of(text, {True: 0}, "epoch")).item() == seconds * 10**6


@pytest.mark.parametrize("written", ["%Y-%m-%d", "%d/%m/%Y"])
def test_a_date_and_a_clock_time_are_no_interval(small, written):
    """The day's first step would have every row, of which a customer's first alone counts."""
    stream = small(schema="metered", marker=f"stamps_format = '{written}'" if "/" in written else "")
    for region in ("84", "11"):
        write(stream, f"customer_id,timestamp,load\nof {region},{DAY:{written}} - 12:00,5", region)
    assert not stream.units().any()


def test_a_slot_that_the_clock_skips_may_be_an_empty_row(small):
    stream = small(day="fixed")
    lines = [f"{SPRING} {slot // 2:02}:{slot % 2 * 30:02},{slot}" for slot in range(48)]
    for slot, empty in ((4, "n/e"), (5, "")):
        lines[slot] = f"{lines[slot].partition(',')[0]},{empty}"
    write(stream, ["timestamp,load", *lines], "84", "11", day=SPRING)
    judged = stream.verdict(SPRING)
    assert judged.units[0].tolist() == [0 if slot in (4, 5) else 1000 * slot for slot in range(48)]


def test_a_file_without_the_column_of_revisions_is_named(small):
    stream = small(marker="revision = 'run'")
    stream.fill(1.0)
    assert "it lacks 'run', has 'timestamp', 'load'" in str(stream.verdict().error)


@pytest.mark.parametrize(("tiny", "large", "units"), [("1e-900", "1e300", 100_000), ("1e-1100", "5", 5000)])
def test_a_sum_of_a_tiny_and_a_large_number_is_there(small, tiny, large, units):
    stream = small(marker="step = '10min'\ncombine = 'sum'")
    write(stream, written(thirds(stream, (tiny, large, "0"))), "84", "11")
    assert (stream.units() == units).all()


@settings(deadline=None)
@given(
    st.decimals(allow_nan=False, allow_infinity=False, places=6, min_value=-2000, max_value=2000),
    st.sampled_from(["{:f}", "{:e}", "+{:f}", "{:f}000"]),
    st.sampled_from([Fraction(1, 1000), Fraction(1, 3), Fraction(1), Fraction(7, 2)]),
    st.sampled_from([".", ","]),
)
def test_a_text_counts_exactly_as_its_digits_say(number, form, resolution, decimal):
    text = form.format(number).replace("+-", "-")
    exact = Fraction(text)
    found = reading("load", pl.String(), BOUNDS, resolution, decimal)
    rows = pl.DataFrame({"load": [text.replace(".", decimal), None, "inf", "1e99999", "-1e-99999", "x"]})
    read = rows.select(units=found.units, kind=found.kind)

    def rounded(value):
        return (value / resolution + Fraction(1, 2)).__floor__()

    largest = rounded(BOUNDS[1])
    cut = min(max(exact, BOUNDS[0]), BOUNDS[1])
    assert read["units"].to_list() == [rounded(cut), 0, largest, largest, 0, 0]
    is_sound = BOUNDS[0] <= exact <= BOUNDS[1]
    assert read["kind"].to_list() == [0 if is_sound else 3, 1, 2, 3, 0, 1]


@pytest.mark.parametrize(
    ("text", "units"),
    [
        ("1 234", 1234), ("-12\u00a0345,6", -12346), ("1\u202f234\u202f567", 1234567), ("1'234", 1234),
        ("1’234e1", 12340), ("1 23", None), ("1234 567", None), ("1 2345", None), ("1.234", None),
        ("1 234 MW", None), (" 234", None),
    ],
)  # fmt: skip
def test_spaces_and_apostrophes_apart_thousands_and_points_are_no_number(text, units):
    found = reading("load", pl.String(), (Fraction(-(10**9)), Fraction(10**9)), Fraction(1), ",")
    read = pl.DataFrame({"load": [text]}).select(units=found.units, kind=found.kind)
    assert read.row(0) == ((0, 1) if units is None else (units, 0))


HALF = timedelta(minutes=30)
IN_UTC = "stamps_zone = 'UTC'\nstamps_format = "
STAMPS = {
    "ends in UTC": ("stamps = 'end'\nstamps_zone = 'UTC'", "{end:%Y-%m-%dT%H:%M}"),
    "UTC": ("stamps_zone = 'UTC'", "{at:%Y-%m-%d %H:%M:%S}"),
    "an hour ahead": ("stamps_zone = 'GMT+1'", "{ahead:%Y-%m-%d %H:%M}"),
    "ends by the clock": ("stamps = 'end'", "{shown:%Y-%m-%d,%H:%M}"),
    "date and time": ("", "{clock:%Y%m%d,%H:%M:%S}"),
    "numbers": ("period_number = 'number'", "{clock:%Y-%m-%d},{n}"),
    "numbers, day first": ("period_number = 'number'\nstamps_format = '%d/%m/%Y'", "{clock:%d/%m/%Y},{n}"),
    "day first": (f"{IN_UTC}'%d/%m/%Y %H:%M'", "{at:%d/%m/%Y %H:%M}"),
    "no zero before a month": ("stamps_format = '%m.%d.%Y %H:%M:%S.%f%z'", "{at:%-m.%d.%Y %H:%M:%S}.000Z"),
    "year, month, day and hour apart": ("stamps_format = '%Y %m %d %H:%M'", "{clock:%Y,%m,%d,%-H:%M}"),
    "month first, apart": ("stamps_format = '%m-%d-%Y %H%M'", "{clock:%m-%d-%Y,%H%M}"),
    "twelve hours": (f"{IN_UTC}'%m/%d/%Y %I:%M:%S %p'", "{at:%m/%d/%Y %-I:%M:%S %p}"),
    "names of months": (f"{IN_UTC}'%d-%b-%Y %H:%M'", "{at:%d-%^b-%Y %H:%M}"),
    "whole names of months": (f"{IN_UTC}'%d %b %Y %H:%M'", "{at:%d %B %Y %H:%M}"),
    "two digits of a year": (f"{IN_UTC}'%d/%m/%y %H:%M'", "{at:%d/%m/%y %H:%M}"),
    "intervals": (f"{IN_UTC}'%d.%m.%Y %H:%M'", "{at:%d.%m.%Y %H:%M} - {end:%d.%m.%Y %H:%M}"),
    "seconds since 1970": ("stamps_format = 'epoch'", "{since:.0f}"),
    "milliseconds since 1970": ("stamps_format = 'epoch'", "{since:.0f}000"),
}
"""Keys, and the text of a step's start (or end), by its instant, the wall clock and its number."""


@pytest.mark.parametrize("form", STAMPS)
def test_stamps_as_the_field_writes_them(small, load_text, form):
    (keys, stamp), numbered = STAMPS[form], form.startswith("numbers")
    stream, by_clock = small(marker=keys), "," in stamp and not numbered  # several columns, no instant
    columns = ["timestamp", "number"][: 1 + numbered]
    if by_clock:
        columns = [f"part {number}" for number in range(stamp.count(",") + 1)]
        text = stream.settings.file.read_text()
        stream.settings = load_text(text, ('timestamp = "timestamp"', f"timestamp = {columns}"))
    calendar = stream.settings.calendar
    for day in (DAY, SPRING, AUTUMN):
        lines = [",".join([*columns, "load"])]
        for n, (at, clock) in enumerate(zip(calendar.utc_times(day), calendar.local_times(day), strict=True)):
            ends = {"end": at + HALF, "ahead": at + 2 * HALF, "shown": clock + HALF}
            row = stamp.format(at=at, clock=clock, n=n + 1, since=at.timestamp(), **ends)
            lines.append(f"{row},{Decimal(n) / 8}")
        write(stream, lines, "84", "11", day=day)
    for judged in stream.judge(DAY, SPRING, AUTUMN):
        if judged.day != DAY and by_clock:
            assert "the clock changes on this day" in str(judged.error)
        else:
            assert np.array_equal(judged.units[0], np.arange(calendar.n_steps(judged.day)) * 125)


@pytest.mark.parametrize(("combine", "parts"), [("sum", "0.1 0.2 0.30"), ("mean", "0.6 1 0.2")])
@pytest.mark.parametrize("kind", ["text", "float", "decimal", "float where texts have commas"])
def test_finer_rows_make_a_step_exactly(small, combine, parts, kind):
    """Rounded by themselves, three thirds of 0.0005 would each count as 0.001."""
    comma = "decimal = ','" if "commas" in kind else ""
    stream = small(marker=f"step = '10min'\ncombine = '{combine}'\n{comma}", resolution="0.001")
    rows = thirds(stream, parts.split())
    if kind == "text":
        write(stream, written(rows), "84", "11")
    else:
        types = {"timestamp": pl.Datetime("us", "UTC"), "load": pl.String}
        frame = pl.DataFrame(rows, schema=types, orient="row")
        for region in ("84", "11"):
            stream.write(region, frame.cast({"load": pl.Decimal(10, 3) if kind == "decimal" else pl.Float64}))
    assert (stream.verdict().units == 600).all()


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda rows: rows[:-1], "every step of the day must have a row"),
        (lambda rows: [*rows, rows[4]], "must be there once for each step"),
        (lambda rows: [(rows[0][0], ""), *rows[1:]], "must"),
        (lambda rows: [(rows[0][0] + timedelta(minutes=5), "1"), *rows[1:]], "must"),
    ],
)
def test_every_finer_row_must_be_there_once(small, spoil, message):
    stream = small(marker="step = '10min'\ncombine = 'sum'")
    rows = thirds(stream, ["0.0005"] * 3)
    write(stream, written(rows), "84", "11")
    assert (stream.units() == 2).all()  # 0.0015 rounds up; three rounded rows make 3
    write(stream, written(spoil(rows)))
    assert message in str(stream.verdict().error)


def test_a_step_that_becomes_finer_on_a_date(small):
    change = "[[input.changes]]\nvalid_from = 2025-01-16\nstep = '10min'"
    stream = small(marker=f"combine = 'mean'\n{change}")
    stream.fill(0.6)
    write(stream, written(thirds(stream, ["0.6"] * 3, NEXT)), "84", "11", day=NEXT)
    assert all((judged.units == 600).all() for judged in stream.judge(DAY, NEXT))
    assert stream.settings.configuration_hash != small().settings.configuration_hash


def test_the_highest_revision_counts(small):
    """By number: "10" is later than "9"; of one revision the first row, as without the column."""
    stream = small(schema="metered", marker="revision = 'run'")
    lines = ["customer_id,run,timestamp,load"]
    for run, value in (("9", 1), ("10", 2), ("10", 3), ("", 4)):
        lines += [f"somebody,{run},{one}" for one in lines_of(stream, [value] * 48)]
    write(stream, lines)
    stream.write("11", stream.metered("other", 1.0).with_columns(run=pl.lit(1)))
    assert (stream.verdict().units == [[2000], [1000]]).all()
    (ingested,) = stream.ingest()
    assert ingested.metrics["duplicates"].to_list() == [48, 0], "a superseded row is nobody's fault"


@pytest.mark.parametrize("again", ["1", "3"])
def test_the_highest_revision_of_a_sum_counts_and_is_there_once(small, again):
    stream = small(marker="revision = 'run'")
    lines = ["run,timestamp,load"]
    for run, value in (("1", 1), ("3", 2), (again, 9)):
        lines += [f"{run},{one}" for one in lines_of(stream, [value] * 48)]
    write(stream, lines)
    stream.write("11", stream.rows(2.0, run=pl.lit("a")))
    judged = stream.verdict()
    if again == "3":
        assert "must be there once" in str(judged.error)
    else:
        assert (judged.units == 2000).all()


@pytest.mark.parametrize("finer", ["", "step = '10min'\ncombine = 'sum'"])
def test_steps_without_a_row_are_zero_where_the_supplier_writes_none(small, finer):
    stream = small(marker=f"missing_rows = 'zero'\nregion = 'zone'\n{finer}")
    stream.write(EVERY, pl.DataFrame({"timestamp": [], "load": [], "zone": []}))  # without types
    assert not stream.units().any()
    rows = [f"{one},84" for one in lines_of(stream, [1] * 48)[5:7]]
    write(stream, ["timestamp,load,zone", *rows], EVERY)
    judged = stream.verdict()
    assert judged.units.sum() == 2000
    assert (judged.units[0, 5:7] == 1000).all()
    write(stream, ["timestamp,load,zone", *rows, rows[0]], EVERY)
    assert "must be there once" in str(stream.verdict().error)
