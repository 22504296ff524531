"""Joint noise in the ledger: days of several lengths, late, restated, amended, or beside another plan."""

from fractions import Fraction

import pytest

from optstream.errors import BudgetError, LedgerError
from optstream.ledger import StreamTerms
from optstream.privacy import JointSpend, PrivacyModel, StepSpend
from optstream.privacy.rules import cut, groups_with_headroom, worst_sum

DAYS = (4, 5, 6)
"""Steps of a day; groups of two or three."""
LAYOUTS = {n: cut([range(step, step + 1) for step in range(n)], 2) for n in DAYS}


def model_of(**change):
    return PrivacyModel(**{"epsilon": "1", "window_length": 5, "alpha": "1", "resolution": "1"} | change)


def terms_of(model, stream="load"):
    return StreamTerms(stream, "people", model, "tree", "30 min")


def joint(model, first_step, n_steps=4, n_nodes=1, groups=None, epsilon=None):
    """A day with joint noise: in any window of such days, in any order, it costs the model's epsilon."""
    worst = worst_sum(LAYOUTS.items(), model.window_length)
    units = model.leaves_per_step * model.alpha_units
    scale = worst * units / (model.epsilon if epsilon is None else epsilon)
    groups = LAYOUTS[n_steps] if groups is None else groups
    leaves = model.leaves_per_step
    return JointSpend(0, "samples", first_step, n_steps, groups, scale, model.alpha_units, n_nodes, leaves)


def test_days_of_all_lengths_in_any_order_stay_within_epsilon_and_attain_it(ledger, publish, kit):
    """Days of four, five and six steps, one of them late, beside a gap."""
    model = model_of()
    ledger.enrol(terms_of(model), kit.now)
    first = {"a": (0, 4), "b": (4, 6), "d": (15, 4), "e": (19, 6), "c": (10, 5), "f": (31, 5)}
    for period, (first_step, n_steps) in first.items():
        publish(period, [joint(model, first_step, n_steps)])
    assert ledger.worst("people").epsilon == 1
    assert ledger.verify() == []


def test_groups_with_no_headroom_beside_another_plan_are_left_out(ledger, publish, reserve, kit):
    """Laplace noise at each step, then joint noise: half a window of each costs more than one of either."""
    model = model_of()
    ledger.enrol(terms_of(model), kit.now)
    laplace = StepSpend(0, "samples", 0, (1,) * 4, Fraction(5), 1)
    publish("a", [laplace])
    whole = joint(model, 4)
    with pytest.raises(BudgetError):
        reserve("b", [whole])
    near = ledger.charged_near("load", "b", 0, 4, 4)
    taken = groups_with_headroom(whole.groups, 4, whole.unit_charge, near, 5, model.epsilon)
    assert taken == whole.groups[1:]
    publish("b", [joint(model, 4, groups=taken)])
    publish("c", [joint(model, 8)])
    assert ledger.worst("people").epsilon <= 1
    assert ledger.verify() == []


ROAMING = {"unit": "roaming", "leaves_per_step": 1}


def test_joint_noise_of_several_nodes_is_refused_where_customers_change_leaf(ledger, publish, reserve, kit):
    model = model_of(**ROAMING)
    ledger.enrol(terms_of(model), kit.now)
    with pytest.raises(LedgerError, match="joint noise for 3 nodes, which is priced for customers who stay"):
        reserve("a", [joint(model, 0, n_nodes=3)])
    publish("a", [joint(model, 0)])
