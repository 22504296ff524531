"""Joint noise in the ledger: days of several lengths, late, restated, amended, or beside another plan."""

from fractions import Fraction
from unittest.mock import patch

import pytest

from optstream.errors import BudgetError, LedgerError
from optstream.ledger import StreamTerms
from optstream.ledger import accounting as amendments
from optstream.privacy import JointSpend, PrivacyModel, StepSpend
from optstream.privacy.rules import cut, groups_with_headroom, worst_sum

DAYS = (4, 5, 6)
"""Steps of a day; groups of two or three."""
LAYOUTS = {n: cut([range(step, step + 1) for step in range(n)], 2) for n in DAYS}


def model_of(**change):
    return PrivacyModel(**{"epsilon": "1", "window_length": 5, "alpha": "1", "resolution": "1"} | change)


def terms_of(model, stream="load"):
    return StreamTerms(stream, "people", model, "tree", "strict", "30 min")


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


def test_a_restatement_adds_to_the_day_that_it_restates(ledger, publish, reserve, kit):
    model = model_of()
    ledger.enrol(terms_of(model), kit.now)
    half = Fraction(1, 2)
    publish("a", [joint(model, 0, epsilon=half)])
    publish("b", [joint(model, 4, epsilon=half)])
    publish("a", [joint(model, 0, epsilon=half)], revision=1)
    assert ledger.worst("people").epsilon > half
    with pytest.raises(BudgetError):
        reserve("b", [joint(model, 4, epsilon=2 * half)], revision=1)
    publish("b", [joint(model, 4, epsilon=half)], revision=1)
    assert ledger.worst("people").epsilon == 1
    assert ledger.verify() == []


def test_a_day_of_smaller_groups_is_an_outcome_of_no_plan_with_larger_ones(ledger, publish, kit):
    """More groups cost some window more, so the outcome is held to the plan's own."""
    model = model_of()
    ledger.enrol(terms_of(model), kit.now)
    smaller = joint(model, 0, groups=tuple((part,) for group in LAYOUTS[4] for part in group))
    with pytest.raises(LedgerError):
        publish("a", [joint(model, 0)], outcome=[smaller])


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


@pytest.mark.parametrize("n_nodes", [1, 3])
def test_one_who_may_now_change_leaves_pays_earlier_joint_noise_step_by_step(
    ledger, publish, reserve, kit, n_nodes
):
    """On several nodes the next day waits; on one node nothing has changed. Control: priced as before, the
    ledger would have taken it.
    """
    before, after = model_of(), model_of(**ROAMING)
    ledger.enrol(terms_of(before), kit.now)
    publish("a", [joint(before, 0, n_nodes=n_nodes)])
    ledger.amend(terms_of(after), "devices that move", kit.now)
    beside = joint(after, 4)
    if n_nodes == 1:
        publish("b", [beside])
        assert ledger.worst("people").epsilon <= 1
    else:
        with pytest.raises(BudgetError):
            reserve("b", [beside])
        with patch.object(amendments, "repriced", lambda spend, planned, other: spend):
            reserve("b", [beside])
        assert any("would" in line or "cost" in line for line in ledger.verify())


def test_longer_windows_do_not_multiply_joint_noise(ledger, publish, kit):
    """Each group is charged once, however long the window is."""
    ledger.enrol(terms_of(model_of()), kit.now)
    publish("a", [joint(model_of(), 0)])
    ledger.amend(terms_of(model_of(window_length=12)), "longer windows", kit.now)
    assert ledger.worst("people").epsilon == Fraction(len(LAYOUTS[4]), worst_sum(LAYOUTS.items(), 5))
