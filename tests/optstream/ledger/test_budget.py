"""No window above its grant: exact, over all streams of the grant, in any order."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from fractions import Fraction
from threading import Barrier, BrokenBarrierError

import pytest

from optstream.errors import BudgetError, LedgerError
from optstream.ledger import Key, database, lifecycle, schema
from optstream.privacy import PeriodSpend, StepSpend
from tests.optstream.ledger.conftest import BOTH


def test_an_overspend_is_refused_and_nothing_is_inserted(ledger, reserve, kit):
    reserve()
    head = ledger.head("load")
    with pytest.raises(BudgetError) as refusal:
        reserve("day 1", kit.plan(4, "1/3"))
    for part in ("'load'", "'day 1'", "from step 4", "4/3 (about 1.33333)", "'customers' is 1"):
        assert part in str(refusal.value)
    assert ledger.find(Key("load", "day 1")) is None
    assert ledger.head("load") == head
    reserve("day 1", kit.plan(4, "1/4"))
    assert ledger.worst("customers").epsilon == 1


def test_tiny_and_far_spends_count(ledger, reserve, kit):
    tiny = Fraction(1, 10**40)
    reserve()
    with pytest.raises(BudgetError, match=f"{10**40 + 1}/{10**40}"):
        reserve("another", (StepSpend(0, "samples", 0, (tiny,), Fraction(1), 1),))
    reserve("day 1", (StepSpend(0, "samples", 4, (tiny,), Fraction(1), 1),))
    assert ledger.window_spent("customers", range(7, 8)).epsilon == tiny
    for first_step, charge in ((10**12, "1/8"), (-(10**12), "1/7")):
        reserve(f"day {first_step}", kit.plan(first_step, charge))
        near = range(first_step, first_step + 1)
        assert ledger.window_spent("customers", near).epsilon == 4 * Fraction(charge)
    assert ledger.worst("customers").epsilon == 1


def both_at_once(ledger, kit, monkeypatch, streams, patience_seconds):
    """Two runs reserve adjacent days that do not both fit; each, once it has checked, waits for the other."""
    together = Barrier(2)
    check = lifecycle._check_windows

    def check_and_wait(*arguments):
        check(*arguments)
        with suppress(BrokenBarrierError):
            together.wait(patience_seconds)

    monkeypatch.setattr(lifecycle, "_check_windows", check_and_wait)

    def attempt(side):
        plan = (PeriodSpend(0, "joint", 4 * side, (Fraction(0), *(Fraction(3, 4),) * 4)),)
        try:
            ledger.reserve(Key(streams[side], f"day {side}"), plan, f"run {side}", kit.now, kit.lease)
        except BudgetError:
            return "refused"
        except LedgerError:
            return "failed"
        return "reserved"

    with ThreadPoolExecutor(2) as pool:
        return sorted(pool.map(attempt, (0, 1)))


@pytest.mark.slow
@BOTH
@pytest.mark.parametrize("streams", [("load", "load"), ("load", "second")], ids=["one stream", "two streams"])
def test_adjacent_days_never_both_pass_when_only_one_fits(ledger, kit, monkeypatch, streams):
    ledger.enrol(kit.terms("second"), kit.now)
    assert both_at_once(ledger, kit, monkeypatch, streams, 0.2) == ["refused", "reserved"]
    assert ledger.worst("customers").epsilon == Fraction(3, 4)


@BOTH
def test_without_the_lock_adjacent_days_do_pass(ledger, url, kit, monkeypatch, broken_on_purpose):
    """The control. SQLite notices too, but late and as a failure: it lets nobody write on an old snapshot."""
    ledger.enrol(kit.terms("second"), kit.now)
    monkeypatch.setattr(lifecycle, "lock", lock_nothing)
    # as `writing`, without SQLite's lock from the start
    monkeypatch.setattr("optstream.ledger.ledger.writing", database._begun)
    outcome = both_at_once(ledger, kit, monkeypatch, ("load", "second"), 10)
    if url.startswith("sqlite"):
        assert outcome == ["failed", "reserved"]
    else:
        assert outcome == ["reserved", "reserved"]
        assert ledger.worst("customers").epsilon == Fraction(3, 2)


def lock_nothing(connection, stream):
    row = schema.find_stream(connection, stream)
    return row, schema.grant_of(connection, row)
