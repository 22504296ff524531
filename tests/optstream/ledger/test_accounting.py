"""What windows are charged, against the accountant and by hand; days keep the guarantee of their release."""

import json
from dataclasses import replace
from datetime import timedelta
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from random import Random

import pytest

from optstream.errors import BudgetError, LedgerError, ParameterError
from optstream.ledger import Key, ReleaseState, StreamTerms, Stretch, open_ledger
from optstream.ledger.accounting import Guarantees, History, covers, rows_hash, spend_rows
from optstream.mechanisms import Hierarchical, Laplace
from optstream.privacy import CappedSpend, GaussianSpend, OrderSpend, PeriodSpend, PrivacyModel, StepSpend
from optstream.privacy.accountant import charged_to_windows, worst_window
from optstream.privacy.rules import Layer, parts_with_headroom
from optstream.privacy.spends import spend_from_document
from optstream.privacy.zero_concentrated import largest_rho
from optstream.stream import AggregationTree
from tests.optstream.ledger.conftest import insert_rows


def random_spend(random, first_step, n_steps):
    if random.random() < 0.5:
        weights = tuple(Fraction(random.randrange(4), random.randrange(1, 5)) for _ in range(n_steps))
        return StepSpend(0, "samples", first_step, weights, Fraction(random.randrange(1, 4)), 2)
    rises = sorted(Fraction(random.randrange(5), 3) for _ in range(n_steps))
    return PeriodSpend(0, "joint", first_step, (Fraction(0), *rises))


def guarantee_of(window_length, **more):
    return Guarantees({0: PrivacyModel("1", window_length, "1", **more)}, 0)


def history_of(*plans):
    history = History()
    for plan in plans:
        history.add(plan)
    return history


def test_a_history_goes_by_every_word_of_the_documents(kit):
    """A row's own step may be wrong, a document written in another way, or one of two alike changed."""
    day, later, far = (
        (0, 0, 4, row[3]) for first in (0, 2, 40) for row in spend_rows(kit.plan(first, "1/4"))
    )
    for rows in (
        [day, (0, 2, 4, later[3].replace('"first_step":2,', '"first_step" : 2,'))],
        [day, (0, 400, *later[2:])],
        [(0, 400, *day[2:]), (0, 2, *later[2:])],
        [day, day, far, (*far[:3], far[3].replace('"1/4"', '"9/4"'))],
        [day, day, far, (*far[:3], far[3].replace('"first_step":40,', '"first_step":0,'))],
    ):
        spends = [spend_from_document(json.loads(row[3])) for row in rows]
        cost = history_of(rows[:2], rows[2:]).cost(guarantee_of(4))
        assert cost.epsilon == worst_window(spends, 4).epsilon > worst_window(spends[:1], 4).epsilon
    line = " ".join(map(str, far))
    joined = [(*day[:3], f"{day[3]}\n{line}")]
    assert rows_hash(1, joined) == rows_hash(1, [day, far])
    with pytest.raises(ValueError, match=r"delimiter|Extra data"):
        history_of([day], joined).cost(guarantee_of(4))


def test_plans_that_recur_cost_what_their_spends_do():
    """Plans alike but for their steps, plans of several first steps, capped ones, and their mixtures."""
    random = Random(1)
    for _ in range(60):
        shapes = [[random_spend(random, 0, 5) for _ in range(random.randrange(1, 4))] for _ in range(2)]
        plans = []
        for first_step in random.sample(range(-20, 120, 5), 9):
            plan = [replace(spend, first_step=first_step) for spend in random.choice(shapes)]
            if random.random() < 0.2:
                plan.append(replace(plan[0], first_step=first_step + 5))
            if random.random() < 0.2:
                taken = tuple(sorted(random.sample(range(first_step - 6, first_step), 2)))
                cap = Fraction(random.randrange(1, 4))
                plan.append(CappedSpend(0, "points", first_step, 5, cap, taken, Fraction(1), 2))
            plans.append(plan)
        cost = history_of(*map(spend_rows, plans)).cost(guarantee_of(3))
        assert cost.epsilon == worst_window([spend for plan in plans for spend in plan], 3).epsilon


