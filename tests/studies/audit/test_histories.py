"""Audits that begin before the mechanism: rows, movers, leaked noise, a real ledger; error 1e-9 each."""

import numpy as np
import pytest

from optstream.noise import simulated_noise
from studies.audit.cases import Case
from studies.audit.compromised import broken_compromised_subjects, compromised_subjects
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
from studies.audit.rows import broken_row_subjects, row_subjects
from tests.optstream.mechanisms.silent_noise import SilentNoise

ROWS, BROKEN_ROWS = row_subjects(), broken_row_subjects()
AMENDED, HASTY = amended_subjects(), hasty_subjects()


def of_laplace(subject):
    """By how far the answers differ, over the noise's scale."""
    one, other = (subject.sample(side, 1, SilentNoise()).numbers for side in (0, 1))
    mechanism, _ = subject.histories[0][0]
    return np.abs(one - other).sum() / float(mechanism.plan(1, 0)[0].scale)


@pytest.mark.slow
def test_rows_cost_what_the_table_says_exactly():
    laplace = [subject for subject in ROWS if "OptStream" not in subject.name]
    assert len(laplace) == 5
    for subject in laplace:
        assert of_laplace(subject) == pytest.approx(subject.claimed, rel=1e-12), subject.neighbours


@pytest.mark.slow
def test_what_broken_rules_and_claims_cost_exactly():
    """A day of 4 steps: its first row, and the four that come back."""
    assert [of_laplace(subject) for subject in BROKEN_ROWS] == pytest.approx([5, 4, 4, 100])
    assert [subject.claimed for subject in BROKEN_ROWS] == [1, 2, 2, 1]


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


def of(subjects, *given, marks=()):
    return [pytest.param(one, *given, id=f"{one.name}: {one.neighbours}", marks=marks) for one in subjects]


KEPT = [
    *of(ROWS[:1], 41, marks=pytest.mark.slow),
    *of(compromised_subjects()[:1], 41, marks=pytest.mark.slow),
    *of(AMENDED, 31),
    *of(TOGETHER, 33),
    *of(changed_tree_subjects(), 41, marks=pytest.mark.slow),
]
CAUGHT = [
    *of(BROKEN_ROWS[:1], 42, 3000, 1.0),
    *of(broken_compromised_subjects()[:1], 42, 1500, 1.0),
    *of(HASTY, 32, 1500, 1.5),
    *of(APART, 34, 4000, 1.2),
    *of(broken_tree_subjects(), 42, 2000, 1.0),
]
"""Of rows and leaked noise the first: each draws seconds of noise, and `make audit` has all."""


@pytest.mark.parametrize(("subject", "seed"), KEPT)
def test_nothing_exceeds_its_claim(subject, seed):
    case = Case("ours", subject)
    result = case.run(n_runs=400, noise=simulated_noise(seed))
    assert case.accountant == 1 or subject in (*AMENDED, *TOGETHER)
    assert case.passes(result), result


@pytest.mark.slow
@pytest.mark.parametrize(("subject", "seed", "runs", "above"), CAUGHT)
def test_every_broken_rule_is_caught(subject, seed, runs, above):
    case = Case("control", subject)
    result = case.run(n_runs=runs, noise=simulated_noise(seed))
    assert case.passes(result), result
    assert result.lower_bound > above
