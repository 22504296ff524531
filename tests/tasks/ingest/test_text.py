"""CSV files: read exactly as the same rows in Parquet, each line by itself."""

import gzip
import io
import zipfile
from datetime import date
from decimal import Decimal
from fractions import Fraction

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.ingest.clamping import reading
from tests.tasks.conftest import DAY

pytestmark = pytest.mark.slow

VALUES = [str(Decimal(number) / 8) for number in range(48)]
UNITS = np.arange(48) * 125
ISO = "%Y-%m-%dT%H:%M:%SZ"


def lines_of(stream, values=VALUES, stamp=ISO, day=DAY, sign=","):
    stamps = stream.settings.calendar.utc_times(day)
    return [f"{at.strftime(stamp)}{sign}{value}" for at, value in zip(stamps, values, strict=True)]


def write(stream, content, region="84", day=DAY, name="part-0.csv"):
    folder = stream.folder(region, day)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "_SUCCESS").touch()
    (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())


def zipped(text):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("a year.xls", text)
    return buffer.getvalue()


def quoted(text):
    return "\n".join(",".join(f'"{field}"' for field in line.split(",")) for line in text.splitlines())


HEAD = "timestamp,load\n"
FORMS = {
    "plain": lambda text: text,
    "crlf": lambda text: text.replace("\n", "\r\n"),
    "mark": lambda text: "\ufeff" + text,
    "gzip": lambda text: gzip.compress(text.encode()),
    "zip": zipped,
    "utf-16": lambda text: text.encode("utf-16"),
    "latin-1": lambda text: text.replace("load\n", "load,é\n", 1).encode("latin-1"),
    "quoted": quoted,
    "preamble and footer": lambda text: f"Données de charge\n\n{text}\nNo responsibility is taken\n",
    "other columns": lambda text: text.replace("\n", ",x;y,\n").replace("load,x;y,", "load,note,"),
    "tabs": lambda text: text.replace(",", "\t"),
    "spaces": lambda text: text.replace(",", " , "),
    "offsets": lambda text: text.replace("Z", "+00:00"),
    "no seconds": lambda text: text.replace(":00Z", "Z").replace("T", " "),
}


@pytest.mark.parametrize("form", FORMS)
def test_the_same_rows_in_any_form_give_the_same_integers(small, form):
    stream = small()
    name = {"gzip": "part-0.csv.gz", "zip": "part-0.zip", "tabs": "part-0.tsv"}.get(form, "part-0.csv")
    write(stream, FORMS[form](HEAD + "\n".join(lines_of(stream)) + "\n"), name=name)
    stream.write("11", stream.rows(2.0))
    (judged,) = stream.judge()
    assert judged.error is None
    assert np.array_equal(stream.units(), [UNITS, np.full(48, 2000)])


def test_semicolons_and_decimal_commas(small):
    stream = small(marker='decimal = ","')
    rows = lines_of(stream, [one.replace(".", ",") for one in VALUES], sign=";")
    for region in ("84", "11"):
        write(stream, "timestamp;load\n" + "\n".join(rows), region)
    assert np.array_equal(stream.units(), [UNITS, UNITS])


def test_wall_clock_stamps_and_a_day_of_46_steps_with_offsets(small):
    stream, spring = small(), date(2025, 3, 30)
    local = [one.strftime("%Y-%m-%d %H:%M") for one in stream.settings.calendar.local_times(DAY)]
    for region in ("84", "11"):
        write(stream, HEAD + "\n".join(f"{at},1.5" for at in local), region)
        write(stream, HEAD + "\n".join(lines_of(stream, VALUES[:46], day=spring)), region, spring)
    assert (stream.units() == 1500).all()
    assert np.array_equal(stream.units(spring)[0], UNITS[:46])


FAULTS = [
    (lambda lines: lines[:-1], "every step of the day must have a row"),
    (lambda lines: [*lines, lines[3]], "must be there once for each step"),
    (lambda lines: [lines[0].replace("0.0", "n/a"), *lines[1:]][:48], None),
    (lambda lines: [f"{lines[0].split(',')[0]},", *lines[1:]], "must not be null or NaN"),
    (lambda lines: [f"{lines[0].split(',')[0]},1 MW", *lines[1:]], "must not be null or NaN"),
    (lambda lines: [lines[0].replace("T23:00", "T23:01"), *lines[1:]], "must be the start of a step"),
    (lambda lines: [lines[0].replace("Z", ""), *lines[1:]], "must not be null"),
]


@pytest.mark.parametrize(("spoil", "message"), FAULTS[:2] + FAULTS[3:])
def test_rows_of_sums_stop_a_day_as_those_of_parquet(small, spoil, message):
    stream = small()
    write(stream, HEAD + "\n".join(spoil(lines_of(stream))))
    stream.write("11", stream.rows(2.0))
    (judged,) = stream.judge()
    assert "part-0.csv" in str(judged.error) or "region=84" in str(judged.error)
    assert message in str(judged.error)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("time,load\n1,2\n", "must hold these columns; it lacks 'timestamp', has 'time', 'load'"),
        ("", "must hold these columns"),
        ("timestamp,load,customer_id\n", "must have the customer column if and only if"),
        (gzip.compress(b"timestamp,load\n" + b"2025-01-15,1\n" * 9999)[:-9], "must be a readable"),
        (zipped("timestamp,load\n")[:-9], "must be a readable"),
    ],
)
def test_a_file_that_is_none_is_named(small, content, message):
    stream = small()
    write(stream, content, name="part-0.csv")
    stream.write("11", stream.rows(2.0))
    (judged,) = stream.judge()
    assert "region=84/date=2025-01-15/part-0.csv" in str(judged.error)
    assert message in str(judged.error)


BROKEN_LINES = [
    '"open,1,2',
    "one",
    "a,b,c,d,e,f,g",
    "\0,\0,\0",
    '"a""b',
    "x" * 200_000,
    "",
    ",,",
]


@pytest.mark.parametrize("line", BROKEN_LINES)
@pytest.mark.parametrize("place", [1, 20, 49])
def test_no_line_of_metered_text_stops_a_day_or_changes_another(small, line, place):
    stream = small(schema="metered")
    lines = [f"somebody,{one}" for one in lines_of(stream)]
    lines.insert(place - 1, line)
    text = "\n".join(["customer_id,timestamp,load", *lines])
    write(stream, text.encode("utf-8", "surrogateescape"))
    stream.write("11", stream.metered("other", 2.0))
    (judged,) = stream.judge()
    assert judged.error is None
    assert np.array_equal(stream.units()[0], UNITS)


BOUNDS = Fraction(-20), Fraction("1234.5")


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
