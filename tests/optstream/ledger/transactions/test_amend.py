"""Guarantees that change under releases, and noise that others know."""

import math
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from fractions import Fraction
from random import Random
from threading import Event
from time import sleep

import pytest

from optstream.errors import BudgetError, LedgerError
from optstream.ledger import Key, ReleaseState, StreamTerms, open_ledger
from optstream.ledger import terms as amend_module
from optstream.privacy import PrivacyModel, StepSpend
from tests.optstream.ledger.brute_force import Charged, broken


def changed(kit, alpha="1", stream="load", **more):
    terms = kit.terms(stream, **more)
    model = PrivacyModel(terms.model.epsilon, terms.model.window_length, alpha, resolution="1")
    return StreamTerms(stream, terms.grant, model, terms.hierarchy_hash, terms.calendar)


def plan_for(alpha_units, first_step, charge):
    """As `kit.plan`, for another alpha."""
    return (StepSpend(0, "samples", first_step, (Fraction(charge),) * 4, Fraction(alpha_units), alpha_units),)


@pytest.mark.slow
@pytest.mark.parametrize(
    "change",
    [{"epsilon": "2"}, {"window_length": 5}, {"hierarchy": "x"}, {"alpha": "3"}],
)
def test_a_change_is_taken_when_it_is_declared(ledger, publish, kit, change):
    publish("day 0", kit.plan(0, "1/8"))
    terms = changed(kit, **change)
    with pytest.raises(LedgerError, match="optstream ledger amend"):
        ledger.enrol(terms, kit.now)
    ledger.amend(terms, "agreed with the board", kit.now)
    assert ledger.terms("load") == terms
    ledger.enrol(terms, kit.now)
    with pytest.raises(LedgerError, match="nothing to amend"):
        ledger.amend(terms, "again", kit.now)
    assert ledger.verify() == []


def test_verify_holds_each_guarantee_for_what_is_planned_under_it(ledger, publish, reserve, kit, let_through):
    publish("day 0", kit.plan(0, "1/4"))
    ledger.amend(changed(kit, epsilon="1/2"), "less from now on", kit.now)
    reserve("far", kit.plan(8, "1/8"))
    assert ledger.verify() == []
    reserve("near it", kit.plan(8, "1/8"))
    assert any("costs 1, more than 1/2" in problem for problem in ledger.verify())


def test_a_plan_from_before_an_amendment_is_made_anew(ledger, reserve, drawn, kit):
    held = reserve("day 0", kit.plan(0, "1/8"))
    ledger.amend(changed(kit, alpha="2"), "larger changes", kit.now)
    with pytest.raises(LedgerError, match="amended since"):
        ledger.begin_draw(held, kit.now)
    drawn("day 0", plan_for(2, 0, "1/8"))
    assert ledger.window_spent("customers", range(0, 4)).epsilon == Fraction(
        1, 2
    )  # once, by its own guarantee
    assert ledger.verify() == []


def test_all_streams_of_a_grant_follow(ledger, publish, kit):
    ledger.enrol(kit.terms("second", hierarchy="another"), kit.now)
    publish()
    ledger.amend(changed(kit, epsilon="3"), "more", kit.now)
    assert ledger.terms("second").model == ledger.terms("load").model
    assert ledger.terms("second").hierarchy_hash == "another"
    with pytest.raises(
        LedgerError,
        match="privacy budget 'customers' is shared, and has another epsilon than stream 'second'",
    ):
        ledger.enrol(kit.terms("second", hierarchy="another"), kit.now)
    assert ledger.verify() == []


def test_compromised_noise_has_lost_everything_permanently(ledger, publish, reserve, kit):
    publish("day 0", kit.plan(0, "1/8"))
    publish("far", kit.plan(100, "1/8"))
    ledger.compromise(Key("load", "day 0"), "the sampler was seeded", kit.now)
    ledger.compromise(Key("load", "day 0"), "again", kit.now)
    assert ledger.find(Key("load", "day 0")).compromised == "the sampler was seeded"
    assert ledger.worst("customers").epsilon == math.inf
    assert ledger.window_spent("customers", range(6, 7)).epsilon == math.inf
    assert ledger.window_spent("customers", range(7, 8)).epsilon == 0
    assert ledger.window_spent("customers", range(100, 101)).epsilon == Fraction(1, 2)
    with pytest.raises(BudgetError, match="noise in it was compromised"):
        reserve("day 1", kit.plan(6, "1/1000"))
    reserve("day 2", kit.plan(7, "1/1000"))
    assert ledger.verify() == []


