import os
import shutil
import socket
import struct
import time
from hashlib import sha256

import fsspec
import polars as pl
import pyarrow.parquet as pq
import pytest

from optstream.errors import DumpError
from optstream.measurement.sums import open_private_period
from tasks.config import load_settings
from tasks.ingest import LateDumpError, ingest
from tasks.ingest.sandbox import read_apart
from tasks.release.lineage import hashing
from tests.tasks.conftest import DAY, NEXT, SmallStream
from tests.tasks.ingest.test_pattern import PARTITIONED, table

FIRST, OTHER = f"region=84/date={DAY}", f"region=11/date={DAY}"
NO_FIT = "does not fit input.path, 'region={region}/date={date:%Y-%m-%d}/*'"
NO_LEAF = " is not a leaf of the hierarchy of that day, which has '84', '11'; add it to"
LOGS = ("_delta_log", "_DELTA_LOG", "_spark_metadata", ".hoodie", ".hoodie_partition_metadata", "metadata")
XLS = (
    f"{DAY}: {FIRST}/'part-0.txt' {NO_FIT} with files that end in .parquet, .csv, .csv.gz, .tsv, .tsv.gz, "
    '.zip or .xls; correct one of them, move it away, or begin its name with "_", which hides it (and so f'
)


@pytest.fixture
def stream(small):
    made = small()
    made.fill(1.0)
    return made


def assert_stopped(stream, *message, kind=DumpError, day=DAY):
    error = stream.found(day)
    assert type(error) is kind
    for text in message:
        assert text in str(error)
    return str(error)


def test_hidden_files_are_left_alone(stream):
    hidden = (".part-0.parquet.crc", "_metadata", "_common_metadata", "_started", "_metadata.parquet")
    for name in (*hidden, "lost+found"):
        (stream.folder("84") / name).write_text("x")
    for folder in (stream.settings.input_folder, stream.folder("84").parent, stream.folder("84")):
        (folder / "_temporary").mkdir()
    assert [len(leaf) for leaf in stream.found().files] == [1, 1]


@pytest.mark.parametrize("above", [0, 1, 2])
def test_whatever_is_not_hidden_counts_or_stops_the_day(stream, above):
    folder = [stream.folder("84"), *stream.folder("84").parents][above]
    for name in (
        *("part-1.PARQUET", "part-1.Parquet", "part-1.parq", "part-1.pq", "000001_0", "part-1", "x.csv.bz2"),
        *("x.parquet.tmp", "x.parquet.gz", "notes.txt", "revision=1/part-1.pq", "hour=05/part-0.parquet"),
    ):
        (folder / name).parent.mkdir(exist_ok=True)
        shutil.copy(stream.folder("84") / "part-0.parquet", folder / name)
        assert_stopped(stream, f"{name.split('/')[0]!r}")
        (stream.folder("84") / "_SUCCESS").unlink()
        assert type(stream.found()) is (DumpError if above else LateDumpError)
        (stream.folder("84") / "_SUCCESS").touch()
        (folder / name).unlink()
        if "/" in name:
            (folder / name).parent.rmdir()
    assert not isinstance(stream.found(), Exception)


@pytest.mark.parametrize(
    ("place", "message"),
    [
        *((f"region=84/{name}/", f"region=84/{name!r} {NO_FIT}")
          for name in ("date=2025-1-16", "date=20250116", "Date=2025-01-16", "date=2025-01-16.tmp", "a.pq")),
        *((name, name.rpartition("/")[2])
          for name in ("region=84.parquet", "region=99/part-0.parquet", "region=99/2025-01-15")),
        *((f"region={one}/date={DAY}/", repr(f"region={one}") + NO_LEAF)  # no escaped name is unescaped
          for one in ("99", "FR", "..", "..%2Fx", "%38%34", "84%00", ".", " ", "84 ", "84\n2025", "\udcff")),
        *((f"{above}/{log}/", f"{log!r} is the log of a table")
          for above in (".", "region=84", "region=84/date=2025-01-15")
          for log in (*LOGS, "_started_1", "_committed_2837", "_committed_vacuum5")),
    ],
)  # fmt: skip
def test_odd_folders_unknown_regions_and_logs_of_tables_stop_the_days(stream, place, message):
    path = stream.settings.input_folder / place
    path.mkdir(parents=True) if place.endswith("/") else (path.parent.mkdir(exist_ok=True), path.touch())
    assert assert_stopped(stream, message).isprintable()


