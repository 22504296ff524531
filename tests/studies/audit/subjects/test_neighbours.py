"""Pairs of neighbours are as far apart as the model protects, and no farther."""

import numpy as np
import pytest

from optstream.errors import ParameterError
from optstream.privacy import PrivacyModel
from optstream.stream.private_period import quantise
from studies.audit import make_neighbours, worst_cases
from studies.audit.subjects.plans import RAGGED

MODEL = PrivacyModel("1", 6, 2)


def build(model=MODEL, **changes):
    arguments = {"n_leaves": 2, "lengths": [4, 4], "steps": range(2, 8)}
    return make_neighbours("pair", model, **(arguments | changes))


@pytest.mark.parametrize(
    ("model", "changes", "message"),
    [
        (MODEL, {"steps": range(1, 8)}, "over 7 steps, a window has 6"),
        (MODEL, {"steps": []}, "do not differ"),
        (MODEL, {"sign": lambda step: 2}, "more than alpha"),
        (MODEL, {"leaves": lambda step: (0, 1)}, "more than 1 leaves"),
        (PrivacyModel("1", 6, 2, windows="aligned"), {}, "two periods"),
    ],
)
def test_what_the_model_does_not_protect_is_refused(model, changes, message):
    with pytest.raises(ParameterError, match=message):
        build(model, **changes)


def test_what_it_does_protect_is_not():
    build(PrivacyModel("1", 6, 2, windows="aligned"), steps=range(4))
    roaming = PrivacyModel("1", 6, 2, unit="roaming", leaves_per_step=2)
    build(roaming, leaves=lambda step: (0, 1))


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("resolution", ["1", "0.3", "0.6", "1.5", "0.001"])
def test_rounding_makes_the_most_of_alpha(resolution, sign):
    model = PrivacyModel("1", 6, 2, resolution)
    pair = build(model, sign=lambda step: sign, base=31.0)
    one, other = (quantise(np.concatenate(side, axis=1), model.resolution) for side in pair.sides)
    gap = (other - one)[0]
    assert gap.tolist() == [0, 0, *[sign * model.alpha_units] * 6]


@pytest.mark.parametrize("lengths", [[6], [5, 6, 4], [2, 2, 2, 2]])
def test_worst_cases_are_neighbours_and_cross_every_border(lengths):
    pairs = worst_cases(MODEL, RAGGED, lengths, first_step=3)
    names = [pair.name for pair in pairs]
    assert len(set(names)) == len(names)
    for pair in pairs:
        pair.check(MODEL)
    borders = np.cumsum(lengths)[:-1] + 3
    for border in borders:
        crossing = [pair for pair in pairs if pair.changed[0] < border <= pair.changed[-1]]
        assert any(pair.span == MODEL.window_length for pair in crossing)
    assert min(len(pair.changed) for pair in pairs) == 1
    assert {len(pair.changed) for pair in pairs} >= {1, 2, min(6, sum(lengths))}


def test_the_deepest_leaf_is_changed_and_a_customer_may_move():
    pairs = {pair.name: pair for pair in worst_cases(MODEL, RAGGED, [6])}

    def changed_leaves(name):
        gap = pairs[name].other[0] - pairs[name].one[0]
        return [np.flatnonzero(column).tolist() for column in gap.T]

    assert [RAGGED.leaves[leaf] for (leaf,) in changed_leaves("all steps of a window")] == ["C"] * 6
    assert changed_leaves("all steps, another leaf at each") == [[0], [1], [2], [0], [1], [2]]


def test_roaming_changes_several_leaves_at_once():
    model = PrivacyModel("1", 6, 2, unit="roaming", leaves_per_step=2)
    gap = [
        np.concatenate(pair.other, 1) - np.concatenate(pair.one, 1)
        for pair in worst_cases(model, RAGGED, [6])
    ]
    assert all(np.count_nonzero(entry, axis=0).max() == 2 for entry in gap)
