"""What the names, columns and stamps of a folder's files say, of sources as others publish them."""

import re
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import polars as pl
import pytest

from optstream.errors import DumpError
from tasks.operate.survey import Survey, survey

DAYS = [date(2024, 1, 15) + timedelta(days=number) for number in range(3)]
Row = Callable[[datetime, str], str]


def write(
    folder: Path,
    name: str,
    head: str,
    row: Row,
    days: list[date] = DAYS,
    minutes: int = 60,
    regions: tuple[str, ...] = ("north", "south"),
) -> Path:
    """Write rows of each step and region, in the files that a pattern of `strftime` names."""
    files: dict[Path, list[str]] = {}
    for day in days:
        for step in range(1440 // minutes):
            at = datetime(day.year, day.month, day.day, tzinfo=UTC) + timedelta(minutes=step * minutes)
            for region in regions:
                place = folder / at.strftime(name.format(region))
                files.setdefault(place, [head]).append(row(at, region))
    for place, lines in files.items():
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text("\n".join(lines), encoding="utf-8")
    return folder


def meaning(found: Survey, zone: str = "UTC") -> tuple[bool, bool, bool]:
    """Whether stamps are instants, ends of steps, and the files' days those of UTC."""
    return found.meanings(zone, found.step_minutes)[0]


def test_names_of_columns_say_instants_and_ends_of_steps(tmp_path):
    """Stamps alone fit the wall clock, and starts, as well: figures would be of other hours."""
    hour = timedelta(hours=1)

    def line(at: datetime, region: str) -> str:
        return f"{at:%Y-%m-%dT%H:%M},{region},5"

    in_utc = write(tmp_path / "utc", "%Y-%m-%d.csv", "HourUTC,zone,mw", line)
    assert meaning(survey(in_utc, "Europe/Paris"), "Europe/Paris") == (True, False, True)
    ends = write(tmp_path / "ends", "all.csv", "hour_ending,zone,mw", line)
    assert meaning(survey(ends, "UTC")) == (False, True, False)
    by_day = survey(write(tmp_path / "by day", "%Y-%m-%d.csv", "hour_ending,zone,mw", line), "Europe/Paris")
    assert (meaning(by_day, "Europe/Paris"), by_day.path) == ((False, True, False), "*.csv")
    whole = write(tmp_path / "whole", "all.csv", "time,zone,mw", lambda at, r: line(at + hour, r))
    assert meaning(survey(whole, "UTC")) == (False, True, False), "days are whole by ends alone"


@pytest.mark.parametrize(
    ("head", "row", "expected"),
    [
        ("created_at,end,start,zone,mw", "{at:%F %T},{at:%F %T},{at:%F %T},{r},5", (("start",), None, None)),
        ("Date,Hour,zone,mw", "{at:%F},{at.hour},{r},5", (("Date", "Hour"), None, "%Y-%m-%d %H")),
        ("Datum;Anfang;Ende;zone;mw", "{at:%d.%m.%Y};{at:%H:%M};{at:%H:%M};{r};5",
         (("Datum", "Anfang"), None, "%d.%m.%Y %H:%M")),
        ("Date_Time,Day,Time,zone,mw", "\"{at:%B %d, %Y %I:%M:%S %p}\",{at:%A},{at.hour},{r},5",
         (("Date_Time",), None, "%b %d, %Y %I:%M:%S %p")),
        ("MTU (CET/CEST),zone,mw", "{at:%d.%m.%Y %H:%M} - {at:%d.%m.%Y %H:%M},{r},5",
         (("MTU (CET/CEST)",), None, "%d.%m.%Y %H:%M")),
        ("ts,zone,mw", "{at:%s},{r},5", (("ts",), None, "epoch")),
        ("Market Day,HourEnding,zone,mw", "{at:%m/%d/%Y},{at.hour},{r},5",
         (("Market Day", "HourEnding"), None, "%m/%d/%Y %H")),
        ("timestamp,year,month,day,zone,mw", "{at:%Y-%m-%dT%H:%M},{at.year},{at.month},{at.day},{r},5",
         (("timestamp",), None, None)),
        ("hour,day,month,year,zone,mw", "{at.hour},{at.day},{at.month},{at.year},{r},5",
         (("year", "month", "day", "hour"), None, "%Y %m %d %H")),
        ("Datum;Uhrzeit;zone;mw", "{at:%d.%m.%Y};{at:%H:%M:%S};{r};5",
         (("Datum", "Uhrzeit"), None, "%d.%m.%Y %H:%M:%S")),
        ("time,zone,mw", "{at:%Y%m%d%H},{r},5", (("time",), None, "%Y%m%d%H")),
        ("time,zone,mw", "{at:%d.%m.%Y %H.%M},{r},5", (("time",), None, "%d.%m.%Y %H.%M")),
        ("SETTLEMENTDATE,zone,mw", "{at:%Y/%m/%d %H:%M},{r},5",
         (("SETTLEMENTDATE",), None, "%Y/%m/%d %H:%M")),
    ],
)  # fmt: skip
def test_columns_of_time_are_those_that_can_be_read(tmp_path, head, row, expected):
    def line(at: datetime, region: str) -> str:
        return row.replace("{at:%s}", f"{at.timestamp():.0f}").format(at=at, r=region)

    found = survey(write(tmp_path, "%Y-%m-%d.csv", head, line), "UTC")
    assert (found.roles.timestamp, found.roles.period_number, found.stamps_format) == expected
    assert (found.step_minutes, found.regions) == (60, ("north", "south"))
    assert found.roles.customer is None


@pytest.mark.parametrize(
    ("head", "row", "named", "regions"),
    [
        ("time,zone,load_area,mw", "RTO,{r}", {}, ("north", "south")),
        ("time,zone,direction,mw", "{r},import{n}", {}, "a region have several rows: keep those of one kind"),
        ("time,zone,customer_id,flow,kwh", "{r},c1,out{n}", {}, "a customer have several rows: keep those"),
        ("time,zone,LCLid,kwh", "{r},M{n}", {}, "customer=COLUMN the column that tells them apart; other"),
        ("time,zone,LCLid,kwh", "{r},M{n}", {"customer": "LCLid"}, ("north", "south")),
        ("time,zone,revision,mw", "{r},{n}", {}, ("north", "south")),
        ("time,zone,mw,mw", "{r},7", {}, "has several columns 'mw': rename all but one"),
        ("time,zone,tariff_eur,load", "{r},7", {}, "which one is released: 'tariff_eur', 'load'"),
        ("time,zone,KWH/hh (per half hour),price", "{r},7", {}, ("north", "south")),
        ("当日,地区,負荷", "{r}", {"timestamp": "当日", "region": "地区"}, ("north", "south")),
    ],
)
def test_a_step_has_one_row_of_one_column(tmp_path, head, row, named, regions):
    """Of several rows and columns the first one counted."""

    def line(at: datetime, region: str) -> str:
        both = (row.format(r=region, n=number) for number in (1, 2))
        return "\n".join(f"{at:%Y-%m-%dT%H:%MZ},{one},5" for one in dict.fromkeys(both))

    write(tmp_path, "%Y-%m-%d.csv", head, line)
    if isinstance(regions, tuple):
        assert survey(tmp_path, "UTC", named).regions == regions
    else:
        with pytest.raises(DumpError, match=re.escape(regions)):
            survey(tmp_path, "UTC", named)


def test_the_hours_of_a_day_may_be_numbers_and_its_clock_apart(tmp_path):
    head, row = "Tag,Stunde,zone,mw", "{at:%Y-%m-%d},{n},{r},5"
    write(tmp_path, "%Y-%m-%d.csv", head, lambda at, r: row.format(at=at, n=at.hour + 1, r=r))
    columns = {"timestamp": "Tag"}
    by_number = survey(tmp_path, "UTC", columns | {"period_number": "Stunde"})
    assert (by_number.roles.period_number, by_number.step_minutes) == ("Stunde", 60)
    by_clock = survey(tmp_path, "UTC", columns | {"clock": "Stunde"})
    assert (by_clock.roles.timestamp, meaning(by_clock)) == (("Tag", "Stunde"), (False, True, False))
    assert "begin again with --column period_number=Stunde" in next(by_clock.doubts())


def test_a_day_on_which_the_clock_changes_says_less_than_others(tmp_path):
    """Its hours 1 to 23 fit starts as well as ends."""
    days = [date(2024, 3, 29), date(2024, 3, 30), date(2024, 3, 31)]
    write(tmp_path, "%Y-%m-%d.csv", "time,zone,mw", lambda at, r: f"{at:%Y-%m-%dT%H:%M},{r},5", days)
    assert survey(tmp_path, "Europe/Paris").day == days[1]
    assert survey(tmp_path, "UTC").day == days[2]


@pytest.mark.parametrize("zone", ["UTC", "Asia/Kolkata"])
@pytest.mark.parametrize("late", [30, 0])
def test_stamps_that_are_no_starts_of_steps_are_refused(tmp_path, late, zone):
    write(tmp_path, "%Y-%m.csv", "time,zone,mw", lambda at, r: f"{at:%Y-%m-%dT%H}:{late:02}Z,{r},5")
    found = survey(tmp_path, zone)
    if (late == 0) == (zone == "UTC"):
        found.check_starts(zone, in_utc=True)
    else:
        with pytest.raises(DumpError, match="lie mostly 0:30:00 after the starts of steps of 60 minutes in"):
            found.check_starts(zone, in_utc=True)


def test_a_column_that_another_region_names_otherwise_is_refused(tmp_path):
    for region in ("BE", "FR"):
        head = f"time,load {region}"
        write(tmp_path, "{}_%Y.csv", head, lambda at, r: f"{at:%Y-%m-%dT%H:%MZ},5", regions=(region,))
    with pytest.raises(DumpError, match=r"has no column 'load BE', which .* has: give it the same name"):
        survey(tmp_path, "UTC")


def test_regions_of_the_newest_files_are_leaves(tmp_path):
    days = [date(2024, 1, 1) + timedelta(days=number) for number in range(60)]

    def line(at: datetime, region: str) -> str:
        return f"{at:%Y-%m-%dT%H:%MZ},{'late' if at.date() == days[-1] else region},5"

    write(tmp_path, "%Y-%m-%d.csv", "time,zone,mw", line, days, regions=("north",))
    assert survey(tmp_path, "UTC").regions == ("late", "north")


@pytest.mark.parametrize(("minutes", "n_steps"), [(60, 24), (30, 48), (30, 50), (15, 96), (5, 288)])
def test_numbers_of_steps_say_how_long_one_is(tmp_path, minutes, n_steps):
    rows = [f"2024-01-15,{number},north,5" for number in range(1, n_steps + 1)]
    (tmp_path / "2024-01-15.csv").write_text("\n".join(["Date,Period,zone,mw", *rows]))
    found = survey(tmp_path, "UTC")
    assert (found.roles.period_number, found.step_minutes) == ("Period", minutes)


def test_one_customer_decides_no_step_and_no_day(tmp_path):
    """A meter whose clock is off has stamps of its own; those of one among many are left alone."""
    rows = [
        f"{day}T{hour:02}:00Z,c{number},north,1" for day in DAYS for hour in range(24) for number in range(20)
    ]
    off = [f"1999-01-{1 + n // 60:02}T03:{n % 60:02}:07Z,odd,north,1" for n in range(900)]
    for name, lines in (("sound", rows), ("odd", rows + off)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "all.csv").write_text("\n".join(["time,customer_id,zone,kwh", *lines]))
    sound, odd = (survey(tmp_path / name, "UTC") for name in ("sound", "odd"))
    assert sound.step_minutes == odd.step_minutes == 60
    assert sound.stamps.equals(odd.stamps)
    assert (sound.first, sound.last) == (odd.first, odd.last)


@pytest.mark.parametrize("column", ["users", "devices", "active_users"])
def test_how_many_customers_there_are_is_no_customer(tmp_path, column):
    found = survey(
        write(tmp_path, "%Y-%m-%d.csv", f"time,building,{column}", lambda at, r: f"{at:%F %T},{r},5"), "UTC"
    )
    assert (found.roles.customer, found.roles.value, found.roles.counts) == (None, column, True)


@pytest.mark.parametrize(
    ("head", "row", "message"),
    [
        ("date,county,cases", "{week},{r},31337.5", "no usual distance that divides a day"),
        ("at,zone,kw", "{at:%F} {at.hour:02}:17:{at.hour:02},{r},31337.5",
         "no usual distance that divides a day"),
        ("date,zone," + ",".join(f"HE{n:02}" for n in range(1, 25)), "{at:%F},{r}" + ",31337.5" * 24,
         "write a row for each region and step"),
        ("started_at,ended_at,start_station_name,lat,lng,fare,tip", "{at:%F %T},{at:%F %T},{r},1,1,31337.5,1",
         "where each row is a trip or an event, write their number"),
    ],
)  # fmt: skip
def test_what_is_no_series_of_a_day_is_refused_with_what_to_write(tmp_path, head, row, message):
    def line(at: datetime, region: str) -> str:
        return row.format(at=at, r=region, week=DAYS[0] + timedelta(days=7 * (at.hour + 24 * (at.day - 15))))

    write(tmp_path, "all.csv", head, line)
    with pytest.raises(DumpError) as refused:
        _ = survey(tmp_path, "UTC").step_minutes
    assert message in str(refused.value)
    assert "31337" not in str(refused.value)


@pytest.mark.parametrize("name", ["data ({0}).csv", "%G-W%V.csv", "load_{1}.csv"])
def test_names_that_are_no_days_and_no_regions_are_left_alone(tmp_path, name):
    days = [date(2024, 12, 23) + timedelta(days=number) for number in range(21)]
    for number, week in enumerate((days[:7], days[7:14], days[14:])):
        path = name.replace("{0}", str(number)).replace("{1}", f"{week[0]:%Y%m%d}")
        write(tmp_path, path, "time,zone,mw", lambda at, r: f"{at:%Y-%m-%dT%H:%MZ},{r},5", week)
    found = survey(tmp_path, "UTC")
    assert found.regions == ("north", "south")
    assert (found.first <= days[0], found.last >= days[-1]) == (True, True)
    assert len(found.stamps) == 7 * 24
    assert meaning(found) == (True, False, False)
    assert "{region}" not in str(found.path)


def test_a_file_an_hour_has_the_step_of_those_of_its_day(tmp_path):
    write(tmp_path, "%Y/%m/%d/%H.csv", "time,zone,mw", lambda at, r: f"{at:%Y-%m-%dT%H:%MZ},{r},5")
    found = survey(tmp_path, "UTC")
    assert (found.step_minutes, found.path) == (60, "{date:%Y}/{date:%m}/{date:%d}/*.csv")
    assert meaning(found) == (True, False, False)


def test_the_first_day_is_one_of_every_region(tmp_path):
    for region, days in (("north", DAYS), ("south", DAYS[2:])):
        write(
            tmp_path,
            "{}/%Y-%m-%d.csv",
            "time,mw",
            lambda at, r: f"{at:%Y-%m-%dT%H:%MZ},5",
            days,
            regions=(region,),
        )
    assert survey(tmp_path, "UTC").first == DAYS[2]


def test_days_and_months_are_told_apart_by_the_names_of_files(tmp_path):
    days = [date(2024, 3, 9), date(2024, 3, 10)]
    write(tmp_path, "%Y-%m-%d.csv", "time,zone,mw", lambda at, r: f"{at:%m/%d/%Y %H:%M},{r},5", days)
    assert survey(tmp_path, "UTC").stamps_format == "%m/%d/%Y %H:%M"


@pytest.mark.parametrize(
    ("name", "regions", "head", "words"),
    [
        (
            "%Y-%m-%d.csv",
            ("north", "Total"),
            "time,zone,mw",
            "the region 'Total' is a leaf: if",
        ),
        ("%Y-%m-%d.csv", ("north",), "time,zone,index_kwh", "'index_kwh' seems to be a running total"),
        ("%Y-%m-%d.csv", ("all",), "time,zone,mw", ""),
        ("%Y-%m.csv", ("north", "south"), "time,zone,visitors", "where its rows come later"),
        ("%Y-%m-%d.csv", ("north",), "time,zone,net_load_mw", "'net_load_mw' may be below 0"),
        ("household_{}.csv", ("0001", "0002"), "time,unused,mw", "each file seems to be of one household"),
        ("%Y-%m-%d.csv", ("north", "south"), "time,zone,mw", ""),
    ],
)
def test_what_names_leave_open_is_said(tmp_path, name, regions, head, words):
    def line(at: datetime, region: str) -> str:
        return f"{at:%Y-%m-%dT%H:%MZ},{region},5"

    found = list(survey(write(tmp_path, name, head, line, regions=regions), "UTC").doubts())
    assert len(found) == bool(words)
    assert words in "".join(found)


def test_numbers_of_steps_that_begin_at_0_and_regions_with_a_point_are_refused(tmp_path):
    rows = {"date": "2024-01-15", "period": [0, 1], "zone": [1.0, 2.0], "mw": 31337.5}
    for number, columns in enumerate((rows, rows | {"period": [1, 2]})):
        (tmp_path / f"{number}").mkdir()
        pl.DataFrame(columns).write_parquet(tmp_path / f"{number}" / "2024-01-15.parquet")
    with pytest.raises(DumpError, match="must begin at 1"):
        survey(tmp_path / "0", "UTC")
    with pytest.raises(DumpError, match="write whole numbers or text"):
        survey(tmp_path / "1", "UTC")


def test_a_note_below_the_rows_names_no_region(tmp_path):
    write(tmp_path, "%Y-%m-%d.csv", "zone,time,mw", lambda at, r: f"{r},{at:%Y-%m-%dT%H:%MZ},5")
    for file in tmp_path.iterdir():
        head, _, rows = file.read_text().partition("\n")
        file.write_text(f"{head}\n-,-,MW\n{rows}\nSource: a supplier\n")
    assert survey(tmp_path, "UTC").regions == ("north", "south")


def test_what_windows_and_office_leave_is_no_file(tmp_path):
    write(tmp_path, "%Y-%m-%d.csv", "time,zone,mw", lambda at, r: f"{at:%Y-%m-%dT%H:%MZ},{r},5")
    for name in ("Thumbs.db", "desktop.ini", "~$load.xlsx", "._2024-01-15.csv", ".DS_Store"):
        (tmp_path / name).write_bytes(b"\0")
    assert survey(tmp_path, "UTC").regions == ("north", "south")


def test_instants_of_a_parquet_file_go_before_its_other_times(tmp_path):
    at = [datetime(2024, 1, 15, tzinfo=UTC) + timedelta(hours=hour) for hour in range(24)]
    rows = pl.DataFrame({"loaded_at": at, "local_time": at, "event_time": at, "zone": "north", "mw": 1.0})
    rows = rows.with_columns(pl.col("local_time").dt.replace_time_zone(None))
    rows.write_parquet(tmp_path / "2024-01-15.parquet")
    assert survey(tmp_path, "UTC").roles.timestamp == ("event_time",)


@pytest.mark.parametrize("written", ["%Y-%m-%d %H:%M", "%d/%m/%Y %H:%M", "%Y%m%d"])
def test_a_column_of_time_that_no_run_reads_of_a_parquet_file_is_refused(tmp_path, written):
    at = [datetime(2024, 1, 15, tzinfo=UTC) + timedelta(hours=hour) for hour in range(24)]
    stamps = [one.strftime(written) for one in at]
    times = [int(one) for one in stamps] if stamps[0].isdigit() else stamps
    rows = pl.DataFrame({"time": times, "zone": "north", "mw": 1.0})
    rows.write_parquet(tmp_path / "2024-01-15.parquet")
    with pytest.raises(DumpError, match="'time', must hold timestamps or seconds since 1970, and no text"):
        survey(tmp_path, "UTC")
    seconds = pl.Series([int(one.timestamp()) for one in at])
    rows.with_columns(time=seconds).write_parquet(tmp_path / "2024-01-15.parquet")
    assert survey(tmp_path, "UTC").stamps_format == "epoch"


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("%Y/%m/%Y-%m-%d.csv", "{date:%Y}/{date:%m}/{date:%Y-%m-%d}.csv"),
        ("y%Y/load_%Y%m%d.csv", "y{date:%Y}/load_{date:%Y%m%d}.csv"),
        ("year=%Y/month=%-m/day=%-d/part-0.csv", "year={date:%Y}/month={date:%m}/day={date:%d}/*.csv"),
        ("v2/%Y-%m-%d.csv", "v2/{date:%Y-%m-%d}.csv"),
        ("load_%Y-%-m-%-d.csv", "load_{date:%Y-%m-%d}.csv"),
        ("%Y/%b/%Y%m%d.csv", "{date:%Y}/*/{date:%Y%m%d}.csv"),
    ],
)
def test_folders_of_the_month_and_year_are_those_of_any(tmp_path, name, path):
    """All files so far may be of one month: those of the next lie elsewhere."""
    days = [date(2024, 3, number) for number in (8, 9, 30)]
    write(tmp_path, name, "time,zone,load_mw", lambda at, r: f"{at:%Y-%m-%dT%H:%M},{r},1", days)
    assert survey(tmp_path, "UTC").path == path


@pytest.mark.parametrize("column", ["Verbrauch_kWh", "verbrauchKWh", "energykWh", "Last [kWh]"])
def test_a_unit_is_read_as_it_is_written(tmp_path, column):
    """One taken for a thousandth of it would hide a thousandth, or a thousand times, of a customer."""
    write(tmp_path, "%Y-%m-%d.csv", f"time,zone,{column}", lambda at, r: f"{at:%Y-%m-%dT%H:%M},{r},7")
    assert survey(tmp_path, "UTC").unit == "kwh"


@pytest.mark.parametrize(("column", "path"), [("", "{region}.csv"), ("zone", "*.csv")])
def test_numbers_are_regions_where_no_column_has_them(tmp_path, column, path):
    head = "timestamp,load_mw" + f",{column}" * bool(column)

    def line(at: datetime, region: str) -> str:
        return f"{at:%Y-%m-%dT%H:%MZ},{at.hour}" + f",z{region}" * bool(column)

    write(tmp_path, "%Y-%m-%d/{}.csv", head, line, regions=("11", "24"))
    assert survey(tmp_path, "UTC").path == f"{{date:%Y-%m-%d}}/{path}"
