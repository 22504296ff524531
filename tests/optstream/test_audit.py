"""The short audit, error 1e-9 each: none exceeds the accountant, what is broken is caught, no honest twin."""

import pytest

from optstream.noise import simulated_noise
from studies.audit.cases import control_cases, our_cases
from studies.audit.histories import MechanismSubject

CASES = control_cases()
RUNS, RUNS_BESIDE_DELTA = 1000, 100_000  # where there is a delta, rare outcomes are forgiven
ON_TREE = "Laplace, joint noise on a tree, two roaming"
BLIND = (
    "OptStream, strict, window of 6",
    "OptStream, L1 sampling",
    "OptStream with a margin",
    "BudgetDistribution",
    "BudgetAbsorption",
)
"""Of which 400 runs would not see a tenth of the noise; enumeration and the long audit look at them."""


def quick_cases():
    """One of each mechanism, across a border where there is one, one on a tree; `make audit` has all."""
    ours, first = [case for case in our_cases(days=False) if isinstance(case.subject, MechanismSubject)], {}
    for case in sorted(ours, key=lambda one: "across" not in one.subject.neighbours):
        name = case.subject.name
        if not name.startswith(BLIND) and ("on a tree" not in name or name == ON_TREE):
            first.setdefault(name, pytest.param(case, id=case.name))
    return [*first.values()]


@pytest.mark.slow
@pytest.mark.parametrize("case", quick_cases())
def test_no_audit_exceeds_the_accountant(case):
    result = case.run(n_runs=400, noise=simulated_noise(21))
    assert result.lower_bound <= case.accountant
    assert case.charged is None or result.lower_bound <= case.charged
    assert case.passes(result)


def of_kind(kind):
    return [pytest.param(case, id=case.subject.name) for case in CASES if case.kind == kind]


@pytest.mark.slow
@pytest.mark.parametrize("case", of_kind("control"))
def test_every_control_is_caught(case):
    n_runs = RUNS_BESIDE_DELTA if getattr(case.subject, "delta", 0) else RUNS
    result = case.run(n_runs=n_runs, noise=simulated_noise(7))
    assert result.lower_bound > case.subject.claimed, result
    assert case.passes(result)


@pytest.mark.parametrize("case", of_kind("twin"))
def test_its_honest_twin_is_not_accused(case):
    result = case.run(n_runs=RUNS, noise=simulated_noise(8))
    assert result.lower_bound <= case.subject.claimed, result
    assert case.passes(result)
