"""Leases: bounded, by the server's clock where there is one, and ended by a person; whole draws."""

from datetime import UTC, datetime, timedelta

import pytest

from optstream.errors import HeldError, LedgerError, ParameterError
from optstream.ledger import ReleaseState, open_ledger

KEY = ("load", "day 0", 0)
BOTH = pytest.mark.parametrize("url", ["sqlite", "postgresql"], indirect=True)
"""By day too: the clocks of the two differ."""


def test_no_lease_is_longer_than_a_day(ledger, reserve, kit):
    reservation = reserve()
    with pytest.raises(ParameterError, match="a day at most"):
        ledger.renew(reservation, kit.now, timedelta(days=1, seconds=1))
    ledger.renew(reservation, kit.now, timedelta(days=1))


@pytest.mark.parametrize("begun", [False, True])
def test_a_lease_that_a_person_ends(ledger, reserve, kit, begun):
    ahead = kit.now + timedelta(days=3650)
    alive = reserve(now=ahead, owner="ahead")
    if begun:
        ledger.begin_draw(alive, ahead)
    with pytest.raises(HeldError):
        reserve(owner="next")
    ledger.release_lease(*KEY, "its clock ran ahead", kit.now)
    for write in (
        lambda: ledger.renew(alive, kit.now, kit.lease),
        lambda: ledger.record_drawn(alive, "measured", kit.plan(0, "1/4"), kit.now),
        lambda: ledger.void(*KEY, "mine", kit.now, alive),
    ):
        with pytest.raises(LedgerError, match="taken over"):
            write()
    following = reserve(owner="next")
    assert following.redraws == begun
    ledger.begin_draw(following, kit.now)
    ledger.record_drawn(following, "measured", kit.plan(0, "1/4"), kit.now)
    assert ledger.verify() == []


def test_a_drawn_release_whose_lease_is_ended_is_adopted(ledger, drawn, kit):
    reservation = drawn()
    ledger.release_lease(*KEY, "its machine burnt", kit.now)
    assert ledger.adopt(*KEY, "next", kit.now, kit.lease).fencing_token > reservation.fencing_token
    assert ledger.verify() == []


def test_a_whole_draw_changes_hands_without_a_redraw(ledger, reserve, kit):
    """However often; and who has it may record it, and not draw."""
    first = reserve()
    ledger.begin_draw(first, kit.now)
    later = kit.now
    for number in range(4):
        later += timedelta(hours=1)
        held = reserve(owner=f"owner {number}", now=later, is_drawn=True)
        assert (held.is_drawn, held.redraws) == (True, 0)
    with pytest.raises(LedgerError, match="began its draw already"):
        ledger.begin_draw(held, later)
    ledger.record_drawn(held, "measured", kit.plan(0, "1/4"), later)
    ledger.record_drawn(held, "measured", kit.plan(0, "1/4"), later)
    assert ledger.find(*KEY).state is ReleaseState.DRAWN
    assert ledger.verify() == []


def test_a_draw_that_never_began_is_not_taken_for_whole(ledger, reserve, kit):
    reserve()
    held = reserve(owner="next", now=kit.now + timedelta(hours=1), is_drawn=True)
    assert not held.is_drawn


@BOTH
def test_leases_go_by_the_clock_of_the_server(url, kit):
    """Of a machine ten years ahead the lease ends when others' do; SQLite has no clock of its own."""
    ledger = open_ledger(url, database_time=True)
    ledger.enrol(kit.terms(), kit.now)
    ahead = datetime.now(UTC) + timedelta(days=3650)
    reservation = ledger.reserve(*KEY, kit.plan(0, "1/4"), "ahead", ahead, kit.lease)
    ledger.renew(reservation, ahead, kit.lease)
    until = ledger.find(*KEY).lease_until
    by_server = url.startswith("postgresql")
    assert (until < datetime.now(UTC) + timedelta(days=1)) == by_server
    with pytest.raises(HeldError):
        ledger.reserve(*KEY, kit.plan(0, "1/4"), "other", datetime.now(UTC), kit.lease)
    ledger.begin_draw(reservation, ahead)
    ledger.close()


def test_who_gives_a_day_up_never_holds_it_longer(ledger, reserve, kit):
    """Its clock may have run ahead since the day was reserved: others get it when the lease is over."""
    held = reserve()
    ledger.end_lease(held, kit.now + timedelta(days=3650))
    assert ledger.find(*KEY).lease_until == kit.now + kit.lease
    assert reserve(owner="next", now=kit.now + kit.lease).fencing_token > held.fencing_token


@pytest.mark.parametrize("begun", [True, False])
def test_a_lease_of_an_open_draw_or_a_void_release_is_not_given_up(ledger, reserve, kit, begun):
    """Who ends while it draws has died in its draw, as far as others know: they wait."""
    held = reserve()
    if begun:
        ledger.begin_draw(held, kit.now)
    else:
        ledger.void(*KEY, "given up", kit.now, held)
    ledger.end_lease(held, kit.now + timedelta(minutes=1))
    assert ledger.find(*KEY).lease_until == kit.now + kit.lease


def test_a_draw_that_was_called_off_never_was(ledger, reserve, kit):
    """It counts as no death, its owner may begin anew, and who was fenced off can call nothing off."""
    for number in range(4):
        now = kit.now + timedelta(hours=number)
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
    assert ledger.verify() == []
