"""RESERVED, DRAWN, PUBLISHED or VOID: what may follow what, who may write, and no window above its grant."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from threading import Barrier, BrokenBarrierError

import pytest

from optstream.errors import BudgetError, HeldError, LedgerError, ParameterError
from optstream.ledger import Key, ReleaseState, Vintage, database, lifecycle, open_ledger, schema
from optstream.privacy import PeriodSpend, StepSpend
from tests.optstream.ledger.conftest import BOTH

KEY = Key("load", "day 0")
HOUR = timedelta(hours=1)


def test_a_release_goes_from_reserved_to_published(ledger, reserve, kit):
    assert ledger.find(KEY) is None
    with pytest.raises(LedgerError, match="reserve it first"):
        ledger.record_published(KEY, kit.now)
    reservation = reserve()
    record = ledger.find(KEY)
    assert (record.state, record.drawing, record.owner) == (ReleaseState.RESERVED, False, "night")
    assert record.lease_until == kit.now + kit.lease
    assert record.spends == kit.plan(0, "1/4")
    assert (record.first_step, record.n_steps) == (0, 4)
    with pytest.raises(LedgerError, match="never begun"):
        ledger.record_drawn(reservation, "measured", kit.plan(0, "1/4"), kit.now)
    for early in (
        lambda: ledger.record_staged(KEY, "staged", "name", kit.now),
        lambda: ledger.record_published(KEY, kit.now),
        lambda: ledger.adopt(KEY, "other", kit.now, kit.lease),
    ):
        with pytest.raises(LedgerError, match="RESERVED, not DRAWN"):
            early()

    ledger.begin_draw(reservation, kit.now)
    assert ledger.find(KEY).drawing
    with pytest.raises(LedgerError, match="began its draw already"):
        ledger.begin_draw(reservation, kit.now)

    for _ in range(2):
        ledger.record_drawn(reservation, "measured", kit.plan(0, "1/8"), kit.now)
    record = ledger.find(KEY)
    assert (record.state, record.drawing) == (ReleaseState.DRAWN, False)
    assert record.measurements_hash == "measured"
    assert record.spends == kit.plan(0, "1/8")
    for late in (
        lambda: ledger.begin_draw(reservation, kit.now),
        lambda: ledger.record_drawn(reservation, "another", kit.plan(0, "1/8"), kit.now),
    ):
        with pytest.raises(LedgerError, match="DRAWN, not RESERVED"):
            late()
    with pytest.raises(LedgerError, match="nothing was recorded as staged"):
        ledger.record_published(KEY, kit.now)
    with pytest.raises(LedgerError, match="DRAWN already: run it again"):
        reserve(now=kit.now + timedelta(days=1))

    for _ in range(2):
        ledger.record_staged(KEY, "staged", "release-1.parquet", kit.now)
        ledger.record_published(KEY, kit.now)
    record = ledger.find(KEY)
    assert (record.state, record.staged_hash) == (ReleaseState.PUBLISHED, "staged")
    assert record.published_name == "release-1.parquet"
    assert ledger.releases("load") == (record,)
    for other in (("other bytes", "release-1.parquet"), ("staged", "release-2.parquet")):
        with pytest.raises(LedgerError, match="staged as"):
            ledger.record_staged(KEY, *other, kit.now)
    with pytest.raises(LedgerError, match="PUBLISHED"):
        ledger.record_drawn(reservation, "measured", kit.plan(0, "1/4"), kit.now)
    with pytest.raises(LedgerError, match="readers have it"):
        ledger.void(KEY, "changed my mind", kit.now)
    with pytest.raises(LedgerError, match="PUBLISHED already"):
        reserve()
    kinds = [one.kind for one in ledger.events_of("load", "day 0")]
    assert kinds == ["reserved", "draw begun", "drawn", "staged", "published"]


@pytest.mark.parametrize("drawn", [False, True])
def test_void_stays_charged_and_keeps_its_place(ledger, reserve, kit, drawn):
    reservation = reserve()
    ledger.begin_draw(reservation, kit.now)
    if drawn:
        ledger.record_drawn(reservation, "measured", kit.plan(0, "1/4"), kit.now)
    reason = "the measurements are gone"
    ledger.void(KEY, reason, kit.now)
    ledger.void(KEY, "once more", kit.now)
    record = ledger.find(KEY)
    assert (record.state, record.reason, record.drawing) == (ReleaseState.VOID, reason, False)
    assert ledger.worst("customers").epsilon == 1
    with pytest.raises(LedgerError, match="VOID already"):
        reserve(now=kit.now + timedelta(days=1))
    with pytest.raises(LedgerError, match="is VOID"):
        ledger.record_drawn(reservation, "measured again", kit.plan(0, "1/4"), kit.now)


def test_a_withdrawn_release_stays_charged_and_an_unpublished_one_is_void(ledger, publish, reserve, kit):
    publish("day 0", kit.plan(0, "1/8"))
    for reason in ("a supplier's error", "once more"):
        ledger.withdraw(KEY, reason, kit.now)
    record = ledger.find(KEY)
    assert (record.state, record.withdrawn) == (ReleaseState.PUBLISHED, "a supplier's error")
    assert ledger.worst("customers").epsilon == Fraction(1, 2)
    reserve("day 0", kit.plan(0, "1/8"), revision=1)
    held = reserve("day 1", kit.plan(8, "1/8"))
    ledger.begin_draw(held, kit.now)
    ledger.withdraw(held.key, "its owner is dead", kit.now)
    record = ledger.find(held.key)
    assert (record.state, record.reason, record.withdrawn) == (ReleaseState.VOID, "its owner is dead", None)
    with pytest.raises(LedgerError, match="VOID, not RESERVED"):
        ledger.record_drawn(held, "measured", kit.plan(8, "1/8"), kit.now)


def test_a_live_lease_keeps_others_out_and_after_an_old_one_nobody_draws(ledger, reserve, kit):
    first = reserve()
    with pytest.raises(LedgerError, match=r"another run \(night\) holds .* until 2026-03-01T02:10"):
        reserve(owner="backfill")
    ledger.renew(first, kit.now + timedelta(minutes=5), kit.lease)
    ledger.renew(first, kit.now, kit.lease)  # a clock set back shortens nothing
    with pytest.raises(LedgerError, match="another run"):
        reserve(owner="backfill", now=kit.now + timedelta(minutes=12))
    second = reserve(owner="backfill", now=kit.now + timedelta(minutes=16))
    assert second.fencing_token > first.fencing_token
    assert second.redraws == 0  # the first never began
    assert ledger.worst("customers").epsilon == 1  # charged once
    later = kit.now + timedelta(minutes=16) + kit.lease
    with pytest.raises(LedgerError, match="renew it"):
        ledger.begin_draw(second, later)
    ledger.renew(second, later, kit.lease)
    ledger.begin_draw(second, later)


def test_a_stale_owner_and_one_of_another_release_cannot_write(ledger, reserve, kit):
    stale, later = reserve(), kit.now + HOUR
    ledger.begin_draw(stale, kit.now)
    fresh = reserve(owner="backfill", now=later)
    assert fresh.redraws == 1
    for write in (
        lambda: ledger.renew(stale, later, kit.lease),
        lambda: ledger.begin_draw(stale, later),
        lambda: ledger.record_drawn(stale, "measured", kit.plan(0, "1/4"), later),
        lambda: ledger.record_staged(KEY, "staged", "name", later, stale),
        lambda: ledger.record_published(KEY, later, stale),
        lambda: ledger.void(KEY, "mine", later, stale),
    ):
        with pytest.raises(LedgerError, match="taken over by another run"):
            write()
    assert ledger.find(KEY).state == ReleaseState.RESERVED
    ledger.begin_draw(fresh, later)
    ledger.record_drawn(fresh, "measured", kit.plan(0, "1/4"), later)
    for token in (stale.fencing_token, fresh.fencing_token):
        other = reserve("day 1", kit.plan(4, "1/8"))
        assert other.fencing_token == token
        with pytest.raises(LedgerError, match="the reservation is for stream 'load', period 'day 1'"):
            ledger.record_staged(KEY, "staged", "name", later, other)


def test_an_owner_that_lives_and_asks_again_did_not_die(ledger, reserve, kit):
    first, second = reserve(), reserve()
    assert second.fencing_token > first.fencing_token
    ledger.begin_draw(second, kit.now)
    with pytest.raises(LedgerError, match="give it up"):
        reserve()


def test_a_redraw_keeps_its_plan_and_what_was_never_drawn_may_change_it(ledger, reserve, kit):
    reserve()
    cheaper = reserve(owner="second", plan=kit.plan(0, "1/8"), now=kit.now + HOUR)
    assert ledger.find(KEY).spends == kit.plan(0, "1/8")
    assert ledger.worst("customers").epsilon == Fraction(1, 2)
    ledger.begin_draw(cheaper, kit.now + HOUR)
    with pytest.raises(LedgerError, match="another plan"):
        reserve(owner="third", plan=kit.plan(0, "1/4"), now=kit.now + 2 * HOUR)
    # nor may it be changed by who comes after a redraw that did not begin
    again = reserve(owner="third", plan=kit.plan(0, "1/8"), now=kit.now + 2 * HOUR)
    assert (again.redraws, ledger.find(KEY).drawing) == (1, False)
    with pytest.raises(LedgerError, match="another plan"):
        reserve(owner="fourth", plan=kit.plan(0, "1/4"), now=kit.now + 3 * HOUR)
    assert ledger.find(KEY).spends == kit.plan(0, "1/8")


def test_a_drawn_release_is_finished_by_any_run(ledger, drawn, kit):
    reservation = drawn()
    with pytest.raises(LedgerError, match="another run"):
        ledger.adopt(KEY, "morning", kit.now, kit.lease)
    assert ledger.adopt(KEY, "night", kit.now, kit.lease).fencing_token == reservation.fencing_token + 1
    later = kit.now + HOUR
    adopted = ledger.adopt(KEY, "morning", later, kit.lease)
    with pytest.raises(LedgerError, match="taken over"):
        ledger.record_staged(KEY, "staged", "name", later, reservation)
    ledger.release_lease(KEY, "its machine burnt", later)
    with pytest.raises(LedgerError, match="taken over"):
        ledger.record_staged(KEY, "staged", "name", later, adopted)
    third = ledger.adopt(KEY, "next", later, kit.lease)
    ledger.record_staged(KEY, "staged", "name", later, third)
    ledger.record_published(KEY, later, third)


def test_a_revision_needs_the_one_before_and_keeps_to_its_share(ledger, reserve, publish, kit):
    with pytest.raises(LedgerError, match="needs revision 0"):
        reserve(revision=1, plan=kit.plan(0, "1/8"))
    share = {"restatements_epsilon": Fraction(1, 4)}
    publish("day 0", kit.plan(0, "1/16"))
    publish("day 0", kit.plan(0, "1/32"), revision=1, **share)
    with pytest.raises(BudgetError, match="restatements would cost the window from step 0 3/8"):
        reserve("day 0", kit.plan(0, "1/16"), revision=2, **share)
    assert reserve("day 0", kit.plan(0, "1/32"), revision=2, **share).fencing_token == 1
    reserve("day 1", kit.plan(4, "1/16"), **share)  # first releases are not held to it
    assert [record.revision for record in ledger.releases("load")] == [0, 1, 2, 0]


def test_what_a_release_cannot_be_is_refused(ledger, reserve, kit):
    (spend,) = kit.plan(0, "1/8")
    for wrong, error, message in (
        ({"now": kit.now.replace(tzinfo=None)}, ParameterError, "time zone"),
        ({"period": "day\n0"}, ParameterError, "printable"),
        ({"revision": -1}, ParameterError, "revision"),
        ({"plan": ()}, ParameterError, "at least one spend"),
        ({"plan": (replace(spend, leaves_changed=2),)}, LedgerError, "priced for another alpha or unit"),
        ({"stream": "unknown"}, LedgerError, "enrol"),
    ):
        with pytest.raises(error, match=message):
            reserve(**wrong)
    assert ledger.find(KEY) is None
    reservation = reserve()
    with pytest.raises(ParameterError, match="a day at most"):
        ledger.renew(reservation, kit.now, timedelta(days=1, seconds=1))
    ledger.renew(reservation, kit.now, timedelta(days=1))


@pytest.mark.parametrize("begun", [True, False])
def test_a_whole_draw_changes_hands_without_a_redraw(ledger, reserve, kit, begun):
    """However often; its owner may record it, and not draw. Without a begun draw there is no whole one."""
    first = reserve()
    if begun:
        ledger.begin_draw(first, kit.now)
    for number in range(4):
        later = kit.now + (number + 1) * HOUR
        held = reserve(owner=f"owner {number}", now=later, is_drawn=True)
        assert (held.is_drawn, held.redraws) == (begun, 0)
    if begun:
        with pytest.raises(LedgerError, match="began its draw already"):
            ledger.begin_draw(held, later)
        ledger.record_drawn(held, "measured", kit.plan(0, "1/4"), later)
        assert ledger.find(KEY).state is ReleaseState.DRAWN


@BOTH
def test_leases_go_by_the_clock_of_the_server(url, kit):
    """Of a machine ten years ahead the lease ends when others' do; SQLite has no clock of its own."""
    ledger = open_ledger(url, database_time=True)
    ledger.enrol(kit.terms(), kit.now)
    ahead = datetime.now(UTC) + timedelta(days=3650)
    reservation = ledger.reserve(KEY, kit.plan(0, "1/4"), "ahead", ahead, kit.lease)
    ledger.renew(reservation, ahead, kit.lease)
    until = ledger.find(KEY).lease_until
    assert (until < datetime.now(UTC) + timedelta(days=1)) == url.startswith("postgresql")
    with pytest.raises(HeldError):
        ledger.reserve(KEY, kit.plan(0, "1/4"), "other", datetime.now(UTC), kit.lease)
    ledger.begin_draw(reservation, ahead)
    ledger.close()


