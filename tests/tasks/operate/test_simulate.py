"""Simulated dumps: whole or absent, and completed by their marker."""

from datetime import date, timedelta
from pathlib import Path

import polars as pl
import pytest

from tasks.config import Settings
from tasks.operate.simulate import simulate
from tests.failing import raising

pytestmark = pytest.mark.slow

MONDAY = date(2016, 2, 1)


def days(first: date, count: int) -> list[date]:
    return [first + timedelta(days=number) for number in range(count)]


def read(settings: Settings, region: str, day: date) -> pl.DataFrame:
    file = settings.input_folder / f"region={region}" / f"date={day}" / "part-0.parquet"
    return pl.read_parquet(file, hive_partitioning=False)


def test_a_dump_is_whole_or_absent_and_one_without_its_marker_is_completed(small, monkeypatch):
    settings = small().settings
    folder = settings.input_folder / "region=84" / f"date={MONDAY}"
    with monkeypatch.context() as patch:
        patch.setattr(Path, "rename", raising(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            simulate(settings, [MONDAY])
    assert list(folder.parent.iterdir()) == []
    for is_new in (True, False):
        assert simulate(settings, [MONDAY]) == [True, is_new]
        assert sorted(path.name for path in folder.iterdir()) == ["_SUCCESS", "part-0.parquet"]
        (folder / "_SUCCESS").unlink()
