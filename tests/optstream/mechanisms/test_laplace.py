"""Independent and joint noise: who may have which, bit by bit, and next to days of another plan."""

import hashlib
from functools import partial

import numpy as np
import pytest

from optstream.measurement import EquallySpaced
from optstream.mechanisms import (
    Hierarchical,
    HistoryInformed,
    HistoryInformedTree,
    Laplace,
    OptStream,
    Uniform,
)
from optstream.noise import simulated_noise
from optstream.privacy import OrderSpend, PrivacyModel, StepSpend, worst_window
from optstream.stream import AggregationTree, Feature
from optstream.stream.public_days import PublicDays
from tests.optstream.mechanisms.planned_days import spends_of

MODEL, HALF_HOURS = PrivacyModel("1", 48, 1), (46, 48, 50)


def joint(model=MODEL, lengths=HALF_HOURS, n_nodes=1, **more):
    return Laplace(model, "joint", lengths, n_nodes, **more)


# what is drawn


def test_independent_noise_is_drawn_as_before_joint_noise_came():
    """The same bytes from the same seed, whatever would say for whom noise might be joint."""
    values = np.arange(96.0).reshape(2, 48)
    plain = Laplace(MODEL).measure(values, noise=simulated_noise(3), first_step=48)
    by_hand = np.rint(values * 1000) + simulated_noise(3).discrete_laplace(48_000.0, (2, 48))
    assert np.array_equal(plain.points, by_hand)
    for mechanism in (
        Laplace(MODEL, "laplace", HALF_HOURS, 2, 1),
        Laplace(MODEL, None, HALF_HOURS, 2, None),
        Laplace(MODEL, None, None, 2, 1),
        Uniform(MODEL, "laplace", HALF_HOURS, 2, 1),
    ):
        again = mechanism.measure(values, noise=simulated_noise(3), first_step=48)
        assert again.to_bytes() == plain.to_bytes()
    shared = joint(n_nodes=2, declared_leaves=1).measure(values, noise=simulated_noise(3), first_step=48)
    assert shared.spends != plain.spends


def test_a_tree_that_may_have_no_joint_noise_draws_the_bytes_that_the_code_before_it_drew():
    roaming = PrivacyModel("1", 48, 1, unit="roaming", leaves_per_step=2)
    forest = AggregationTree.from_parents({"all": None, "A": "all", "B": "all", "B1": "B", "B2": "B"})
    values = np.arange(144.0).reshape(3, 48)
    digests = []
    for model, shares in ((MODEL, ["0", "1/2", "1/2"]), (roaming, ["0", "1/2", "1/2"])):
        mechanism = Hierarchical(Laplace(model, period_lengths=HALF_HOURS), forest, shares)
        release = mechanism.release(values, noise=simulated_noise(11), first_step=48)
        assert not mechanism.adaptive
        digests.append(hashlib.sha256(release.measured.to_bytes()).hexdigest())
    assert digests == [BEFORE_CUSTOMER, BEFORE_ROAMING]


BEFORE_CUSTOMER = "b13eca3482183705f85b56dfff6b710bb4409abde0bf23592495b93bf303e75c"
BEFORE_ROAMING = "10fd387bf125884bb5045570561b7e74f43bf0f05389b62392593174faa3ec38"


TREE = AggregationTree.from_parents({"all": None, "A": "all", "B": "all"})
HALVES = ["1/2", "1/2"]


def laplace(model=MODEL, noise="joint", **given):
    return Laplace(model, noise, **({"period_lengths": HALF_HOURS} | given))


def informed(model=MODEL, noise="joint", blocks=(16, 1), **given):
    more = {"period_lengths": HALF_HOURS, "days": PublicDays(48), "relearn_days": 0} | given
    return HistoryInformed(model, *blocks, noise=noise, **more)


def laplace_tree(noise="joint", declared_leaves=1, shares=HALVES):
    return Hierarchical(laplace(noise=noise, declared_leaves=declared_leaves), TREE, shares)