@pytest.mark.parametrize(("state", "minutes"), [("reserved", 3650 * 1440), ("begun", 1), ("void", 1)])
def test_a_lease_is_not_held_longer_nor_given_up_where_others_wait(ledger, reserve, kit, state, minutes):
    """A clock may have run ahead; a run that ends while it draws has died in its draw, as others see it."""
    held = reserve()
    if state == "begun":
        ledger.begin_draw(held, kit.now)
    if state == "void":
        ledger.void(KEY, "given up", kit.now, held)
    ledger.end_lease(held, kit.now + timedelta(minutes=minutes))
    assert ledger.find(KEY).lease_until == kit.now + kit.lease


def test_a_draw_that_was_called_off_never_was(ledger, reserve, kit):
    """It counts as no death, its owner may begin again, and one that was fenced off can call nothing off."""
    for number in range(4):
        now = kit.now + number * HOUR
        held = reserve(owner=f"owner {number}", now=now)
        ledger.begin_draw(held, now)
        ledger.call_off_draw(held, now)
        ledger.call_off_draw(held, now)
        ledger.end_lease(held, now)
    assert held.redraws == 0
    following = reserve(owner="next", now=now)
    with pytest.raises(LedgerError, match="taken over"):
        ledger.call_off_draw(held, now)
    ledger.begin_draw(following, now)
    ledger.record_drawn(following, "measured", kit.plan(0, "1/4"), now)
    with pytest.raises(LedgerError, match="cannot be called off"):
        ledger.call_off_draw(following, now)


