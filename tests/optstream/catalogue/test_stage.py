"""A staged release: the same rows and statement give the same bytes, and an incomplete day is refused."""

import hashlib
import itertools
from datetime import UTC, date, datetime, timedelta

import polars as pl
import pytest

from optstream.catalogue import read_staged, stage
from optstream.catalogue.rows import hash_rows, holds_each_once, ordered_rows, schema
from optstream.catalogue.statement import Footer, encode
from optstream.errors import PublicationError
from tests.optstream.catalogue.conftest import make_rows, make_statement
from tests.optstream.catalogue.folders import DAY

STATED = "load_mw", {"date": DAY, "revision": 1, "vintage": 1}, True


def test_same_rows_and_statement_give_the_same_bytes():
    first = stage(make_rows(DAY), make_statement(DAY))
    shuffled = make_rows(DAY).sample(fraction=1.0, shuffle=True, seed=3)
    chunked = pl.concat([shuffled[:5], shuffled[5:]], rechunk=False).select(reversed(shuffled.columns))
    assert stage(chunked, make_statement(DAY)) == first
    assert first.file_hash == hashlib.sha256(first.data).hexdigest()
    assert first.name == f"release-{first.file_hash}.parquet"


def test_rows_hash_sees_every_cell():
    """Change each column at one row: a hash that skipped a column or a null would not move."""
    ordered = ordered_rows(make_rows(DAY), *STATED)
    changes = {
        "date": date(2016, 2, 2),
        "step": 3,
        "timestamp": datetime(2016, 2, 1, 13, tzinfo=UTC),
        "node": "FQ",
        "parent": "84",
        "level": 7,
        "load_mw": 0.125,
        "load_mw_noise_se": 0.125,
        "load_mw_se": 0.125,
        "revision": 2,
        "vintage": 2,
    }
    hashes = {hash_rows(ordered)}
    for name, value in changes.items():
        cell = pl.lit(value, dtype=schema("load_mw")[name])
        changed = ordered.with_row_index("i").with_columns(
            pl.when(pl.col("i") == 4).then(cell).otherwise(pl.col(name)).alias(name)
        )
        hashes.add(hash_rows(changed.drop("i")))
    assert len(hashes) == 1 + len(changes)


def test_rows_hash_tells_null_from_empty_and_moved_letters():
    def hashed(*names):
        return hash_rows(pl.DataFrame({"node": pl.Series(names, dtype=pl.String)}))

    names = (("", "a"), (None, "a"), ("a", ""), ("ab", "c"), ("a", "bc"))
    assert len({hashed(*two) for two in names}) == len(names)


@pytest.mark.parametrize(
    ("spoil", "rule"),
    [
        (lambda rows: rows.drop("parent"), "columns"),
        (lambda rows: rows.with_columns(extra=1), "columns"),
        (lambda rows: rows.with_columns(pl.col("load_mw").cast(pl.String)), "column load_mw"),
        (lambda rows: rows.with_columns(pl.col("timestamp").dt.replace_time_zone(None)), "column timestamp"),
        (lambda rows: rows.with_columns(step=pl.lit(1234567890123)), "32 bits"),
        (lambda rows: rows.with_columns(node=pl.lit(None, dtype=pl.String)), "column node .* null"),
        (lambda rows: rows.with_columns(load_mw=pl.lit(None, dtype=pl.Float64)), "column load_mw .* null"),
        (lambda rows: rows.with_columns(pl.col("date") + timedelta(days=1)), "column date"),
        (lambda rows: rows.with_columns(revision=2), "column revision"),
        (lambda rows: rows.with_columns(vintage=2), "column vintage"),
        (lambda rows: rows[:-1], "exactly once"),
        (lambda rows: pl.concat([rows[:-1], rows[:1]]), "exactly once"),
        (lambda rows: rows[:0], "exactly once"),
    ],
)
def test_what_is_not_a_whole_period_is_refused(spoil, rule):
    with pytest.raises(PublicationError, match=rule) as caught:
        stage(spoil(make_rows(DAY)), make_statement(DAY))
    assert "1234567890123" not in str(caught.value), "no value is shown"


def test_each_node_once_at_each_step_is_found_as_by_counting():
    """All frames of up to four rows over two steps and two nodes, in any order."""
    cells = list(itertools.product((0, 1), ("a", "b")))
    n_whole = 0
    for size in range(5):
        for chosen in itertools.product(cells, repeat=size):
            rows = pl.DataFrame(list(chosen), schema={"step": pl.Int32, "node": pl.String}, orient="row")
            steps, nodes = {step for step, _ in chosen}, {node for _, node in chosen}
            is_whole = size > 0 and sorted(chosen) == sorted(itertools.product(steps, nodes))
            assert holds_each_once(rows) == is_whole, chosen
            n_whole += is_whole
    assert n_whole == 4 + 4 * 2 + 24


def test_a_file_without_the_footer_or_with_other_rows_is_refused(tmp_path):
    make_rows(DAY).write_parquet(tmp_path / "plain.parquet")
    with pytest.raises(PublicationError, match="footer"):
        read_staged((tmp_path / "plain.parquet").read_bytes())
    ordered = ordered_rows(make_rows(DAY), *STATED)
    lying = encode(ordered, Footer(hash_rows(ordered[::-1]), make_statement(DAY).to_json()))
    with pytest.raises(PublicationError, match="hash in its footer"):
        read_staged(lying)
    fewer = ordered.drop("parent")
    with pytest.raises(PublicationError, match="other columns than a release has"):
        read_staged(encode(fewer, Footer(hash_rows(fewer), make_statement(DAY).to_json())))
