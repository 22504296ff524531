"""What contracts and the suites of users judge, by the layout of each day."""

import json
import os
import traceback
from datetime import UTC, date, datetime, timedelta
from itertools import product

import polars as pl
import pytest

from optstream.errors import ContractError
from optstream.measurement.sums import open_private_period
from tasks.config import load_settings
from tasks.ingest import LateDumpError, discover
from tasks.ingest.arrivals import EVERY
from tests.tasks.conftest import DAY

pytestmark = pytest.mark.slow

SPRING, AUTUMN = date(2025, 3, 30), date(2025, 10, 26)
PLANTED = 77.625
FOLDER = f"region=84/date={DAY}"
FIRST = date(2016, 6, 1)
SUITES = {"raw": ("rows", {"max_value": 1}), "release": ("total", {"max_value": -1})}


def rows_of(stream, customer, value, day):
    return stream.metered(customer, value, day) if stream.settings.metered else stream.rows(value, day)


def assert_stopped(judged, message):
    assert isinstance(judged.error, ContractError)
    assert judged.period is None
    text = "".join(traceback.format_exception(judged.error))
    assert message in text
    assert "region=11" not in text
    for planted in ("77.6", "77625", "secret"):
        assert planted not in text
        assert planted not in judged.results.read_text()


def changed(step, **columns):
    index = pl.int_range(pl.len())
    return lambda rows: rows.with_columns(
        pl.when(index == step).then(pl.lit(value)).otherwise(pl.col(name)).alias(name)
        for name, value in columns.items()
    )


def shifted(**by):
    return lambda rows: rows.with_columns(pl.col("timestamp") + timedelta(**by))


def every(rows, **columns):
    """The rows, with the same in all of them, of no type where that is null."""
    return rows.with_columns(**{name: pl.lit(value) for name, value in columns.items()})


def repeated(step):
    return lambda rows: pl.concat([rows, rows[step : step + 1]])


STAMP, LOAD = "column 'timestamp'", "column 'load'"
PART = f"{FOLDER}/part-0.parquet"
TWO = "columns 'timestamp' and 'load': must hold these columns"
NUMBERS, DATES = "must be a column of numbers", "must be a date with time"
OUTSIDE, ABSENT = f"{PART}, {STAMP}: must lie inside the day", f"{PART}, {LOAD}, step 5 (02:30) of 48:"
BAD_ROWS = [
    (lambda rows: pl.concat([rows[:17], rows[18:]]), f"{FOLDER}, {STAMP}, step 17 (08:30) of 48: every step"),
    (lambda rows: rows[:46], f"{FOLDER}, {STAMP}, step 46 (23:00) of 48: every step of the day must have a"),
    (shifted(minutes=-30), OUTSIDE),
    (lambda rows: pl.concat([rows, shifted(hours=1)(rows[46:])]), OUTSIDE),
    (shifted(days=1), "this may be a dump of another day"),
    (shifted(microseconds=1), f"{PART}, {STAMP}: must be the start of a step"),
    (changed(3, timestamp=None), f"{PART}, {STAMP}: must not be null"),
    (pl.DataFrame.clear, f"{FOLDER}: must hold at least one row"),
    (changed(5, load=None), f"{ABSENT} must not be null or NaN"),
    (changed(5, load=float("nan")), f"{ABSENT} must not be null"),
    (repeated(7), f"{PART}, {STAMP}, step 7 (03:30) of 48: must be there once"),
    (lambda rows: every(rows, customer_id="secret"), "column 'customer_id': must have the customer"),
]
BAD_FILES = [
    (lambda rows: rows.cast({"load": pl.String}), f"{PART}, {LOAD}: {NUMBERS}"),
    (lambda rows: rows.with_columns(load=pl.lit("secret")), f"{PART}, {LOAD}: {NUMBERS}"),
    (lambda rows: rows.rename({"load": "power"}), f"{PART}, {TWO}; it lacks 'load', has "),
    (lambda rows: rows.drop("timestamp"), f"{PART}, {TWO}"),
    (lambda rows: rows.cast({"timestamp": pl.String}), f"{PART}, {STAMP}: {DATES}"),
    (lambda rows: rows.cast({"timestamp": pl.Date}), f"{PART}, {STAMP}: {DATES}"),
]
ODD_READINGS = [
    (lambda rows: changed(9, load=float("inf"))(every(rows, load=1.0)), "was infinite: clamped"),
    (lambda rows: changed(9, load=float("-inf"))(every(rows, load=1.0)), "was infinite: clamped"),
    (lambda rows: changed(9, load=77625.5)(every(rows, load=1.0)), "was outside the public bounds"),
    (lambda rows: changed(9, load=-77.625)(every(rows, load=1.0)), "was outside the public bounds"),
]
CUSTOMER = f"{PART}, column 'customer_id', step"
METERED = [
    (changed(5, load=None), f"{ABSENT} was null or NaN"),
    (changed(5, load=float("nan")), f"{ABSENT} was null or NaN"),
    (repeated(7), f"{CUSTOMER} 7 (03:30) of 48: had several"),
    (changed(5, customer_id="other"), f"{CUSTOMER} 5 (02:30) of 48: was in several leaves at one step"),
]
UNUSABLE = [
    ("off_grid", shifted(seconds=1)),
    ("outside_day", lambda rows: every(rows, timestamp=datetime(1970, 1, 1, tzinfo=UTC))),
    ("outside_day", shifted(days=1)),
    ("no_timestamp", lambda rows: every(rows, timestamp=None)),
    ("no_customer", lambda rows: every(rows, customer_id=None)),
    ("no_customer", lambda rows: every(rows, customer_id=0.5)),
    ("unknown_region", lambda rows: every(rows, zone="nowhere")),
    ("unknown_region", lambda rows: every(rows, zone=None)),
    ("unknown_region", lambda rows: every(rows, zone=1.5)),
    ("steps_found", lambda rows: rows[1:]),
    ("steps_found", pl.DataFrame.clear),
    ("absent", lambda rows: every(rows, load=None)),
]