def test_a_withdrawn_release_stays_charged(ledger, publish, reserve, kit):
    publish("day 0", kit.plan(0, "1/8"))
    for reason in ("a supplier's error", "told twice"):
        ledger.withdraw(Key("load", "day 0"), reason, kit.now)
    record = ledger.find(Key("load", "day 0"))
    assert (record.state, record.withdrawn) == (ReleaseState.PUBLISHED, "a supplier's error")
    assert ledger.worst("customers").epsilon == Fraction(1, 2)
    reserve("day 0", kit.plan(0, "1/8"), revision=1)
    assert ledger.verify() == []


def test_what_was_never_published_is_void_instead(ledger, reserve, kit):
    held = reserve("day 0", kit.plan(0, "1/8"))
    ledger.begin_draw(held, kit.now)
    ledger.withdraw(Key("load", "day 0"), "its owner is dead", kit.now)
    record = ledger.find(Key("load", "day 0"))
    assert (record.state, record.reason, record.withdrawn) == (ReleaseState.VOID, "its owner is dead", None)
    with pytest.raises(LedgerError, match="VOID, not RESERVED"):
        ledger.record_drawn(held, "measured", kit.plan(0, "1/8"), kit.now)


@pytest.mark.parametrize("until", ["draw begun", "drawn"])
def test_what_is_drawn_is_published_before_its_guarantee_changes(ledger, reserve, kit, until):
    held = reserve("day 0", kit.plan(0, "1/8"))
    ledger.begin_draw(held, kit.now)
    if until == "drawn":
        ledger.record_drawn(held, "measured", kit.plan(0, "1/8"), kit.now)
    head = ledger.head("load")
    # a stream of the same budget, where that day would be looked for in vain, is told whose it is
    ledger.enrol(kit.terms("second"), kit.now)
    for asking in (changed(kit, window_length=1), replace(changed(kit, window_length=1), stream="second")):
        with pytest.raises(LedgerError, match="day 0 of stream 'load' is drawn and not published"):
            ledger.amend(asking, "shorter windows", kit.now)
    assert ledger.head("load") == head
    ledger.withdraw(Key("load", "day 0"), "given up", kit.now)
    ledger.amend(changed(kit, window_length=1), "shorter windows", kit.now)
    assert ledger.verify() == []


def test_restatements_are_held_to_their_share_in_the_same_transaction(ledger, publish, reserve, kit):
    publish("day 0", kit.plan(0, "1/16"))
    share = {"restatements_epsilon": Fraction(1, 4)}
    publish("day 0", kit.plan(0, "1/32"), revision=1, **share)
    with pytest.raises(BudgetError, match="restatements would cost the window from step 0 3/8"):
        reserve("day 0", kit.plan(0, "1/16"), revision=2, **share)
    again = reserve("day 0", kit.plan(0, "1/32"), revision=2, **share)
    assert again.fencing_token == 1
    reserve("day 1", kit.plan(4, "1/16"), **share)  # first releases are not held to it


@pytest.mark.nightly
def test_an_amendment_does_not_wait_for_a_stream_that_waits_for_it(postgresql_url, kit, monkeypatch):
    """Each would hold what the other needs, and PostgreSQL would undo one of them."""
    ledger = open_ledger(postgresql_url)
    for name in ("load", "second"):
        ledger.enrol(kit.terms(name), kit.now)
    ledger.reserve(Key("load", "day 0"), kit.plan(0, "1/8"), "night", kit.now, kit.lease)
    inside, check = Event(), amend_module.refuse_more_than_all

    def another_comes(*arguments):
        inside.set()
        sleep(0.5)  # until it waits for the privacy budget
        check(*arguments)

    monkeypatch.setattr(amend_module, "refuse_more_than_all", another_comes)

    def reserve_beside():
        assert inside.wait(60)
        return ledger.reserve(Key("second", "day 4"), kit.plan(16, "1/8"), "night", kit.now, kit.lease)

    with ThreadPoolExecutor(1) as pool:
        beside = pool.submit(reserve_beside)
        ledger.amend(changed(kit, epsilon="2"), "agreed with the board", kit.now)
        assert beside.result(60).fencing_token == 1
    assert ledger.verify() == []
    ledger.close()