@pytest.mark.parametrize(("times", "found"), [(1, 1), (2, 2)])
def test_a_period_that_lost_more_than_an_aligned_guarantee_gives_is_found(times, found):
    spends = [PeriodSpend(0, "sums", at, (Fraction(0), *[Fraction(1)] * 4)) for at in (0, 4, *[8] * times)]
    history = history_of(*([row] for row in spend_rows(spends)))
    ((_, model, cost),) = history.costs(guarantee_of(4, windows="aligned"))
    assert cost.epsilon == found
    assert (cost.epsilon > model.budget) == (times > 1)


def test_covers_is_what_the_accountant_says_of_any_company():
    """Covered: no other spend makes the settled ones dearer. A probe picks out each window in turn."""
    random = Random(7)
    window_length, seen = 3, set()
    for _ in range(60):
        reserved = [random_spend(random, 0, 5) for _ in range(2)]
        settled = [random_spend(random, 0, 5)]
        dearer = False
        period = range(-2, 7)
        for start in range(-2, 5):
            inside = tuple(Fraction(100 * (start <= step < start + window_length)) for step in period)
            probe = StepSpend(0, "probe", period.start, inside, Fraction(1), 1)
            before = worst_window([*reserved, probe], window_length)
            dearer |= worst_window([*settled, probe], window_length).epsilon > before.epsilon
        covered = covers(reserved, settled, window_length)
        assert covered != dearer
        seen.add(covered)
    assert seen == {True, False}


def history():
    """Uneven charges on four periods, one of them far away."""
    weights = (Fraction(1, 8), Fraction(0), Fraction(1, 16), Fraction(1, 8))
    noise = tuple(Fraction(n, 64) for n in range(5))
    for first in (0, 4, 8, 40):
        yield StepSpend(0, "samples", first, weights, Fraction(1), 1), PeriodSpend(1, "noise", first, noise)


@pytest.fixture
def charged(ledger, reserve):
    for plan in history():
        reserve(f"day {plan[0].first_step}", plan)
    return ledger


def spelled_out(stretches):
    return {start: one.charged for one in stretches for start in range(one.first_start, one.last_start + 1)}


def test_windows_are_charged_as_the_accountant_says(charged, kit):
    everything = [spend for plan in history() for spend in plan]
    for steps in (range(5, 9), range(-10, 60), range(11, 12), range(20, 30)):
        starts = range(steps.start - 3, steps.stop)
        found = charged.charged_windows("customers", steps)
        assert spelled_out(found) == dict(zip(starts, charged_to_windows(everything, 4, starts), strict=True))
        assert all(a.charged != b.charged and a.last_start + 1 == b.first_start for a, b in pairwise(found))
        worst = worst_window(everything, 4, touching=steps)
        assert charged.window_spent("customers", steps).epsilon == worst.epsilon
    assert charged.charged_windows("customers", range(20, 30)) == (Stretch(17, 29, Fraction(0)),)
    whole, expected = charged.worst("customers"), worst_window(everything, 4)
    assert (whole.epsilon, whole.first_step) == (expected.epsilon, expected.first_step)
    # with a plan, as `reserve` judges it
    plan = kit.plan(12, "1/8")
    (judged,) = charged.judge_plan("customers", plan)
    expected = worst_window([*everything, *plan], 4, touching=range(12, 16))
    assert (judged.loss.epsilon, judged.loss.first_step) == (expected.epsilon, expected.first_step)
    assert charged.find(Key("load", "day 12")) is None


def test_releases_and_events_are_listed_and_unknown_streams_have_none(charged, publish, reserve, kit):
    publish("day 60", kit.plan(60, "1/8"))
    wanted, found = charged.releases("load"), list(charged.outlines("load"))
    assert [(one.period, one.state, one.first_step, one.end) for one in found] == [
        (one.period, one.state, one.first_step, one.first_step + one.n_steps) for one in wanted
    ]
    assert found[-1].published_name == "release-1.parquet"
    assert [one.period for one in charged.outlines("load", range(4, 40))] == ["day 4", "day 8"]
    assert charged.last_release("load") == wanted[-1]
    assert charged.count_by_state("load") == {ReleaseState.RESERVED: 4, ReleaseState.PUBLISHED: 1}
    assert charged.event_times("load", "published") == {("day 60", 0): kit.now}
    later = kit.now + timedelta(hours=1)
    reserve("day 60", kit.plan(60, "1/8"), revision=1, now=later)
    assert charged.last_release("load").revision == 1
    own, everything = charged.events_of("load", "day 60"), charged.events_of("load")
    kinds = ["reserved", "draw begun", "drawn", "staged", "published"]
    assert [(one.kind, one.revision) for one in own] == [*((kind, 0) for kind in kinds), ("reserved", 1)]
    assert [one.at for one in own] == [kit.now] * 5 + [later]
    assert [one.number for one in everything] == list(range(len(everything)))
    assert [one for one in everything if one.period == "day 60"] == list(own)
    assert everything[0].period is None
    assert charged.events_of("load", first=len(everything) - 1) == everything[-1:]
    assert charged.heads("load")["load"][0] == len(everything)
    assert charged.events_of("load", "day 8")
    assert charged.events_of("nobody", "day 60") == charged.releases("nobody") == ()
    assert charged.guarantees("nobody") == {}
    for call in (charged.head, charged.worst):
        with pytest.raises(LedgerError, match="enrol"):
            call("nobody")


