"""The ledger as Parquet: every row, exact, private, never over anything, and in bounded memory."""

import json
from datetime import date
from fractions import Fraction

import polars as pl
import pytest

from optstream.errors import LedgerError
from optstream.privacy import worst_window
from optstream.privacy.spends import spend_from_document
from tasks.ledger.export import COLUMNS, export

DAYS = [date(2016, 6, 1), date(2016, 6, 2)]


def test_every_table_has_its_columns_and_rows_priced_exactly_for_the_owner_alone(released):
    done = export(released.settings, released.ledger, released.folder / "deep" / "out")
    found = {name: pl.read_parquet(done.folder / f"{name}.parquet") for name in COLUMNS}
    assert {name: frame.columns for name, frame in found.items()} == {
        name: list(columns) for name, columns in COLUMNS.items()
    }
    assert {name: frame.height for name, frame in found.items()} == done.n_rows
    assert found["releases"]["state"].to_list() == ["PUBLISHED"] * 2
    assert found["events"]["hash"][-1] == found["streams"]["head"][0] == released.ledger.head("two-regions")
    rows = found["spends"].filter(pl.col("in_force")).to_dicts()
    for day in DAYS:
        own = [row for row in rows if row["period"] == day.isoformat()]
        spends = released.record(day).spends
        assert [spend_from_document(json.loads(row["document"])) for row in own] == list(spends)
        for row, spend in zip(own, spends, strict=True):
            epsilon = worst_window([spend], 48).epsilon
            assert Fraction(row["epsilon"]) == epsilon
            assert row["epsilon_float"] == float(epsilon)
            assert (row["level"], row["stage"]) == (spend.level, spend.stage)
    assert done.folder.stat().st_mode & 0o777 == 0o700
    assert {path.stat().st_mode & 0o777 for path in done.folder.iterdir()} == {0o600}
    assert "sqlite" not in " ".join(str(frame.to_dicts()) for frame in found.values())


def test_it_never_overwrites_and_never_goes_public(released):
    taken = released.folder / "taken"
    taken.mkdir()
    (released.folder / "link").symlink_to(released.folder / "published")
    for target, rule in (
        (taken, "exists already"),
        (released.folder / "optstream.toml", "exists already"),
        (released.folder / "published" / "out", "public zone"),
        (released.folder / "published" / "a" / ".." / "out", "public zone"),
        (released.folder / "link" / "out", "public zone"),
        (released.folder / "published", "public zone"),
    ):
        with pytest.raises(LedgerError, match=rule):
            export(released.settings, released.ledger, target)
    assert list(taken.iterdir()) == []
    assert not list((released.folder / "published").rglob("*out*"))
