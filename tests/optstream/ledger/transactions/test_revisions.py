"""New estimates, and the leases under which they are made."""

import re
from datetime import UTC, datetime, timedelta

import pytest

from optstream.errors import HeldError, LedgerError, ParameterError
from optstream.ledger import Key, ReleaseState, Vintage, open_ledger

FIRST = Vintage(1, "basis", "a" * 64, "release-a.parquet", False)
KEY = Key("load", "day 0")


@pytest.fixture
def released(publish, ledger, kit):
    """A ledger with a published day."""
    publish("day 0", kit.plan(0, "1/8"))
    return ledger


@pytest.fixture
def hold(released, kit):
    return lambda owner="b", after=0: released.revise(
        KEY, owner, kit.now + timedelta(minutes=after), kit.lease
    )


@pytest.fixture
def revised(released, hold, kit):
    """A ledger with a day of which a new estimate is published."""
    held = hold()
    released.record_vintage(held, FIRST, kit.now)
    released.record_vintage_published(held, 1, kit.now)
    assert released.verify() == []
    return released


def test_a_vintage_is_staged_then_published_and_costs_nothing(released, hold, kit):
    before = released.find(KEY)
    cost = released.worst("customers")
    held = hold()
    assert held.fencing_token == before.fencing_token + 1
    released.record_vintage(held, FIRST, kit.now)
    released.record_vintage(held, FIRST, kit.now)
    assert released.vintages_of(KEY) == (FIRST,)
    released.record_vintage_published(held, 1, kit.now)
    head = released.head("load")
    released.record_vintage_published(held, 1, kit.now)
    assert released.head("load") == head
    (kept,) = released.vintages("load")["day 0", 0]
    assert kept.published
    after = released.find(KEY)
    first = after.first_step
    assert released.vintages("load", steps=range(first, first + 1)) == {("day 0", 0): (kept,)}
    assert released.vintages("load", steps=range(first + 1, first + 1000)) == {}
    assert (after.state, after.spends, after.staged_hash, after.measurements_hash) == (
        before.state,
        before.spends,
        before.staged_hash,
        before.measurements_hash,
    )
    assert released.worst("customers") == cost
    assert released.verify() == []


@pytest.mark.parametrize(("ahead", "free"), [(timedelta(hours=23), False), (timedelta(days=3650), True)])
def test_a_lease_of_a_clock_that_ran_ahead_holds_no_estimate_off(released, hold, kit, ahead, free):
    """No right clock gives a lease of more than a day; whoever was held by one can write no more."""
    stale = released.revise(KEY, "ahead", kit.now + ahead, kit.lease)
    if not free:
        with pytest.raises(HeldError, match="another run"):
            hold("b")
        return
    held = hold("b")
    with pytest.raises(LedgerError, match="taken over"):
        released.record_vintage(stale, FIRST, kit.now)
    released.record_vintage(held, FIRST, kit.now)
    released.record_vintage_published(held, 1, kit.now)
    assert released.vintages_of(KEY)[0].published
    assert released.verify() == []


def test_one_run_at_a_time_and_a_stale_one_writes_nothing(released, hold, kit):
    stale = hold("b")
    with pytest.raises(HeldError, match="another run"):
        hold("c", after=1)
    fresh = hold("c", after=60)
    with pytest.raises(LedgerError, match="taken over"):
        released.record_vintage(stale, FIRST, kit.now)
    released.record_vintage(fresh, FIRST, kit.now)
    with pytest.raises(LedgerError, match="taken over"):
        released.record_vintage_published(stale, 1, kit.now)
    assert not released.vintages_of(KEY)[0].published
    released.record_vintage_published(fresh, 1, kit.now)
    hold("d", after=61)  # nobody holds it once it is published
    assert released.verify() == []


def test_numbers_rise_and_bytes_never_change(released, hold, kit):
    held = hold()
    released.record_vintage(held, FIRST, kit.now)
    other = Vintage(1, "basis", "b" * 64, "release-b.parquet", False)
    with pytest.raises(LedgerError, match="takes the next number"):
        released.record_vintage(held, other, kit.now)
    released.record_vintage(held, Vintage(3, "basis 2", "b" * 64, "release-b.parquet", False), kit.now)
    with pytest.raises(LedgerError, match="takes the next number"):
        released.record_vintage(held, Vintage(2, "x", "c" * 64, "release-c.parquet", False), kit.now)
    with pytest.raises(LedgerError, match="no vintage 2"):
        released.record_vintage_published(held, 2, kit.now)
    for wrong in (0, True, -1):
        with pytest.raises(ParameterError, match="at least 1"):
            released.record_vintage(held, Vintage(wrong, "x", "c" * 64, "c", False), kit.now)
    assert released.verify() == []