def judged_together(stream, days, faults):
    """Each fault in region 84 of a day of its own, all judged at once: yields days with their messages."""
    made = {}
    for day, (spoil, message) in zip(days(len(faults)), faults, strict=True):
        stream.write("84", spoil(rows_of(stream, "secret", PLANTED, day)), day)
        stream.write("11", rows_of(stream, "other", 1.0, day), day)
        made[day] = message.replace(str(DAY), str(day))
    for judged in stream.judge(*made):
        yield judged, made[judged.day]


@pytest.mark.parametrize("schema", ["aggregated", "metered"])
def test_structure_stops_a_day(small, days, schema):
    """Of metered input that is files alone; aggregated rows are steps, and may not be null or repeated."""
    faults = BAD_FILES if schema == "metered" else [*BAD_FILES, *BAD_ROWS]
    for judged, message in judged_together(small(schema=schema), days, faults):
        assert_stopped(judged, message)


@pytest.mark.parametrize("name", ["a copy.parquet", "z.parquet"])
def test_a_copied_file_is_named_itself(small, name):
    """By its time, whatever its name: the newer one is the copy."""
    stream = small()
    stream.fill(1.0)
    original = stream.folder("84") / "part-0.parquet"
    original.with_name(name).write_bytes(original.read_bytes())
    os.utime(original, (1, 1))
    judged = stream.verdict()
    assert str(judged.error) == f"{DAY}: {FOLDER}/{name} is a copy of {PART}: remove it, then run the day"


@pytest.mark.parametrize("schema", ["aggregated", "metered"])
def test_whether_a_day_appears_does_not_depend_on_a_reading(small, days, schema):
    for judged, message in judged_together(small(schema=schema), days, ODD_READINGS):
        part = PART.replace(str(DAY), str(judged.day))
        assert judged.error is None
        (alarm,) = judged.alarms
        assert alarm.startswith(f"{part}, {LOAD}, step 9 (04:30) of 48: {message}")
        assert "77" not in judged.results.read_text().split('"metrics"')[1]


def test_metered_input_has_a_public_rule_instead(small, days):
    stream = small(schema="metered")
    for day in days(len(METERED)):
        stream.write("84", stream.metered("more", 1.0, day), day, name="a.parquet")
        stream.write("11", stream.metered("third", 1.0, day), day, name="z.parquet")
    for judged, message in judged_together(stream, days, METERED):
        assert judged.error is None
        assert len(judged.alarms) == 1
        assert ("(and so for '11')" in judged.alarms[0]) == ("several leaves" in message)
        assert message in judged.alarms[0]
        assert "secret" not in judged.results.read_text()


