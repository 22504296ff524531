"""Streams whose guarantee changed: the ledger's decisions keep the first guarantee, hasty ones are caught.

400 runs of each side, 1,500 of controls, error 1e-9 an audit.
"""

import pytest

from optstream.noise import simulated_noise
from studies.audit import Case, amended_subjects, hasty_subjects
from studies.audit.subjects.amendments import (
    AMENDMENTS,
    WINDOW,
    fits_the_newest,
    is_reserved,
    released_days,
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


@pytest.mark.parametrize("subject", AMENDED, ids=lambda one: one.name)
def test_days_that_wait_or_take_less_keep_the_first_guarantee(subject):
    case = Case("ours", subject)
    result = case.run(n_runs=400, noise=simulated_noise(31))
    assert result.claimed == 1
    assert case.passes(result), result


@pytest.mark.slow
@pytest.mark.parametrize("subject", HASTY, ids=lambda one: one.name)
def test_days_that_the_second_guarantee_alone_allows_are_caught(subject):
    case = Case("control", subject)
    result = case.run(n_runs=1500, noise=simulated_noise(32))
    assert case.passes(result), result
    assert result.lower_bound > 1.5
