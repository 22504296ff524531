"""Tables come back from their bytes as they were, and a text that rows repeat fills no memory."""

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from optstream.errors import PublicationError
from optstream.storage.parquet import Limits, decode_table, encode_table

LIMITS = Limits(rows=2**20, columns=8)


def repeated(length, n_rows):
    """Two columns of texts, each in half of the rows."""
    texts = ["x" * length, None] * (n_rows // 2)
    return pl.DataFrame({"node": texts, "question": texts[1:] + texts[:1], "step": range(n_rows)})


def test_a_table_comes_back_as_it_was_and_bytes_as_bytes():
    rows = pl.DataFrame(
        {"node": ["a", None, "", "a"], "step": [1, 2, None, 4], "value": [0.5, None, -1.0, 2.0]},
        schema={"node": pl.String, "step": pl.Int32, "value": pl.Float64},
    )
    for table in (rows, rows.clear(), rows.head(1)):
        found, metadata = decode_table(encode_table(table, {b"key": b"text"}), LIMITS, "a file")
        assert found.equals(table, null_equal=True)
        assert found.schema == table.schema
        assert metadata[b"key"] == b"text"
    only, _ = decode_table(encode_table(rows, {}), LIMITS, "a file", ["value", "of another file"])
    assert only.equals(rows.select("value"), null_equal=True)
    table = pa.table({"node": pa.array([b"\xff", b"a", None]), "step": [1, 2, 3]})
    found, _ = decode_table(written(table), LIMITS, "a file")
    assert dict(found.schema) == {"node": pl.Binary(), "step": pl.Int64()}
    assert found["node"].to_list() == [b"\xff", b"a", None]


@pytest.mark.parametrize(("length", "n_rows", "most"), [(128, 4000, "512,000"), (500, 2, "1,000")])
def test_many_rows_may_have_more_texts_and_few_rows_long_ones(monkeypatch, length, n_rows, most):
    monkeypatch.setattr("optstream.storage.parquet.FEW_TEXTS", 1000)
    whole, _ = decode_table(encode_table(repeated(length, n_rows), {}), LIMITS, "a file")
    assert whole.height == n_rows
    with pytest.raises(PublicationError, match=f"may hold {most} bytes"):
        decode_table(encode_table(repeated(length + 1, n_rows), {}), LIMITS, "a file")


def written(table, **options):
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, compression="zstd", **options)
    return sink.getvalue().to_pybytes()


def test_texts_that_each_row_group_repeats_are_counted_before_all_are_read(monkeypatch):
    monkeypatch.setattr("optstream.storage.parquet.FEW_TEXTS", 2**24)
    text = "x" * 2**20
    sink = pa.BufferOutputStream()
    table = pa.table({"node": [text]})
    with pq.ParquetWriter(sink, table.schema, compression="zstd") as writer:
        for _ in range(300):
            writer.write_table(table)
    groups = []
    read = pq.ParquetFile.read_row_groups

    def counted(file, numbers, **options):
        groups.extend(numbers)
        return read(file, numbers, **options)

    monkeypatch.setattr(pq.ParquetFile, "read_row_groups", counted)
    with pytest.raises(PublicationError, match="may hold 16,777,216 bytes of texts"):
        decode_table(sink.getvalue().to_pybytes(), LIMITS, "a file")
    assert len(groups) == 17


@pytest.mark.parametrize("stored", [False, True])
def test_texts_of_other_types_are_refused_or_counted(monkeypatch, stored):
    """Such columns are never read as dictionaries: a text that rows repeat would be written out."""
    texts = pa.array(['"x"'] * 10)
    fixed = pa.array([b"x" * 999] * 10, pa.binary(999))
    odd = {
        "JSON": pa.ExtensionArray.from_storage(pa.json_(), texts),
        "columns in a column": pa.array([{"a": "x"}] * 10),
    }
    for values in odd.values():
        data = written(pa.table({"step": range(10), "node": values}), store_schema=stored)
        with pytest.raises(PublicationError, match="a file is not a table of texts and numbers"):
            decode_table(data, LIMITS, "a file")
    data = written(pa.table({"node": fixed}), store_schema=stored)
    assert decode_table(data, LIMITS, "a file")[0].height == 10
    monkeypatch.setattr("optstream.storage.parquet.FEW_TEXTS", 1000)
    with pytest.raises(PublicationError, match="may hold 1,280 bytes"):
        decode_table(data, LIMITS, "a file")


@pytest.mark.parametrize("as_dictionary", [True, False])
def test_texts_that_are_no_utf_8_are_refused(as_dictionary):
    """Polars takes them, and panics when they are read."""
    lengths, texts = pa.array([b"\xff", b"a"]).buffers()[1:]
    table = pa.table({"node": pa.Array.from_buffers(pa.string(), 2, [None, lengths, texts])})
    with pytest.raises(PublicationError, match="a file is not whole Parquet"):
        decode_table(written(table, use_dictionary=as_dictionary), LIMITS, "a file")