@pytest.mark.parametrize("place", ["region=84", FIRST, "region=99", f"date={DAY}"])
@pytest.mark.parametrize("is_link", [True, False])
def test_a_file_or_a_link_to_nowhere_in_place_of_a_folder_is_refused_not_waited_for(small, place, is_link):
    stream = small(marker="region = 'zone'" * place.startswith("date"))
    path = stream.settings.input_folder / place
    path.parent.mkdir(parents=True)
    path.symlink_to("nowhere") if is_link else path.touch()
    assert_stopped(stream, f"'{place}' must be a folder that can be listed; permit it, mend its link")


@pytest.mark.parametrize(
    ("folder", "log"), [("x=1", "_delta_log"), ("x=1", ".hoodie"), ("data", "metadata/v1.metadata.json")]
)
def test_a_part_of_a_table_is_refused_too(small, folder, log):
    file = small().settings.file
    file.write_text(file.read_text().replace('folder = "dumps"', f'folder = "table/{folder}"'))
    stream = SmallStream(load_settings(file))
    stream.fill(1.0)
    assert not isinstance(stream.found(), Exception)
    (stream.settings.input_folder.parent / log).mkdir(parents=True)
    assert_stopped(stream, "is the log of a table")
    (file.parent / "link").symlink_to(stream.settings.input_folder)
    file.write_text(file.read_text().replace(f"table/{folder}", "link"))
    assert_stopped(SmallStream(load_settings(file)), "is the log of a table")


@pytest.mark.parametrize("what", ["folder", "dangling link", "loop", "pipe", "socket", "link outside"])
@pytest.mark.parametrize("name", ["_SUCCESS", "part-0.parquet"])
def test_markers_and_dumps_are_files(stream, name, what, tmp_path_factory, monkeypatch):
    folder, away = stream.folder("84"), tmp_path_factory.mktemp("away") / "file"
    (folder / name).rename(away)
    monkeypatch.chdir(folder)
    if what == "folder":
        (folder / name).mkdir()
    elif what == "pipe":
        os.mkfifo(name)
    elif what == "socket":
        with socket.socket(socket.AF_UNIX) as end:
            end.bind(name)
    else:
        target = {"dangling link": "absent", "loop": name}.get(what, away)
        (folder / name).symlink_to(target)
    assert_stopped(stream, "leads outside" if "outside" in what else "must be a file; replace it", name)


@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("is_dictionary", [True, False])
def test_pages_are_compared_with_their_checksums(stream, version, is_dictionary):
    path = stream.folder("84") / "part-0.parquet"
    table = pq.read_table(path, partitioning=None)
    how = {"compression": "none", "use_dictionary": is_dictionary, "data_page_version": version}
    pq.write_table(table, path, write_page_checksum=True, **how)
    assert ingest(stream.settings, [stream.found()])[0].period is not None
    group = pq.ParquetFile(path).metadata.row_group(0)
    value = next(one for one in map(group.column, range(group.num_columns)) if one.path_in_schema == "load")
    data = bytearray(path.read_bytes())
    start = value.dictionary_page_offset if is_dictionary else value.data_page_offset
    # the header of a data page, which no checksum covers, has the value, too
    find = data.index if is_dictionary else data.rindex
    data[find(struct.pack("<d", 1.0), start, start + value.total_compressed_size) + 6] ^= 1
    path.write_bytes(data)
    assert ingest(stream.settings, [stream.found()])[0].metrics["file_fault"][0] == "damaged_page"
    pq.write_table(table, path, **how)
    assert ingest(stream.settings, [stream.found()])[0].period is not None


def test_a_day_of_too_many_bytes_is_refused_unread(stream):
    first, second = (stream.folder(region) / "part-0.parquet" for region in ("84", "11"))
    os.truncate(first, 2**36)
    os.truncate(second, 2**36)
    assert not isinstance(stream.found(), Exception)
    os.truncate(second, 2**36 + 1)
    assert_stopped(stream, "region=11/date=2025-01-15/'part-0.parquet' has 64.0 of the day's 128.0 GiB")