def test_only_what_readers_have_gets_a_new_estimate(released, hold, kit, publish):
    reserved = released.reserve(Key("load", "day 1"), kit.plan(4, "1/8"), "a", kit.now, kit.lease)
    assert reserved
    with pytest.raises(LedgerError, match="it is RESERVED"):
        released.revise(Key("load", "day 1"), "b", kit.now, kit.lease)
    held = hold()
    released.withdraw(KEY, "wrong dump", kit.now)
    with pytest.raises(LedgerError, match="it is withdrawn"):
        released.record_vintage(held, FIRST, kit.now)
    publish("day 2", kit.plan(8, "1/8"))
    released.compromise(Key("load", "day 2"), "stolen", kit.now)
    with pytest.raises(LedgerError, match="it is compromised"):
        released.revise(Key("load", "day 2"), "b", kit.now, kit.lease)
    publish("day 3", kit.plan(40, "1/8"))
    released.reserve(Key("load", "day 3", 1), kit.plan(40, "1/8"), "a", kit.now, kit.lease)
    with pytest.raises(LedgerError, match="it is restated"):
        released.revise(Key("load", "day 3"), "b", kit.now, kit.lease)
    assert released.verify() == []


@pytest.mark.parametrize(
    ("statement", "finding"),
    [
        ("UPDATE vintages SET staged_hash = 'other'", "vintage 1: differs from .* in staged_hash"),
        ("UPDATE vintages SET basis = 'other'", "vintage 1: differs from .* in basis"),
        ("UPDATE vintages SET published = (1 = 0)", "vintage 1: differs from .* in published"),
        (
            "UPDATE vintages SET number = 7",
            "vintage 7: no event tells of it.*vintage 1: its events are there",
        ),
        ("DELETE FROM vintages", "vintage 1: its events are there, its row is gone"),
    ],
)
def test_an_edit_is_found(revised, edit, statement, finding):
    edit(statement)
    found = " ".join(revised.verify())
    assert re.search(finding, found), found


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
    ledger.release_lease(KEY, "its clock ran ahead", kit.now)
    for write in (
        lambda: ledger.renew(alive, kit.now, kit.lease),
        lambda: ledger.record_drawn(alive, "measured", kit.plan(0, "1/4"), kit.now),
        lambda: ledger.void(KEY, "mine", kit.now, alive),
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
    ledger.release_lease(KEY, "its machine burnt", kit.now)
    assert ledger.adopt(KEY, "next", kit.now, kit.lease).fencing_token > reservation.fencing_token
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
    assert ledger.find(KEY).state is ReleaseState.DRAWN
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
    reservation = ledger.reserve(KEY, kit.plan(0, "1/4"), "ahead", ahead, kit.lease)
    ledger.renew(reservation, ahead, kit.lease)
    until = ledger.find(KEY).lease_until
    by_server = url.startswith("postgresql")
    assert (until < datetime.now(UTC) + timedelta(days=1)) == by_server
    with pytest.raises(HeldError):
        ledger.reserve(KEY, kit.plan(0, "1/4"), "other", datetime.now(UTC), kit.lease)
    ledger.begin_draw(reservation, ahead)
    ledger.close()


def test_who_gives_a_day_up_never_holds_it_longer(ledger, reserve, kit):
    """Its clock may have run ahead since the day was reserved: others get it when the lease is over."""
    held = reserve()
    ledger.end_lease(held, kit.now + timedelta(days=3650))
    assert ledger.find(KEY).lease_until == kit.now + kit.lease
    assert reserve(owner="next", now=kit.now + kit.lease).fencing_token > held.fencing_token


@pytest.mark.parametrize("begun", [True, False])
def test_a_lease_of_an_open_draw_or_a_void_release_is_not_given_up(ledger, reserve, kit, begun):
    """Who ends while it draws has died in its draw, as far as others know: they wait."""
    held = reserve()
    if begun:
        ledger.begin_draw(held, kit.now)
    else:
        ledger.void(KEY, "given up", kit.now, held)
    ledger.end_lease(held, kit.now + timedelta(minutes=1))
    assert ledger.find(KEY).lease_until == kit.now + kit.lease


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
