"""Headroom of several layers at once: no window exceeds its limit, nothing is left out without need."""

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from optstream.privacy import StepSpend, worst_window
from optstream.privacy.rules import Layer, groups_with_headroom, layers_with_headroom

AT, MOST = 40, Fraction(1)


def lost(spends, window_length):
    """What the worst window loses, by looking at each step of each window; no accountant."""
    charges = {}
    for spend in spends:
        for step, weight in enumerate(spend.weights, start=spend.first_step):
            charges[step] = charges.get(step, 0) + weight * spend.unit_charge
    steps = range(min(charges, default=0) - window_length, max(charges, default=0) + 1)
    return max(sum(charges.get(start + away, 0) for away in range(window_length)) for start in steps)


def spent(parts, first_step, n_steps, unit_charge):
    measured = {step for part in parts for step in part}
    weights = tuple(int(step in measured) for step in range(n_steps))
    return StepSpend(0, "blocks", first_step, weights, 1 / unit_charge, 1)


@st.composite
def cases(draw):
    n_steps = draw(st.integers(1, 9))
    layers = []
    for _ in range(draw(st.integers(1, 3))):
        edges = draw(st.lists(st.integers(0, n_steps), max_size=8, unique=True).map(sorted))
        parts = [range(*ends) for ends in zip(edges[::2], edges[1::2], strict=False)]
        layers.append((parts, Fraction(draw(st.integers(1, 12)), 24)))
    weights = st.lists(st.integers(0, 1), min_size=6, max_size=6).map(tuple)
    units = st.integers(1, 12).map(lambda number: Fraction(24, number))
    others = [
        StepSpend(0, "samples", first, draw(weights), draw(units), 1) for first in (AT - 6, AT + n_steps)
    ]
    return n_steps, layers, others, draw(st.integers(1, 8))


@settings(max_examples=120, deadline=None)
@given(cases())
def test_no_window_exceeds_its_limit_and_what_is_left_out_has_no_headroom(case):
    """By brute force over windows and steps; greedy in the order of time, in fractions."""
    n_steps, layers, others, window_length = case
    if lost(others, window_length) > MOST:
        return
    groups = [Layer([(part,) for part in parts], unit) for parts, unit in layers]
    found = layers_with_headroom(groups, AT, others, window_length, MOST)
    order = sorted((part.start, number, part) for number, (parts, _) in enumerate(layers) for part in parts)
    spends, wanted = list(others), [[] for _ in layers]
    for _, number, part in order:
        tried = spent([part], AT, n_steps, layers[number][1])
        if lost([*spends, tried], window_length) <= MOST:
            spends.append(tried)
            wanted[number].append((part,))
    assert [list(one) for one in found] == wanted
    assert worst_window(spends, window_length).epsilon <= MOST


def test_two_layers_that_each_have_headroom_and_together_none():
    """The broken twin asks for each layer by itself: both are taken, and a window loses 7/6."""
    dense, small = ([range(0, 1), range(2, 3)], Fraction(1, 3)), ([range(1, 3)], Fraction(1, 4))
    others = [StepSpend(0, "samples", AT - 1, (1,), Fraction(3), 1)]
    layers = [Layer([(part,) for part in parts], unit) for parts, unit in (dense, small)]
    together = layers_with_headroom(layers, AT, others, 4, MOST)
    alone = [groups_with_headroom(one.groups, AT, one.joint, others, 4, MOST) for one in layers]
    assert [len(one) for one in alone] == [2, 1]

    def costs(chosen):
        parts = [[part for (part,) in groups] for groups in chosen]
        plans = [spent(one, AT, 3, unit) for one, (_, unit) in zip(parts, (dense, small), strict=True)]
        return lost([*others, *plans], 4)

    assert costs(alone) > MOST
    assert costs(together) <= MOST
    assert sum(map(len, together)) == 2


@pytest.mark.parametrize(
    "layers", [[], [Layer([], Fraction(1))], [Layer([], Fraction(1)), Layer([], Fraction(2))]]
)
def test_nothing_asked_is_nothing_taken(layers):
    assert layers_with_headroom(layers, AT, [], 3, MOST) == tuple(() for _ in layers)
