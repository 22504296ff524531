from datetime import date, timedelta
from fractions import Fraction

import numpy as np
import polars as pl
import pytest

from data_contracts.judge import judge
from data_contracts.metrics import LINEAGE, release_metrics
from data_contracts.suites import RELEASE_CONTRACT, refusals
from optstream.stream import AggregationTree, Feature
from optstream.stream.lattice import Margin

DAY = date(2025, 3, 23)
TREE = AggregationTree.from_parents({"FR": None, "N": "FR", "S": "FR", "a": "N", "b": "N"})
STATEMENT = {**dict.fromkeys(LINEAGE, "stated"), "period": "2025-01-15", "revision": 0, "vintage": 0}
VALUES = TREE.add_up(np.arange(12.0).reshape(3, 4))
LOW = TREE.add_up(np.full((3, 4), -0.1))


def rows(values, tree=TREE):
    n_nodes, n_steps = values.shape
    return pl.DataFrame(
        {
            "step": pl.Series(np.tile(np.arange(n_steps), n_nodes), dtype=pl.Int32),
            "node": np.repeat(tree.nodes, n_steps),
            "load": values.ravel(),
        }
    )


def metrics_of(frame, day=DAY, tree=TREE, lower_bound="0", statement=STATEMENT, resolution="1/1000"):
    features = [Feature((range(0, 2), range(2, 4)), "halves")]
    return release_metrics(
        day, frame, tree, features, value_column="load", resolution=Fraction(resolution),
        lower_bound=Fraction(lower_bound), n_steps=4, statement=statement,
    )  # fmt: skip


def altered(node, step, value):
    values = VALUES.copy()
    values[TREE.nodes.index(node), step] = value
    return rows(values)


def more(**columns):
    return pl.concat([rows(VALUES), rows(VALUES)[:1].with_columns(**columns)])


def with_errors(name, first, others):
    is_first = pl.int_range(pl.len()) == 0
    return rows(VALUES).with_columns(pl.when(is_first).then(first).otherwise(others).alias(name))


ERRORS = ("load_noise_se", "load_se")
SUMS = "must have each node equal the sum of its children"
RELEASES = [
    (rows(VALUES), {}, ""),
    (rows(VALUES).reverse(), {}, ""),
    (rows(VALUES)[1:], {}, "must have a row for each node and step"),
    (more(), {}, "must have each node and step once"),
    (more(node=pl.lit("IT")), {}, "the hierarchy's nodes"),
    (more(step=pl.lit(4, pl.Int32)), {}, "the day's steps only"),
    *((altered("a", 1, value), {}, "must hold finite numbers") for value in (np.nan, np.inf, None)),
    (altered("FR", 1, VALUES[0, 1] + 0.00051), {}, SUMS),
    (altered("a", 1, VALUES[3, 1] - 0.00051), {}, SUMS),
    (rows(VALUES - TREE.add_up(np.full((3, 4), 1e-9))), {}, "must be at or above the lower bound"),
    # which counts for each leaf below
    (rows(LOW), {"lower_bound": "-0.1"}, ""),
    (rows(LOW), {"lower_bound": "-0.09"}, "must be at or above the lower bound"),
    *((with_errors(name, one, one), {}, "") for name in ERRORS for one in (pl.lit(None, pl.Float64), 2.5)),
    *((with_errors(name, one, None), {}, "must have standard errors that are finite")
      for name in ERRORS for one in (0.0, -1.0, np.nan, np.inf)),
    *((rows(VALUES), {"statement": {**STATEMENT, key: empty}}, "must state its whole lineage")
      for key in LINEAGE for empty in (None, "", [])),
]  # fmt: skip


@pytest.mark.slow
def test_what_must_not_be_published_is_refused_by_its_rule():
    """Each release is that of a day of its own."""
    days = [DAY + timedelta(days=number) for number, _ in enumerate(RELEASES)]
    metrics = [metrics_of(frame, day, **keys) for day, (frame, keys, _) in zip(days, RELEASES, strict=True)]
    errors = refusals(judge(RELEASE_CONTRACT, pl.concat(metrics, how="vertical_relaxed"))[1])
    for day, (frame, keys, message) in zip(days, RELEASES, strict=True):
        said = str(errors.get(str(day), ""))
        assert message in said, (frame, keys)
        assert said.startswith(f"the release of {day} is not published" if message else ""), (frame, keys)
        assert bool(said) == bool(message), (frame, keys, said)


@pytest.mark.parametrize("resolution", ["1/1000", "1/7", "3"])
def test_multiples_that_add_up_are_no_further_off_than_their_floats(resolution):
    """Of 10^12 units, as floats of the unit of the readings."""
    units, unit = np.random.default_rng(1).integers(0, 10**12, (3, 4)), Fraction(resolution)
    found = metrics_of(rows(TREE.add_up(units) * unit.numerator / unit.denominator), resolution=resolution)
    assert found["not_whole"].sum() == found["children_minus_parent"].sum() == 0


@pytest.mark.parametrize("off", ["FR", "N", "x", "N-x"])
def test_beside_a_margin_nodes_must_add_up_both_ways(off):
    """The root, a region, a sector and a cell: a wrong sum is found in each way of summing."""
    lattice = Margin("sector", ("x", "y")).on(
        AggregationTree.from_parents({"FR": None, "N": "FR", "S": "FR"})
    )
    values = lattice.add_up(np.arange(16.0).reshape(4, 4))
    assert metrics_of(rows(values, lattice), tree=lattice)["children_minus_parent"].sum() == 0
    values[lattice.nodes.index(off), 2] += 1.0
    found = metrics_of(rows(values, lattice), tree=lattice)
    hit = set(found.filter(pl.col("children_minus_parent") > 0)["region"])
    assert hit == {"FR": {"FR"}, "N": {"FR", "N"}, "x": {"FR", "x"}, "N-x": {"N", "x"}}[off]
