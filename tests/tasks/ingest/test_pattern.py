"""Files whose paths a pattern of the configuration describes."""

import json
import os
import shutil
import tarfile
from datetime import date, datetime, timedelta
from hashlib import sha256
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from optstream.errors import DumpError
from optstream.stream import days_from
from tasks.config import load_settings
from tasks.config.pattern import path_pattern
from tasks.ingest import LateDumpError, days_with_dumps, discover
from tasks.ingest.arrivals import deliveries
from tasks.ingest.delta import present_files
from tests.tasks.conftest import DAY, NEXT, SmallStream

pytestmark = pytest.mark.slow
PARTITIONED = "date={date:%Y-%m-%d}/region={region}/*.parquet"
REAL = Path(__file__).parents[2] / "fixtures/delta-log.tar.xz"
"""The log that deltalake 1.6.6 leaves of 42 days, the second deleted: a checkpoint, three commits."""


def text_of(stream, day, regions=("",), last=None):
    """The rows of some days, with regions in a column `zone` where they are named."""
    rows = [
        f"{at:%Y-%m-%dT%H:%MZ},1.5,{region}"
        for day in days_from(day, last or day)
        for region in regions
        for at in stream.settings.calendar.utc_times(day)
    ]
    return "\n".join(["timestamp,load,zone", *rows])


def put(stream, place, text, marker="_SUCCESS"):
    """Write a file, or one for each region `{r}`; the paths."""
    places = dict.fromkeys(place.format(r=region) for region in ("84", "11"))
    files = [stream.settings.input_folder / one for one in places]
    for file in files:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    if marker:
        (stream.settings.input_folder / marker).touch()
    return files


PATTERNS = {
    "{region}/{date:%Y-%m-%d}.csv": "{r}/2025-01-15.csv",
    "date={date:%Y-%m-%d}/region={region}/*": "date=2025-01-15/region={r}/part-0.csv",
    "year={date:%Y}/month={date:%m}/day={date:%d}/{region}.csv": "year=2025/month=01/day=15/{r}.csv",
    "load_{region}_{date:%Y%m%d}.csv": "load_{r}_20250115.csv",
    "{date:%Y}/{date:%j}-{region}.csv": "2025/015-{r}.csv",
    "a folder/{date:%Y-%m}/{region}.csv": "a folder/2025-01/{r}.csv",
    "{date:%Y}_{region}.csv": "2025_{r}.csv",
    "year={date:%Y}/month={date:%m}/day={date:%d}/{region}.*": "year=2025/month=1/day=15/{r}.csv",
    "{utc:%Y-%m-%d}/{region}.csv": None,
}


def test_a_month_of_one_digit_takes_none_from_a_name_that_ends_in_a_number():
    pattern = path_pattern("{region}-{date:%m-%d-%y}*.csv")
    read = [pattern.match(0, name, {}) for name in ("plant-1-02-03-24 a.csv", "plant-2-3-24 a.csv")]
    assert [one["region"] for one in read] == ["plant-1", "plant"]
    assert [(one["m"], one["d"]) for one in read] == [("02", "03")] * 2


@pytest.mark.parametrize("pattern", PATTERNS)
def test_files_are_found_and_read_by_their_pattern(small, pattern):
    stream = small(marker=f"path = '{pattern}'")
    if (place := PATTERNS[pattern]) is not None:
        last = DAY if "%d" in pattern or "%j" in pattern else NEXT
        put(stream, place, text_of(stream, DAY, last=last))
    else:  # a day of UTC holds the last hour of one local day and most of the next
        text = text_of(stream, DAY - timedelta(days=1), last=NEXT).splitlines()
        for name in ("2025-01-14", "2025-01-15"):
            own = [one for one in text if one.startswith(("time", name))]
            put(stream, f"{name}/{{r}}.csv", "\n".join(own))
    assert (stream.verdict().units == 1500).all()
    assert DAY in days_with_dumps(stream.settings)
    assert isinstance(stream.found(date(2031, 1, 1)), LateDumpError)


