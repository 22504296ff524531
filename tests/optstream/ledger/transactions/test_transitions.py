"""RESERVED, DRAWN, PUBLISHED or VOID: what may follow what, and who may write."""

from dataclasses import replace
from datetime import timedelta

import pytest

from optstream.errors import LedgerError, ParameterError
from optstream.ledger import Key, ReleaseState

KEY = Key("load", "day 0")


def test_a_release_goes_from_reserved_to_published(ledger, reserve, kit):
    assert ledger.find(KEY) is None
    reservation = reserve()
    record = ledger.find(KEY)
    assert (record.state, record.drawing, record.owner) == (ReleaseState.RESERVED, False, "night")
    assert record.lease_until == kit.now + kit.lease
    assert record.spends == kit.plan(0, "1/4")
    assert (record.first_step, record.n_steps) == (0, 4)

    ledger.begin_draw(reservation, kit.now)
    assert ledger.find(KEY).drawing

    ledger.record_drawn(reservation, "measured", kit.plan(0, "1/8"), kit.now)
    record = ledger.find(KEY)
    assert (record.state, record.drawing) == (ReleaseState.DRAWN, False)
    assert record.measurements_hash == "measured"
    assert record.spends == kit.plan(0, "1/8")

    ledger.record_staged(KEY, "staged", "release-1.parquet", kit.now)
    ledger.record_published(KEY, kit.now)
    record = ledger.find(KEY)
    assert (record.state, record.staged_hash) == (ReleaseState.PUBLISHED, "staged")
    assert record.published_name == "release-1.parquet"
    assert ledger.releases("load") == (record,)
    assert ledger.verify() == []


def test_every_step_needs_the_one_before(ledger, reserve, kit):
    with pytest.raises(LedgerError, match="reserve it first"):
        ledger.record_published(KEY, kit.now)
    reservation = reserve()
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
    with pytest.raises(LedgerError, match="began its draw already"):
        ledger.begin_draw(reservation, kit.now)
    ledger.record_drawn(reservation, "measured", kit.plan(0, "1/4"), kit.now)
    with pytest.raises(LedgerError, match="nothing was recorded as staged"):
        ledger.record_published(KEY, kit.now)
    with pytest.raises(LedgerError, match="DRAWN, not RESERVED"):
        ledger.begin_draw(reservation, kit.now)
    assert ledger.verify() == []


def test_later_steps_may_be_repeated_but_not_changed(ledger, publish, kit):
    reservation = publish()
    head = ledger.head("load")
    ledger.record_staged(KEY, "staged", "release-1.parquet", kit.now)
    ledger.record_published(KEY, kit.now)
    assert ledger.head("load") == head
    for other in (("other bytes", "release-1.parquet"), ("staged", "release-2.parquet")):
        with pytest.raises(LedgerError, match="staged as"):
            ledger.record_staged(KEY, *other, kit.now)
    with pytest.raises(LedgerError, match="PUBLISHED"):
        ledger.record_drawn(reservation, "measured", kit.plan(0, "1/4"), kit.now)
    with pytest.raises(LedgerError, match="readers have it"):
        ledger.void(KEY, "changed my mind", kit.now)


def test_the_same_draw_may_be_recorded_twice_and_another_may_not(ledger, drawn, kit):
    reservation = drawn()
    ledger.record_drawn(reservation, "measured", kit.plan(0, "1/4"), kit.now)
    with pytest.raises(LedgerError, match="DRAWN, not RESERVED"):
        ledger.record_drawn(reservation, "another", kit.plan(0, "1/4"), kit.now)
    assert ledger.find(KEY).measurements_hash == "measured"


def test_what_is_there_is_not_reserved_again(reserve, drawn, publish, kit):
    publish()
    with pytest.raises(LedgerError, match="PUBLISHED already"):
        reserve()
    drawn("day 1", kit.plan(4, "1/4"))
    with pytest.raises(LedgerError, match="DRAWN already: run it again"):
        reserve("day 1", kit.plan(4, "1/4"), now=kit.now + timedelta(days=1))


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
    assert ledger.verify() == []


def test_a_live_lease_keeps_others_out_and_an_old_one_does_not(ledger, reserve, kit):
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


def test_a_stale_owner_cannot_write(ledger, reserve, kit):
    stale = reserve()
    ledger.begin_draw(stale, kit.now)
    later = kit.now + timedelta(hours=1)
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


def test_a_draw_does_not_begin_after_the_lease(ledger, reserve, kit):
    reservation = reserve()
    later = kit.now + kit.lease
    with pytest.raises(LedgerError, match="renew it"):
        ledger.begin_draw(reservation, later)
    ledger.renew(reservation, later, kit.lease)
    ledger.begin_draw(reservation, later)


