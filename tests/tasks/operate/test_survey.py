"""What the names, columns and stamps of a folder's files say, of sources as others publish them."""

import re
from datetime import UTC, date, datetime, timedelta

import polars as pl
import pytest

from optstream.errors import DumpError
from tasks.operate.survey import survey

DAYS = [date(2024, 1, 15) + timedelta(days=number) for number in range(3)]
DAILY = "%Y-%m-%d.csv"
CLOCK, INSTANT = "{at:%Y-%m-%dT%H:%M},{r},5", "{at:%Y-%m-%dT%H:%MZ},{r},5"
ONLY = "{at:%Y-%m-%dT%H:%MZ},5"
"""Of files that are each of one region."""
HOURS = [datetime(2024, 1, 15, hour, tzinfo=UTC) for hour in range(24)]


def write(folder, name=DAILY, head="time,zone,mw", row=INSTANT, days=DAYS, regions=("north", "south")):
    """Write a row of each hour and region. name: by `strftime`; row: by `str.format` of at, r and n."""
    row, files = row.replace("{at:%s}", "{since:.0f}"), {}
    for day in days:
        for hour in range(24):
            at = datetime(day.year, day.month, day.day, hour, tzinfo=UTC)
            for region in regions:
                lines = files.setdefault(folder / at.strftime(name.format(region)), [head])
                lines.append(row.format(at=at, r=region, n=hour + 1, since=at.timestamp()))
    for place, lines in files.items():
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text("\n".join(lines), encoding="utf-8")
    return folder


def meaning(found, zone="UTC"):
    """Whether stamps are instants, ends of steps, and the files' days those of UTC."""
    return found.meanings(zone, found.step_minutes)[0]


@pytest.mark.parametrize(
    ("zone", "name", "time", "row"),
    [
        ("Europe/Paris", DAILY, "HourUTC", CLOCK),
        ("Europe/Paris", "%Y.csv", "HourUTC", CLOCK),
        ("UTC", "all.csv", "hour_ending", CLOCK),
        ("Europe/Paris", DAILY, "hour_ending", CLOCK),
        ("UTC", "all.csv", "time", "{at:%Y-%m-%dT}{n:02}:00,{r},5"),
    ],
)
def test_names_of_columns_say_instants_and_ends_of_steps(tmp_path, zone, name, time, row):
    """Stamps alone fit the wall clock, and starts, as well: figures would be of other hours."""
    found = survey(write(tmp_path, name, f"{time},zone,mw", row), zone)
    assert meaning(found, zone) == ((True, False, True) if "UTC" in time else (False, True, False))
    assert found.path == (f"{{date:{name[:-4]}}}.csv" if "UTC" in time else "*.csv")


