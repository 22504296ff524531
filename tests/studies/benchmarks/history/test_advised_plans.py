"""The order of plans on made-up load of three regions, seeded: what is expected to err less errs less."""

from datetime import date, timedelta

import pytest
from scipy.stats import spearmanr

from studies.benchmarks.history.advised_plans import found_error, plans_of, stream
from studies.papers.advice import simulated_days
from tasks.planning.advice.compare_plans import compare_plans

pytestmark = pytest.mark.slow

FIRST = date(2016, 2, 1)
PARENTS = {"FR": "", "11": "FR", "53": "FR", "84": "FR"}
GIVEN = {"first": FIRST, "scale": 5000}


@pytest.fixture
def load_of(tmp_path):
    """Eleven days, under an alpha."""

    def made(alpha):
        empty = stream(tmp_path, "load", PARENTS, [], privacy={"alpha": alpha}, **GIVEN)
        days = [FIRST + timedelta(number) for number in range(11)]
        values = simulated_days(empty.settings, days, 5000.0)
        return stream(tmp_path, "load", PARENTS, list(values.values()), privacy={"alpha": alpha}, **GIVEN)

    return made


def test_the_order_of_plans_is_the_order_in_which_they_err(load_of):
    """Seeded, so that nothing is left to chance. The control: the order of another alpha is another order."""
    given = load_of("20")
    labels, expected, found = plans_of(given, 3)
    assert len(labels) > 15
    assert expected == sorted(expected)
    assert spearmanr(expected, found).statistic > 0.8
    fine = {
        plan.choice.label: plan.relative for plan in compare_plans(load_of("0.05").settings, 5000.0).plans
    }
    both = [label for label in labels if label in fine]
    errors = dict(zip(labels, found, strict=True))
    assert len(both) > 10
    assert spearmanr([fine[one] for one in both], [errors[one] for one in both]).statistic < 0.8


def test_an_error_is_of_the_days_that_are_judged(load_of):
    """By as good as no noise, step by step: nothing is missed."""
    given = load_of("0.001")
    assert found_error(given, given.settings, 2) < 1e-3
