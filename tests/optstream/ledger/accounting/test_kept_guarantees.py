"""Days keep the guarantee that they were released under, those of earlier versions too."""

import json
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest

from optstream.errors import BudgetError, LedgerError
from optstream.ledger import Key, StreamTerms, open_ledger
from optstream.ledger.accounting import Guarantees, History, covers, spend_rows
from optstream.ledger.schema import metadata
from optstream.mechanisms import Hierarchical, Laplace
from optstream.privacy import PeriodSpend, PrivacyModel, StepSpend
from optstream.stream import AggregationTree

TREE = AggregationTree.from_parents({"country": None, "a": "country", "b": "country", "c": "country"})


def terms_of(model, stream="load"):
    return StreamTerms(stream, "people", model, "tree", "30 min")


def plan_of(model, first_step, n_steps=4):
    """A whole day of a real mechanism, which costs its model's epsilon in any window."""
    return Hierarchical(Laplace(model), TREE, ["1/2", "1/2"]).plan(n_steps, first_step)


BASE = {"epsilon": "1", "window_length": 4, "alpha": "1"}

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
"""What was promised first, and what is promised after an amendment, which asks for less noise."""


def models(name):
    return tuple(PrivacyModel(**{**BASE, **change}, resolution="1") for change in WEAKER[name])


@pytest.fixture
def amended(ledger, publish, kit):
    """Release day 0 under one guarantee, and put another in force; returns both."""

    def call(old, new):
        ledger.enrol(terms_of(old), kit.now)
        publish("day 0", plan_of(old, 0, old.window_length))
        ledger.amend(terms_of(new), "another guarantee", kit.now)
        return old, new

    return call


@pytest.fixture(params=sorted(WEAKER))
def after(request, amended):
    return amended(*models(request.param))


def test_a_day_beside_one_of_an_earlier_guarantee_waits_for_its_windows(after, ledger, reserve, publish):
    old, new = after
    free = 2 * old.window_length - 1
    assert ledger.worst("people").epsilon <= 1
    with pytest.raises(BudgetError) as refused:
        reserve("day 1", plan_of(new, old.window_length))
    said = str(refused.value)
    assert "by privacy guarantee 0 of privacy budget 'people' (epsilon 1," in said
    assert f"window {old.window_length}, alpha {old.alpha})" in said
    assert f"begins at step {free} or later" in said
    publish("day 2", plan_of(new, free))
    assert ledger.verify() == []


def test_verify_names_the_window_that_an_earlier_version_let_through(after, ledger, reserve, let_through):
    """What the code before did: the plan was priced by the guarantee in force alone."""
    old, new = after
    reserve("day 1", plan_of(new, old.window_length))
    assert any("which privacy guarantee 0 allows" in problem for problem in ledger.verify())


def test_what_would_be_lost_is_told_without_reserving(after, ledger):
    old, new = after
    beside, later = plan_of(new, old.window_length), plan_of(new, 2 * old.window_length - 1)
    head = ledger.head("load")
    judged = ledger.judge_plan("people", beside)
    assert [one.number for one in judged] == [1, 0]
    assert [one.is_broken for one in judged] == [False, True]
    assert not any(one.is_broken for one in ledger.judge_plan("people", later))
    assert ledger.head("load") == head
    # and as it would be under a guarantee that nobody has declared yet
    third = PrivacyModel("1", 1, "1", resolution="1")
    assert [one.number for one in ledger.judge_plan("people", beside, third)] == [2, 0]


def test_a_draw_is_held_to_its_plan_by_every_guarantee(amended, drawn):
    """Windows of now have four steps, of the first guarantee one: an outcome may fit those of now only."""
    amended(PrivacyModel("1", 1, "1", resolution="1"), PrivacyModel("1", 4, "1", resolution="1"))
    plan, outcome = (
        StepSpend(0, "sums", 4, weights, Fraction(4), 1) for weights in ((1, 1, 1, 1), (0, 2, 0, 0))
    )
    assert covers([plan], [outcome], 4)
    with pytest.raises(LedgerError, match="more than its plan"):
        drawn("day 1", [plan], outcome=[outcome])


STORED = json.loads(Path(__file__).with_name("aligned_ledger.json").read_text(encoding="utf-8"))
"""From the version of 2026-11-28: epsilon 1, windows of 4 steps inside a day of 4, calibration "paper".

Days 0 and 1 were charged 1/2, 3/4, 7/8 or 1 for one to four steps, day 2 1/2 for each of its last two steps.
Day 3 is reserved: at most two steps of 1/2 each in any window, less those of day 2.
"""


@pytest.fixture
def stored(url, round_the_library):
    open_ledger(url).close()
    with round_the_library() as connection:
        for table, rows in STORED.items():
            connection.execute(metadata.tables[table].insert(), rows)
            if connection.dialect.name == "postgresql" and "id" in rows[0]:
                key = f"pg_get_serial_sequence('{table}', 'id')"
                connection.exec_driver_sql(f"SELECT setval({key}, {len(rows)})")
    opened = open_ledger(url)
    yield opened
    opened.close()


def test_a_stored_ledger_verifies_and_no_window_is_charged_less_than_it_may_have_spent(stored):
    assert stored.verify() == []
    assert stored.terms("load").model.windows == "aligned"
    half, whole = Fraction(1, 2), Fraction(1)
    day = [half, Fraction(3, 4), Fraction(7, 8), whole]
    # by hand, from the window of step 0 on: parts of two days add up, and day 3 may take any two steps
    expected = [whole] + [day[2 - n] + day[n] for n in range(3)]
    expected += [whole] + [day[2 - n] + taken for n, taken in enumerate([0, 0, half])]
    expected += [whole, whole + half, 2 * whole, half + whole]
    charged = {
        start: one.charged
        for one in stored.charged_windows("customers", range(16))
        for start in range(one.first_start, one.last_start + 1)
    }
    assert [charged[start] for start in range(12)] == expected
    assert stored.worst("customers").epsilon == 2


def test_nothing_more_is_released_before_another_guarantee_is_declared(stored, kit):
    terms = stored.terms("load")
    with pytest.raises(LedgerError, match=r"inside one period .* `optstream ledger amend`"):
        stored.reserve(Key("load", "day 9"), kit.plan(36, "1/8"), "night", kit.now, kit.lease, terms=terms)
    assert stored.find(Key("load", "day 9")) is None
    sliding = replace(terms, model=replace(terms.model, windows="sliding"), calibration="strict")
    stored.amend(sliding, "every window", kit.now)
    with pytest.raises(BudgetError):
        stored.reserve(Key("load", "day 4"), kit.plan(16, "1/4"), "night", kit.now, kit.lease, terms=sliding)
    stored.reserve(Key("load", "day 5"), kit.plan(20, "1/4"), "night", kit.now, kit.lease, terms=sliding)
    assert stored.verify() == []


@pytest.mark.parametrize(("times", "found"), [(1, 1), (2, 2)])
def test_a_period_that_lost_more_than_an_aligned_guarantee_gives_is_found(times, found):
    spends = [PeriodSpend(0, "sums", at, (Fraction(0), *[Fraction(1)] * 4)) for at in (0, 4, *[8] * times)]
    history = History()
    for _, first_step, _, document in spend_rows(spends):
        history.add(0, first_step, document)
    ((_, model, cost),) = history.costs(Guarantees({0: PrivacyModel("1", 4, "1", windows="aligned")}, 0))
    assert cost.epsilon == found
    assert (cost.epsilon > model.budget) == (times > 1)
