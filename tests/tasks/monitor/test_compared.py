"""A newest mean beside the median of the days before, and a day unlike all others."""

from datetime import UTC, date, datetime, timedelta

import polars as pl
import pytest

from optstream.catalogue import Entry
from tasks.monitor.alarms import Severity
from tasks.monitor.facts import LEAST_DAYS, compare
from tests.tasks.monitor.conftest import Watched
from tests.tasks.two_regions import FEW_BLOCKS, released_by

FIRST = date(2016, 6, 1)


def entries(n_days):
    return [
        Entry(
            period=FIRST + timedelta(days=number),
            revision=0,
            vintage=0,
            file_hash=f"{number:064}",
            rows_hash="0" * 64,
            ledger_head="head",
        )
        for number in range(n_days)
    ]


def figures(noise=1.0, model=None, **means):
    """Of each node its means by day; noise of 1 MW."""
    rows = [(f"{day:064}", node, mean) for node, own in means.items() for day, mean in enumerate(own)]
    named = pl.DataFrame(rows, schema=["file_hash", "node", "mean"], orient="row")
    return named.with_columns(noise=pl.lit(noise, pl.Float64), model=pl.lit(model, pl.Float64))


def compared(*means):
    return compare(figures(a=means), entries(len(means)), ["a"])


@pytest.mark.parametrize(
    ("mean", "is_far", "words"),
    [
        (1000.0, True, "10 times"),
        (990.0, False, "9.9 times"),
        (10.0, True, "1/10 of"),
        (11.0, False, "1/9.09 of"),
        (-100.0, True, "of the other sign than"),
        (0.0, True, "none of"),
        (104400.0, True, "1,044 times"),
        (0.01, True, "1/10,000 of"),
    ],
)
def test_far_is_ten_times_a_tenth_or_the_other_sign(mean, is_far, words):
    (found,) = compared(*[100.0] * LEAST_DAYS, mean)
    assert (found.day, found.mean, found.usual) == (FIRST + timedelta(days=LEAST_DAYS), mean, 100.0)
    assert (found.is_far, found.words) == (is_far, words)


def test_what_noise_explains_is_not_far():
    assert not compared(*[0.5] * LEAST_DAYS, 8.0)[0].is_far
    assert compared(*[0.5] * LEAST_DAYS, 9.0)[0].is_far


def test_what_a_model_does_not_know_is_not_far():
    """A zone of one trip a day has days without; nobody knows the noise in what `HistoryInformed` says."""
    hourly = [1 / 24] * LEAST_DAYS
    for mean, model, is_far in ((0.0, 0.3, False), (0.0, 0.01, True), (0.0, None, True), (2.0, 0.3, True)):
        kept = figures(None, model, a=[*hourly, mean])
        (found,) = compare(kept, entries(LEAST_DAYS + 1), ["a"])
        assert found.is_far == is_far, (mean, model)


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