def test_an_owner_that_lives_and_asks_again_did_not_die(ledger, reserve, kit):
    first = reserve()
    second = reserve()
    assert second.fencing_token > first.fencing_token
    ledger.begin_draw(second, kit.now)
    with pytest.raises(LedgerError, match="give it up"):
        reserve()


def test_the_third_redraw_voids(ledger, reserve, kit):
    now = kit.now
    for redraws in range(3):
        reservation = reserve(owner=f"run {redraws}", now=now)
        assert reservation.redraws == redraws
        ledger.begin_draw(reservation, now)
        now += timedelta(hours=1)
    with pytest.raises(LedgerError, match="VOID and stays charged: its owner died 3 times"):
        reserve(owner="run 3", now=now)
    record = ledger.find(KEY)
    assert (record.state, record.redraws) == (ReleaseState.VOID, 3)
    assert ledger.worst("customers").epsilon == 1
    assert ledger.verify() == []


def test_a_redraw_keeps_its_plan_and_what_was_never_drawn_may_change_it(ledger, reserve, kit):
    reserve()
    later = kit.now + timedelta(hours=1)
    cheaper = reserve(owner="second", plan=kit.plan(0, "1/8"), now=later)
    assert ledger.find(KEY).spends == kit.plan(0, "1/8")
    assert ledger.worst("customers").epsilon == kit.plan(0, "1/2")[0].charges[0]
    ledger.begin_draw(cheaper, later)
    with pytest.raises(LedgerError, match="another plan"):
        reserve(owner="third", plan=kit.plan(0, "1/4"), now=later + timedelta(hours=1))
    # nor may it be changed by who comes after a redraw that did not begin
    again = reserve(owner="third", plan=kit.plan(0, "1/8"), now=later + timedelta(hours=1))
    assert (again.redraws, ledger.find(KEY).drawing) == (1, False)
    with pytest.raises(LedgerError, match="another plan"):
        reserve(owner="fourth", plan=kit.plan(0, "1/4"), now=later + timedelta(hours=2))
    assert ledger.find(KEY).spends == kit.plan(0, "1/8")
    assert ledger.verify() == []


def test_a_reservation_of_another_release_changes_nothing_here(ledger, reserve, drawn, kit):
    """Their tokens are the same: each is the first of its release."""
    own, other = drawn(), reserve("day 1", kit.plan(4, "1/8"))
    assert own.fencing_token == other.fencing_token
    with pytest.raises(LedgerError, match="the reservation is for stream 'load', period 'day 1'"):
        ledger.record_staged(KEY, "staged", "name", kit.now, other)


def test_a_plan_for_more_leaves_than_a_customer_changes_is_refused(ledger, reserve, kit):
    (spend,) = kit.plan(0, "1/8")
    with pytest.raises(LedgerError, match="priced for another alpha or unit"):
        reserve(plan=(replace(spend, leaves_changed=2),))
    assert ledger.find(KEY) is None


def test_a_drawn_release_is_finished_by_whoever_comes(ledger, drawn, kit):
    reservation = drawn()
    with pytest.raises(LedgerError, match="another run"):
        ledger.adopt(KEY, "morning", kit.now, kit.lease)
    assert ledger.adopt(KEY, "night", kit.now, kit.lease).fencing_token == reservation.fencing_token + 1
    later = kit.now + timedelta(hours=1)
    adopted = ledger.adopt(KEY, "morning", later, kit.lease)
    with pytest.raises(LedgerError, match="taken over"):
        ledger.record_staged(KEY, "staged", "name", later, reservation)
    ledger.record_staged(KEY, "staged", "name", later, adopted)
    ledger.record_published(KEY, later, adopted)
    assert ledger.verify() == []


def test_a_revision_needs_the_one_before(ledger, reserve, publish, kit):
    with pytest.raises(LedgerError, match="needs revision 0"):
        reserve(revision=1, plan=kit.plan(0, "1/8"))
    publish(plan=kit.plan(0, "1/8"))
    publish(plan=kit.plan(0, "1/8"), revision=1)
    assert [record.revision for record in ledger.releases("load")] == [0, 1]
    assert ledger.worst("customers").epsilon == 1


def test_times_have_a_zone_and_names_are_printable(ledger, reserve, kit):
    for wrong, message in (
        ({"now": kit.now.replace(tzinfo=None)}, "time zone"),
        ({"period": "day\n0"}, "printable"),
        ({"revision": -1}, "revision"),
        ({"plan": ()}, "at least one spend"),
    ):
        with pytest.raises(ParameterError, match=message):
            reserve(**wrong)
    with pytest.raises(LedgerError, match="enrol"):
        reserve(stream="unknown")