@pytest.mark.parametrize(
    ("head", "row", "columns", "written"),
    [
        ("created_at,end,start,zone,mw", "{at:%F %T},{at:%F %T},{at:%F %T},{r},5", "start", None),
        ("Date,Hour,zone,mw", "{at:%F},{at.hour},{r},5", "Date,Hour", "%Y-%m-%d %H"),
        ("Datum;Anfang;Ende;zone;mw", "{at:%d.%m.%Y};{at:%H:%M};{at:%H:%M};{r};5", "Datum,Anfang",
         "%d.%m.%Y %H:%M"),
        ("Date_Time,Day,Time,zone,mw", "\"{at:%B %d, %Y %I:%M:%S %p}\",{at:%A},{at.hour},{r},5",
         "Date_Time", "%b %d, %Y %I:%M:%S %p"),
        ("MTU (CET/CEST),zone,mw", "{at:%d.%m.%Y %H:%M} - {at:%d.%m.%Y %H:%M},{r},5", "MTU (CET/CEST)",
         "%d.%m.%Y %H:%M"),
        ("ts,zone,mw", "{at:%s},{r},5", "ts", "epoch"),
        ("Market Day,HourEnding,zone,mw", "{at:%m/%d/%Y},{at.hour},{r},5", "Market Day,HourEnding",
         "%m/%d/%Y %H"),
        ("timestamp,year,month,day,zone,mw", "{at:%Y-%m-%dT%H:%M},{at.year},{at.month},{at.day},{r},5",
         "timestamp", None),
        ("hour,day,month,year,zone,mw", "{at.hour},{at.day},{at.month},{at.year},{r},5",
         "year,month,day,hour", "%Y %m %d %H"),
        ("Datum;Uhrzeit;zone;mw", "{at:%d.%m.%Y};{at:%H:%M:%S};{r};5", "Datum,Uhrzeit", "%d.%m.%Y %H:%M:%S"),
        ("time,zone,mw", "{at:%Y%m%d%H},{r},5", "time", "%Y%m%d%H"),
        ("time,zone,mw", "{at:%d.%m.%Y %H.%M},{r},5", "time", "%d.%m.%Y %H.%M"),
        ("SETTLEMENTDATE,zone,mw", "{at:%Y/%m/%d %H:%M},{r},5", "SETTLEMENTDATE", "%Y/%m/%d %H:%M"),
    ],
)  # fmt: skip
def test_columns_of_time_are_those_that_can_be_read(tmp_path, head, row, columns, written):
    found = survey(write(tmp_path, DAILY, head, row), "UTC")
    assert (found.roles.timestamp, found.stamps.written) == (tuple(columns.split(",")), written)
    assert (found.step_minutes, found.regions) == (60, ("north", "south"))
    assert (found.roles.customer, found.roles.period_number) == (None, None)


@pytest.mark.parametrize(
    ("head", "row", "named", "refused"),
    [
        ("time,zone,load_area,mw", "RTO,{r}", {}, ""),
        ("time,zone,direction,mw", "{r},import{n}", {}, "a region have several rows: keep those of one kind"),
        ("time,zone,customer_id,flow,kwh", "{r},c1,out{n}", {}, "a customer have several rows: keep those"),
        ("time,zone,LCLid,kwh", "{r},M{n}", {}, "customer=COLUMN the column that tells them apart; other"),
        ("time,zone,LCLid,kwh", "{r},M{n}", {"customer": "LCLid"}, ""),
        ("time,zone,revision,mw", "{r},{n}", {}, ""),
        ("time,zone,mw,mw", "{r},7", {}, "has several columns 'mw': rename all but one"),
        ("time,zone,KWH/hh (per half hour),price", "{r},7", {}, ""),
        ("当日,地区,負荷", "{r}", {"timestamp": "当日", "region": "地区"}, ""),
    ],
)
def test_a_step_has_one_row_of_one_column(tmp_path, head, row, named, refused):
    """Of several rows and columns the first one counted."""
    both = dict.fromkeys(row.replace("{n}", number) for number in "12")
    write(tmp_path, DAILY, head, "\n".join(f"{{at:%Y-%m-%dT%H:%MZ}},{one},5" for one in both))
    if not refused:
        assert survey(tmp_path, "UTC", named).regions == ("north", "south")
    else:
        with pytest.raises(DumpError, match=re.escape(refused)):
            survey(tmp_path, "UTC", named)


def test_the_hours_of_a_day_may_be_numbers_and_its_clock_apart(tmp_path):
    write(tmp_path, DAILY, "Tag,Stunde,zone,mw", "{at:%Y-%m-%d},{n},{r},5")
    by_number = survey(tmp_path, "UTC", {"timestamp": "Tag", "period_number": "Stunde"})
    assert (by_number.roles.period_number, by_number.step_minutes) == ("Stunde", 60)
    by_clock = survey(tmp_path, "UTC", {"timestamp": "Tag", "clock": "Stunde"})
    assert (by_clock.roles.timestamp, meaning(by_clock)) == (("Tag", "Stunde"), (False, True, False))
    assert "begin again with --column period_number=Stunde" in next(by_clock.doubts())