def test_one_file_a_month_with_a_column_of_regions(small):
    stream = small(marker="path = '{date:%Y-%m}.csv'\nregion = 'zone'")
    last = date(2025, 1, 31)
    put(stream, "2025-01.csv", text_of(stream, date(2025, 1, 1), ("84", "11"), last=last))
    assert [one.error for one in stream.judge(date(2025, 1, 1), DAY, last)] == [None] * 3
    assert len(days_with_dumps(stream.settings)) == 31
    put(stream, "2025-01.csv", text_of(stream, date(2025, 1, 2), ("84", "11", "99"), last=DAY))
    first, second = stream.judge(date(2025, 1, 1), DAY)
    assert "must hold at least one row" in str(first.error)
    assert "must be a leaf of the hierarchy" in str(second.error)


@pytest.mark.parametrize("keys", ["missing_rows = 'zero'\n", ""])
def test_a_file_that_grows_has_the_days_that_were_over_when_it_changed(small, keys):
    """Its rows of a later day would be taken for zeros."""
    schema = "aggregated" if keys else "metered"
    stream = small(marker=f"{keys}path = '{{region}}_{{date:%Y-%m}}.csv'", schema=schema)
    changed = stream.settings.calendar.ends_at(DAY).timestamp()
    for file in put(stream, "{r}_2025-01.csv", ""):
        os.utime(file, (changed, changed))
    found = discover(stream.settings, [DAY, NEXT])
    assert not isinstance(found[DAY], DumpError)
    assert isinstance(found[NEXT], LateDumpError)
    assert f"was last changed before {NEXT} was over" in str(found[NEXT])


def renamed_from_the_next_day(stream, zone="Europe/Paris"):
    text = stream.settings.file.read_text().replace("Europe/Paris", zone)
    change = f"[[hierarchy.changes]]\nvalid_from = {NEXT}\nrenamed = {{ 11 = 'new' }}\n"
    stream.settings.file.write_text(f"{text}\n{change}")
    stream.settings = load_settings(stream.settings.file)
    return stream


def test_a_month_with_a_leaf_that_begins_or_ends_in_it_is_read(small):
    stream = renamed_from_the_next_day(small(marker="path = '{region}_{date:%Y-%m}.csv'"))
    for region, first, last in (("84", DAY, NEXT), ("11", DAY, DAY), ("new", NEXT, NEXT)):
        put(stream, f"{region}_2025-01.csv", text_of(stream, first, last=last))
    assert [one.error for one in stream.judge(DAY, NEXT)] == [None, None]
    put(stream, "other_2025-01.csv", text_of(stream, DAY))
    assert "'region=other' is not a leaf" in str(stream.found())


@pytest.mark.parametrize(("zone", "renamed"), [("Europe/Paris", 15), ("America/Lima", 16)])
def test_a_file_of_a_day_in_utc_may_be_of_a_leaf_of_the_local_day_before_or_after(small, zone, renamed):
    stream = renamed_from_the_next_day(small(marker="path = '{region}/{utc:%Y-%m-%d}.csv'"), zone)
    for region, first, n_days in (("84", 14, 4), ("11", renamed - 1, 2), ("new", renamed, 2)):
        for day in range(first, first + n_days):
            put(stream, f"{region}/2025-01-{day}.csv", "")
    for found in discover(stream.settings, [DAY, NEXT]).values():
        assert [len(own) for own in found.files] == [2, 2]


def test_a_year_that_goes_on_has_no_days_to_come(small):
    stream = small(marker="path = '{region}_{date:%Y}.csv'")
    today = stream.settings.local_day(datetime.now().astimezone())
    put(stream, f"84_{today.year}.csv", "timestamp,load\n")
    assert max(days_with_dumps(stream.settings), default=date.min) < today


def test_names_of_regions_may_be_percent_encoded(small, tmp_path):
    stream = small(marker="path = '{region}/{date:%Y-%m-%d}.csv'")
    for place in ("%38%34/2025-01-15.csv", "11/2025%2D01%2D15.csv"):
        put(stream, place, text_of(stream, DAY))
    assert stream.verdict().error is None


