"""Rho and joint noise in the ledger: days that fit, days that do not, amendments."""

from dataclasses import replace
from fractions import Fraction

import pytest

from optstream.errors import BudgetError, LedgerError, ParameterError
from optstream.ledger import Key, StreamTerms
from optstream.privacy import GaussianSpend, JointSpend, PrivacyModel, StepSpend
from optstream.privacy.horizon import loss_over
from optstream.privacy.rules import cut, groups_with_headroom, worst_sum
from optstream.privacy.zero_concentrated import epsilon_of, largest_rho

DELTA = Fraction(1, 10**6)
RHO = largest_rho(Fraction(1), DELTA)


def model_of(**change):
    return PrivacyModel(**{"epsilon": "1", "window_length": 5, "alpha": "1", "resolution": "1"} | change)


CONCENTRATED = model_of(delta=DELTA)


def terms_of(model, stream="load"):
    return StreamTerms(stream, "people", model, "tree", "30 min")


def gaussian(model, first_step, n_steps=4, share=1):
    """A day of which any window costs so much of rho, and hardly less."""
    moved = (model.leaves_per_step * model.alpha_units) ** 2
    variance = model.window_length * moved / (2 * model.budget * Fraction(share))
    # a rational root that is a little too large
    scale = Fraction(int(float(variance) ** 0.5 * 10**6) + 1, 10**6)
    steps = tuple(range(step, step + 1) for step in range(n_steps))
    leaves = model.leaves_per_step
    return GaussianSpend(0, "samples", first_step, n_steps, steps, scale, model.alpha_units, leaves)


def test_days_in_rho_are_charged_by_windows_and_refused_above_it(ledger, publish, reserve, kit):
    ledger.enrol(terms_of(CONCENTRATED), kit.now)
    for day in range(4):
        publish(f"day {day}", [gaussian(CONCENTRATED, 4 * day)])
    worst = ledger.worst("people").epsilon
    assert RHO * (1 - DELTA) < worst <= RHO
    with pytest.raises(BudgetError, match=r"in rho \(epsilon 1 at delta 1e-06\)"):
        reserve("late", [gaussian(CONCENTRATED, 2)])
    assert ledger.verify() == []
    assert ledger.terms("load").model == CONCENTRATED
    assert ledger.guarantees("load") == {0: CONCENTRATED}


STEP = StepSpend(0, "samples", 0, (1,) * 4, Fraction(1000), 1)


@pytest.mark.parametrize(
    ("model", "own", "other"),
    [(CONCENTRATED, gaussian(CONCENTRATED, 0), STEP), (model_of(), STEP, gaussian(CONCENTRATED, 0))],
    ids=["rho", "epsilon"],
)
def test_spends_of_the_other_currency_are_refused_however_small(
    ledger, publish, reserve, kit, model, own, other
):
    ledger.enrol(terms_of(model), kit.now)
    small = replace(other, scale=other.scale * 10**6)
    for plan in ((small,), (own, small)):
        with pytest.raises(ParameterError, match="never added up"):
            reserve("a", plan)
    assert ledger.find(Key("load", "a")) is None
    # nor as an outcome of a plan
    with pytest.raises(ParameterError, match="never added up"):
        publish("a", [own], outcome=(small,))
    assert ledger.find(Key("load", "a")).spends == (own,)
    assert ledger.verify() == []


@pytest.mark.parametrize(
    "other", [model_of(), model_of(delta="1e-9"), model_of(epsilon="2", delta="1e-6")], ids=str
)
def test_streams_of_one_budget_agree_on_currency_and_delta(ledger, kit, other):
    ledger.enrol(terms_of(CONCENTRATED), kit.now)
    with pytest.raises(LedgerError, match="streams of one privacy budget must agree"):
        ledger.enrol(terms_of(other, "gas"), kit.now)


@pytest.mark.parametrize(("before", "after"), [(model_of(), CONCENTRATED), (CONCENTRATED, model_of())])
def test_no_amendment_changes_the_currency_and_the_way_out_is_named(ledger, publish, kit, before, after):
    spend = gaussian(before, 0) if before.delta else replace(STEP, scale=Fraction(10))
    ledger.enrol(terms_of(before), kit.now)
    publish("a", [spend])
    with pytest.raises(
        LedgerError, match=r"currency .* cannot be amended.* a whole window or more after its last"
    ):
        ledger.amend(terms_of(after), "another currency", kit.now)
    with pytest.raises(LedgerError, match="has releases"):
        ledger.enrol(terms_of(after), kit.now)
    assert ledger.terms("load").model == before
    assert ledger.verify() == []


def test_a_span_of_days_adds_up_rho_and_is_told_at_a_delta(ledger, publish, kit):
    ledger.enrol(terms_of(CONCENTRATED), kit.now)
    for day in range(5):
        publish(f"day {day}", [gaussian(CONCENTRATED, 4 * day)])
    spent = ledger.spent_over("people", range(20))
    assert spent.window == (5, RHO)
    found = loss_over(spent.spends, DELTA, adaptive=True, window=spent.window)
    own = sum(spend.whole_charge for spend in spent.spends)
    assert own <= 4 * RHO
    assert (found.plain, found.composed) == (own, "rho")
    assert epsilon_of(own, DELTA) <= Fraction(found.epsilon) < epsilon_of(own, DELTA) * (1 + DELTA)


@pytest.mark.parametrize(
    "statement", ["UPDATE grants SET rho = '1/1000'", "UPDATE grants SET delta = '1/100000'"]
)
def test_a_row_that_was_edited_is_found(ledger, publish, kit, edit, statement):
    ledger.enrol(terms_of(CONCENTRATED), kit.now)
    publish("a", [gaussian(CONCENTRATED, 0)])
    edit(statement)
    assert ledger.verify() != []


DAYS = (4, 5, 6)
"""Steps of a day; groups of two or three."""
LAYOUTS = {n: cut([range(step, step + 1) for step in range(n)], 2) for n in DAYS}


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
    near = ledger.charged_near(Key("load", "b"), range(4, 8))
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