def test_a_day_on_which_the_clock_changes_says_less_than_others(tmp_path):
    """Its hours 1 to 23 fit starts as well as ends."""
    days = [date(2024, 3, 29), date(2024, 3, 30), date(2024, 3, 31)]
    write(tmp_path, row=CLOCK, days=days)
    assert survey(tmp_path, "Europe/Paris").day == days[1]
    assert survey(tmp_path, "UTC").day == days[2]


@pytest.mark.parametrize("late", ["30", "00"])
def test_stamps_that_are_no_starts_of_steps_are_refused(tmp_path, late):
    write(tmp_path, "%Y-%m.csv", row=f"{{at:%Y-%m-%dT%H}}:{late}Z,{{r}},5")
    sound, other = ("UTC", "Asia/Kolkata") if late == "00" else ("Asia/Kolkata", "UTC")
    survey(tmp_path, sound).check_starts(sound, in_utc=True)
    with pytest.raises(DumpError, match="lie mostly 0:30:00 after the starts of steps of 60 minutes in"):
        survey(tmp_path, other).check_starts(other, in_utc=True)


def test_a_column_that_another_region_names_otherwise_is_refused(tmp_path):
    for region in ("BE", "FR"):
        write(tmp_path, "{}_%Y.csv", f"time,load {region}", ONLY, regions=(region,))
    with pytest.raises(DumpError, match=r"has no column 'load BE', which .* has: give it the same name"):
        survey(tmp_path, "UTC")


def test_regions_of_the_newest_files_are_leaves(tmp_path):
    days = [date(2024, 1, 1) + timedelta(days=number) for number in range(60)]
    write(tmp_path, days=days[:-1], regions=("north",))
    write(tmp_path, days=days[-1:], regions=("late",))
    assert survey(tmp_path, "UTC").regions == ("late", "north")


@pytest.mark.parametrize(("minutes", "n_steps"), [(60, 24), (30, 48), (30, 50), (15, 96), (5, 288)])
def test_numbers_of_steps_say_how_long_one_is(tmp_path, minutes, n_steps):
    rows = [f"2024-01-15,{number},north,5" for number in range(1, n_steps + 1)]
    (tmp_path / "2024-01-15.csv").write_text("\n".join(["Date,Period,zone,mw", *rows]))
    found = survey(tmp_path, "UTC")
    assert (found.roles.period_number, found.step_minutes) == ("Period", minutes)


def test_one_customer_decides_no_step_and_no_day(tmp_path):
    """A meter whose clock is off has stamps of its own; those of one among many are left alone."""
    customers = [f"c{number}" for number in range(20)]
    row = "{at:%Y-%m-%dT%H:%MZ},{r},north,1"
    sound = survey(write(tmp_path, "all.csv", "time,customer_id,zone,kwh", row, regions=customers), "UTC")
    off = [f"1999-01-{1 + n // 60:02}T03:{n % 60:02}:07Z,odd,north,1" for n in range(900)]
    with (tmp_path / "all.csv").open("a") as file:
        file.write("\n".join(["", *off]))
    odd = survey(tmp_path, "UTC")
    assert sound.step_minutes == odd.step_minutes == 60
    assert sound.stamps.found.equals(odd.stamps.found)
    assert (sound.first, sound.last) == (odd.first, odd.last)