# New estimates.

FIRST = Vintage(1, "basis", "a" * 64, "release-a.parquet", False)


@pytest.fixture
def released(publish, ledger, kit):
    publish("day 0", kit.plan(0, "1/8"))
    return ledger


@pytest.fixture
def hold(released, kit):
    return lambda owner="b", after=0 * HOUR: released.revise(KEY, owner, kit.now + after, kit.lease)


def test_a_vintage_is_staged_then_published_and_costs_nothing(released, hold, kit):
    before, cost = released.find(KEY), released.worst("customers")
    held = hold()
    assert held.fencing_token == before.fencing_token + 1
    for _ in range(2):
        released.record_vintage(held, FIRST, kit.now)
        assert released.vintages_of(KEY) == (FIRST,)
    released.record_vintage_published(held, 1, kit.now)
    head = released.head("load")
    released.record_vintage_published(held, 1, kit.now)
    assert released.head("load") == head
    kept, after = replace(FIRST, published=True), released.find(KEY)
    assert released.vintages("load") == {("day 0", 0): (kept,)}
    assert released.vintages("load", steps=range(0, 1)) == {("day 0", 0): (kept,)}
    assert released.vintages("load", steps=range(1, 1000)) == {}
    assert replace(after, owner=before.owner, fencing_token=before.fencing_token) == before
    assert released.worst("customers") == cost


