"""The file of a day's errors: read back, and asked by SQL alone."""

import json
from datetime import date, timedelta

import duckdb
import numpy as np
import polars as pl
import pyarrow.parquet as pq
import pytest
from optstream.catalogue.sums import KEY, SCHEMA, decode_errors, encode_errors
from scipy.sparse import csr_array

from optstream.errors import PublicationError
from optstream.estimation.error_terms import ErrorTerms
from optstream.estimation.groups import GroupedNodes

DAY = date(2016, 6, 1)
NODES = ("all", "a", "b")


def terms(n_earlier=2):
    random = np.random.default_rng(0)
    nodes, steps = random.normal(size=(2, 3, 3)), random.normal(size=(2, 4, 4))
    symmetric = nodes + nodes.transpose(0, 2, 1), steps + steps.transpose(0, 2, 1)
    return ErrorTerms(*symmetric, random.normal(size=(2, n_earlier)))


def in_groups():
    """The same of nodes in three groups, of which the last is of the second term."""
    random = np.random.default_rng(0)
    shares = csr_array(np.where([[0, 1, 1], [0, 0, 1], [0, 1, 1]], random.normal(size=(3, 3)), 0.0))
    nodes = GroupedNodes(random.uniform(size=(2, 3)), shares, np.array([0, 0, 1]))
    return ErrorTerms(nodes, terms().steps, terms().earlier)


def test_nodes_in_groups_are_read_back_too():
    data = encode_errors(in_groups(), NODES, DAY, "whole", np.full((3, 4), 0.25))
    found = decode_errors(data)
    np.testing.assert_allclose(found.terms.nodes.alone, in_groups().nodes.alone, rtol=1e-7)
    wanted = [in_groups().variance(node, np.ones(4)) for node in np.eye(3)]
    np.testing.assert_allclose(found.variances_of_sums(), wanted, rtol=1e-6)
    weights, steps = np.array([0.0, 1.0, -2.0]), np.array([0.0, 1.0, 1.0, 0.0])
    assert found.terms.variance(weights, steps) == pytest.approx(
        in_groups().variance(weights, steps), rel=1e-6
    )
    assert found.added.sum() == 3.0


@pytest.mark.parametrize(
    ("column", "value"),
    [("term", -1), ("term", 2), ("other_step", -1), ("other_step", None), ("value", float("nan")),
     ("value", None), ("node", "other"), ("other_node", "all")],
)  # fmt: skip
def test_groups_of_no_place_are_refused(tmp_path, column, value):
    (tmp_path / "errors.parquet").write_bytes(encode_errors(in_groups(), NODES, DAY, "whole"))
    rows = pl.read_parquet(tmp_path / "errors.parquet", hive_partitioning=False)
    is_share = rows["node"].is_not_null() & rows["other_node"].is_null()
    changed(tmp_path, rows, column, value, int(is_share.arg_max()))
    with pytest.raises(PublicationError, match="no file of errors"):
        decode_errors((tmp_path / "hostile.parquet").read_bytes())


def changed(folder, rows, column, value, place):
    """Write the file of errors again with another value in a row."""
    footer = pq.read_metadata(folder / "errors.parquet").metadata
    found = pl.when(pl.arange(rows.height) == place).then(pl.lit(value, dtype=rows.schema[column]))
    rows = rows.with_columns(found.otherwise(column).alias(column))
    with pq.ParquetWriter(
        folder / "hostile.parquet",
        pq.read_schema(folder / "errors.parquet").remove_metadata(),
        store_schema=False,
    ) as writer:
        writer.write_table(rows.to_arrow().cast(writer.schema))
        writer.add_key_value_metadata({KEY: footer[KEY]})


def test_what_is_written_is_read_back_to_the_precision_of_float32():
    data = encode_errors(terms(), NODES, DAY, "whole")
    assert data == encode_errors(terms(), NODES, DAY, "whole")
    found = decode_errors(data)
    assert (found.period, found.of, found.nodes) == (DAY, "whole", NODES)
    for name in ("steps", "earlier"):
        np.testing.assert_allclose(getattr(found.terms, name), getattr(terms(), name), rtol=1e-7)
    np.testing.assert_allclose(found.terms.of_each(), terms().of_each(), rtol=1e-7)
    for weights in np.random.default_rng(2).normal(size=(4, 3)):
        np.testing.assert_allclose(found.terms.of_sum(weights), terms().of_sum(weights), rtol=1e-5)


