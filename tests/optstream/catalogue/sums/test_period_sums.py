"""Sums of days, weeks and months with their standard errors, by hand."""

from datetime import date, timedelta

import numpy as np
import polars as pl
import pytest
from optstream.catalogue.sums import DayErrors, period_sums

from optstream.estimation.error_terms import ErrorTerms

SUNDAY = date(2016, 1, 31)
DAYS = [SUNDAY + timedelta(days=number) for number in range(3)]
"""The first ends a week and a month."""


def rows():
    labels = [(day, node, step) for day in DAYS for node in ("FR", "84") for step in range(2)]
    frame = pl.DataFrame(labels, schema=["date", "node", "step"], orient="row")
    return frame.with_columns(
        parent=pl.when(pl.col("node") == "84").then(pl.lit("FR")),
        level=(pl.col("node") == "84").cast(pl.Int32),
        load_mw=pl.col("step") + 1.0,
        load_mw_noise_se=pl.lit(None, dtype=pl.Float64),
        revision=pl.lit(0),
        vintage=pl.lit(0),
    )


def errors(day, of="whole"):
    """Two steps that err alike by 1 in FR and by 2 in 84; a day and the one before share half of that. Bound
    and rounding added 0.5 to the first step of FR.
    """
    nodes, steps = np.array([[[1.0, 0.0], [0.0, 4.0]]]), np.ones((1, 2, 2))
    earlier = np.full((1, 2), 2.0)
    added = np.array([[0.5, 0.0], [0.0, 0.0]])
    return DayErrors(day, of, ("FR", "84"), ErrorTerms(nodes, steps, earlier), added)


@pytest.mark.parametrize(
    ("period", "firsts", "variances"),
    [
        ("day", DAYS, [4, 4, 4]),
        ("week", DAYS[:2], [4, 4 + 4 + 2 * 2]),
        ("month", DAYS[:2], [4, 4 + 4 + 2 * 2]),
    ],
)
def test_a_period_has_the_sum_of_its_days_and_what_they_share(period, firsts, variances):
    found = period_sums(rows(), "load_mw", period, map(errors, DAYS))
    for node, size in (("FR", 1.0), ("84", 2.0)):
        one = found.filter(node=node)
        assert one["date"].to_list() == firsts
        assert one["load_mw_sum"].to_list() == [3.0 * days for days in one["days"]]
        assert one["load_mw_sum_se"].to_list() == pytest.approx([size * x**0.5 for x in variances])
        added = 0.5 if node == "FR" else 0.0
        assert one["load_mw_sum_estimate"].to_list() == [(3.0 - added) * days for days in one["days"]]
        assert one["load_mw_sum_noise_se"].null_count() == one.height
