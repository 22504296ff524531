"""Products of one privacy budget: what is released of them together keeps its epsilon; apart they are caught.

400 runs of each side, 4,000 of controls, error 1e-9 an audit.
"""

import pytest

from optstream.noise import simulated_noise
from studies.audit import Case, apart_subjects, product_subjects
from studies.audit.subjects.products import ALPHAS, WANTED, WINDOW, released_products
from tests.studies.audit.subjects.test_amendments import loss

TOGETHER, APART = product_subjects(), apart_subjects()


def test_the_ledger_takes_what_fits():
    assert [name for name, _ in released_products(WANTED, one_budget=True)] == ["electricity", "heat"]
    assert [name for name, _ in released_products(WANTED, one_budget=False)] == list(ALPHAS)


def test_what_a_window_of_all_streams_costs_exactly():
    assert [loss(subject, WINDOW) for subject in TOGETHER] == pytest.approx([1, 1])
    assert [loss(subject, WINDOW) for subject in APART] == pytest.approx([3])


@pytest.mark.parametrize("subject", TOGETHER, ids=lambda one: one.name)
def test_products_of_one_budget_keep_its_epsilon(subject):
    case = Case("ours", subject)
    result = case.run(n_runs=400, noise=simulated_noise(33))
    assert case.passes(result), result


@pytest.mark.slow
def test_products_that_are_not_added_up_are_caught():
    (subject,) = APART
    case = Case("control", subject)
    result = case.run(n_runs=4000, noise=simulated_noise(34))
    assert case.passes(result), result
    assert result.lower_bound > 1.2