def test_sql_alone_gives_the_variance_of_a_sum(tmp_path):
    (tmp_path / "errors.parquet").write_bytes(encode_errors(terms(), NODES, DAY, "noise"))
    ((found,),) = duckdb.sql(f"""
        WITH errors AS (SELECT * FROM '{tmp_path}/errors.parquet'),
        of_nodes AS (SELECT term, sum(value) AS part FROM errors
                     WHERE node IN ('a', 'b') AND other_node IN ('a', 'b') GROUP BY term),
        of_steps AS (SELECT term, sum(value) AS part FROM errors
                     WHERE step BETWEEN 1 AND 2 AND other_step BETWEEN 1 AND 2 GROUP BY term)
        SELECT sum(of_nodes.part * of_steps.part) FROM of_nodes JOIN of_steps USING (term)
    """).fetchall()
    wanted = terms().variance(np.array([0.0, 1.0, 1.0]), np.array([0.0, 1.0, 1.0, 0.0]))
    assert found == pytest.approx(wanted, rel=1e-6)


def test_days_before_are_named_by_their_dates(tmp_path):
    (tmp_path / "errors.parquet").write_bytes(encode_errors(terms(), NODES, DAY, "whole"))
    rows = pl.read_parquet(tmp_path / "errors.parquet", hive_partitioning=False)
    assert dict(rows.schema) == SCHEMA
    assert rows["earlier_date"].drop_nulls().unique().sort().to_list() == [
        DAY - timedelta(days=2), DAY - timedelta(days=1)
    ]  # fmt: skip


def test_a_file_that_claims_too_much_is_refused(monkeypatch):
    data = encode_errors(terms(), NODES, DAY, "whole")
    monkeypatch.setattr("optstream.catalogue.sums.MOST_ENTRIES", 10)
    with pytest.raises(PublicationError, match="no file of errors"):
        decode_errors(data)


@pytest.mark.parametrize(
    "changed",
    [
        {"shape": [10**30, 0, 0], "nodes": []},
        {"shape": [0, 2**27, 0]},  # 128 MB for each node, of a file of 350 bytes
        {"shape": [2.0, 4, 2]},
        {"shape": [-1, -4, 2]},
        {"shape": ["2", "4", "2"]},
        {"nodes": ["all", "a", "a"]},
        {"nodes": [1, 2, 3]},
        {"nodes": None},
        {"period": "2016-06-31"},
        {"of": ["whole"]},
    ],
)
def test_a_footer_that_claims_anything_else_is_refused(tmp_path, changed):
    data = encode_errors(terms(), NODES, DAY, "whole")
    (tmp_path / "errors.parquet").write_bytes(data)
    table = pq.read_table(tmp_path / "errors.parquet")
    footer = json.loads(pq.read_metadata(tmp_path / "errors.parquet").metadata[KEY]) | changed
    with pq.ParquetWriter(tmp_path / "hostile.parquet", table.schema, store_schema=False) as writer:
        writer.write_table(table)
        writer.add_key_value_metadata({KEY: json.dumps(footer)})
    with pytest.raises(PublicationError, match="no file of errors"):
        decode_errors((tmp_path / "hostile.parquet").read_bytes())


@pytest.mark.parametrize(
    ("column", "value"),
    [("term", -1), ("term", 2), ("step", -1), ("other_step", None), ("earlier_date", DAY),
     ("earlier_date", DAY + timedelta(days=1)), ("value", float("nan")), ("value", None), ("node", "other"),
     ("other_node", None)],
)  # fmt: skip
def test_rows_of_no_place_are_refused(tmp_path, column, value):
    (tmp_path / "errors.parquet").write_bytes(encode_errors(terms(), NODES, DAY, "whole"))
    rows = pl.read_parquet(tmp_path / "errors.parquet", hive_partitioning=False)
    changed(tmp_path, rows, column, value, int(rows[column].is_not_null().arg_max()))
    with pytest.raises(PublicationError, match="no file of errors"):
        decode_errors((tmp_path / "hostile.parquet").read_bytes())


def test_what_bound_and_rounding_added_is_told_beside_the_terms_and_changes_none_of_them():
    added = np.random.default_rng(1).normal(size=(3, 4))
    found = decode_errors(encode_errors(terms(), NODES, DAY, "whole", added))
    np.testing.assert_allclose(found.added, added, rtol=1e-7)
    alone = decode_errors(encode_errors(terms(), NODES, DAY, "whole"))
    assert not alone.added.any()
    for one in (lambda terms: terms.steps, lambda terms: terms.earlier, lambda terms: terms.nodes.value):
        np.testing.assert_array_equal(one(found.terms), one(alone.terms))


@pytest.mark.parametrize("damage", [lambda data: data[:-9], lambda data: b"", lambda data: b"PAR1" + data])
def test_other_bytes_are_refused(damage):
    with pytest.raises(PublicationError, match="file of errors"):
        decode_errors(damage(encode_errors(terms(), NODES, DAY, "whole")))
