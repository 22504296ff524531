"""What one customer's rows at one step can move: every small set of rows, each at its own step (Lemma 2b)."""

import itertools
import shutil
from collections.abc import Callable
from datetime import date, timedelta

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from optstream.measurement.sums import open_private_period
from tasks.ingest.arrivals import EVERY

ALPHA = 100_000
"""The upper bound of the small stream in units; its lower bound is 0."""
VALUES = (0.0, 40.0, 100.0)
ONE_LEAF = [rows for size in range(3) for rows in itertools.product(VALUES, repeat=size)]
SETS = list(itertools.product(ONE_LEAF, ONE_LEAF))
"""Rows of one customer and step: in the first leaf, in file order, and in the second; at most two in each."""
NEXT, HALF_HOUR = 48, timedelta(minutes=30)
STAMPS = st.sampled_from([None, *range(48), NEXT, -1, 17.001, -400_000.0])
"""Steps of the day; of other days, of 1970, between two steps, or none."""
ROW = st.tuples(
    st.sampled_from(["84", "11", "nowhere", None]),
    st.booleans(),
    STAMPS,
    st.sampled_from([None, float("nan"), float("inf"), float("-inf"), 1e300, -5.0, 0.0, 40.0, 100.0]),
)
"""One customer's row: its leaf, whether it names the customer, its stamp and its reading."""
WORLD = st.tuples(st.lists(ROW, max_size=30), st.booleans())
"""Rows, and whether a column of nothing has no type."""
FINE = [(part, value) for part in (0, 1) for value in (*VALUES, -30.0)]
FINER = [
    (own, other)
    for own in [rows for size in range(3) for rows in itertools.product(FINE, repeat=size)]
    for other in ((), ((0, 40.0),), ((1, 40.0), (0, 100.0)))
]
"""Sets of finer rows, each a part of its step and a value, where two rows make a step."""


def leaves_of(rows):
    return {leaf for leaf, own in enumerate(rows) if own}


def without(rows):
    """The sets that remain if some of the rows are absent."""
    kept = [[some for size in range(3) for some in itertools.combinations(own, size)] for own in rows]
    return set(itertools.product(*kept))


def moved(count: Callable, one, other):
    return sum(abs(a - b) for a, b in zip(count(one), count(other), strict=True))


def by_rule(rows):
    """The rule in words of Python: of one leaf's rows the first, of several leaves' rows none."""
    return tuple(int(1000 * own[0]) if leaves_of(rows) == {leaf} else 0 for leaf, own in enumerate(rows))


def first_leaf_wins(rows):
    """The rule that it is not: a step's rows of the first leaf, whatever the others have."""
    home = min(leaves_of(rows), default=None)
    return tuple(int(1000 * own[0]) if leaf == home else 0 for leaf, own in enumerate(rows))


def ingested(small, order, sets=SETS, step="1min", finer=""):
    """What the real ingestion counts for each set of rows; finer ones are pairs of minute and value."""
    stream = small(schema="metered", step=step, marker=finer)
    stamps = stream.rows(0.0)["timestamp"]
    assert len(sets) <= len(stamps)
    for leaf, region in enumerate(stream.settings.tree_of(date.min).leaves):
        rows = [
            (stamps[step] + timedelta(minutes=row[0] if finer else 0), row[1] if finer else row, "mover")
            for step, number in enumerate(order)
            for row in sets[number][leaf]
        ]
        columns = {"timestamp": stamps.dtype, "load": pl.Float64, "customer_id": pl.String}
        frame = pl.DataFrame(rows, schema=columns, orient="row")
        keeper = stream.rows(0.0, customer_id=pl.lit(f"keeper of {region}"))
        stream.write(region, pl.concat([frame, keeper.select(frame.columns)]))
    units = stream.units()[:, : len(order)]
    return {sets[number]: tuple(units[:, step].tolist()) for step, number in enumerate(order)}


@pytest.mark.slow
def test_a_step_counts_by_its_own_rows_whatever_the_others_hold(small):
    """All sets together, in three orders: a rule of the day lets a step drop the rows of others."""
    expected = {rows: by_rule(rows) for rows in SETS}
    rng = np.random.default_rng(5)
    for order in (range(len(SETS)), reversed(range(len(SETS))), rng.permutation(len(SETS)).tolist()):
        assert ingested(small, list(order)) == expected


def test_rows_that_come_or_go_move_one_leaf_by_at_most_alpha():
    """Only rows that change leaf cost twice. Control: so do rows that come, if the first leaf's count."""
    changes = [(rows, fewer) for rows in SETS for fewer in without(rows)]
    assert max(moved(by_rule, *change) for change in changes) == ALPHA
    assert max(moved(first_leaf_wins, *change) for change in changes) == 2 * ALPHA
    for rows, fewer in changes:
        assert sum(a != b for a, b in zip(by_rule(rows), by_rule(fewer), strict=True)) <= 1
    twice = [pair for pair in itertools.combinations(SETS, 2) if moved(by_rule, *pair) > ALPHA]
    assert max(moved(by_rule, *pair) for pair in twice) == 2 * ALPHA
    for one, other in twice:
        assert len(leaves_of(one)) == len(leaves_of(other)) == 1
        assert leaves_of(one) != leaves_of(other)


