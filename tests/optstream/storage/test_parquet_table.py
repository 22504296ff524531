"""Tables come back from their bytes as they were, and a text that rows repeat fills no memory."""

import polars as pl
import pytest

from optstream.errors import PublicationError
from optstream.storage.parquet_limits import Limits
from optstream.storage.parquet_table import decode_table, encode_table

LIMITS = Limits(rows=2**20, columns=8)


def repeated(length, n_rows=4000):
    """Two columns of texts, each in half of the rows."""
    texts = ["x" * length, None] * (n_rows // 2)
    return pl.DataFrame({"node": texts, "question": texts[1:] + texts[:1], "step": range(n_rows)})


def test_a_table_comes_back_as_it_was():
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


def test_many_rows_may_have_more_texts(monkeypatch):
    monkeypatch.setattr("optstream.storage.parquet_table.FEW_TEXTS", 1000)
    whole, _ = decode_table(encode_table(repeated(128), {}), LIMITS, "a file")
    assert whole.height == 4000
    with pytest.raises(PublicationError, match="may hold 512,000 bytes"):
        decode_table(encode_table(repeated(129), {}), LIMITS, "a file")


def test_few_rows_may_have_long_texts(monkeypatch):
    monkeypatch.setattr("optstream.storage.parquet_table.FEW_TEXTS", 1000)
    whole, _ = decode_table(encode_table(repeated(500, 2), {}), LIMITS, "a file")
    assert whole.height == 2
    with pytest.raises(PublicationError, match="may hold 1,000 bytes"):
        decode_table(encode_table(repeated(501, 2), {}), LIMITS, "a file")