def informed_tree(noise="joint", declared_leaves=1, shares=HALVES, **given):
    pattern = informed(noise=noise, declared_leaves=declared_leaves, **given)
    return HistoryInformedTree(pattern, TREE, shares)


def points_tree(noise="joint", declared_leaves=1, shares=HALVES, features=()):
    return OptStream(
        MODEL, TREE, sampling=EquallySpaced(10), features=features, level_shares=shares, noise=noise,
        declared_leaves=declared_leaves, period_lengths=HALF_HOURS,
    )  # fmt: skip


sums_tree = partial(points_tree, features=[Feature((range(14), range(14, 48)), "parts")])
SERIES = pytest.mark.parametrize("make", [laplace, informed])
ON_TREE = pytest.mark.parametrize("make", [laplace_tree, points_tree, informed_tree])


@SERIES
@pytest.mark.parametrize(
    ("unit", "n_nodes", "declared", "has_it"),
    [
        ("customer", 1, None, True),
        ("roaming", 1, None, True),
        ("customer", 2, 1, True),
        ("customer", 2, None, False),
        ("customer", 2, 2, False),
        ("roaming", 2, 1, False),
        ("customer", None, 1, False),
    ],
)
def test_noise_is_joint_only_where_a_lemma_allows_it(make, unit, n_nodes, declared, has_it):
    model = PrivacyModel("1", 48, 1, unit=unit)
    (spend,) = make(model, None, n_nodes=n_nodes, declared_leaves=declared).plan(48)
    assert isinstance(spend, OrderSpend) == has_it
    if has_it:
        assert (spend.n_nodes, spend.leaves_changed) == (n_nodes, 1)
    else:
        assert isinstance(spend, StepSpend)
        assert spend.scale == 1000 * sum(spend.weights)


@ON_TREE
def test_a_tree_has_it_at_the_root_and_where_the_operator_says_that_customers_stay(make):
    joint = {
        (declared, spend.level)
        for declared in (None, 1)
        for spend in make(None, declared).plan(48)
        if isinstance(spend, OrderSpend)
    }
    assert joint == {(None, 0), (1, 0), (1, 1)}
    assert make(None, 1).adaptive


def days_after(spends, mechanism, n_days, first_step=0):
    """Days in a row, each knowing all spends before it."""
    found, state = [], None
    for at in range(first_step, first_step + 48 * n_days, 48):
        state = mechanism.recall([*spends, *spends_of(found)], state)
        noise, values = simulated_noise(at), np.full((2, 48), 1e5)
        found.append(mechanism.measure(values, noise=noise, first_step=at, state=state))
        state = found[-1].state
    return found


BEFORE = {
    "Laplace": lambda: Hierarchical(Laplace(MODEL), TREE, HALVES),
    "points": lambda: points_tree("laplace"),
    "points and sums": lambda: sums_tree("laplace", shares=["9/10", "1/10"]),
    "independent": lambda: informed_tree("laplace"),
    "longer blocks": lambda: informed_tree(blocks=(6, 4)),
    "root first": lambda: informed_tree(shares=["9/10", "1/10"]),
    "few": lambda: informed_tree(blocks=(2, 4)),
}


PAIRS = [
    *(
        (informed_tree, before, declared)
        for before in BEFORE
        for declared in (1, None)
        if "points" not in before
    ),
    (laplace_tree, "Laplace", 1),
    (points_tree, "points", 1),
    (sums_tree, "points and sums", 1),
]


@pytest.mark.parametrize(("make", "before", "declared"), PAIRS)
def test_after_another_plan_no_window_loses_more(make, before, declared):
    """Blocks are left out, and the days go on: within three all that is planned is measured again."""
    mechanism = make(None, declared)
    for n_before in (1, 2):
        first = spends_of(days_after([], BEFORE[before](), n_before))
        second = days_after(first, mechanism, 4, 48 * n_before)
        assert worst_window([*first, *spends_of(second)], 48).epsilon <= 1
        planned = mechanism.plan(48, 48 * (n_before + 3))
        assert [one.weights for one in second[3].spends] == [one.weights for one in planned]
        assert np.isfinite(mechanism.estimate(second[0]).values).all()