@pytest.mark.parametrize("folders", ["", 'region = "zone"'], ids=["a folder for each leaf", "one folder"])
@pytest.mark.parametrize("alone", [True, False], ids=["alone in a leaf", "among others"])
def test_rows_of_a_customer_never_stop_a_metered_day(small, days, folders, alone):
    stream = small(schema="metered", marker=folders)
    cases = [case for case in UNUSABLE if folders or case[0] != "unknown_region"]
    made = dict(zip(days(len(cases)), cases, strict=True))
    for day, (_, spoil) in made.items():
        for leaf, value in [("84", 1.0), ("11", 2.0)][: 1 if alone else 2]:
            rows = stream.metered(leaf, value, day).with_columns(zone=pl.lit(leaf))
            stream.write(EVERY if folders else leaf, rows, day, f"{leaf}.parquet")
        one = spoil(stream.metered("one", 4.0, day).with_columns(zone=pl.lit("11")))
        stream.write(EVERY if folders else "11", one, day, "one.parquet")
    for judged in stream.judge(*made):
        metric, spoil = made[judged.day]
        assert judged.error is None, (metric, judged.error)
        sums = open_private_period(judged.period)
        left = len(spoil(stream.metered("one", 4.0))) if metric == "steps_found" else 0
        assert sums.sum(axis=1).tolist() == [48_000, (0 if alone else 96_000) + 4000 * left], metric
        assert judged.alarms or (metric == "steps_found" and not alone)


