"""A region's newest published mean beside the median of the days before, by hand."""

from datetime import date, timedelta

import polars as pl
import pytest

from optstream.catalogue import Entry
from tasks.monitor.facts import LEAST_DAYS, compare

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
