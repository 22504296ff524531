"""A day unlike all others is told the same night, from noisy measurements, and is over with the next."""

from datetime import UTC, date, datetime, timedelta

import polars as pl
import pytest

from tasks.monitor.alarms import Severity
from tests.tasks.monitor.conftest import Watched
from tests.tasks.two_regions import FEW_BLOCKS, released_by

FIRST = date(2016, 6, 1)
INFORMED = released_by("HistoryInformed", keys=FEW_BLOCKS)
DAYS = [FIRST + timedelta(days=number) for number in range(10)]
DARK, AFTER = DAYS[8], DAYS[9]


@pytest.fixture
def installation(tmp_path):
    """Ten days; on the ninth all regions have a quarter of their load."""
    (tmp_path / "optstream.toml").write_text(INFORMED)
    installation = Watched(tmp_path, datetime(2016, 7, 1, tzinfo=UTC))
    installation.simulate(*DAYS)
    for path in (tmp_path / "dumps").glob(f"region=*/date={DARK}/*.parquet"):
        pl.read_parquet(path).with_columns(pl.col("load_mw") * 0.25).write_parquet(path)
    return installation


def unlike(installation):
    return [alarm for alarm in installation.watch(live=False).alarms if alarm.kind == "unlike-history"]


def test_it_is_a_warning_of_that_day_until_the_next(installation):
    installation.released(*DAYS[:8])
    assert unlike(installation) == []  # ordinary days are no news
    installation.release(DARK)
    (alarm,) = unlike(installation)
    assert (alarm.day, alarm.node, alarm.severity) == (DARK, None, Severity.WARNING)
    assert str(DARK) in alarm.words
    installation.release(AFTER)
    assert unlike(installation) == []
