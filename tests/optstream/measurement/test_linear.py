"""What is drawn is what is priced, and the price is right."""

from collections import Counter
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from optstream.errors import ParameterError
from optstream.measurement import measure_points_and_sums
from optstream.measurement.priced import query_weights
from optstream.noise import simulated_noise
from optstream.privacy import PrivacyModel, StepSpend
from optstream.stream import AggregationTree, Feature, PrivatePeriod
from tests.optstream.mechanisms.silent_noise import SilentNoise

TREE = AggregationTree.from_parents({"FR": None, "N": "FR", "S": "FR", "S1": "S", "S2": "S"})
FEATURES = [Feature((range(0, 2), range(2, 6)), "parts"), Feature((range(0, 6),), "day")]
POSITIONS = (1, 4)


def spends(scale=8, levels=(0, 1, 2)):
    """One spend for each level and stage."""
    queries = {
        "samples": [range(1, 2), range(4, 5)],
        "feature parts": FEATURES[0].parts,
        "feature day": FEATURES[1].parts,
    }
    return [
        StepSpend(level, stage, 0, query_weights(parts, 6), Fraction(scale), 1)
        for level in levels
        for stage, parts in queries.items()
    ]


def measure(units, noise, **changes):
    period = PrivatePeriod(np.asarray(units), resolution=Fraction(1), first_step=0)
    arguments = {
        "points": dict.fromkeys(range(3), POSITIONS),
        "features": FEATURES,
        "spends": spends(),
        "noise": noise,
    }
    return measure_points_and_sums(period, TREE, **(arguments | changes))


READINGS = st.lists(st.lists(st.integers(0, 50), min_size=6, max_size=6), min_size=3, max_size=3)
"""Of three leaves and six steps."""


def answers(measured):
    return np.concatenate([measured.points, *measured.answers.values], axis=-1)


def test_points_and_sums_are_those_of_every_node():
    units = np.arange(18).reshape(3, 6)
    measured = measure(units, SilentNoise())
    nodes = TREE.add_up(units)
    assert np.array_equal(measured.points, nodes[:, [1, 4]])
    sums, *_ = measured.answers.values
    assert np.array_equal(sums, np.stack([nodes[:, :2].sum(1), nodes[:, 2:].sum(1)], axis=1))
    assert measured.simulated
    assert measured.spends == tuple(spends())


def test_every_answer_gets_noise_of_its_own_spends_scale():
    noise, drawn = SilentNoise(), Counter()
    priced = [replace(spend, scale=Fraction(number + 3)) for number, spend in enumerate(spends())]
    measure(np.zeros((3, 6), dtype=np.int64), noise, spends=priced)
    widths = {"samples": 2, "feature parts": 2, "feature day": 1}
    expected = {float(spend.scale): len(TREE.levels[spend.level]) * widths[spend.stage] for spend in priced}
    for scale, size in noise.asked:
        drawn[scale] += int(np.prod(size))
    assert drawn == expected


@settings(max_examples=200, deadline=None)
@given(st.data())
@pytest.mark.slow
def test_the_charge_bounds_the_l1_change_of_the_answers(data):
    """Lemma 3 by brute force: over neighbours that change a set of steps, leaf by leaf as they please."""
    alpha = 5
    before = np.array(data.draw(READINGS))
    after = before.copy()
    changed = data.draw(st.sets(st.integers(0, 5), min_size=1))
    for step in changed:
        after[data.draw(st.integers(0, 2)), step] += data.draw(st.sampled_from([-alpha, alpha]))
    priced = [replace(spend, alpha_units=alpha) for spend in spends()]
    difference = np.abs(
        answers(measure(after, SilentNoise(), spends=priced))
        - answers(measure(before, SilentNoise(), spends=priced))
    )
    charge = sum(spend.charges[step] for spend in priced for step in changed)
    assert difference.sum() / Fraction(8) <= charge


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_a_roaming_device_moves_every_level_by_its_leaves_together(data):
    """Two of three leaves at a step: the nation, a single node, moves by both."""
    before = np.array(data.draw(READINGS))
    after = before.copy()
    changed = data.draw(st.sets(st.integers(0, 5), min_size=1))
    for step in changed:
        for leaf in data.draw(st.sets(st.integers(0, 2), min_size=2, max_size=2)):
            after[leaf, step] += data.draw(st.sampled_from([-5, 5]))
    model = PrivacyModel("1", 6, 5, "1", unit="roaming", leaves_per_step=2)
    priced = [replace(spend, alpha_units=5, leaves_changed=model.leaves_per_step) for spend in spends()]
    for level in range(3):
        own = [spend for spend in priced if spend.level == level]
        noiseless = [answers(measure(values, SilentNoise(), spends=own)) for values in (before, after)]
        moved = np.abs(noiseless[1] - noiseless[0]).sum() / Fraction(8)
        assert moved <= sum(spend.charges[step] for spend in own for step in changed)


def test_the_charge_is_attained():
    """All steps of one leaf up by alpha: the bound of Lemma 3 is met, so a smaller one would be wrong."""
    before, after = np.zeros((3, 6), dtype=np.int64), np.zeros((3, 6), dtype=np.int64)
    after[1] = 1
    difference = np.abs(answers(measure(after, SilentNoise())) - answers(measure(before, SilentNoise())))
    assert difference.sum() / Fraction(8) == sum(sum(spend.charges) for spend in spends())


def test_a_level_without_a_spend_keeps_its_values_to_itself():
    units = np.full((3, 6), 7777)
    measured = measure(units, simulated_noise(3), spends=spends(levels=(1, 2)))
    assert not measured.points[0].any()
    assert not measured.answers.values[0][0].any()
    assert np.isinf(measured.point_variances[0]).all()
    assert np.isfinite(measured.point_variances[1:]).all()


def test_a_spend_that_prices_another_query_draws_nothing():
    noise = SilentNoise()
    units = np.zeros((3, 6), dtype=np.int64)
    cheaper = [
        replace(spend, weights=tuple(Fraction(weight, 2) for weight in spend.weights)) for spend in spends()
    ]
    for wrong in (cheaper, [replace(spend, first_step=6) for spend in spends()]):
        with pytest.raises(ParameterError, match="does not price the query"):
            measure(units, noise, spends=wrong)
    with pytest.raises(ParameterError, match="3 leaves"):
        measure(units[:2], noise)
    assert noise.asked == []


def test_parts_that_overlap_have_no_price():
    with pytest.raises(ParameterError, match="disjoint"):
        query_weights([range(0, 2), range(1, 3)], 4)
    with pytest.raises(ParameterError, match="inside the period"):
        query_weights([range(3, 5)], 4)
