"""Sliding sums and events of published series: functions of published data, which cost no privacy.

`rows` are of `read_published`, any selection of nodes and days, with the columns date, step, timestamp and
node; `value` names the column that is used, such as "load_mw". A window is of `steps` consecutive steps of
one node, over midnight, too; where a step is not published no window reaches over it. Values are added as
whole multiples of 1e-6, so that a border is decided exactly. Events are those of the published values: noise
may make one, or hide one. `read_sum` gives the standard error of one window's sum.

Answers have a row for each window, by node and time: date, step and timestamp of its last step, node, the
figure, and whether the event happened.

Definitions: Chen, Machanavajjhala, Hay and Miklau 2017, section 2.2: sliding windows, low signal, jumps and
drops.
"""

from collections.abc import Callable

import polars as pl

from optstream.errors import ParameterError

UNIT = 1e-6
LARGEST = 2.0**53 * UNIT
KEYS = ("date", "step", "timestamp", "node")


def sliding_sums(rows: pl.DataFrame, value: str, steps: int) -> pl.DataFrame:
    """Return the sum of every window, as `window_sum`.

    Raises:
        ParameterError: A column is missing, a window is no whole number of steps, or sums would not be exact.

    Example:
        >>> import polars as pl
        >>> from datetime import UTC, date, datetime
        >>> rows = pl.DataFrame({
        ...     "date": date(2016, 2, 1), "step": range(4), "node": "FR", "load_mw": [5.0, 3.0, 1.0, 4.0],
        ...     "timestamp": [datetime(2016, 2, 1, hour, tzinfo=UTC) for hour in range(4)],
        ... })
        >>> sliding_sums(rows, "load_mw", 2)["window_sum"].to_list()
        [8.0, 4.0, 5.0]
        >>> low_signal(rows, "load_mw", 2, at_most=4)["happened"].to_list()
        [False, True, False]
    """
    return _answers(rows, value, steps, 1, "window_sum", lambda units: units.rolling_sum(steps))


def low_signal(rows: pl.DataFrame, value: str, steps: int, *, at_most: float) -> pl.DataFrame:
    """Return the windows whose sum is at most a border; raises as `sliding_sums`."""
    return sliding_sums(rows, value, steps).with_columns(happened=pl.col("window_sum") <= at_most)


def jumps(rows: pl.DataFrame, value: str, steps: int, *, at_least: float) -> pl.DataFrame:
    """Return in which windows the `change`, last value less first, is at least a border above 0.

    Raises:
        ParameterError: As `sliding_sums`, for fewer than 2 steps, and for a border that is not above 0.
    """
    found = _changes(rows, value, steps, at_least)
    return found.with_columns(happened=pl.col("change") >= at_least)


def drops(rows: pl.DataFrame, value: str, steps: int, *, at_least: float) -> pl.DataFrame:
    """Return the windows whose last value is at least a border below the first; raises as `jumps`."""
    found = _changes(rows, value, steps, at_least)
    return found.with_columns(happened=pl.col("change") <= -at_least)


def merge_windows(windows: pl.DataFrame) -> pl.DataFrame:
    """Return events as spans of time: windows one after another in which one happened.

    Args:
        windows: As `low_signal`, `jumps` or `drops` return them.

    Returns:
        By first window and node: node, first and last (timestamps of the last steps of the first and the last
        window), windows (how many).
    """
    before = pl.col("timestamp").diff().over("node")
    apart = (before != before.min()) | ~pl.col("happened").shift().over("node")
    spans = (
        windows.sort("node", "timestamp")
        .with_columns(run=apart.fill_null(True).cum_sum())
        .filter("happened")
        .group_by("node", "run")
        .agg(first=pl.col("timestamp").min(), last=pl.col("timestamp").max(), windows=pl.len())
    )
    return spans.drop("run").sort("first", "node")


def _changes(rows: pl.DataFrame, value: str, steps: int, at_least: float) -> pl.DataFrame:
    if not at_least > 0:
        raise ParameterError(f"at_least must be greater than 0; got {at_least!r}")
    return _answers(rows, value, steps, 2, "change", lambda units: units - units.shift(steps - 1))


def _answers(
    rows: pl.DataFrame, value: str, steps: int, least: int, name: str, figure: Callable[[pl.Expr], pl.Expr]
) -> pl.DataFrame:
    """Return a figure of every window of the steps that have a time, by their values in whole units."""
    if missing := [key for key in (*KEYS, value) if key not in rows.columns]:
        raise ParameterError(
            f"rows must have the columns {', '.join((*KEYS, value))}; {missing[0]} is missing"
        )
    if type(steps) is not int or steps < least:
        raise ParameterError(f"steps must be a whole number of at least {least}; got {steps!r}")
    known = pl.col("timestamp").is_not_null() & pl.col(value).is_not_null()
    timed = rows.filter(known).sort("node", "timestamp")
    if timed.select(pl.struct("node", "timestamp").is_duplicated().any()).item():
        raise ParameterError("rows must have each node and step once; read one revision of each day")
    if timed.select((pl.col(value).abs().max() * steps >= LARGEST).fill_null(False)).item():
        raise ParameterError(f"sums over {steps} steps of {value} would not be exact; ask shorter windows")
    before = pl.col("timestamp").diff().over("node")
    spaced = timed.with_columns(units=(pl.col(value) / UNIT).round().cast(pl.Int64), before=before)
    broken = (pl.col("before") != pl.col("before").min()).fill_null(True)
    found = spaced.with_columns(run=broken.cum_sum()).with_columns(
        found=figure(pl.col("units")).over("node", "run")
    )
    answer = (pl.col("found") * UNIT).round(6).alias(name)
    return found.filter(pl.col("found").is_not_null()).select(*KEYS, answer)
