"""The audit of joint noise: never above the accountant's figure, and above the claim of each broken twin.

Windows of two steps, two days of four steps in groups of two; each row of a period is a run of its own. What
changes moves by three alpha, which costs three epsilon. 20,000 runs of each side, error 1e-9 an audit.
"""

from fractions import Fraction

import numpy as np
import pytest

from optstream.measurement.sums import measure_steps
from optstream.noise import simulated_noise
from optstream.privacy import JointSpend
from optstream.privacy.rules import cut, worst_sum
from optstream.stream import PrivatePeriod
from studies.audit.attack import audit
from studies.audit.controls import ALPHA, Control
from studies.audit.histories import Outputs

RUNS, TIMES = 20_000, 3
STEPS, LEAVES = 4, 2
GROUPS = cut([range(step, step + 1) for step in range(STEPS)], 2)
WORST = worst_sum([(STEPS, GROUPS)], 2)
"""Two groups: a window may cut both."""


def spend_of(day, n_groups, n_nodes):
    return JointSpend(0, "samples", STEPS * day, STEPS, GROUPS, Fraction(n_groups * ALPHA), ALPHA, n_nodes)


def subject(neighbours, changed, n_groups=WORST):
    """Two days of two leaves. changed: (leaf, step) pairs that are larger on the other side. n_groups: that a
    window is priced for, at epsilon 1.
    """
    one = np.zeros((LEAVES, 2 * STEPS), dtype=np.int64)
    other = one.copy()
    for leaf, step in changed:
        other[leaf, step] = TIMES * ALPHA

    def draw(series, n_runs, noise):
        noisy = []
        for day in range(2):
            rows = np.tile(series[:, STEPS * day : STEPS * (day + 1)], (n_runs, 1))
            period = PrivatePeriod(rows, resolution=Fraction(1), first_step=STEPS * day)
            spend = spend_of(day, n_groups, len(rows))
            noisy.append(measure_steps(period, range(STEPS), spend, noise).points)
        seen = np.concatenate(noisy, axis=1).reshape(n_runs, LEAVES, 2 * STEPS)
        return Outputs.of_numbers(np.stack([seen[:, leaf, step] for leaf, step in changed], axis=1))

    return Control("joint noise", neighbours, float(TIMES), one, other, draw)


PAIRS = {
    "both steps of a group": [(0, 0), (0, 1)],
    "a step of each of two groups": [(0, 1), (0, 2)],
    "over midnight": [(0, 3), (0, 4)],
    "over midnight, into another leaf": [(0, 3), (1, 4)],
}


@pytest.mark.parametrize("neighbours", ["a step of each of two groups", "over midnight"])
def test_a_group_that_is_charged_once_where_a_window_cuts_two_is_caught(neighbours):
    broken_twin = subject(neighbours, PAIRS[neighbours], n_groups=1)
    assert audit(broken_twin, n_runs=RUNS, noise=simulated_noise(8)).lower_bound > TIMES


def test_one_who_changes_leaf_inside_a_group_is_caught():
    """Both steps of a group, priced as one: it loses in each leaf. In one leaf nothing is wrong."""
    moves, stays = (subject("a group", [(0, 0), (leaf, 1)], 1) for leaf in (1, 0))
    assert audit(moves, n_runs=RUNS, noise=simulated_noise(9)).lower_bound > TIMES
    assert audit(stays, n_runs=RUNS, noise=simulated_noise(9)).lower_bound <= TIMES