def test_a_span_has_the_spends_of_its_periods_and_whether_any_was_chosen(ledger, reserve, drawn, kit):
    for number in range(3):
        reserve(f"day {number}", kit.plan(4 * number, "1/8"))
    found = ledger.spent_over("customers", range(0, 8))
    assert [spend.first_step for spend in found.spends] == [0, 4]
    assert (found.compromised, found.adaptive, found.window) == (False, False, (4, Fraction(1)))
    assert ledger.spent_over("customers", range(40, 48)).spends == ()
    # a plan that left a choice is remembered after it was settled
    plan = (CappedSpend(0, "samples", 12, 4, 2, (), Fraction(8), 1),)
    drawn("day 3", plan, outcome=(StepSpend(0, "samples", 12, (0, 1, 0, 0), Fraction(8), 1),))
    # the day before it may have been released later, and measured what its choice left
    for steps, adaptive in ((range(8, 16), True), (range(0, 12), True), (range(0, 8), False)):
        assert ledger.spent_over("customers", steps).adaptive == adaptive
    for number, method in ((1, "void"), (3, "void"), (1, "compromise")):
        getattr(ledger, method)(Key("load", f"day {number}"), "stolen", kit.now)
    assert ledger.spent_over("customers", range(0, 12)).compromised
    assert not ledger.spent_over("customers", range(8, 12)).compromised
    # after an amendment no figure holds for every window
    ledger.amend(kit.terms(epsilon="2"), "a larger epsilon", kit.now)
    assert ledger.spent_over("customers", range(0, 12)).window is None


# Rho and joint noise.

DELTA = Fraction(1, 10**6)
RHO = largest_rho(Fraction(1), DELTA)


def model_of(**change):
    return PrivacyModel(**{"epsilon": "1", "window_length": 5, "alpha": "1", "resolution": "1"} | change)


CONCENTRATED = model_of(delta=DELTA)


def terms_of(model, stream="load"):
    return StreamTerms(stream, "people", model, "tree", "30 min")


def gaussian(first_step):
    """A day of four steps of which any window costs all of rho, and hardly less."""
    # a rational root that is a little too large
    scale = Fraction(int(float(5 / (2 * RHO)) ** 0.5 * 10**6) + 1, 10**6)
    steps = tuple(range(step, step + 1) for step in range(4))
    return GaussianSpend(0, "samples", first_step, 4, steps, scale, 1)


def test_days_in_rho_are_charged_by_windows_and_refused_above_it(ledger, publish, reserve, kit, edit):
    ledger.enrol(terms_of(CONCENTRATED), kit.now)
    for day in range(5):
        publish(f"day {day}", [gaussian(4 * day)])
    assert RHO * (1 - DELTA) < ledger.worst("people").epsilon <= RHO
    with pytest.raises(BudgetError, match=r"in rho \(epsilon 1 at delta 1e-06\)"):
        reserve("late", [gaussian(2)])
    assert ledger.guarantees("load") == {0: CONCENTRATED}
    assert ledger.spent_over("people", range(20)).window == (5, RHO)
    assert ledger.verify() == []
    for column, value in (("rho", "1/1000"), ("delta", "1/100000")):
        edit(f"UPDATE grants SET {column} = '{value}'")
        assert ledger.verify() != []


STEP = StepSpend(0, "samples", 0, (1,) * 4, Fraction(1000), 1)