def by_sum(rows, n=1):
    """The rule of Lemma 2d: the first of each finer step, added up, or their mean of n, and then clamped."""
    firsts = [dict(reversed(own)) for own in rows]
    clamped = [min(max(sum(own.values()) / n, 0.0), 100.0) for own in firsts]
    alone = [leaves_of(rows) == {leaf} for leaf in range(2)]
    return tuple(int(1000 * one) if counts else 0 for one, counts in zip(clamped, alone, strict=True))


@pytest.mark.slow
@pytest.mark.parametrize(("combine", "n"), [("sum", 1), ("mean", 2)])
def test_finer_rows_of_a_customer_are_added_before_they_are_clamped(small, combine, n):
    """Lemma 2d, over all neighbours: what comes, goes or changes in one leaf moves it by one bound."""
    order = np.random.default_rng(6).permutation(len(FINER)).tolist()
    keys = f'step = "1min"\ncombine = "{combine}"'
    counted = ingested(small, order, FINER, "2min", keys)
    assert counted == {rows: by_sum(rows, n) for rows in FINER}
    one_by_one = {rows: sum(1000 * min(max(value, 0.0), 100.0) for _, value in rows[0]) for rows in FINER}
    assert max(one_by_one.values()) == 2 * ALPHA, "the control"
    for one, other in itertools.product([rows for rows in FINER if leaves_of(rows) <= {0}], repeat=2):
        assert moved(counted.get, one, other) <= ALPHA
    changes = [(rows, fewer) for rows in FINER for fewer in without(rows) if fewer in counted]
    assert max(moved(counted.get, *change) for change in changes) == ALPHA
    for rows, fewer in changes:
        assert sum(a != b for a, b in zip(counted[rows], counted[fewer], strict=True)) <= 1


def judged(stream, worlds, days):
    """A day for each world, with its rows of the customer: the verdicts in words, and the sums."""
    shutil.rmtree(stream.settings.input_folder, ignore_errors=True)
    in_one = stream.settings.input.region is not None
    for day, (rows, types) in zip(days, worlds, strict=True):
        stamps = stream.rows(0.0, day)["timestamp"]
        known = {"zone": pl.String, "customer_id": pl.String, "timestamp": stamps.dtype, "load": pl.Float64}
        for leaf in ("84", "11"):
            folder = EVERY if in_one else leaf
            keeper = stream.rows(7.0, day, customer_id=pl.lit(f"keeper of {leaf}"), zone=pl.lit(leaf))
            # alone in the second leaf
            stream.write(folder, keeper if leaf == "84" else keeper.clear(), day, f"{leaf}.parquet")
            if in_one and leaf == "11":
                continue
            home = {leaf, None, "nowhere"} if leaf == "84" else {leaf}
            own = [
                (zone, "one" if name else None, None if step is None else stamps[0] + HALF_HOUR * step, load)
                for zone, name, step, load in rows
                if in_one or zone in home
            ]
            frame = pl.DataFrame(own, schema=known, orient="row")
            empty = [name for name in known if frame[name].is_null().all()] if types else []
            frame = frame.with_columns(pl.lit(None).alias(name) for name in empty)
            stream.write(folder, frame, day, "one.parquet")
    return [(one.error, one.period and open_private_period(one.period)) for one in stream.judge(*days)]


@pytest.mark.parametrize("n_examples", [2, pytest.param(20, marks=pytest.mark.nightly)])
@pytest.mark.parametrize("folders", ["", 'region = "zone"'], ids=["a folder for each leaf", "one folder"])
@pytest.mark.slow
def test_of_any_rows_of_a_customer_the_day_appears_and_steps_move_by_a_bound(
    small, days, folders, n_examples
):
    """Lemma 2c and Lemma 2b, against the world without the customer; eight worlds, each on its own day."""
    stream = small(schema="metered", marker=folders)
    without_them = judged(stream, [([], False), ([], True)], days(2))

    @settings(max_examples=n_examples, deadline=None)
    @given(st.lists(WORLD, min_size=8, max_size=8))
    def one_customer(worlds):
        for (rows, types), (refused, sums) in zip(worlds, judged(stream, worlds, days(8)), strict=True):
            nothing, bare = without_them[types]
            assert refused is nothing is None
            moved_by = np.abs(sums - bare)
            assert moved_by.sum(axis=0).max() <= ALPHA
            stepless = {row[2] for row in rows if row[1] and row[2] in range(NEXT)}
            assert not moved_by[:, [step for step in range(NEXT) if step not in stepless]].any()

    one_customer()
