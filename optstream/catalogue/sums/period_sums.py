"""Sums of published values over days, weeks and months, each node's with its standard errors."""

from collections.abc import Iterable
from datetime import date, timedelta
from typing import Literal

import numpy as np
import polars as pl

from optstream.catalogue.metadata.described_columns import Column
from optstream.catalogue.statements.standard_errors import error_columns
from optstream.catalogue.sums.errors_parquet import DayErrors
from optstream.stream.period import Hour, day_of

Period = Literal["day", "week", "month"]
"""Local days, weeks from Monday on, months."""
_BEGINS = {"day": "1d", "week": "1w", "month": "1mo"}
_SCHEMA = pl.Schema(
    {
        "date": pl.Date(),
        "node": pl.String(),
        "whole": pl.Float64(),
        "noise": pl.Float64(),
        "added": pl.Float64(),
        "told": pl.Int64(),
        "of_whole": pl.Int64(),
        "of_noise": pl.Int64(),
    }
)


def period_sums(rows: pl.DataFrame, value: str, period: Period, errors: Iterable[DayErrors]) -> pl.DataFrame:
    """Return a row for each period and node, with the sum of its published days and how sure that is. Pure.

    rows: as `rows_of` returns them. value: name of the published values. errors: of the days, as far as they
    are published, rising; each is let go before the next is taken.

    Returns columns date (the first published day of the period), last_date, node, parent, level, days (how
    many of the period's are there), steps, the value's `_sum` and `_mean`, `_sum_estimate`, `_sum_noise_se`
    and `_sum_se` (null where a day has no file of such errors), revision and vintage (the highest); sorted by
    date and node.
    """
    begins = pl.col("date").dt.truncate(_BEGINS[period]).alias("begins")
    summed = rows.group_by(begins, "node").agg(
        pl.col("date").min(),
        pl.col("date").max().alias("last_date"),
        pl.col("parent", "level").last(),
        pl.col("date").n_unique().cast(pl.Int64).alias("days"),
        pl.len().cast(pl.Int64).alias("steps"),
        pl.col(value).sum().alias(f"{value}_sum"),
        pl.col(value).mean().alias(f"{value}_mean"),
        pl.col("revision", "vintage").max(),
    )
    known = (
        _variances(rows, value, period, errors)
        .group_by(begins, "node")
        .agg(pl.col("whole", "noise", "added", "told", "of_whole", "of_noise").sum())
    )
    noise, whole = (f"{value}_sum{column.removeprefix(value)}" for column in error_columns(value))
    estimate = f"{value}_sum_estimate"
    found = summed.join(known, on=["begins", "node"], how="left").with_columns(
        pl.when(pl.col("told") == pl.col("steps"))
        .then(pl.col(f"{value}_sum") - pl.col("added"))
        .alias(estimate),
        *(
            pl.when(pl.col(f"of_{of}") == pl.col("steps")).then(pl.max_horizontal(of, 0.0).sqrt()).alias(name)
            for of, name in (("noise", noise), ("whole", whole))
        ),
    )
    labels = [
        "date",
        "last_date",
        "node",
        "parent",
        "level",
        "days",
        "steps",
        f"{value}_sum",
        f"{value}_mean",
    ]
    return found.select(*labels, estimate, noise, whole, "revision", "vintage").sort("date", "node")


def period_columns(value: str) -> tuple[Column, ...]:
    """Return the columns that `period_sums` has beside those of rows, with their meanings, in order."""
    noise, whole = (f"{value}_sum{column.removeprefix(value)}" for column in error_columns(value))
    return (
        Column("last_date", "date", "The last published day of the period."),
        Column("days", "integer", "How many published days of the period there are."),
        Column("steps", "integer", "How many time steps they have."),
        Column(f"{value}_sum", "number", "Sum of the published values of these steps."),
        Column(f"{value}_mean", "number", "Their mean."),
        Column(
            f"{value}_sum_estimate",
            "number",
            "The sum before lower bound and rounding: what the standard errors are of.",
            may_be_null=True,
        ),
        Column(noise, "number", "Standard error of the estimate, of the noise alone.", may_be_null=True),
        Column(whole, "number", "Standard error of the estimate, of its whole error.", may_be_null=True),
    )


def _variances(rows: pl.DataFrame, value: str, period: Period, errors: Iterable[DayErrors]) -> pl.DataFrame:
    """Return what each day of a node adds to the variance of its period, with the days before it that are in
    the same one: of the whole error and of the noise, and of how many steps these are known.
    """
    noise, _ = error_columns(value)
    of_noise = rows.filter(pl.col(noise).is_not_null()) if noise in rows.columns else rows.clear()
    noise_known, days = set(of_noise["date"].unique()), set(rows["date"].unique())
    unknown = rows.join(of_noise, on=["date", "step", "node"], how="anti")["date"].unique()
    known_throughout = noise_known - set(unknown)
    frames = [pl.DataFrame(schema=_SCHEMA)]
    for one in errors:
        terms = one.terms
        shared = np.zeros(len(terms.nodes))
        for lag in range(1, terms.earlier.shape[1] + 1):
            before = one.period - timedelta(days=lag)
            if before in days and _begin(before, period) == _begin(one.period, period):
                shared += 2.0 * terms.earlier[:, lag - 1]
        variances = one.variances_of_sums(shared)
        day, n_steps = day_of(one.period), terms.steps.shape[1]
        whole = one.of == "whole"
        # of some hours of a day the noise may be known alone
        known = known_throughout if isinstance(one.period, Hour) else noise_known
        is_noise = one.of == "noise" or day in known
        counts = {"told": n_steps, "of_whole": whole * n_steps, "of_noise": is_noise * n_steps}
        found = {"date": day, **counts}
        labels = {name: pl.lit(value) for name, value in found.items()}
        figures = {"whole": variances * whole, "noise": variances * is_noise, "added": one.added.sum(axis=1)}
        frame = pl.DataFrame({"node": one.nodes, **figures})
        frames.append(frame.with_columns(**labels).cast(_SCHEMA).select(*_SCHEMA))
    return pl.concat(frames)


def _begin(day: date, period: Period) -> date:
    if period == "week":
        return day - timedelta(days=day.weekday())
    return day.replace(day=1) if period == "month" else day
