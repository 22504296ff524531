"""Mechanisms on a hierarchy with a margin: the margin is charged as a level is, and what is not taken."""

from fractions import Fraction
from itertools import permutations, product

import numpy as np
import pytest

from optstream.catalogue.measurements import describe, mechanism_from
from optstream.measurement import EquallySpaced, L1Sampling
from optstream.measurement.sums import feature_stage
from optstream.mechanisms import (
    Hierarchical,
    HistoryInformed,
    HistoryInformedTree,
    Laplace,
    OptStream,
    on_tree,
)
from optstream.noise import simulated_noise
from optstream.privacy import PrivacyModel, worst_window
from optstream.stream import Feature, Measured
from optstream.stream.public_days import PublicDays
from tests.optstream.estimation.programs import incomplete
from tests.optstream.estimation.programs import product as cells_of
from tests.optstream.mechanisms.conftest import PLAIN
from tests.optstream.mechanisms.test_history_informed import SLOTS, informed, load, run
from tests.optstream.mechanisms.test_standard_errors import one_by_one, unbounded

LATTICE = cells_of(2, 3)
SHARES = ["1/8", "1/8", "1/4", "1/2"]
PAIR, SIX = PrivacyModel("1", 2, 1, resolution=1), PrivacyModel("1", 6, 1)
NESTED = [Feature((range(0, 3), range(3, 6)), "halves"), Feature((range(6),), "day")]
PLANS = {
    "points": {"features": []},
    "features": {},
    "points by level": {"sampling": L1Sampling(3, "1")},
    "a derived margin": {"level_shares": ["1/8", "1/8", "3/4", "0"]},
    "the paper's weights": {"weights": "paper"},
    "joint noise": {
        "sampling": EquallySpaced(6), "noise": "joint", "period_lengths": (6,), "declared_leaves": 1
    },
}  # fmt: skip


def exact_loss(mechanism, moved, plan=None):
    """The loss of a change (cells, steps): at each level |move| over the scale of each number (Lemma 3)."""
    lost = Fraction(0)
    features = {feature_stage(one): one.matrix for one in getattr(mechanism, "features", ())}
    for spend in plan or mechanism.plan(moved.shape[1], 0):
        nodes = mechanism.tree.levels[spend.level]
        sums = mechanism.tree.add_up(moved)[nodes.start : nodes.stop]
        asked = features.get(spend.stage, np.diag(spend.weights))
        lost += int(np.abs(sums @ asked.T).sum()) / spend.scale
    return lost


def with_features(lattice):
    features = [Feature((range(2),), "day"), Feature((range(1), range(1, 2)), "steps")]
    return OptStream(PAIR, lattice, sampling=EquallySpaced(2), features=features, level_shares=SHARES)


def with_blocks(lattice):
    return HistoryInformedTree(HistoryInformed(PAIR, 2, 1, days=PublicDays(2)), lattice, SHARES)


@pytest.mark.parametrize(
    "make", [lambda lattice: Hierarchical(Laplace(PAIR), lattice, SHARES), with_features, with_blocks],
    ids=["Laplace", "OptStream with features", "HistoryInformed"],
)  # fmt: skip
@pytest.mark.parametrize("lattice", [LATTICE, incomplete(0)], ids=["complete", "incomplete"])
def test_no_change_of_a_customer_loses_more_than_is_charged_and_some_lose_all(lattice, make):
    mechanism = make(lattice)
    plan = mechanism.plan(2, 0)
    charged = worst_window(plan, 2).epsilon
    assert charged == mechanism.epsilon <= 1
    n_cells, worst = len(lattice.leaves), Fraction(0)
    for first, second in product(range(n_cells), repeat=2):
        for up, down in ((0, 1), (1, 0), (1, 1), (1, -1)):
            moved = np.zeros((n_cells, 2), dtype=np.int64)
            moved[first, 0], moved[second, 1] = up, down
            worst = max(worst, exact_loss(mechanism, moved, plan))
    assert worst == charged


def adds_up_above_its_bound(mechanism):
    """A release of few counts, which is read back from its bytes as the same values."""
    lattice = mechanism.tree
    values = np.random.default_rng(2).integers(0, 4, (len(lattice.leaves), 6)).astype(float)
    release = mechanism.release(values, noise=simulated_noise(3))
    leaves = release.values[lattice.leaf_indices]
    assert leaves.min() >= 0
    assert np.allclose(release.values, lattice.add_up(leaves))
    assert release.epsilon_alone <= mechanism.epsilon <= mechanism.model.epsilon
    again = mechanism_from(describe(mechanism)).estimate(Measured.from_bytes(release.measured.to_bytes()))
    assert np.array_equal(again.values, release.values)
    return release


@pytest.mark.parametrize("pattern", PLAIN)
def test_any_pattern_adds_up_both_ways_above_its_bound_and_again_from_its_bytes(pattern):
    adds_up_above_its_bound(on_tree(PLAIN[pattern](SIX, 6), LATTICE, SHARES))


@pytest.mark.parametrize(
    ("plan", "lattice"),
    [*((plan, incomplete(1)) for plan in PLANS), ("features", LATTICE)],
    ids=[*PLANS, "features, complete"],
)
def test_optstream_adds_up_both_ways_above_its_bound_with_the_errors_of_each_drawn_number(plan, lattice):
    given = {"sampling": EquallySpaced(3), "features": NESTED, "level_shares": SHARES} | PLANS[plan]
    mechanism = OptStream(SIX, lattice, **given)
    release = adds_up_above_its_bound(mechanism)
    assert release.values[lattice.leaf_indices].min() == 0, "the bound is met somewhere"
    assert release.optimality.converged
    brute = one_by_one(unbounded(mechanism), release.measured)
    assert np.allclose(release.noise_standard_errors**2, brute, rtol=1e-6)


def test_two_roaming_leaves_lose_at_most_what_two_are_charged():
    model = PrivacyModel("1", 1, 1, resolution=1, unit="roaming", leaves_per_step=2)
    mechanism = Hierarchical(Laplace(model), LATTICE, SHARES)
    worst = Fraction(0)
    for first, second in permutations(range(len(LATTICE.leaves)), 2):
        for ups in product((-1, 1), repeat=2):
            moved = np.zeros((len(LATTICE.leaves), 1), dtype=np.int64)
            moved[[first, second], 0] = ups
            worst = max(worst, exact_loss(mechanism, moved))
    assert worst == worst_window(mechanism.plan(1, 0), 1).epsilon == mechanism.epsilon <= 1


def test_a_sum_over_cells_has_the_error_of_the_node_that_it_is():
    lattice = cells_of(3, 2)
    release = run(HistoryInformedTree(informed(), lattice, ["1/4"] * 4), load(3)[np.arange(6) % 3])[-1]
    node, cells = "s1", [f"{region}-s1" for region in range(3)]
    day = 2 * SLOTS
    for first in (day, day + 7):
        one, many = (release.sum(nodes, range(first, first + 5)) for nodes in ([node], cells))
        assert one.value == pytest.approx(many.value)
        assert one.standard_error == pytest.approx(many.standard_error, rel=1e-6)
    of, replicates = release.replicates(2000)  # standard deviations to 1.6 %: six and a half of that
    assert of == "whole"
    assert replicates[:, -1].std(axis=0) == pytest.approx(release.standard_errors[-1], rel=0.11)