@pytest.mark.parametrize("marker", ["top", "one folder", "no folder"])
def test_the_marker_may_lie_in_any_folder_above(small, marker):
    stream = small(marker="path = '{region}/{date:%Y-%m-%d}.csv'")
    put(stream, "{r}/2025-01-15.csv", text_of(stream, DAY), marker="")
    top = stream.settings.input_folder
    if marker != "no folder":
        (top / ("_SUCCESS" if marker == "top" else "84/_SUCCESS")).touch()
    found = stream.found()
    if marker == "top":
        assert [len(own) for own in found.files] == [1, 1]
    else:
        assert isinstance(found, LateDumpError)
        first = "11" if marker == "one folder" else "84"
        assert f"the marker _SUCCESS of {first}/2025-01-15.csv is absent" in str(found)


def test_a_file_list_counts_in_its_own_folder_which_leads_nowhere_else(small, tmp_path):
    stream = small(marker="path = '{date:%Y-%m-%d}/{region}.csv'\nfile_list = '_FILES'")
    put(stream, "2025-01-15/{r}.csv", text_of(stream, DAY), marker="2025-01-15/_FILES")
    folder = stream.settings.input_folder / "2025-01-15"
    (folder / "_FILES").write_text("84.csv\n")
    assert "'11.csv' is not in the file list" in str(stream.found())
    (folder / "_FILES").write_text("84.csv\n11.csv\n")
    assert stream.verdict().error is None
    (folder / "_FILES").write_text("84.csv\n11.csv\n99.csv\n")
    assert "'region=99' is not a leaf" in str(stream.found())
    folder.symlink_to(folder.rename(tmp_path / "elsewhere"))
    assert "leads outside the input folder" in str(stream.found())


def test_a_file_list_may_be_of_several_days(small):
    stream = small(marker="path = '{region}/{date:%Y-%m-%d}.csv'\nfile_list = '_FILES'")
    for region in ("84", "11"):
        for day in (DAY, NEXT):
            put(stream, f"{region}/{day}.csv", text_of(stream, day), marker=f"{region}/_FILES")
        (stream.settings.input_folder / region / "_FILES").write_text(f"{DAY}.csv\n{NEXT}.csv\n")
    assert stream.verdict().error is None
    for region in ("84", "11"):  # another day's file is gone, or not yet listed
        (stream.settings.input_folder / region / "_FILES").write_text(f"2025-01-14.csv\n{DAY}.csv\n")
    assert stream.verdict().error is None
    waiting = stream.found(NEXT)
    assert isinstance(waiting, LateDumpError)
    assert f"84/'{NEXT}.csv' is not in the file list" in str(waiting)
    (stream.settings.input_folder / "84" / "_FILES").write_text(f"{DAY}.csv\n{NEXT}.csv\nnotes.txt\n")
    found = stream.found()
    assert type(found) is DumpError
    assert "84/_FILES must hold plain names of data files only" in str(found)


def test_a_file_list_above_its_files_has_their_paths(small):
    stream = small(marker="path = '{region}/{date:%Y-%m-%d}.csv'\nfile_list = '_FILES'")
    files = put(stream, f"{{r}}/{DAY}.csv", text_of(stream, DAY))
    hashes = {file.parent.name: sha256(file.read_bytes()).hexdigest() for file in files}
    place = stream.settings.input_folder / "_FILES"
    lines = [f"{tag} *./{region}/{DAY}.csv" for region, tag in hashes.items()]
    place.write_text("\r\n".join(lines), "utf-8-sig")
    assert stream.verdict().error is None
    place.write_text(f"{hashes['84']}  84/{DAY}.csv\n{'0' * 64}  11/{DAY}.csv\n")
    assert "SHA-256" in str(stream.verdict().error)
    for wrong in (f"{DAY}.csv", f"84/../11/{DAY}.csv", f"/84/{DAY}.csv"):
        place.write_text(f"{wrong}\n")
        assert "the file list _FILES must hold plain names" in str(stream.found())


@pytest.mark.parametrize("place", ["{part}/{{r}}_{day}.csv", "{part}/{{r}}/{day}/x.csv"])
@pytest.mark.parametrize("above", [True, False])
def test_folders_with_parts_of_a_dump_have_a_list_each_or_one_above(small, place, above):
    path = place.replace("x.csv", "*").format(part="*", day="{date:%Y-%m-%d}").replace("{r}", "{region}")
    stream = small(marker=f"path = '{path}'\nfile_list = '_FILES'")
    top, places = stream.settings.input_folder, [place.format(part=part, day=DAY) for part in ("a", "b")]
    files = [file for one in places for file in put(stream, one, text_of(stream, DAY), marker="")]
    for folder in [top] if above else [top / "a", top / "b"]:
        names = [str(file.relative_to(folder)) for file in files if file.is_relative_to(folder)]
        (folder / "_FILES").write_text("\n".join(names))
    for file in files:
        os.utime(file, (1, 1))
    assert [len(own) for own in stream.found().files] == [2, 2]
    files[3].rename(files[3].with_name("_hidden"))
    lacking = stream.found()
    assert isinstance(lacking, LateDumpError)
    assert f"{files[3].name!r} is listed but absent" in str(lacking)