@pytest.mark.parametrize(
    ("head", "row", "message"),
    [
        ("date,county,cases", "{week},{r},31337.5", "no usual distance that divides a day"),
        ("at,zone,kw", "{at:%F %H}:17:{at:%H},{r},31337.5", "no usual distance that divides a day"),
        ("date,zone," + ",".join(f"HE{n:02}" for n in range(1, 25)), "{at:%F},{r}" + ",31337.5" * 24,
         "write a row for each region and step"),
        ("started_at,ended_at,start_station_name,lat,lng,fare,tip", "{at:%F %T},{at:%F %T},{r},1,1,31337.5,1",
         "where each row is a trip or an event, write their number"),
    ],
)  # fmt: skip
def test_what_is_no_series_of_a_day_is_refused_with_what_to_write(tmp_path, head, row, message):
    if "{week}" in row:
        weeks = [f"{DAYS[0] + timedelta(days=7 * number)},a,31337.5" for number in range(72)]
        (tmp_path / "all.csv").write_text("\n".join([head, *weeks]))
    else:
        write(tmp_path, "all.csv", head, row)
    with pytest.raises(DumpError, match=re.escape(message)) as refused:
        _ = survey(tmp_path, "UTC").step_minutes
    assert "31337" not in str(refused.value)


@pytest.mark.parametrize("name", ["data ({0}).csv", "%G-W%V.csv", "load_{1}.csv"])
def test_names_that_are_no_days_and_no_regions_are_left_alone(tmp_path, name):
    days = [date(2024, 12, 23) + timedelta(days=number) for number in range(21)]
    for number, week in enumerate((days[:7], days[7:14], days[14:])):
        write(tmp_path, name.replace("{0}", f"{number}").replace("{1}", f"{week[0]:%Y%m%d}"), days=week)
    found = survey(tmp_path, "UTC")
    assert (found.regions, len(found.stamps.found)) == (("north", "south"), 7 * 24)
    assert found.first <= days[0] < days[-1] <= found.last
    assert meaning(found) == (True, False, False)
    assert "{region}" not in str(found.path)


@pytest.mark.parametrize("name", ["load_{}_%d%b%Y.csv", "%G-W%V/{}.%y%j.csv", "{}_%s.csv"])
def test_weeks_names_of_months_and_times_that_are_not_read_are_no_regions(tmp_path, name):
    write(tmp_path, name, "time,mw", ONLY, [*DAYS, date(2024, 1, 25)])
    said = "times in a way that is not read" if "%s" in name else "weeks or names of months"
    with pytest.raises(DumpError, match=f"say {said}: name the files by dates"):
        survey(tmp_path, "UTC")


def test_folders_of_each_day_are_regions_if_they_are_named_as_weeks_are(tmp_path):
    days = [date(2024, 1, 18 + number) for number in range(8)]
    found = survey(write(tmp_path, "{}/%Y-%m-%d.csv", "time,mw", ONLY, days, ("W01", "W02")), "UTC")
    assert (found.path, found.regions) == ("{region}/{date:%Y-%m-%d}.csv", ("W01", "W02"))


def test_the_first_day_is_one_of_every_region(tmp_path):
    for region, days in (("north", DAYS), ("south", DAYS[2:])):
        write(tmp_path, "{}/%Y-%m-%d.csv", "time,mw", ONLY, days, (region,))
    assert survey(tmp_path, "UTC").first == DAYS[2]


def test_names_of_files_distinguish_days_and_months(tmp_path):
    write(tmp_path, row="{at:%m/%d/%Y %H:%M},{r},5", days=[date(2024, 3, 9), date(2024, 3, 10)])
    assert survey(tmp_path, "UTC").stamps.written == "%m/%d/%Y %H:%M"


@pytest.mark.parametrize(
    ("name", "regions", "head", "words"),
    [
        (DAILY, ("north", "Total"), "time,zone,mw", "the region 'Total' is a leaf: if"),
        (DAILY, ("north",), "time,zone,index_kwh", "'index_kwh' seems to be a running total"),
        (DAILY, ("all",), "time,zone,mw", ""),
        ("{}/%Y-%m-%d/%H.csv", ("north", "south"), "time,meter_id,kwh", "without a file that comes late"),
        ("%Y-%m.csv", ("north", "south"), "time,zone,visitors", "where its rows come later"),
        (DAILY, ("north", "south"), "interval_end,zone,visitors", "even if its own file is missing"),
        (DAILY, ("north",), "time,zone,net_load_mw", "'net_load_mw' may be below 0"),
        ("household_{}.csv", ("0001", "0002"), "time,unused,mw", "each file seems to be of one household"),
        (DAILY, ("north", "south"), "time,zone,mw", ""),
    ],
)
def test_what_names_leave_open_is_said(tmp_path, name, regions, head, words):
    found = list(survey(write(tmp_path, name, head, regions=regions), "UTC").doubts())
    assert len(found) == bool(words)
    assert words in "".join(found)


