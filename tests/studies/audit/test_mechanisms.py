"""What a change of each mechanism is charged, in the cases of the long audit."""

import pytest

from optstream.noise import simulated_noise
from studies.audit.cases import our_cases
from studies.audit.histories import MechanismSubject

CASES = [case for case in our_cases(days=True) if isinstance(case.subject, MechanismSubject)]
SMALL = CASES[: sum(isinstance(case.subject, MechanismSubject) for case in our_cases(days=False))]


@pytest.mark.parametrize("cases", [SMALL, pytest.param(CASES[len(SMALL) :], marks=pytest.mark.slow)], ids=len)
def test_what_a_change_is_charged_is_within_the_accountants_figure(cases):
    assert [case.name for case in cases if case.charged is not None and case.charged > case.accountant] == []


@pytest.mark.slow
@pytest.mark.nightly
def test_leaves_that_roam_below_one_node_add_up_there():
    """Charged for one leaf at the node above both, this would measure above 1."""
    case = next(case for case in SMALL if "window of 2, two leaves roaming" in case.subject.name)
    result = case.run(n_runs=4000, noise=simulated_noise(26))
    assert 0.2 < result.lower_bound <= case.charged <= 1
