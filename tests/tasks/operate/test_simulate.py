"""Simulated dumps: the same whatever else is asked for, whole or absent, and near the public means."""

from datetime import date, timedelta
from pathlib import Path

import polars as pl
import pytest

from optstream.stream import Calendar
from tasks.config import Input
from tasks.operate.simulate import CUSTOMERS, simulate
from tests.failing import raising

pytestmark = pytest.mark.slow

PARIS = Calendar(30, "Europe/Paris")
MONDAY = date(2016, 2, 1)


def days(first: date, count: int) -> list[date]:
    return [first + timedelta(days=number) for number in range(count)]


def read(folder: Path, region: str, day: date) -> pl.DataFrame:
    return pl.read_parquet(
        folder / f"region={region}" / f"date={day}" / "part-0.parquet", hive_partitioning=False
    )


def test_any_range_and_any_leaves_give_the_same_day(tmp_path: Path) -> None:
    simulate(tmp_path / "long", leaves=["84", "11", "53"], calendar=PARIS, days=days(MONDAY, 5), seed=7)
    simulate(tmp_path / "short", leaves=["53"], calendar=PARIS, days=[MONDAY + timedelta(days=3)], seed=7)
    day = MONDAY + timedelta(days=3)
    assert read(tmp_path / "short", "53", day).equals(read(tmp_path / "long", "53", day))


def test_a_dump_is_whole_or_absent_and_one_without_its_marker_is_completed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "region=84" / f"date={MONDAY}"
    with monkeypatch.context() as patch:
        patch.setattr(Path, "rename", raising(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            simulate(tmp_path, leaves=["84"], calendar=PARIS, days=[MONDAY])
    assert list(folder.parent.iterdir()) == []
    for _ in range(2):
        assert simulate(tmp_path, leaves=["84"], calendar=PARIS, days=[MONDAY]) == [True]
        assert sorted(path.name for path in folder.iterdir()) == ["_SUCCESS", "part-0.parquet"]
        (folder / "_SUCCESS").unlink()


def test_metered_dumps_have_a_row_a_customer_and_step(tmp_path: Path) -> None:
    simulate(
        tmp_path,
        leaves=["a", "b"],
        calendar=PARIS,
        days=[MONDAY],
        schema="metered",
        layout_of=lambda day: Input(schema="metered", value="kwh", customer="meter"),
    )
    rows = pl.concat([read(tmp_path, leaf, MONDAY) for leaf in "ab"])
    assert rows.columns == ["meter", "timestamp", "kwh"]
    assert rows.select("meter", "timestamp").is_unique().all()
    assert rows["meter"].n_unique() == 2 * CUSTOMERS
    assert rows.height == 2 * CUSTOMERS * 48
    assert rows["kwh"].min() >= 0
    assert 0.3 < rows["kwh"].mean() < 1.0