@pytest.mark.parametrize(("first", "message"), [(0, "must begin at 1"), (1, "whole numbers or text")])
def test_numbers_of_steps_that_begin_at_0_and_regions_with_a_point_are_refused(tmp_path, first, message):
    rows = {"date": "2024-01-15", "period": [first, first + 1], "zone": [1.0, 2.0], "mw": 31337.5}
    pl.DataFrame(rows).write_parquet(tmp_path / "2024-01-15.parquet")
    with pytest.raises(DumpError, match=message):
        survey(tmp_path, "UTC")


def test_files_without_rows_notes_and_what_windows_and_office_leave_name_no_region(tmp_path):
    """A file without rows is one of its region: suppliers are to deliver each leaf's file every day."""
    empty = write(tmp_path / "empty", "{}/%Y-%m-%d.csv", "time,customer_id,kwh")
    (empty / "south/2024-01-16.csv").write_text("time,customer_id,kwh\n")
    (empty / "south/2024-01-17.csv").write_text("time,customer_id,kwh")
    noted = write(tmp_path / "noted", head="zone,time,mw", row="{r},{at:%Y-%m-%dT%H:%MZ},5")
    for file in noted.iterdir():
        head, _, rows = file.read_text().partition("\n")
        file.write_text(f"{head}\n-,-,MW\n{rows}\nSource: a supplier\n")
    for name in ("Thumbs.db", "desktop.ini", "~$load.xlsx", "._2024-01-15.csv", ".DS_Store"):
        (noted / name).write_bytes(b"\0")
    for folder in (empty, noted):
        assert survey(folder, "UTC").regions == ("north", "south")


def test_instants_of_a_parquet_file_go_before_its_other_times(tmp_path):
    local = [at.replace(tzinfo=None) for at in HOURS]
    times = {"loaded_at": HOURS, "local_time": local, "event_time": HOURS}
    pl.DataFrame({**times, "zone": "north", "mw": 1.0}).write_parquet(tmp_path / "2024-01-15.parquet")
    assert survey(tmp_path, "UTC").roles.timestamp == ("event_time",)