@pytest.mark.slow
def test_a_drawn_release_is_void_and_stays_charged(ledger, drawn, kit):
    held = drawn()
    ledger.compromise(Key("load", "day 0"), "stolen", kit.now)
    ledger.compromise(Key("load", "day 0"), "stolen", kit.now)
    found = ledger.find(Key("load", "day 0"))
    assert (found.state, found.compromised) == (ReleaseState.VOID, "stolen")
    assert ledger.worst("customers").epsilon == math.inf
    with pytest.raises(LedgerError, match="it is VOID"):
        ledger.record_staged(Key("load", "day 0"), "staged", "release-1.parquet", kit.now, held)
    assert ledger.verify() == []


def test_a_plan_that_was_reserved_before_is_not_drawn(ledger, publish, reserve, kit):
    publish()
    near = reserve("day 1", kit.plan(4, "1/4"))
    far = reserve("day 9", kit.plan(36, "1/4"))
    ledger.compromise(Key("load", "day 0"), "stolen", kit.now)
    with pytest.raises(
        BudgetError, match=r"was compromised after.*`optstream withdraw --date day 1 --reason"
    ):
        ledger.begin_draw(near, kit.now)
    assert not ledger.find(Key("load", "day 1")).drawing
    ledger.begin_draw(far, kit.now)
    assert ledger.verify() == []


@pytest.mark.parametrize("charge", ["1/4", "1/8"])
def test_a_day_whose_draw_died_and_is_compromised_is_refused_with_the_command(ledger, reserve, kit, charge):
    """Until then each night, under the same plan as under another."""
    ledger.begin_draw(reserve("2026-02-28", owner="first"), kit.now)
    reserve("2026-02-28", owner="second", now=kit.now + kit.lease)  # which dies before its draw
    ledger.compromise(Key("load", "2026-02-28"), "stolen", kit.now)
    third = {"owner": "third", "now": kit.now + 2 * kit.lease}
    command = r"compromised \(stolen\).*`optstream withdraw --date 2026-02-28 --reason"
    with pytest.raises(BudgetError, match=command):
        reserve("2026-02-28", kit.plan(0, charge), **third)
    ledger.withdraw(Key("load", "2026-02-28"), "stolen", third["now"])
    assert ledger.find(Key("load", "2026-02-28")).state is ReleaseState.VOID


def test_what_is_not_drawn_after_amendments_is_as_brute_force_finds(ledger, publish, reserve, kit):
    """What the ledger refuses to reserve beside known noise it also refuses to draw, and nothing else."""
    refused = []
    for number in range(40):
        random, stream = Random(number), f"load {number}"
        chosen = [kit.terms(stream, f"people {number}", window_length=length) for length in (1, 2, 6, 12)]
        guarantees, charged = [random.choice(chosen)], {}
        ledger.enrol(guarantees[0], kit.now)
        places = random.sample(range(6), 4)
        for place in places:
            wanted = random.choice(chosen)
            if random.random() < 0.5 and wanted != guarantees[-1]:
                guarantees.append(wanted)
                ledger.amend(wanted, "another guarantee", kit.now)
            charged[place] = Charged(kit.plan(4 * place, "1/100"), len(guarantees) - 1)
            take = publish if place != places[-1] else reserve
            held = take(f"day {place}", charged[place].spends, stream=stream)
        known = random.choice(places[:-1])
        ledger.compromise(Key(stream, f"day {known}"), "stolen", kit.now)
        charged[known] = replace(charged[known], known=True)
        models, beside = [one.model for one in guarantees], charged[places[-1]]
        try:
            ledger.begin_draw(held, kit.now)
            refused.append(False)
        except BudgetError:
            refused.append(True)
        assert refused[-1] == any(broken(models, list(charged.values()), beside)), number
    assert sum(refused) in range(10, 30)