@pytest.mark.parametrize(
    ("model", "own", "other"),
    [(CONCENTRATED, gaussian(0), STEP), (model_of(), STEP, gaussian(0))],
    ids=["rho", "epsilon"],
)
def test_a_budget_keeps_one_currency(ledger, publish, reserve, kit, model, own, other):
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
    # nor by an amendment, whose refusal names the way out
    after = model_of() if model.delta else CONCENTRATED
    with pytest.raises(LedgerError, match=r"currency .* cannot be amended.* a whole window or more after"):
        ledger.amend(terms_of(after), "another currency", kit.now)
    with pytest.raises(LedgerError, match="has releases"):
        ledger.enrol(terms_of(after), kit.now)
    for change in (model_of(), model_of(delta="1e-9"), model_of(epsilon="2", delta="1e-6")):
        if change.delta or model.delta:
            with pytest.raises(LedgerError, match="streams of one privacy budget must agree"):
                ledger.enrol(terms_of(change, "gas"), kit.now)


def joint(first_step, n_nodes=1, **given):
    """A day of four steps with joint noise: any window of such days costs epsilon, less a little."""
    parts, order = tuple(range(step, step + 1) for step in range(4)), given.pop("order", first_step)
    return OrderSpend(
        0, "samples", first_step, 4, parts, Fraction(2), 1, n_nodes, 1, 5, 5, 1, order, **given,
    )  # fmt: skip


def test_steps_with_no_headroom_near_another_plan_are_left_out(ledger, publish, reserve, kit):
    """Laplace noise at each step, then joint noise: half a window of each costs more than one of either."""
    ledger.enrol(terms_of(model_of()), kit.now)
    publish("a", [replace(STEP, scale=Fraction(5))])
    whole = joint(4)
    with pytest.raises(BudgetError):
        reserve("b", [whole])
    near = ledger.charged_near(Key("load", "b"), range(4, 8))
    (taken,) = parts_with_headroom([Layer(whole.parts, orders=[whole])], 4, near, 5, Fraction(1))
    assert taken == whole.parts[2:]
    publish("b", [replace(whole, parts=taken)])
    publish("c", [joint(8, order=4, earlier=1)])
    assert ledger.worst("people").epsilon <= 1
    with pytest.raises(BudgetError):  # windows that hold days of two orders pay twice
        reserve("d", [joint(12)])
    roaming = replace(terms_of(model_of(unit="roaming"), "roaming"), grant="others")
    ledger.enrol(roaming, kit.now)
    with pytest.raises(LedgerError, match="joint noise for 3 nodes, which is priced for customers who stay"):
        reserve("a", [joint(0, n_nodes=3)], stream="roaming")
    publish("a", [joint(0)], stream="roaming")


# Days keep the guarantee that they were released under, those of earlier versions too.

TREE = AggregationTree.from_parents({"country": None, "a": "country", "b": "country", "c": "country"})


def plan_of(model, first_step, n_steps=4):
    """A whole day of a real mechanism, which costs its model's epsilon in any window."""
    return Hierarchical(Laplace(model), TREE, ["1/2", "1/2"]).plan(n_steps, first_step)


WEAKER = {
    "a smaller alpha": ({"alpha": "10"}, {"alpha": "1"}),
    "a shorter window": ({"window_length": 8}, {"window_length": 4}),
    "a larger epsilon": ({}, {"epsilon": "2"}),
    "fewer leaves a step": (
        {"unit": "roaming", "leaves_per_step": 3}, {"unit": "roaming", "leaves_per_step": 1}
    ),
    "another unit": ({"unit": "roaming", "leaves_per_step": 3}, {"unit": "customer"}),
    "everything at once": (
        {"alpha": "10", "window_length": 8}, {"alpha": "1", "window_length": 4, "epsilon": "3"}
    ),
}  # fmt: skip
"""The first guarantee, and the one after an amendment, which asks for less noise."""


@pytest.fixture
def amended(ledger, publish, kit):
    def call(old, new):
        ledger.enrol(terms_of(old), kit.now)
        publish("day 0", plan_of(old, 0, old.window_length))
        ledger.amend(terms_of(new), "another guarantee", kit.now)
        return old, new

    return call


@pytest.fixture(params=sorted(WEAKER))
def after(request, amended):
    return amended(*(model_of(**{"window_length": 4} | change) for change in WEAKER[request.param]))