def test_hashing_ends_with_the_time_limit_and_a_broken_dump_is_not_hashed(stream):
    path = stream.folder("84") / "part-0.parquet"
    os.truncate(path, 2**36)  # a minute of hashing, or several
    dump = stream.found()
    assert hashing(stream.settings, [dump])(dump, False) == {}
    limit = stream.settings.input.model_copy(update={"time_limit": "0min"})
    inputs_of = hashing(stream.settings.model_copy(update={"input": limit}), [dump])
    with pytest.raises(DumpError, match=r"took longer than input\.time_limit"):
        inputs_of(dump, True)
    path.unlink()
    os.mkfifo(path)  # since it was found
    assert len(hashing(stream.settings, [dump])(dump, True)) == 2


def test_a_list_may_give_the_hash_of_each_file(small):
    stream = small(marker='file_list = "_FILES"')
    stream.fill(1.0)
    for region in ("84", "11"):
        tag = sha256((stream.folder(region) / "part-0.parquet").read_bytes()).hexdigest()
        (stream.folder(region) / "_FILES").write_text(f"{tag}  part-0.parquet\n")
    dump = stream.found()
    assert len(dump.hashes) == 2
    assert ingest(stream.settings, [dump])[0].period is not None
    assert read_apart(stream.settings, [dump])[0].period is not None
    (stream.folder("84") / "_FILES").write_text(f"{'0' * 64} *part-0.parquet\n")
    assert read_apart(stream.settings, [stream.found()])[0].metrics["file_fault"][0] == "other_hash"
    stream.write("84", stream.rows(1.0), name="part-1.parquet")
    (stream.folder("84") / "_FILES").write_text(f"{'0' * 64}  part-0.parquet\npart-1.parquet\n")
    assert_stopped(stream, "must have the SHA-256 of every file, or of none")


@pytest.mark.parametrize(
    ("change", "kind", "message"),
    [
        (lambda a, b: shutil.rmtree(a.parents[1]), LateDumpError, "the input folder 'dumps' does not exist"),
        (lambda a, b: shutil.rmtree(b), LateDumpError, f"2025-01-15: the dump {OTHER} is missing"),
        (lambda a, b: (b / "_SUCCESS").unlink(), LateDumpError, f"marker _SUCCESS of {OTHER} is abs"),
        (lambda a, b: (a / "part-0.parquet").unlink(), DumpError, f"{FIRST} is marked complete but"),
        (lambda a, b: (a / "x.parquet").mkdir(), DumpError, f"{FIRST}/'x.parquet' must be a file"),
        (lambda *both: [(one / "part-0.parquet").rename(one / "part-0.txt") for one in both], DumpError, XLS),
    ],
    ids=["no input", "no region", "no marker", "no file", "a folder as a file", "another format, once"],
)  # fmt: skip
def test_what_is_missing_may_still_arrive_and_what_is_odd_is_refused(stream, change, kind, message):
    change(stream.folder("84"), stream.folder("11"))
    error = stream.found()
    assert type(error) in (kind, *kind.__subclasses__() * (kind is LateDumpError))
    assert message in str(error)


def test_files_without_markers_count_once_they_were_left_alone_for_five_minutes(small):
    stream = small(marker='marker = ""')
    stream.fill(1.0)
    files = {code: stream.folder(code) / "part-0.parquet" for code in ("84", "11")}
    for code, age, waits in (("84", 0, True), ("11", 290, True), ("84", 310, True), ("11", 310, False)):
        changed = time.time() - age
        os.utime(files[code], (changed, changed))
        assert isinstance(stream.found(), LateDumpError) == waits
        assert not waits or "changed just now, may still be written, and has no marker" in str(stream.found())
    assert [[path.name for path in leaf] for leaf in stream.found().files] == [["part-0.parquet"]] * 2
    ahead = time.time() + 330
    os.utime(files["11"], (ahead, ahead))  # by the clock of another machine, which may write it still
    assert "run again in 11 min, or correct its time, which is to come" in str(stream.found())
    files["11"].unlink()
    assert "holds no Parquet or CSV file" in assert_stopped(stream, kind=LateDumpError)