def test_files_that_are_not_parquet_stop_their_days_only(small, days):
    stream, whole_days = small(), days(5)
    stream.fill(PLANTED, *whole_days)
    whole = (stream.folder("84") / "part-0.parquet").read_bytes()
    # the third keeps the footer: only reading the pages tells
    spoilt = (b"", whole[: len(whole) // 2], whole[:4] + b"\xff" * 200 + whole[204:], b"secret")
    for day, content in zip(whole_days, spoilt, strict=False):
        (stream.folder("84", day) / "part-0.parquet").write_bytes(content)
    *bad, good = stream.judge(*whole_days)
    for judged in bad:
        part = PART.replace(str(DAY), str(judged.day))
        assert_stopped(judged, f"{part}: must be a readable Parquet file; deliver it again")
    assert good.error is None


@pytest.mark.parametrize("day", [SPRING, AUTUMN])
def test_instants_on_fixed_slots_are_refused_where_the_clock_changes(small, day):
    instants, fixed = small().rows(PLANTED, day), small(day="fixed")
    wall = fixed.settings.calendar.local_times(day)
    fixed.write("84", instants, day)
    fixed.write("11", pl.DataFrame({"timestamp": wall, "load": [1.0] * 48}), day)
    judged = fixed.verdict(day)
    assert_stopped(judged, 'the clock changes on this day: day = "elapsed" needs timestamps with a time zone')


def add(folder, suites, what="values"):
    for frame, (column, kwargs) in suites.items():
        kind = f"expect_column_{what}_to_be_between"
        wanted = {"type": kind, "kwargs": {"column": column, **kwargs}, "severity": "critical"}
        place = folder / "contracts" / frame
        place.mkdir(parents=True)
        (place / "odd.json").write_text(json.dumps({"name": "any", "expectations": [wanted]}))


RAISING = """
import great_expectations as gx
import great_expectations.expectations as gxe

class Raises{error}(gxe.ExpectColumnMaxToBeBetween):
    def {method}(self, *given, **named):
        raise {error}("odd")

suite = gx.ExpectationSuite(name="any", expectations=[Raises{error}(column="day", max_value="2000-01-01")])
"""
RAISES = {"ValueError": "get_validation_dependencies", "SystemExit": "_validate"}


def test_no_expectation_of_a_user_stops_a_day_and_operators_alone_are_alarmed(watched):
    watched.configure("[input]", '[contracts]\nfolder = "contracts"\n[input]')
    contracts = watched.folder / "contracts"
    add(watched.folder, SUITES | {"private_period": ("steps", {"max_value": 1})})
    said = {f"{frame}/odd": "does not hold: " for frame in SUITES}
    for frame, (error, method) in product(SUITES, RAISES.items()):
        (contracts / frame).chmod(0o700)
        (contracts / frame / f"{error}.py").write_text(RAISING.format(method=method, error=error))
        said[f"{frame}/{error}"] = f"could not be evaluated: {error}"
    said["private_period/odd"] = "judges nothing any more: remove it"
    watched.released(FIRST)
    assert watched.record(FIRST).state.value == "PUBLISHED"
    alarms = [one for one in watched.watch().alarms if one.kind == "user-suite"]
    assert len(alarms) == len(said)
    for name, problem in said.items():
        begins = f"{FIRST}: the suite {name} of [contracts] folder {problem}"
        (words,) = (one.words for one in alarms if one.words.startswith(begins))
        assert "The day is not stopped: users' suites raise alarms only" in words
    assert all(one.kind.depends_on_readings for one in alarms)
    paths = [path for path in (watched.folder / "published").rglob("*") if path.is_file()]
    published = b"".join(path.read_bytes() for path in paths)
    assert b"user-suite" not in published
    assert b"raw/odd" not in published


def test_each_day_is_judged_by_itself_and_users_aggregates_are_of_one_day(small, days):
    stream = small()
    file = stream.settings.file
    file.write_text(file.read_text() + '[contracts]\nfolder = "contracts"\n')
    stream.settings = load_settings(file)
    add(file.parent, {"raw": ("out_of_bounds", {"max_value": 0})}, "mean")
    for day, value in zip(days(2), (1.0, 1e9), strict=True):
        stream.fill(value, day)
    first, second = stream.judge(*days(2))
    assert first.alarms == ()
    assert [line for line in second.alarms if "raw/odd" in line] != []
    assert second.error is None


DAYS = [date(2025, 3, 28) + timedelta(days=number) for number in range(4)]
"""The third has 46 steps, and another layout than the second; the fourth another again."""
CHANGES = f"""
[[input.changes]]
valid_from = {DAYS[2]}
timestamp = "when"
value = "kilowatts"
customer = "meter"
factor = "0.001"
file_list = "_FILES"
[[input.changes]]
valid_from = {DAYS[3]}
value = "load"
factor = "1"
marker = "DONE"
"""
CHANGED = {"timestamp": "when", "customer_id": "meter"}
NAMES = dict(zip(DAYS, ({}, {}, {**CHANGED, "load": "kilowatts"}, CHANGED), strict=True))
ANNOUNCED = dict(zip(DAYS, ("_SUCCESS", "_SUCCESS", "_FILES", "DONE"), strict=True))


def write(stream, region, rows, day):
    """As the supplier of that day did: its names, its unit, its last file."""
    scale = 1000.0 if "load" in NAMES[day] else 1.0
    rows = rows.with_columns(pl.col("load") * scale).rename(NAMES[day], strict=False)
    path = stream.write(region, rows, day)
    (path.parent / "_SUCCESS").rename(path.parent / ANNOUNCED[day]).write_text(path.name)


@pytest.mark.parametrize(
    ("schema", "late", "columns"),
    [("aggregated", False, "'timestamp' and 'load'"), ("metered", True, "'when' and 'kilowatts'")],
)
def test_each_day_is_read_by_its_own_layout_and_waits_for_its_own_marker(small, schema, late, columns):
    stream = small(schema=schema, marker=CHANGES)
    for day, region in product(DAYS, ("84", "11")):
        write(stream, region, rows_of(stream, region, 2.675, day), day)
    assert all((judged.units == 2675).all() for judged in stream.judge(*DAYS))
    changed, other = DAYS[1 + late], DAYS[2 - late]
    stream.write("84", rows_of(stream, "84", 1.0, changed).rename(NAMES[other], strict=False), changed)
    errors = {judged.day: judged.error for judged in stream.judge(*DAYS) if judged.error}
    assert [*errors] == [changed]
    assert f"date={changed}/part-0.parquet, columns {columns}: must hold these" in str(errors[changed])
    (stream.folder("84", DAYS[2]) / "_FILES").rename(stream.folder("84", DAYS[2]) / "DONE")
    (stream.folder("11", DAYS[3]) / "DONE").rename(stream.folder("11", DAYS[3]) / "_FILES")
    found = discover(stream.settings, DAYS)
    assert [isinstance(found[day], LateDumpError) for day in DAYS] == [False, False, True, True]
    assert f"the file list _FILES of region=84/date={DAYS[2]} is absent" in str(found[DAYS[2]])
    assert f"the marker DONE of region=11/date={DAYS[3]} is absent" in str(found[DAYS[3]])


@pytest.mark.parametrize("day", [SPRING, AUTUMN])
@pytest.mark.parametrize("schema", ["aggregated", "metered"])
def test_fixed_slots_take_the_wall_clock_as_it_is_shown(small, day, schema):
    """What the wall clock skips is 0, and of what it shows twice the first row of a slot counts."""
    wall = small(step="1h").settings.calendar.local_times(day)
    stream = small(day="fixed", step="1h", schema=schema, resolution="1")
    rows = pl.DataFrame({"timestamp": wall, "load": [float(10 + n) for n in range(len(wall))]})
    for leaf in ("84", "11"):
        of_leaf = {"customer_id": pl.lit(f"of {leaf}")} if schema == "metered" else {}
        stream.write(leaf, rows.with_columns(**of_leaf), day)
    judged = stream.verdict(day)
    expected = [10, 11, 12, *range(14, 35)] if day == AUTUMN else [10, 11, 0, *range(12, 33)]
    assert judged.units.tolist() == [expected, expected]
    if schema == "aggregated":  # all else stays as strict as on any day
        for broken in (rows[1:], pl.concat([rows[:1], rows])):
            stream.write("84", broken, day)
            assert stream.verdict(day).error is not None