def test_a_day_near_one_of_an_earlier_guarantee_waits_for_its_windows(after, ledger, reserve, publish):
    old, new = after
    free = 2 * old.window_length - 1
    near, later = plan_of(new, old.window_length), plan_of(new, free)
    assert ledger.worst("people").epsilon <= 1
    head = ledger.head("load")
    assert [(one.number, one.is_broken) for one in ledger.judge_plan("people", near)] == [
        (1, False),
        (0, True),
    ]
    assert not any(one.is_broken for one in ledger.judge_plan("people", later))
    # and as it would be under a guarantee that nobody has declared yet
    third = PrivacyModel("1", 1, "1", resolution="1")
    assert [one.number for one in ledger.judge_plan("people", near, third)] == [2, 0]
    with pytest.raises(BudgetError) as refused:
        reserve("day 1", near)
    said = str(refused.value)
    assert "by privacy guarantee 0 of privacy budget 'people' (epsilon 1," in said
    assert f"window {old.window_length}, alpha {old.alpha})" in said
    assert f"begins at step {free} or later" in said
    assert ledger.head("load") == head
    publish("day 2", later)


def test_verify_names_the_window_that_an_earlier_version_let_through(after, ledger, reserve, let_through):
    """What the code before did: the plan was priced by the guarantee in force alone."""
    old, new = after
    reserve("day 1", plan_of(new, old.window_length))
    assert any("which privacy guarantee 0 allows" in problem for problem in ledger.verify())


def test_a_draw_is_held_to_its_plan_by_every_guarantee(amended, ledger, drawn):
    """Windows now have four steps, under the first guarantee one: an outcome may fit only the current one."""
    amended(model_of(window_length=1), model_of(window_length=4))
    plan, outcome = (
        StepSpend(0, "sums", 4, weights, Fraction(4), 1) for weights in ((1, 1, 1, 1), (0, 2, 0, 0))
    )
    assert covers([plan], [outcome], 4)
    with pytest.raises(LedgerError, match="VOID and stays charged for its plan"):
        drawn("day 1", [plan], outcome=[outcome])
    record = ledger.find(Key("load", "day 1"))
    assert (record.state, record.spends, record.measurements_hash) == (ReleaseState.VOID, (plan,), None)


STORED = json.loads(Path(__file__).with_name("aligned_ledger.json").read_text(encoding="utf-8"))
"""From the version of 2026-11-28: epsilon 1, windows of 4 steps inside a day of 4, calibration "paper".

Days 0 and 1 were charged 1/2, 3/4, 7/8 or 1 for one to four steps, day 2 1/2 for each of its last two steps.
Day 3 is reserved: at most two steps of 1/2 each in any window, less those of day 2.
"""


def test_a_stored_ledger_is_charged_all_it_may_have_spent_until_amended(url, round_the_library, kit):
    open_ledger(url).close()
    with round_the_library() as connection:
        insert_rows(connection, STORED)
    stored = open_ledger(url)
    assert stored.verify() == []
    assert stored.terms("load").model.windows == "aligned"
    half, whole = Fraction(1, 2), Fraction(1)
    day = [half, Fraction(3, 4), Fraction(7, 8), whole]
    # by hand, from the window of step 0 on: parts of two days add up, and day 3 may take any two steps
    expected = [whole] + [day[2 - n] + day[n] for n in range(3)]
    expected += [whole] + [day[2 - n] + taken for n, taken in enumerate([0, 0, half])]
    expected += [whole, whole + half, 2 * whole, half + whole]
    found = spelled_out(stored.charged_windows("customers", range(16)))
    assert [found[start] for start in range(12)] == expected
    assert stored.worst("customers").epsilon == 2
    # nothing more is released before every window has a guarantee
    terms = stored.terms("load")

    def reserve(day):
        plan = kit.plan(4 * day, "1/4")
        stored.reserve(Key("load", f"day {day}"), plan, "night", kit.now, kit.lease, terms=terms)

    with pytest.raises(LedgerError, match=r"inside one period .* `optstream ledger amend`"):
        reserve(9)
    assert stored.find(Key("load", "day 9")) is None
    terms = replace(terms, model=replace(terms.model, windows="sliding"), calibration="strict")
    stored.amend(terms, "every window", kit.now)
    with pytest.raises(BudgetError):
        reserve(4)
    reserve(5)
    assert stored.verify() == []
    stored.close()