@pytest.mark.parametrize(
    ("listed", "kind", "message"),
    [
        (None, LateDumpError, "the file list _FILES of region=84/date=2025-01-15 is absent"),
        ("part-0.parquet\npart-1.parquet\n", LateDumpError, f"{FIRST}/'part-1.parquet' is listed but absent"),
        ("", DumpError, "'part-0.parquet' is not in the file list"),
        ("part-0.parquet\npart-0.parquet\n", DumpError, "must name each file once"),
        *(
            (f"part-0.parquet\n{name}\n", DumpError, "must hold plain names of data files only")
            for name in ("../../region=11/x.parquet", "/etc/x.parquet", "..\\x.parquet")
        ),
        pytest.param(f"\x1b]0;\x07{'x' * 10**6}.csv\npart-0.parquet\n", LateDumpError, "absent", id="long"),
    ],
)
def test_a_file_list_is_law_and_a_name_in_it_is_shown_short_and_printable(small, listed, kind, message):
    stream = small(marker='file_list = "_FILES"')
    stream.fill(1.0, listed="part-0.parquet\n")
    assert not isinstance(stream.found(), Exception)
    (stream.folder("84") / "_FILES").unlink()
    if listed is not None:
        (stream.folder("84") / "_FILES").write_text(listed)
    said = assert_stopped(stream, message, kind=kind)
    assert "region=11/x" not in said
    assert said.isprintable()
    assert len(said) < 300


@pytest.mark.parametrize("link", ["region", "day", "file", "hard link"])
def test_one_file_under_two_leaves_is_refused(stream, link):
    """Its customers would count in both. So too where a file system takes two names for one."""
    day, other = stream.folder("11"), stream.folder("84")
    for path in (*day.iterdir(), *((day,) if link in ("region", "day") else ())):
        path.rmdir() if path.is_dir() else path.unlink()
    if link == "region":
        day.parent.rmdir()
        day.parent.symlink_to(other.parent)
    elif link == "day":
        day.symlink_to(other)
    else:
        (day / "_SUCCESS").touch()
        take = (day / "x.parquet").symlink_to if link == "file" else (day / "x.parquet").hardlink_to
        take(other / "part-0.parquet")
    assert_stopped(stream, "region=11/date=2025-01-15", "is also a file of leaf '84'")


# In object stores: the same days, the same units, the same keyed hashes as from local files.


@pytest.fixture(params=[pytest.param(one, marks=pytest.mark.slow) for one in ("memory", "s3")])
def upload(request, tmp_path):
    """Copy a stream's dumps into a store, and return the same stream with its input folder there."""
    root = f"/{tmp_path.name}" if request.param == "memory" else request.getfixturevalue("s3_bucket")
    filesystem = fsspec.filesystem(request.param, use_listings_cache=False)
    url = f"{request.param}://{root.lstrip('/')}/dumps of the day"

    def copy(stream: SmallStream):
        for path in sorted(stream.settings.input_folder.rglob("*")):
            if path.is_file():
                name = path.relative_to(stream.settings.input_folder).as_posix()
                filesystem.pipe_file(f"{root}/dumps of the day/{name}", path.read_bytes())
        file = stream.settings.file.with_name("in-store.toml")
        file.write_text(stream.settings.file.read_text().replace('folder = "dumps"', f'folder = "{url}"'))
        moved = SmallStream(load_settings(file))
        moved.filesystem, moved.root = filesystem, f"{root}/dumps of the day"
        return moved

    return copy


def hashes(stream, *days):
    dumps = [stream.found(day) for day in days]
    inputs_of = hashing(stream.settings, dumps)
    ingest(stream.settings, dumps)
    return [inputs_of(dump, True) for dump in dumps]


def two_files(stream):
    for day, shift in ((DAY, 1.0), (NEXT, 2.0)):
        stream.write("84", stream.rows(shift + 0.125, day), day)
        stream.write("11", stream.rows(shift, day).head(20), day)
        stream.write("11", stream.rows(shift, day).tail(28), day, name="part-1 +(b),é.parquet")


def metered(stream):
    absent = stream.metered("c", pl.Series([None] * 48, dtype=pl.Float64))
    for day in (DAY, NEXT):
        stream.write("84", pl.concat([stream.metered("a", 1.0, day), stream.metered("b", 2.5, day)]), day)
        stream.write("84", stream.metered("a", 9.0, day), day, name="again.parquet")
        stream.write("11", pl.concat([stream.metered("b", 3.0, day), absent]), day)


