"""Noise that others know: what is drawn is void, what is reserved in its windows is never drawn."""

import math
from dataclasses import replace
from random import Random

import pytest

from optstream.errors import BudgetError, LedgerError
from optstream.ledger import ReleaseState
from tests.optstream.ledger.brute_force import Charged, broken


@pytest.mark.slow
def test_a_drawn_release_is_void_and_stays_charged(ledger, drawn, kit):
    held = drawn()
    ledger.compromise("load", "day 0", 0, "stolen", kit.now)
    ledger.compromise("load", "day 0", 0, "stolen", kit.now)
    found = ledger.find("load", "day 0")
    assert (found.state, found.compromised) == (ReleaseState.VOID, "stolen")
    assert ledger.worst("customers").epsilon == math.inf
    with pytest.raises(LedgerError, match="it is VOID"):
        ledger.record_staged("load", "day 0", 0, "staged", "release-1.parquet", kit.now, held)
    assert ledger.verify() == []


def test_a_plan_that_was_reserved_before_is_not_drawn(ledger, publish, reserve, kit):
    publish()
    near = reserve("day 1", kit.plan(4, "1/4"))
    far = reserve("day 9", kit.plan(36, "1/4"))
    ledger.compromise("load", "day 0", 0, "stolen", kit.now)
    with pytest.raises(
        BudgetError, match=r"was compromised after.*`optstream withdraw --date day 1 --reason"
    ):
        ledger.begin_draw(near, kit.now)
    assert not ledger.find("load", "day 1").drawing
    ledger.begin_draw(far, kit.now)
    assert ledger.verify() == []


@pytest.mark.parametrize("charge", ["1/4", "1/8"])
def test_a_day_whose_draw_died_and_is_compromised_is_refused_with_the_command(ledger, reserve, kit, charge):
    """Until then each night, under the same plan as under another."""
    ledger.begin_draw(reserve("2026-02-28", owner="first"), kit.now)
    reserve("2026-02-28", owner="second", now=kit.now + kit.lease)  # which dies before its draw
    ledger.compromise("load", "2026-02-28", 0, "stolen", kit.now)
    third = {"owner": "third", "now": kit.now + 2 * kit.lease}
    command = r"compromised \(stolen\).*`optstream withdraw --date 2026-02-28 --reason"
    with pytest.raises(BudgetError, match=command):
        reserve("2026-02-28", kit.plan(0, charge), **third)
    ledger.withdraw("load", "2026-02-28", 0, "stolen", third["now"])
    assert ledger.find("load", "2026-02-28").state is ReleaseState.VOID


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
        ledger.compromise(stream, f"day {known}", 0, "stolen", kit.now)
        charged[known] = replace(charged[known], known=True)
        models, beside = [one.model for one in guarantees], charged[places[-1]]
        try:
            ledger.begin_draw(held, kit.now)
            refused.append(False)
        except BudgetError:
            refused.append(True)
        assert refused[-1] == any(broken(models, list(charged.values()), beside)), number
    assert sum(refused) in range(10, 30)