def test_a_file_newer_than_the_marker_of_many_days_rests_for_five_minutes(small):
    stream = small(marker="path = '{region}/{date:%Y-%m-%d}.csv'")
    files = put(stream, "{r}/2025-01-15.csv", text_of(stream, DAY))
    os.utime(stream.settings.input_folder / "_SUCCESS", (0, 0))
    found = stream.found()
    assert isinstance(found, LateDumpError)
    assert "may still be written, and has no marker since" in str(found)
    for file in files:
        os.utime(file, (1, 1))
    assert stream.verdict().error is None


@pytest.mark.parametrize(
    ("place", "stops", "message"),
    [
        ("notes.csv", {DAY, NEXT}, "'notes.csv' does not fit input.path"),
        ("2025-01-15/84.xls", {DAY}, "2025-01-15/'84.xls' does not fit input.path"),
        ("2025-01-16/85.csv", {NEXT}, "is not a leaf of the hierarchy"),
        ("2025-01-15/_delta_log/0.json", {DAY}, "is the log of a table"),
        ("2025-13-15/84.csv", {DAY, NEXT}, "'2025-13-15' does not fit"),
        (".hidden/84.csv", set(), ""),
        ("_old/2025-01-15/84.csv", set(), ""),
    ],
)
def test_a_name_that_does_not_fit_stops_the_days_of_its_folder(small, place, stops, message):
    stream = small(marker="path = '{date:%Y-%m-%d}/{region}.csv'")
    for day in (DAY, NEXT):
        put(stream, f"{day}/{{r}}.csv", text_of(stream, day))
    put(stream, place, "x")
    found = discover(stream.settings, [DAY, NEXT])
    stopped = {day for day, one in found.items() if isinstance(one, DumpError)}
    assert stopped == stops
    assert all(message in str(found[day]) for day in stopped)


def commit_of(folder, number):
    return folder / f"_delta_log/{number:020}.json"


def commit(folder, number, *actions):
    commit_of(folder, number).parent.mkdir(parents=True, exist_ok=True)
    commit_of(folder, number).write_text("\n".join(json.dumps(one) for one in actions))


def table(stream, **protocol):
    """Two files of today, one of them removed, and a stray that the table does not have."""
    folder, added = stream.settings.input_folder, []
    for region in ("84", "11"):
        for name, value in (("old", 9.0), ("new", 1.5)):
            place = f"date=2025-01-15/region={region}/{name}.parquet"
            (folder / place).parent.mkdir(parents=True, exist_ok=True)
            stream.rows(value).write_parquet(folder / place)
            os.utime(folder / place, (1, 1))
            added.append({"add": {"path": place.replace("-", "%2D"), "stats": "secret"}})
    shutil.copy(folder / place, folder / "date=2025-01-15/region=11/never committed.parquet")
    commit(folder, 0, {"protocol": {"minReaderVersion": 1, **protocol}}, added[0], added[2])
    removed = [{"remove": {"path": one["add"]["path"]}} for one in (added[0], added[2])]
    commit(folder, 1, *removed, added[1], added[3])
    return folder


@pytest.mark.parametrize("keys", ["", "marker = ''", "[[input.changes]]\nvalid_from = 2026-01-01\nmarker=''"])
def test_a_delta_table_has_the_files_that_its_log_says_and_needs_no_marker(small, keys):
    stream = small(marker=f"path = '{PARTITIONED}'\n{keys}")
    folder = table(stream)
    assert (stream.verdict().units == 1500).all()
    assert days_with_dumps(stream.settings) == {DAY}
    assert isinstance(stream.found(NEXT), LateDumpError)
    named = {name for _, names in deliveries(stream.settings) for name in names()}
    assert named == {"new.parquet"} | ({"_SUCCESS"} if keys != "marker = ''" else set())
    (folder / "date=2025-01-15/region=84/new.parquet").unlink()
    assert "84/'new.parquet' must be a file" in str(stream.found())