@pytest.mark.parametrize(
    ("ahead", "after", "is_free"),
    [
        (0 * HOUR, HOUR / 60, False),
        (0 * HOUR, HOUR, True),
        (23 * HOUR, 0 * HOUR, False),
        (3650 * 24 * HOUR, 0 * HOUR, True),
    ],
)
def test_one_run_at_a_time_and_a_stale_one_writes_nothing(released, hold, kit, ahead, after, is_free):
    """No right clock gives a lease of more than a day; a run held by one can write no more."""
    stale = hold("b", ahead)
    if not is_free:
        with pytest.raises(HeldError, match="another run"):
            hold("c", after)
        return
    fresh = hold("c", after)
    with pytest.raises(LedgerError, match="taken over"):
        released.record_vintage(stale, FIRST, kit.now)
    released.record_vintage(fresh, FIRST, kit.now)
    with pytest.raises(LedgerError, match="taken over"):
        released.record_vintage_published(stale, 1, kit.now)
    assert not released.vintages_of(KEY)[0].published
    released.record_vintage_published(fresh, 1, kit.now)
    hold("d", after + HOUR / 60)  # nobody holds it once it is published


def test_numbers_rise_and_bytes_never_change(released, hold, kit):
    held = hold()
    other = Vintage(1, "basis", "b" * 64, "release-b.parquet", False)
    for taken, refused in ((FIRST, other), (replace(other, number=3), replace(other, number=2))):
        released.record_vintage(held, taken, kit.now)
        with pytest.raises(LedgerError, match="takes the next number"):
            released.record_vintage(held, refused, kit.now)
    with pytest.raises(LedgerError, match="no vintage 2"):
        released.record_vintage_published(held, 2, kit.now)
    for wrong in (0, True, -1):
        with pytest.raises(ParameterError, match="at least 1"):
            released.record_vintage(held, replace(other, number=wrong), kit.now)


