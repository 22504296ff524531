"""What one customer's rows at one step can move: every small set of rows, each at its own step (Lemma 2b)."""

import itertools
from collections.abc import Callable
from datetime import date

import numpy as np
import polars as pl
import pytest

ALPHA = 100_000
"""The upper bound of the small stream in units; its lower bound is 0."""
VALUES = (0.0, 40.0, 100.0)
ONE_LEAF = [rows for size in range(3) for rows in itertools.product(VALUES, repeat=size)]
SETS = list(itertools.product(ONE_LEAF, ONE_LEAF))
"""Rows of one customer and step: in the first leaf, in file order, and in the second; at most two in each."""


def leaves_of(rows):
    return {leaf for leaf, own in enumerate(rows) if own}


def without(rows):
    """What is left if some of the rows are absent."""
    kept = [
        [list(some) for size in range(len(own) + 1) for some in itertools.combinations(own, size)]
        for own in rows
    ]
    return {(tuple(one), tuple(two)) for one, two in itertools.product(*kept)}


def moved(count: Callable, one, other):
    """By how much all leaves together move between two sets of rows, in units."""
    return sum(abs(a - b) for a, b in zip(count(one), count(other), strict=True))


def by_rule(rows):
    """The rule in words of Python: of one leaf's rows the first, of several leaves' rows none."""
    return tuple(int(1000 * own[0]) if leaves_of(rows) == {leaf} else 0 for leaf, own in enumerate(rows))


def first_leaf_wins(rows):
    """The rule that it is not: a step's rows of the first leaf, whatever the others have."""
    home = min(leaves_of(rows), default=None)
    return tuple(int(1000 * own[0]) if leaf == home else 0 for leaf, own in enumerate(rows))


def ingested(small, order):
    """What the real ingestion counts for each set of rows, put to the day's steps in this order."""
    stream = small(schema="metered", step="1min")
    stamps = stream.rows(0.0)["timestamp"]
    assert len(SETS) <= len(stamps)
    for leaf, region in enumerate(stream.settings.tree_of(date.min).leaves):
        rows = [
            (stamps[step], value, "mover")
            for step, number in enumerate(order)
            for value in SETS[number][leaf]
        ]
        columns = {"timestamp": stamps.dtype, "load": pl.Float64, "customer_id": pl.String}
        frame = pl.DataFrame(rows, schema=columns, orient="row")
        keeper = stream.rows(0.0, customer_id=pl.lit(f"keeper of {region}"))
        stream.write(region, pl.concat([frame, keeper.select(frame.columns)]))
    units = stream.units()[:, : len(order)]
    return {SETS[number]: tuple(units[:, step].tolist()) for step, number in enumerate(order)}


@pytest.mark.slow
def test_a_step_counts_by_its_own_rows_whatever_the_others_hold(small):
    """All sets beside each other, in three orders: a rule of the day lets a step drop the rows of others."""
    expected = {rows: by_rule(rows) for rows in SETS}
    rng = np.random.default_rng(5)
    for order in (range(len(SETS)), reversed(range(len(SETS))), rng.permutation(len(SETS)).tolist()):
        assert ingested(small, list(order)) == expected


def test_rows_that_come_or_go_move_one_leaf_by_at_most_alpha():
    changes = [(rows, fewer) for rows in SETS for fewer in without(rows)]
    assert max(moved(by_rule, *change) for change in changes) == ALPHA
    for rows, fewer in changes:
        gaps = [a != b for a, b in zip(by_rule(rows), by_rule(fewer), strict=True)]
        assert sum(gaps) <= 1


def test_only_rows_that_change_leaf_cost_twice():
    pairs = list(itertools.combinations(SETS, 2))
    twice = [pair for pair in pairs if moved(by_rule, *pair) > ALPHA]
    assert max(moved(by_rule, *pair) for pair in pairs) == 2 * ALPHA
    assert twice
    for one, other in twice:
        assert len(leaves_of(one)) == len(leaves_of(other)) == 1
        assert leaves_of(one) != leaves_of(other)


def test_control_with_the_first_leaf_of_the_step_a_row_that_comes_costs_twice():
    changes = [(rows, fewer) for rows in SETS for fewer in without(rows)]
    assert max(moved(first_leaf_wins, *change) for change in changes) == 2 * ALPHA


@pytest.mark.parametrize(("low", "most"), [(0, 1), (-1, 2)])
def test_a_repeated_row_that_goes_moves_by_the_width_of_the_bounds(low, most):
    """Why the table says so: the next row then counts. All rows of a step together move by one bound."""
    values = (low, 0, 1)
    sets = [rows for size in range(4) for rows in itertools.product(values, repeat=size)]
    count = {rows: rows[0] if rows else 0 for rows in sets}
    fewer = [
        (rows, some)
        for rows in sets
        for size in range(len(rows) + 1)
        for some in itertools.combinations(rows, size)
    ]
    assert max(abs(count[one] - count[other]) for one, other in fewer) == most
    assert max(abs(count[rows]) for rows in sets) == 1
