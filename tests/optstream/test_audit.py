"""The short audit: no mechanism exceeds the accountant, every broken one is caught, no honest twin accused.

400 runs of each side of ours, 1,500 of a control's, 100,000 where there is a delta, for rare outcomes are
forgiven then; error 1e-9 an audit. The long audit is `make audit`.
"""

import pytest

from optstream.noise import simulated_noise
from studies.audit.cases import control_cases, our_cases
from studies.audit.histories import MechanismSubject

CASES = control_cases()
RUNS, RUNS_BESIDE_DELTA = 1500, 100_000


ON_TREES = ("Laplace, joint noise on a tree, two roaming", "BudgetDistribution on a tree, two roaming")


def quick_cases():
    """One of each mechanism, across a border where there is one, some on a tree; `make audit` has all."""
    ours, first = [case for case in our_cases(days=False) if isinstance(case.subject, MechanismSubject)], {}
    for case in sorted(ours, key=lambda one: "across" not in one.subject.neighbours):
        if "on a tree" not in case.subject.name or case.subject.name in ON_TREES:
            first.setdefault(case.subject.name, pytest.param(case, id=case.name))
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
