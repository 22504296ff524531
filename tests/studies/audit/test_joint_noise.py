"""The audit of joint noise: never above the accountant's figure, and above the claim of each broken twin.

Windows of two steps, two days of two steps; each row of a period is a run of its own. What changes moves by
three alpha, which costs three epsilon. 80,000 runs of each side, error 1e-9 an audit.
"""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from optstream.measurement.ordered import draw_ordered, next_spend
from optstream.measurement.sums import measure_steps
from optstream.noise import simulated_noise
from optstream.privacy import OrderSpend, worst_window
from optstream.stream import PrivatePeriod
from studies.audit.attack import audit
from studies.audit.controls import ALPHA, Control
from studies.audit.histories import Outputs

RUNS, TIMES = 80_000, 3
STEPS = 2
PARTS = tuple(range(step, step + 1) for step in range(STEPS))


def subject(neighbours, changed, *, n_blocks=2, is_lost=False):
    """Two days. changed: (leaf, step) pairs that are larger on the other side. n_blocks: that a
    window is taken to hold. is_lost: day by day orders of their own, as if no window held two of them.
    """
    n_leaves = 1 + max(leaf for leaf, _ in changed)
    one = np.zeros((n_leaves, 2 * STEPS), dtype=np.int64)
    other = one.copy()
    for leaf, step in changed:
        other[leaf, step] = TIMES * ALPHA

    def draw(series, n_runs, noise):
        noisy, state, spends = [], None, []
        for day in range(2):
            rows = np.tile(series[:, STEPS * day : STEPS * (day + 1)], (n_runs, 1))
            period = PrivatePeriod(rows, resolution=Fraction(1), first_step=STEPS * day)
            new = OrderSpend(
                0, "samples", STEPS * day, STEPS, (), Fraction(ALPHA), ALPHA, len(rows), 1, 2, n_blocks, 1,
                STEPS * day,
            )  # fmt: skip
            spend = replace(next_spend(new, "here", None if is_lost else state, []), parts=PARTS)
            ordered = draw_ordered(spend, lambda first, n_steps: PARTS[:n_steps], "here", state, noise)
            noisy.append(measure_steps(period, range(STEPS), spend, noise, ordered).points)
            state, spends = ordered.after, [*spends, spend]
        assert is_lost or worst_window(spends, 2).epsilon == 1 + Fraction(1, 2**24)
        seen = np.concatenate(noisy, axis=1).reshape(n_runs, n_leaves, 2 * STEPS)
        return Outputs.of_numbers(np.stack([seen[:, leaf, step] for leaf, step in changed], axis=1))

    return Control("joint noise", neighbours, float(TIMES), one, other, draw)


PAIRS = {
    "two steps of a day": [(0, 0), (0, 1)],
    "over midnight": [(0, 1), (0, 2)],
    "over midnight, into another leaf": [(0, 1), (1, 2)],
}


@pytest.mark.parametrize(
    "neighbours", [pytest.param("two steps of a day", marks=pytest.mark.nightly), "over midnight"]
)
def test_a_window_loses_no_more_than_one_charge(neighbours):
    assert (
        audit(subject(neighbours, PAIRS[neighbours]), n_runs=RUNS, noise=simulated_noise(9)).lower_bound
        <= TIMES
    )


@pytest.mark.parametrize(
    ("neighbours", "given"),
    [
        pytest.param("two steps of a day", {"n_blocks": 1}, marks=pytest.mark.nightly),
        ("over midnight", {"is_lost": True}),
        pytest.param("over midnight, into another leaf", {}, marks=pytest.mark.nightly),
    ],
)
def test_spacing_one_less_orders_that_end_at_midnight_and_a_change_of_leaf_are_caught(neighbours, given):
    broken_twin = subject(neighbours, PAIRS[neighbours], **given)
    assert audit(broken_twin, n_runs=RUNS, noise=simulated_noise(8)).lower_bound > TIMES
