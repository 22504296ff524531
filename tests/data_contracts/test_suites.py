from datetime import date
from fractions import Fraction

import numpy as np
import polars as pl
import pytest

from data_contracts.judge import judge
from data_contracts.metrics import LINEAGE, private_period_metrics, release_metrics
from data_contracts.suites import PRIVATE_PERIOD_CONTRACT, refusals
from data_contracts.suites import RELEASE_CONTRACT as CONTRACT
from optstream.errors import ContractError
from optstream.privacy import PrivacyModel
from optstream.stream import AggregationTree, Calendar, Feature, PrivatePeriod
from optstream.stream.lattice import Margin

TREE = AggregationTree.from_parents({"FR": None, "N": "FR", "S": "FR", "a": "N", "b": "N"})
FEATURES = [Feature((range(0, 2), range(2, 4)), "halves")]
STATEMENT = {**dict.fromkeys(LINEAGE, "stated"), "period": "2025-01-15", "revision": 0, "vintage": 0}
VALUES = TREE.add_up(np.arange(12.0).reshape(3, 4))


def rows(values, tree=TREE):
    n_nodes, n_steps = values.shape
    return pl.DataFrame(
        {
            "step": pl.Series(np.tile(np.arange(n_steps), n_nodes), dtype=pl.Int32),
            "node": np.repeat(tree.nodes, n_steps),
            "load": values.ravel(),
        }
    )


def metrics_of(frame, *, lower_bound=Fraction(0), statement=STATEMENT, **changes):
    return release_metrics(
        date(2025, 1, 15),
        frame,
        changes.pop("tree", TREE),
        changes.pop("features", FEATURES),
        value_column="load",
        resolution=changes.pop("resolution", Fraction(1, 1000)),
        lower_bound=lower_bound,
        n_steps=4,
        statement=statement,
        **changes,
    )


def check(frame, **changes):
    for error in refusals(judge(CONTRACT, metrics_of(frame, **changes))[1]).values():
        raise error


def altered(node, step, value):
    values = VALUES.copy()
    values[TREE.nodes.index(node), step] = value
    return rows(values)


def test_a_sound_release_passes_in_any_order_of_rows():
    check(rows(VALUES))
    check(rows(VALUES).reverse())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("frame", "message"),
    [
        (rows(VALUES)[1:], "must have a row for each node and step"),
        (pl.concat([rows(VALUES), rows(VALUES)[:1]]), "must have each node and step once"),
        (
            pl.concat([rows(VALUES), rows(VALUES)[:1].with_columns(node=pl.lit("IT"))]),
            "the hierarchy's nodes",
        ),
        (
            pl.concat([rows(VALUES), rows(VALUES)[:1].with_columns(step=pl.lit(4, pl.Int32))]),
            "the day's steps only",
        ),
        (altered("a", 1, np.nan), "must hold finite numbers"),
        (altered("a", 1, np.inf), "must hold finite numbers"),
        (altered("a", 1, None), "must hold finite numbers"),
        (altered("FR", 1, VALUES[0, 1] + 0.00051), "must have each node equal the sum of its children"),
        (altered("a", 1, VALUES[3, 1] - 0.00051), "must have each node equal the sum of its children"),
        (rows(VALUES - TREE.add_up(np.full((3, 4), 1e-9))), "must be at or above the lower bound"),
    ],
)
def test_what_must_not_be_published_is_refused_by_its_rule(frame, message):
    with pytest.raises(ContractError, match=message) as caught:
        check(frame)
    assert "the release of 2025-01-15 is not published" in str(caught.value)


@pytest.mark.parametrize("resolution", [Fraction(1, 1000), Fraction(1, 7), Fraction(3)])
def test_multiples_that_add_up_are_no_further_off_than_their_floats(resolution):
    """Of 10^12 units, as floats of the unit of the readings."""
    units = TREE.add_up(np.random.default_rng(1).integers(0, 10**12, (3, 4)))
    found = metrics_of(rows(units * resolution.numerator / resolution.denominator), resolution=resolution)
    assert found["not_whole"].sum() == 0
    assert found["children_minus_parent"].sum() == 0


@pytest.mark.slow
def test_the_bound_counts_for_each_leaf_below():
    low = TREE.add_up(np.full((3, 4), -0.1))
    check(rows(low), lower_bound=Fraction(-1, 10))
    with pytest.raises(ContractError, match="must be at or above the lower bound"):
        check(rows(low), lower_bound=Fraction(-9, 100))


@pytest.mark.parametrize("key", LINEAGE)
def test_each_part_of_the_lineage_that_is_absent_is_counted(key):
    statements = (STATEMENT, *({**STATEMENT, key: empty} for empty in (None, "", [])))
    message = [metrics_of(rows(VALUES), statement=one)["lineage_absent"].sum() for one in statements]
    assert message == [0, 1, 1, 1]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["load_noise_se", "load_se"])
def test_standard_errors_are_finite_and_above_0_or_null(name):
    sound = rows(VALUES).with_columns(pl.lit(None, pl.Float64).alias(name))
    check(sound)
    check(sound.with_columns(pl.lit(2.5).alias(name)))
    for wrong in (0.0, -1.0, np.nan, np.inf):
        first = pl.int_range(pl.len()) == 0
        with pytest.raises(ContractError, match="must have standard errors that are finite"):
            check(sound.with_columns(pl.when(first).then(wrong).alias(name)))


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


FRENCH = AggregationTree.from_parents({"FR": None, "84": "FR", "11": "FR"})
CALENDAR = Calendar(30, "Europe/Paris")
MODEL = PrivacyModel(epsilon="1", window_length=48, alpha=1)
DAY = date(2025, 3, 30)
FIRST = CALENDAR.first_step(DAY)


def period(n_leaves=2, n_steps=46, resolution=Fraction(1, 1000), first_step=FIRST):
    return PrivatePeriod(np.ones((n_leaves, n_steps), np.int64), resolution=resolution, first_step=first_step)


@pytest.mark.parametrize(
    ("held", "broken"),
    [
        (period(), []),
        (None, ["periods", "leaves", "steps", "first_step", "resolution"]),
        (np.ones((2, 46), np.int64), ["periods", "leaves", "steps", "first_step", "resolution"]),
        (period(n_leaves=1), ["leaves"]),
        (period(n_steps=48), ["steps"]),
        (period(first_step=FIRST + 2), ["first_step"]),
        (period(resolution=Fraction(1)), ["resolution"]),
        (period(n_leaves=3, n_steps=1), ["leaves", "steps"]),
    ],
)
@pytest.mark.slow
def test_a_period_is_judged_by_its_public_facts(held, broken):
    metrics = private_period_metrics([(DAY, held)], lambda _day: FRENCH, CALENDAR, MODEL)
    assert [(one.column, one.day, one.alarm) for one in judge(PRIVATE_PERIOD_CONTRACT, metrics)[1]] == [
        (column, "2025-03-30", False) for column in broken
    ]
