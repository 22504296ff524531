"""Files of the published folder that somebody else wrote: each is named, and none stops pages or checks."""

import hashlib
from datetime import date

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from optstream.catalogue import read_catalogue
from optstream.catalogue.stage import decode
from tasks.release import publish as again
from tasks.release.stages import Status

DAY = date(2016, 6, 1)
ABSURD = {
    "text for values": lambda rows: rows.with_columns(pl.col("load_mw").cast(pl.String)),
    "no node": lambda rows: rows.drop("node"),
    "numbers for nodes": lambda rows: rows.with_columns(pl.lit(3).alias("node")),
    "steps that a node lacks": lambda rows: rows.filter((pl.col("node") != "84") | (pl.col("step") > 3)),
    "no value": lambda rows: rows.with_columns(pl.lit(None, dtype=pl.Float64).alias("load_mw")),
    "infinite": lambda rows: rows.with_columns(pl.lit(float("inf")).alias("load_mw")),
    "nothing": lambda rows: rows.head(0),
}


def forge(installation, change):
    """Put a consistent file of other rows in the place of the day's, under its own statement."""
    folder = installation.folder / "published"
    catalogue = read_catalogue(folder)
    (entry,) = catalogue.entries
    data = (folder / entry.file).read_bytes()
    footer = pq.ParquetFile(pa.BufferReader(data)).metadata.metadata
    sink = pa.BufferOutputStream()
    pq.write_table(change(decode(data)[0]).to_arrow().replace_schema_metadata(footer), sink)
    made = sink.getvalue().to_pybytes()
    entry = entry.changed(file_hash=hashlib.sha256(made).hexdigest())
    (folder / entry.file).write_bytes(made)
    (folder / "catalogue.json").write_bytes(catalogue.changed(periods=(entry,)).to_bytes())


@pytest.mark.parametrize("change", ABSURD.values(), ids=list(ABSURD))
def test_a_page_names_a_forged_file_as_damaged(installation, change):
    installation.released(DAY)
    forge(installation, change)
    written = installation.write_pages()
    assert (written.problem, written.lost) == (None, (DAY,))


@pytest.mark.parametrize("text", [b"\xff\xfe{", b"[" * 200_000, b'{"statement": ' + b"1" * 5000 + b"}"])
def test_a_forged_manifest_is_no_statement(installation, monkeypatch, text):
    """The file is lost, the staging purged, and the version another one."""
    installation.release(DAY)
    folder = installation.folder / "published"
    (entry,) = read_catalogue(folder).entries
    (folder / entry.file).unlink()
    (folder / entry.manifest).write_bytes(text)
    for path in installation.settings.staging_of(DAY, 0).iterdir():
        path.unlink()
    real = again.statement_of
    monkeypatch.setattr(again, "statement_of", lambda *facts: real(*facts).changed(code_version="9"))
    (outcome,) = installation.publish_again(DAY)
    assert outcome.status is Status.FAILED
    assert "bring trusted/staging or the published file back from a copy" in outcome.message