def test_only_what_readers_have_gets_a_new_estimate(released, hold, kit, publish, reserve):
    held = hold()
    released.withdraw(KEY, "wrong dump", kit.now)
    with pytest.raises(LedgerError, match="it is withdrawn"):
        released.record_vintage(held, FIRST, kit.now)
    reserve("day 1", kit.plan(4, "1/8"))
    publish("day 2", kit.plan(8, "1/8"))
    released.compromise(Key("load", "day 2"), "stolen", kit.now)
    publish("day 3", kit.plan(40, "1/8"))
    reserve("day 3", kit.plan(40, "1/8"), revision=1)
    for number, state in ((1, "RESERVED"), (2, "compromised"), (3, "restated")):
        with pytest.raises(LedgerError, match=f"it is {state}"):
            released.revise(Key("load", f"day {number}"), "b", kit.now, kit.lease)


# No window above its grant: exact, over all streams of the grant, in any order.


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

    def lock_nothing(connection, stream):
        row = schema.find_stream(connection, stream)
        return row, schema.grant_of(connection, row)

    monkeypatch.setattr(lifecycle, "lock", lock_nothing)
    # as `writing`, without SQLite's lock from the start
    monkeypatch.setattr("optstream.ledger.ledger.writing", database._begun)
    outcome = both_at_once(ledger, kit, monkeypatch, ("load", "second"), 10)
    if url.startswith("sqlite"):
        assert outcome == ["failed", "reserved"]
    else:
        assert outcome == ["reserved", "reserved"]
        assert ledger.worst("customers").epsilon == Fraction(3, 2)
