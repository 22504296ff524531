"""PeGaSus on a tree with the children's groups: what it costs, what runs on, what stays free."""

from dataclasses import replace

import numpy as np
import pytest

from optstream.errors import ParameterError
from optstream.mechanisms import Hierarchical, Laplace, PeGaSus, PeGaSusTree
from optstream.mechanisms.pegasus import GroupedBelow
from optstream.noise import simulated_noise
from optstream.privacy import PrivacyModel
from optstream.stream import AggregationTree
from optstream.stream.state import public_part, raw_bytes, with_raw
from tests.optstream.mechanisms.planned_days import released
from tests.optstream.mechanisms.silent_noise import SilentNoise

MODEL = PrivacyModel("1", 4, 1, "1")
TREE = AggregationTree.from_parents({"FR": None, "84": "FR", "11": "FR"})
DEEP = AggregationTree.from_parents(
    {"all": None, "A": "all", "B": "all", "a": "A", "b": "A", "c": "B", "d": "B"}
)
CHAIN = AggregationTree.from_parents({"all": None, "A": "all", "a": "A", "b": "A"})
RAGGED = AggregationTree.from_parents({"all": None, "A": "all", "alone": "all", "a": "A", "b": "A"})


def on_tree(tree=TREE, shares=("1/2", "1/2"), model=MODEL, kind=PeGaSusTree, **parameters):
    return kind(PeGaSus(model, **parameters), tree, list(shares))


