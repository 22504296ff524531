"""Dumps in object stores: the same days, the same units, the same keyed hashes as from local files."""

from datetime import timedelta

import fsspec
import polars as pl
import pytest

from optstream.errors import DumpError
from optstream.measurement.sums import open_private_period
from tasks.config import load_settings
from tasks.ingest import LateDumpError, discover, ingest
from tasks.release.lineage import hashing
from tests.tasks.conftest import DAY, SmallStream
from tests.tasks.ingest.arrival.test_discover import assert_stopped, found
from tests.tasks.ingest.arrival.test_pattern import PARTITIONED, table

pytestmark = pytest.mark.slow

NEXT = DAY + timedelta(days=1)


@pytest.fixture(params=["memory", "s3"])
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
        text = stream.settings.file.read_text()
        file.write_text(text.replace('folder = "dumps"', f'folder = "{url}"'))
        moved = SmallStream(load_settings(file))
        moved.filesystem, moved.root = filesystem, f"{root}/dumps of the day"
        return moved

    return copy


def hashes(stream, *days):
    dumps = list(discover(stream.settings, days).values())
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


def spoilt(spoil):
    def make(stream):
        stream.fill(1.0, DAY, NEXT)
        path = stream.folder("84") / "part-0.parquet"
        path.write_bytes(spoil(path.read_bytes()))

    return make


@pytest.mark.parametrize(
    ("schema", "make", "metrics"),
    [
        ("aggregated", two_files, ()),
        ("metered", metered, ("duplicates", "two_leaves")),
        ("aggregated", spoilt(lambda data: data[:4] + bytes(100) + data[104:]), ("file_fault",)),
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


def test_what_is_missing_or_strange_is_reported(small, upload):
    stream = small()
    stream.write("84", stream.rows(1.0))
    moved = upload(stream)
    assert_stopped(moved, "the dump region=11/date=2025-01-15 is missing", kind=LateDumpError)
    stream.write("11", stream.rows(1.0))
    upload(stream)
    assert not isinstance(found(moved), Exception)
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
    dump = found(moved)
    other = stream.write("84", stream.rows(2.0)).read_bytes()
    inputs_of = hashing(moved.settings, [dump])
    moved.filesystem.pipe_file(f"{moved.root}/region=84/date=2025-01-15/part-0.parquet", other)
    with pytest.raises(DumpError, match=r"region=84/date=2025-01-15/part-0\.parquet changed while"):
        inputs_of(dump, True)


def test_a_store_that_cannot_be_reached_makes_days_wait(small, s3_server, monkeypatch):
    from optstream.storage import store as opening

    stream = small()
    file = stream.settings.file
    file.write_text(file.read_text().replace('folder = "dumps"', 'folder = "s3://no-such-bucket/dumps"'))
    error = discover(load_settings(file), [DAY])[DAY]
    assert type(error) is LateDumpError
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    opening._connected.cache_clear()
    monkeypatch.setattr("s3fs.S3FileSystem.retries", 1)
    try:
        error = discover(load_settings(file), [DAY])[DAY]
    finally:
        opening._connected.cache_clear()
    assert type(error) is LateDumpError
    assert "the store cannot be reached" in str(error)
    assert "127.0.0.1" not in str(error)


def test_a_delta_table_in_a_store_has_the_files_that_its_log_says(small, upload):
    stream = small(marker=f"path = '{PARTITIONED}'")
    table(stream)
    (judged,) = upload(stream).judge()
    assert (judged.units == 1500).all()