def test_a_table_of_42_days_whose_old_commits_were_cleaned_up_is_read(small):
    stream = small(marker=f"path = '{PARTITIONED}'")
    folder = stream.settings.input_folder
    with tarfile.open(REAL) as log:
        log.extractall(folder, filter="data")
    there = days_with_dumps(stream.settings)
    assert len(there) == 41
    assert {DAY, date(2024, 12, 5)} < there
    assert date(2024, 12, 6) not in there
    log = {one.name: lambda _, file=one: file.read_bytes() for one in (folder / "_delta_log").iterdir()}
    for place in present_files(log):
        if place.startswith(f"date={DAY}"):
            (folder / place).parent.mkdir(parents=True)
            stream.rows(1.5).write_parquet(folder / place)
    assert (stream.verdict().units == 1500).all()


def checkpoint(folder, *rows):
    """A checkpoint of these rows in place of all commits."""
    for one in (folder / "_delta_log").iterdir():
        one.unlink()
    path = folder / f"_delta_log/{1:020}.checkpoint.parquet"
    pq.write_table(pa.Table.from_pylist(list(rows)), path)
    return path


def test_a_planned_revision_of_a_delta_table_is_plain_files(small, load_text):
    text = small(marker=f"path = '{PARTITIONED}'").settings.file.read_text()
    stream = SmallStream(load_text(text, ('restatement_share = "0"', "revisions = 1")))
    table(stream)
    stream.settings = stream.settings.delivered(1)
    for region in ("84", "11"):
        folder = stream.settings.input_folder / f"date=2025-01-15/region={region}"
        folder.mkdir(parents=True)
        stream.rows(2.5).write_parquet(folder / "a.parquet")
        (folder / "_SUCCESS").touch()
    assert (stream.verdict().units == 2500).all()


DELETED = {"add": {"path": "x", "deletionVector": {"storageType": "u"}}}
NEWER = {"protocol": {"readerFeatures": ["new"]}}
RENAMED = {"metaData": {"configuration": {"delta.columnMapping.mode": "name"}}}
NO_COMMIT = "cannot be read as a commit"
SPOILT = [
    (lambda folder: commit_of(folder, 0).unlink(), (), "has not every commit from the first on"),
    (lambda folder: commit_of(folder, 1).write_text("{"), (), NO_COMMIT),
    (commit, (2, {"commitInfo": "x" * 2**24}, {"remove": {"path": "x"}}), "must be at most 16 MiB; deliver"),
    (commit, (2, {"add": {"path": "../x.parquet"}}), "files outside the table's folder"),
    (commit, (2, {"add": {"path": "x.parquet"}}), "of the table does not fit input.path"),
    (commit, (2, DELETED), "has deletion vectors; deliver its present rows as plain Parquet files"),
    (commit, (2, RENAMED), "renamed columns or features"),
    (commit, (2, NEWER), "renamed columns"),
    (checkpoint, ({"sidecar": {"path": "x"}},), "features of its own"),
    (checkpoint, ({"add": {"path": "/x.parquet"}},), "outside the table's folder"),
    (checkpoint, (DELETED,), "has deletion vectors"),
    (checkpoint, (NEWER,), "renamed columns"),
    (checkpoint, ({"add": {"path": "x"}}, {"add": {"path": None}}), NO_COMMIT),
    (lambda folder: checkpoint(folder, DELETED).write_bytes(b"PAR1 secret"), (), NO_COMMIT),
    (lambda folder: (checkpoint(folder, NEWER), commit(folder, 3)), (), "or from a whole checkpoint"),
]


@pytest.mark.parametrize(("spoil", "given", "message"), SPOILT)
def test_a_table_whose_files_are_not_its_rows_is_refused_by_name(small, spoil, given, message):
    stream = small(marker=f"path = '{PARTITIONED}'")
    spoil(table(stream), *given)
    found = stream.found()
    assert type(found) is DumpError
    assert message in str(found)
    assert "secret" not in str(found)
