"""The mechanisms of the project: no audit exceeds the accountant, and too little noise is found.

Error 1e-9 an audit; the short audit is tests/optstream/test_audit.py.
"""

import numpy as np
import pytest

from optstream.measurement import L1Sampling
from optstream.mechanisms import OptStream
from optstream.noise import simulated_noise
from optstream.privacy import PrivacyModel
from studies.audit.cases import FLAT, RAGGED, our_cases, short, short_l1
from studies.audit.histories import MechanismSubject
from studies.audit.neighbours import make_neighbours
from tests.optstream.mechanisms.silent_noise import Scaled

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


@pytest.mark.slow
def test_our_own_mechanism_with_too_little_noise_is_found():
    result = SMALL[0].run(n_runs=2000, noise=Scaled(simulated_noise(24), 1 / 3))
    assert result.lower_bound > SMALL[0].accountant
    assert not SMALL[0].passes(result)


@pytest.mark.slow
def test_the_l1_sampler_with_too_little_noise_is_found():
    case = next(case for case in SMALL if case.subject.name.startswith("OptStream, L1"))
    result = case.run(n_runs=400, noise=Scaled(simulated_noise(25), 1 / 30))
    assert result.lower_bound > case.accountant


def test_an_adversary_sees_points_sums_and_choices_of_every_period():
    mechanisms = [short(length) for length in (5, 6)]
    pair = make_neighbours("pair", mechanisms[0].model, n_leaves=3, lengths=[5, 6], steps=range(3, 9))
    outputs = MechanismSubject("ours", mechanisms, pair).sample(0, 4, simulated_noise(1))
    nodes = len(RAGGED.nodes)
    assert outputs.numbers.shape == (4, nodes * (5 + 2 + 1) + nodes * (6 + 2 + 1))
    assert outputs.answers.shape == (4, nodes * (5 + 6))
    # residues 0 and 5 of a window of 6 are measured: steps 0 of the first period, 0 and 1 of the second
    measured = np.concatenate([np.tile([1, 0, 0, 0, 0], nodes), np.tile([1, 1, 0, 0, 0, 0], nodes)])
    assert np.array_equal(outputs.answers, np.tile(measured, (4, 1)))
    points = outputs.numbers[:, : nodes * 5]
    assert np.array_equal(~np.isnan(points), outputs.answers[:, : nodes * 5] == 1)


def test_levels_that_chose_other_steps_are_seen_apart():
    """The sampler decides for each level; a step that a level did not measure is no number there."""
    mechanism = OptStream(
        PrivacyModel("1", 6, 1), FLAT, sampling=L1Sampling(2, "10"), features=[], level_shares=["1/2", "1/2"]
    )
    pair = make_neighbours("pair", mechanism.model, n_leaves=2, lengths=[6], steps=range(6))
    outputs = MechanismSubject("ours", [mechanism], pair).sample(0, 100, simulated_noise(4))
    nation, first, second = np.split(outputs.answers, 3, axis=1)
    assert np.array_equal(first, second)
    assert (nation != first).any()
    assert outputs.answers.sum(axis=1).max() == 3 * 2
    assert np.array_equal(~np.isnan(outputs.numbers), outputs.answers == 1)


@pytest.mark.slow
def test_the_state_travels_from_period_to_period():
    """Two points in any window of 6: what the second period may take depends on the first's choice."""
    mechanism = short_l1(5)
    pair = make_neighbours("pair", mechanism.model, n_leaves=1, lengths=[5, 5], steps=range(2, 8))
    answers = MechanismSubject("ours", [mechanism] * 2, pair).sample(0, 200, simulated_noise(2)).answers
    assert len(np.unique(answers, axis=0)) > 5
    windows = np.lib.stride_tricks.sliding_window_view(answers, 6, axis=1).sum(axis=-1)
    assert windows.max() == 2
