"""Sliding sums and events against their definitions, window by window."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import numpy as np
import polars as pl
import pytest

from optstream.errors import ParameterError
from optstream.queries import drops, jumps, low_signal, merge_windows, sliding_sums

HALF_HOUR = timedelta(minutes=30)
START = datetime(2016, 3, 26, 20, tzinfo=UTC)  # the clocks of Paris change in the night that follows


def rows_of(series, start=START):
    """Rows as they are published: nodes interleaved, local dates and steps, UTC timestamps."""
    rows = []
    for number in range(len(next(iter(series.values())))):
        at = start + number * HALF_HOUR
        local = at.astimezone(ZoneInfo("Europe/Paris"))
        for node, values in series.items():
            step = 2 * local.hour + local.minute // 30
            rows.append((local.date(), step, at, node, values[number]))
    names = ["date", "step", "timestamp", "node", "load_mw"]
    kept = [row for row in rows if row[-1] is not None]
    return pl.DataFrame(kept, schema=names, orient="row").with_columns(pl.col("load_mw").cast(pl.Float64))


def answers_of(found, name):
    return {(node, at): value for node, at, value in found.select("node", "timestamp", name).iter_rows()}


SERIES = {
    "84": [*np.random.default_rng(1).integers(0, 9, 40).tolist()],
    "FR": [*np.random.default_rng(2).integers(0, 9, 17).tolist(), None, *range(22)],
}


@pytest.mark.parametrize("steps", [1, 2, 7, 40])
def test_each_window_is_answered_as_its_definition_says(steps):
    rows, sums, changes = rows_of(SERIES), {}, {}
    for node, values in SERIES.items():
        for end in range(steps - 1, len(values)):
            window = values[end - steps + 1 : end + 1]
            if None not in window:
                sums[node, START + end * HALF_HOUR] = sum(window)
                changes[node, START + end * HALF_HOUR] = window[-1] - window[0]
    found = sliding_sums(rows, "load_mw", steps)
    assert answers_of(found, "window_sum") == sums
    low = low_signal(rows, "load_mw", steps, at_most=12)
    assert low["happened"].to_list() == [value <= 12 for value in low["window_sum"]]
    if steps > 1:
        for events, sign in ((jumps, 1), (drops, -1)):
            found = events(rows, "load_mw", steps, at_least=3)
            assert answers_of(found, "change") == changes
            assert found["happened"].to_list() == [sign * value >= 3 for value in found["change"]]


def test_borders_count_and_are_decided_exactly():
    rows = rows_of({"FR": [0.1, 0.2, 0.3, 0.6]})
    assert low_signal(rows, "load_mw", 3, at_most=0.6)["happened"].to_list() == [True, False]
    assert jumps(rows, "load_mw", 2, at_least=0.1)["happened"].to_list() == [True, True, True]
    assert drops(rows_of({"FR": [0.3, 0.2]}), "load_mw", 2, at_least=0.1)["happened"].to_list() == [True]


def test_windows_one_after_another_are_one_span_and_a_gap_or_a_step_without_a_time_ends_it():
    values = [1, 1, 9, 1, 1, 1, None, 1, 9, 1]
    spans = merge_windows(low_signal(rows_of({"FR": values}), "load_mw", 1, at_most=1))
    assert spans["windows"].to_list() == [2, 3, 1, 1]
    assert spans["first"].to_list() == [START + at * HALF_HOUR for at in (0, 3, 7, 9)]
    assert spans["last"].to_list() == [START + at * HALF_HOUR for at in (1, 5, 7, 9)]
    rows = rows_of({"FR": [1, 2]}).with_columns(timestamp=pl.lit(None, dtype=pl.Datetime("us", "UTC")))
    assert sliding_sums(rows, "load_mw", 1).is_empty()
    assert merge_windows(jumps(rows, "load_mw", 2, at_least=1)).is_empty()


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"steps": 0}, "steps must be a whole number of at least 1"),
        ({"steps": 1.5}, "got 1.5"),
        ({"value": "load"}, "load is missing"),
        ({"rows": pl.concat([rows_of({"FR": [1]})] * 2)}, "each node and step once"),
        ({"rows": rows_of({"FR": [1e10]})}, "would not be exact"),
    ],
)
def test_what_cannot_be_answered_is_refused(change, named):
    given = {"rows": rows_of({"FR": [1, 2]}), "value": "load_mw", "steps": 1} | change
    with pytest.raises(ParameterError, match=named):
        sliding_sums(**given)