@pytest.mark.parametrize("written", ["%Y-%m-%d %H:%M", "%d/%m/%Y %H:%M", "%Y%m%d"])
def test_a_column_of_time_that_no_run_reads_of_a_parquet_file_is_refused(tmp_path, written):
    stamps = [at.strftime(written) for at in HOURS]
    times = [int(one) for one in stamps] if stamps[0].isdigit() else stamps
    rows = pl.DataFrame({"time": times, "zone": "north", "mw": 1.0})
    rows.write_parquet(tmp_path / "2024-01-15.parquet")
    with pytest.raises(DumpError, match="'time', must hold timestamps or seconds since 1970, and no text"):
        survey(tmp_path, "UTC")
    seconds = pl.Series([int(at.timestamp()) for at in HOURS])
    rows.with_columns(time=seconds).write_parquet(tmp_path / "2024-01-15.parquet")
    assert survey(tmp_path, "UTC").stamps.written == "epoch"


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("%Y/%m/%Y-%m-%d.csv", "{date:%Y}/{date:%m}/{date:%Y-%m-%d}.csv"),
        ("y%Y/load_%Y%m%d.csv", "y{date:%Y}/load_{date:%Y%m%d}.csv"),
        ("year=%Y/month=%-m/day=%-d/part-0.csv", "year={date:%Y}/month={date:%m}/day={date:%d}/*.csv"),
        ("v2/%Y-%m-%d.csv", "v2/{date:%Y-%m-%d}.csv"),
        ("load_%Y-%-m-%-d.csv", "load_{date:%Y-%m-%d}.csv"),
        ("PAX_%Y.%m.%d_T1.csv", "PAX_{date:%Y.%m.%d}_T1.csv"),
        ("%Y/%b/%Y%m%d.csv", "{date:%Y}/*/{date:%Y%m%d}.csv"),
        ("load_%m%d%Y.csv", "load_{date:%m%d%Y}.csv"),
        ("%m-%d-%Y.csv", "{date:%m-%d-%Y}.csv"),
        ("load_%d.%m.%Y.csv", "load_{date:%d.%m.%Y}.csv"),
        ("W01_%Y-%m-%d.csv", "W01_{date:%Y-%m-%d}.csv"),
        ("load_%Y%j.csv", "load_{date:%Y%j}.csv"),
        ("load_%y%m%d.csv", "load_{date:%y%m%d}.csv"),
        ("%Y/%m/%d/%H.csv", "{date:%Y}/{date:%m}/{date:%d}/*.csv"),
        ("%G-W%V/{}_%Y-%m-%d.csv", "*/{region}_{date:%Y-%m-%d}.csv"),
        ("{}_%Y-%m-%dT%H-00-00.csv", "{region}_{date:%Y-%m-%d}*.csv"),
        ("{}/%Y-%m-%dT%H:00Z.csv", "{region}/{date:%Y-%m-%d}*.csv"),
        ("%Y-%m-%d %H.00/{}.csv", "{date:%Y-%m-%d}*/{region}.csv"),
        ("%Y%m%d%H3000_{}.csv", "{date:%Y%m%d}*_{region}.csv"),
        ("%Y-%m-%d/%H/{}.csv", "{date:%Y-%m-%d}/*/{region}.csv"),
        ("{}_%Y-%m-%d_2024-01-25.csv", "{region}_{date:%Y-%m-%d}_*.csv"),
        ("{}.%Y.%m.csv", "{region}.{date:%Y.%m}.csv"),
        ("%Y%m01_csv/%Y%m%d{}.csv", "*_csv/{date:%Y%m%d}{region}.csv"),
        ("{}_%Y%m%d0000-%Y%m%d2359.csv", "{region}_{date:%Y%m%d}*-{date:%Y%m%d}*.csv"),
        ("region={}/dt=%Y%m%d/hr=%-H/part-0.csv", "region={region}/dt={date:%Y%m%d}/*/*.csv"),
    ],
)
def test_times_of_day_and_folders_of_the_month_are_those_of_any_and_no_regions(tmp_path, name, path):
    """All files so far may be of one month: those of the next lie elsewhere."""
    days = [date(2024, 1, number) for number in (8, 9, 14, 25)]
    head, row = ("time,mw", ONLY) if "{}" in name else ("time,zone,mw", INSTANT)
    found = survey(write(tmp_path, name, head, row, days), "UTC")
    assert (found.path, found.regions, found.step_minutes) == (path, ("north", "south"), 60)
    assert meaning(found) == (True, False, False)


def test_names_of_the_day_after_and_of_the_ends_of_steps_say_no_days(tmp_path):
    """The next day's file holds a day's rows, or its last step."""
    days = [date(2024, 1, 13), date(2024, 1, 14)]
    for day in days:
        write(tmp_path / "after", f"{{}}_{day + timedelta(days=1)}.csv", "time,mw", ONLY, [day])
    assert survey(tmp_path / "after", "UTC").path == "{region}_*.csv"
    write(tmp_path / "steps", "{}_%Y%m%d%H%M.csv", "time,mw", ONLY, [*days, date(2024, 1, 15)])
    for late in (tmp_path / "steps").glob("*_20240115*"):
        if "_202401150000" not in late.name:
            late.unlink()
    found = survey(tmp_path / "steps", "UTC")
    assert (found.path, meaning(found)) == ("{region}_{date:%Y%m%d}*.csv", (True, False, False))
    found = survey(tmp_path / "steps", "UTC", by_end=True)
    assert (found.path, found.step_minutes) == ("{region}_*.csv", 60)
    assert (True, True, False) in found.meanings("UTC", 60)