def blocks(n_steps, n_series=2, seed=0):
    generator = np.random.default_rng(seed)
    return np.repeat(generator.integers(50, 400, (n_series, n_steps // 10 + 1)), 10, axis=1)[:, :n_steps]


class ByScale:
    """Noise with a tape for each scale: what is drawn at one level does not move another's draws.

    Levels without leaves must have one node: their noise is drawn node by node, not step by step.
    """

    simulated = True

    def __init__(self, seed):
        self._seed, self._tapes = seed, {}

    def discrete_laplace(self, scale, size):
        if scale not in self._tapes:
            self._tapes[scale] = simulated_noise([self._seed, round(scale * 1000)])
        return np.array(
            [self._tapes[scale].discrete_laplace(scale, (1,))[0] for _ in range(int(np.prod(size)))],
            dtype=np.int64,
        ).reshape(size)


def groups_of(parts, level):
    return np.concatenate([part.measured.parts[level].choices["groups"] for part in parts], axis=1)


def test_noise_is_drawn_at_the_scales_that_were_priced_and_spent_as_planned():
    roaming = PrivacyModel("1/2", 4, 3, "1", unit="roaming", leaves_per_step=2)
    for model, alpha in ((MODEL, 1), (roaming, 6)):
        mechanism, watched = on_tree(shares=["1/4", "3/4"], model=model), SilentNoise()
        assert mechanism.release(blocks(40), noise=watched).spends == mechanism.plan(40)
        step = float(model.epsilon) / 4
        leaf = step * 3 / 4
        scales = [4 / step, 1 / leaf / 0.8, 4 / leaf / 0.2, 8 / leaf / 0.2]
        assert watched.scales == pytest.approx(sorted(alpha * scale for scale in scales), rel=1e-12)


@pytest.mark.parametrize("smoother", ["median", "average", "james_stein"])
@pytest.mark.parametrize("tree", [TREE, CHAIN], ids=["two levels", "three"])
def test_periods_in_a_row_are_one_long_period_and_single_steps_too(smoother, tree):
    shares = {2: ["1/3", "2/3"], 3: ["1/7", "2/7", "4/7"]}[tree.n_levels]
    values = 20 * blocks(40, len(tree.leaves))
    mechanism = on_tree(tree, shares, threshold=2000, smoother=smoother)
    (whole,) = released(mechanism, values, [], noise=ByScale(1))
    groups = groups_of([whole], 0)[0]
    assert any(groups[cut - 1] == groups[cut] < cut for cut in (2, 17, 30))  # a group crosses a cut
    assert 2 < len(np.unique(groups)) < 20
    for cuts in ([17], [1, 2, 30]):
        parts = released(mechanism, values, cuts, noise=ByScale(1))
        for level in range(tree.n_levels):
            assert np.array_equal(groups_of(parts, level), groups_of([whole], level))
        assert np.allclose(np.concatenate([p.values for p in parts], axis=1), whole.values)
    noise, state, online = ByScale(1), mechanism.start(), []
    for column in values.T:
        state, release = mechanism.step(state, column, noise=noise)
        online.append(release.values)
    assert np.allclose(np.concatenate(online, axis=1), whole.values)


def root_begins_anew(keep):
    """Whether the root's group is new in the second period, and whether the leaves' are alike in that."""
    values, mechanism = np.full((2, 20), 70), on_tree(threshold=10**6)
    first, second = released(mechanism, values, [10], keep, ByScale(3))
    root, leaves = second.measured.parts
    begins = {row[0] for row in leaves.choices["groups"]}
    new = root.choices["groups"][0][0] == 10
    known = [] if new else first.measured.parts[0].points[0].tolist()
    assert root.state["noisy"] == [known + root.points[0].tolist()]
    assert mechanism.merged(second.measured).points[0, -1] == np.median(known + root.points[0].tolist())
    return new, begins == {root.choices["groups"][0][0]}


def with_root(state, **changes):
    levels = state["levels"]
    return {**state, "levels": {**levels, "0": {**levels["0"], **changes}}}


def test_lost_state_closes_groups_and_nothing_is_smoothed_on():
    """Below the root as at it, or at the root alone."""
    assert root_begins_anew(lambda state: state) == (False, True)
    assert root_begins_anew(public_part) == (True, True)  # lost raw state below
    assert root_begins_anew(lambda state: None) == (True, True)
    assert root_begins_anew(lambda state: with_root(state, next_step=9)) == (True, False)
    assert root_begins_anew(lambda state: with_root(state, terms=["8", "1"])) == (False, True)
    assert root_begins_anew(lambda state: with_root(state, terms=["9", "1"])) == (True, False)
    assert root_begins_anew(lambda state: with_root(state, terms=["8", "1/10"])) == (True, False)
    assert root_begins_anew(lambda state: with_root(state, noisy=[[1, 2]])) == (True, False)
    assert root_begins_anew(lambda state: with_root(state, noisy=[[1] * 10, [2] * 10])) == (True, False)

    def forgotten(state):
        """As after a change from `Hierarchical`: another mechanism's state at the root."""
        known = with_root(public_part(state), mechanism="PeGaSus")
        return with_raw(on_tree(threshold=10**6).recall([], known), raw_bytes(state))

    assert root_begins_anew(forgotten) == (True, False)


def test_a_level_with_leaves_keeps_its_grouper_and_a_derived_one_hands_on():
    ragged = on_tree(RAGGED, ["1/3", "1/3", "1/3"])
    assert [type(mechanism) for _, mechanism in ragged.levels] == [GroupedBelow, PeGaSus, PeGaSus]
    root, middle, _ = ragged.measure(blocks(40, 3), noise=simulated_noise(1)).parts
    assert np.array_equal(root.choices["groups"][0], np.max(middle.choices["groups"], axis=0))
    derived = on_tree(DEEP, ["1/2", "0", "1/2"], threshold=100)
    root, leaves = derived.measure(blocks(40, 4), noise=simulated_noise(1)).parts
    assert np.array_equal(root.choices["groups"][0], np.max(leaves.choices["groups"], axis=0))
    flat = on_tree(AggregationTree.from_parents({"only": None}), ["1"])
    assert [type(mechanism) for _, mechanism in flat.levels] == [PeGaSus]


def error_at_root(kind, values):
    mechanism = on_tree(kind=kind, threshold=3000, smoother="average")
    measured = mechanism.measure(values, noise=simulated_noise(8))
    return np.mean(np.abs(mechanism.merged(measured).points[0] - values.sum(axis=0)))


def test_it_pays_where_the_children_move_together_and_not_where_they_move_apart():
    """Mean absolute error of the root before consistency, over 200 groups: 0.8 of the noise is expected in
    the first case, for own groups have as much to smooth, and no smoothing at all in the second.
    """
    moves = np.tile(np.repeat([[0, 10**5]], 10, axis=1), 100)
    together, apart = np.tile(moves, (2, 1)), np.concatenate([moves, 10**5 - moves])
    ratios = [
        error_at_root(PeGaSusTree, values) / error_at_root(Hierarchical, values)
        for values in (together, apart)
    ]
    assert 0.7 < ratios[0] < 0.9
    assert ratios[1] > 2


def test_a_group_is_of_one_resolution_and_one_scale():
    tenths = on_tree(model=replace(MODEL, resolution="1/10"))
    left = tenths.measure(blocks(10), noise=simulated_noise(1)).state["levels"]["0"]
    assert left["terms"] == ["80", "1/10"]


def test_a_period_that_is_measured_again_begins_anew_on_every_level():
    mechanism, values = on_tree(threshold=10**6), np.full((2, 10), 500)
    first, second = released(mechanism, np.tile(values, 2), [10])
    again = with_raw(mechanism.recall(second.spends, public_part(first.state)), raw_bytes(first.state))
    redrawn = mechanism.measure(values, noise=simulated_noise(3), first_step=10, state=again)
    assert all(np.all(np.array(part.choices["groups"]) == 10) for part in redrawn.parts)


def test_another_pattern_and_another_state_are_refused():
    with pytest.raises(ParameterError, match="mechanism of PeGaSusTree must be a PeGaSus; got Laplace"):
        PeGaSusTree(Laplace(MODEL), TREE, ["1/2", "1/2"])
    own, children = on_tree(kind=Hierarchical), on_tree()
    left = own.measure(blocks(10), noise=simulated_noise(1)).state
    with pytest.raises(ParameterError, match="state of GroupedBelow"):
        children.measure(blocks(10), noise=simulated_noise(1), first_step=10, state=left)
    assert children.recall([], public_part(left))["levels"]["0"] == {"mechanism": "GroupedBelow"}
