"""A real ledger decides what is released: what is kept keeps its epsilon, and broken rules are caught.

Each case: subject, seed, runs, and above what a control must measure. Error 1e-9 an audit.
"""

from math import exp, expm1, log

import pytest

from optstream.noise import simulated_noise
from studies.audit.cases import Case
from studies.audit.ledgers import (
    ALPHAS,
    AMENDMENTS,
    WANTED,
    WINDOW,
    amended_subjects,
    apart_subjects,
    broken_tree_subjects,
    changed_tree_subjects,
    fits_the_newest,
    hasty_subjects,
    is_reserved,
    product_subjects,
    released_days,
    released_products,
)
from tests.optstream.mechanisms.silent_noise import SilentNoise

AMENDED, HASTY = amended_subjects(), hasty_subjects()


def loss(subject, window=WINDOW):
    """Exact: Laplace noise tells the distance of what it is added to, over its scale."""
    drawn = [subject.sample(side, 1, SilentNoise()).numbers[0] for side in (0, 1)]
    scales = [mechanism.plan(1, 0)[0].scale for mechanism, _ in subject.histories[0] for _ in range(window)]
    return sum(abs(a - b) / scale for a, b, scale in zip(*drawn, scales, strict=True))


@pytest.mark.parametrize("amendment", AMENDMENTS, ids=lambda one: one.name)
@pytest.mark.slow
def test_the_ledger_decides_which_days_are_released(amendment):
    second, little = [amendment.second], [amendment.second, amendment.little]

    def decided(offers, accepts):
        return [(step, one.model) for step, one in released_days(amendment, offers, accepts)]

    first = (0, amendment.first)
    assert decided(second, is_reserved) == [first, (2 * WINDOW, second[0])]
    assert decided(little, is_reserved) == [first, (WINDOW, little[1]), (2 * WINDOW, second[0])]
    assert decided(second, fits_the_newest) == [first, (WINDOW, second[0]), (2 * WINDOW, second[0])]


@pytest.mark.slow
def test_what_the_change_costs_exactly():
    assert [loss(subject) for subject in AMENDED] == [0.5, 1, 0.5, 1]
    assert [loss(subject) for subject in HASTY] == [5.5, 5.5]


TOGETHER, APART = product_subjects(), apart_subjects()


def test_the_ledger_takes_what_fits():
    assert [name for name, _ in released_products(WANTED, one_budget=True)] == ["electricity", "heat"]
    assert [name for name, _ in released_products(WANTED, one_budget=False)] == list(ALPHAS)


def test_what_a_window_of_all_streams_costs_exactly():
    assert [loss(subject, 1) for subject in TOGETHER] == pytest.approx([1, 1])
    assert [loss(subject, 1) for subject in APART] == pytest.approx([3])


GROUPER, ALPHA, BEFORE = 0.25, 10, [20, 20, 20, 20]
"""A step's epsilon for PeGaSus' grouper; the readings of an open group when its leaf is split."""


def joins(deviation, threshold):
    """How likely a step is to join an open group whose noisy threshold is this."""
    scale = 8 * ALPHA / GROUPER
    gap = (deviation - threshold) / scale
    return 0.5 * exp(-gap) if gap > 0 else 1 - 0.5 * exp(gap)


def loss_of_parts(n_parts, *, left_open):
    """What a change of two readings before the split costs by what all parts do at their first step.

    Half of the parts read far more than the whole did, half far less. The event: the first all join the group
    that they are handed, the others all close it. left_open: all go on with the group of the whole and its
    threshold; else each begins its own, in which no reading of before the split stands.
    """

    def deviation(before, value):
        group = [*before, value] if left_open else [value]
        mean = sum(group) / len(group)
        return sum(abs(one - mean) for one in group)

    def likely(before):
        scale, total = 4 * ALPHA / GROUPER, 0.0
        for threshold in range(-2000, 2400, 4):
            weight = -expm1(-4 / scale) * exp(-abs(threshold - 200) / scale)
            high, low = (joins(deviation(before, value), threshold) for value in (145, -105))
            total += weight * high ** (n_parts // 2) * (1 - low) ** (n_parts // 2)
        return total

    changed = [20, 20, 20 + ALPHA, 20 + ALPHA]
    return abs(log(likely(changed) / likely(BEFORE)))


def test_a_group_left_open_in_every_part_would_lose_more_than_it_is_charged():
    """The control of Lemma 18: why groups close at a change. Two steps changed, each charged `GROUPER`."""
    assert loss_of_parts(2, left_open=False) == 0
    assert loss_of_parts(200, left_open=False) == 0
    assert loss_of_parts(200, left_open=True) > 2 * 2 * GROUPER


KEPT = [
    *((subject, 31, []) for subject in AMENDED),
    *((subject, 33, []) for subject in TOGETHER),
    *((subject, 41, [pytest.mark.slow]) for subject in changed_tree_subjects()),
]
CAUGHT = [
    *((subject, 32, 1500, 1.5) for subject in HASTY),
    *((subject, 34, 4000, 1.2) for subject in APART),
    *((subject, 42, 2000, 1.0) for subject in broken_tree_subjects()),
]


@pytest.mark.parametrize(
    ("subject", "seed"), [pytest.param(one, seed, id=one.name, marks=marks) for one, seed, marks in KEPT]
)
def test_what_the_ledger_lets_through_keeps_its_epsilon(subject, seed):
    case = Case("ours", subject)
    result = case.run(n_runs=400, noise=simulated_noise(seed))
    assert result.claimed == 1
    assert case.passes(result), result


@pytest.mark.slow
@pytest.mark.parametrize(
    ("subject", "seed", "runs", "above"), [pytest.param(*row, id=row[0].name) for row in CAUGHT]
)
def test_every_broken_rule_is_caught(subject, seed, runs, above):
    case = Case("control", subject)
    result = case.run(n_runs=runs, noise=simulated_noise(seed))
    assert case.passes(result), result
    assert result.lower_bound > above