@pytest.mark.parametrize("name", ["mw_%Y%m%d_%H.csv", "%F/%H00/0.csv", "{}_%Y%m%d_%p.csv", "%Y/%j/mw.csv"])
def test_parts_of_a_day_or_a_year_are_no_regions(tmp_path, name):
    """Rows that are absent count as 0: each hour would be a leaf whose other hours are empty."""
    head = "time,kwh,zone,customer_id" if "mw" in name else "time,visits,zone"
    row = f"{ONLY},one" + ",c" * ("customer" in head)
    write(tmp_path, name, head, row, regions=("one",))
    with pytest.raises(DumpError, match=r"seem to say times.*or move them into folders region=NAME"):
        survey(tmp_path, "UTC")
    assert survey(tmp_path, "UTC", {"region": "zone"}).regions == ("one",)
    moved = write(tmp_path / "moved", "region=one/date=%Y-%m-%d/%H.csv", head, row, regions=("one",))
    assert survey(moved, "UTC").regions == ("one",)


def test_a_column_of_regions_is_named_where_names_of_files_say_the_leaves_of_customers(tmp_path):
    """A file may be of a customer, or of a partition of a log."""
    head, row = "time,zone,customer_id,kwh", "{at:%Y-%m-%dT%H:%MZ},z{r},c{r},5"
    found = survey(write(tmp_path, "{}_%Y-%m-%d.csv", head, row), "UTC")
    assert [one for one in found.doubts() if one.endswith('begin again with --column "region=zone"')]
    found = survey(tmp_path, "UTC", {"region": "zone"})
    assert (found.regions, "--column" in "".join(found.doubts())) == (("znorth", "zsouth"), False)


@pytest.mark.parametrize("order", ["%d-%m-%Y", "%m-%d-%Y"])
def test_days_and_months_of_names_up_to_the_12th_are_those_of_days_in_a_row(tmp_path, order):
    days = [date(2024, 2, number) for number in (1, 2, 3)]
    found = survey(write(tmp_path, f"{order}.csv", row=f"{{at:{order} %H:%M}},{{r}},5", days=days), "UTC")
    assert (found.path, found.stamps.written) == (f"{{date:{order}}}.csv", f"{order} %H:%M")
    for day in days[1:]:
        (tmp_path / f"{day:{order}}.csv").unlink()
    with pytest.raises(DumpError, match="days and months cannot be told apart in names of files"):
        survey(tmp_path, "UTC")


@pytest.mark.parametrize(
    "column", ["users", "devices", "active_users", "Verbrauch_kWh", "verbrauchKWh", "energykWh", "Last [kWh]"]
)
def test_a_unit_is_read_as_it_is_written_and_how_many_customers_there_are_is_no_customer(tmp_path, column):
    """One taken for a thousandth of it would hide a thousandth, or a thousand times, of a customer."""
    found = survey(write(tmp_path, head=f"time,building,{column}"), "UTC")
    roles, counts = found.roles, "Wh" not in column
    assert (roles.customer, roles.value, roles.counts) == (None, column, counts)
    assert counts or found.unit == "kwh"


@pytest.mark.parametrize(
    ("head", "row", "path"), [("time,mw", ONLY, "{region}"), ("time,mw,zone", f"{ONLY},z{{r}}", "*")]
)
def test_numbers_are_regions_where_no_column_has_them(tmp_path, head, row, path):
    write(tmp_path, "%Y-%m-%d/{}.csv", head, row, regions=("11", "24"))
    assert survey(tmp_path, "UTC").path == f"{{date:%Y-%m-%d}}/{path}.csv"