def spoilt(stream):
    stream.fill(1.0, DAY, NEXT)
    path = stream.folder("84") / "part-0.parquet"
    data = path.read_bytes()
    path.write_bytes(data[:4] + bytes(100) + data[104:])


@pytest.mark.parametrize(
    ("schema", "make", "metrics"),
    [
        ("aggregated", two_files, ()),
        ("metered", metered, ("duplicates", "two_leaves")),
        ("aggregated", spoilt, ("file_fault",)),
    ],
)
def test_days_hashes_and_metrics_are_those_of_local_files(small, upload, schema, make, metrics):
    stream = small(schema=schema)
    make(stream)
    moved = upload(stream)
    here, there = stream.ingest(DAY, NEXT), moved.ingest(DAY, NEXT)
    for one, other in zip(here, there, strict=True):
        assert one.metrics.equals(other.metrics)
        assert one.places == other.places
        assert (one.period is None) == (other.period is None)
        if one.period is not None:
            assert (open_private_period(one.period) == open_private_period(other.period)).all()
    assert [one.period is None for one in here] == [metrics == ("file_fault",), False]
    assert all(set(here[0].metrics[metric]) - {0, None} for metric in metrics)
    assert hashes(stream, DAY, NEXT) == hashes(moved, DAY, NEXT)
    assert make is not two_files or "region=11/date=2025-01-15/part-1 +(b),é.parquet" in hashes(moved, DAY)[0]


def test_what_is_missing_or_strange_in_a_store_is_reported(small, upload):
    stream = small()
    stream.write("84", stream.rows(1.0))
    moved = upload(stream)
    assert_stopped(moved, "the dump region=11/date=2025-01-15 is missing", kind=LateDumpError)
    stream.write("11", stream.rows(1.0))
    upload(stream)
    assert not isinstance(moved.found(), Exception)
    mistaken = f"{moved.root}/region=84/date=2025-01-15/a%41.parquet"  # by readers of URLs
    moved.filesystem.pipe_file(mistaken, b"x")
    assert_stopped(moved, "must have a name without")
    moved.filesystem.rm_file(mistaken)
    moved.filesystem.rm_file(f"{moved.root}/region=11/date=2025-01-15/_SUCCESS")
    assert_stopped(moved, "the marker _SUCCESS of region=11/date=2025-01-15 is absent", kind=LateDumpError)
    moved.filesystem.pipe_file(f"{moved.root}/region=99/date=2025-01-15/x.parquet", b"x")
    assert_stopped(moved, "'region=99' is not a leaf")
    assert_stopped(moved, kind=LateDumpError, day=NEXT)


def test_an_object_that_changes_while_it_is_read_is_refused(small, upload):
    stream = small()
    stream.fill(1.0)
    moved = upload(stream)
    dump = moved.found()
    other = stream.write("84", stream.rows(2.0)).read_bytes()
    inputs_of = hashing(moved.settings, [dump])
    moved.filesystem.pipe_file(f"{moved.root}/region=84/date=2025-01-15/part-0.parquet", other)
    with pytest.raises(DumpError, match=r"region=84/date=2025-01-15/part-0\.parquet changed while"):
        inputs_of(dump, True)


@pytest.mark.slow
def test_a_store_that_cannot_be_reached_makes_days_wait(small, s3_server, monkeypatch):
    from optstream.storage import store as opening

    stream = small()
    file = stream.settings.file
    file.write_text(file.read_text().replace('folder = "dumps"', 'folder = "s3://no-such-bucket/dumps"'))
    stream = SmallStream(load_settings(file))
    assert_stopped(stream, kind=LateDumpError)
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    opening._connected.cache_clear()
    monkeypatch.setattr("s3fs.S3FileSystem.retries", 1)
    try:
        said = assert_stopped(stream, "the store cannot be reached", kind=LateDumpError)
    finally:
        opening._connected.cache_clear()
    assert "127.0.0.1" not in said


def test_a_delta_table_in_a_store_has_the_files_that_its_log_says(small, upload):
    stream = small(marker=f"path = '{PARTITIONED}'")
    table(stream)
    assert (upload(stream).verdict().units == 1500).all()
