"""Spends and events are only ever added, and stored as ever: published catalogues hash their bytes."""

import json
from datetime import timedelta
from hashlib import sha256
from pathlib import Path

import pytest
from sqlalchemy import text

from optstream.errors import BudgetError, LedgerError
from optstream.ledger import Key, Vintage, open_ledger

STORED = json.loads(Path(__file__).with_name("stored_events.json").read_text(encoding="utf-8"))
"""One event of each kind, columns of terms and spends, and the head of the chain, as of 2026-11-22."""


def life(ledger, url, kit):
    """Everything that can happen to a ledger, step by step; yields after each."""
    now, quarter, eighth = kit.now, kit.plan(0, "1/4"), kit.plan(0, "1/8")
    key = Key("load", "day 0")
    ledger.enrol(kit.terms(document='{"code": "2"}'), now)
    yield
    first = ledger.reserve(key, quarter, "first", now, kit.lease)
    yield
    now += timedelta(hours=1)
    second = ledger.reserve(key, eighth, "second", now, kit.lease)  # another plan: a second generation
    yield
    with pytest.raises(LedgerError):
        ledger.begin_draw(first, now)
    ledger.begin_draw(second, now)
    yield
    now += timedelta(hours=1)
    third = ledger.reserve(key, eighth, "third", now, kit.lease)  # the second died in its draw
    ledger.renew(third, now, 2 * kit.lease)
    ledger.begin_draw(third, now)
    ledger.record_drawn(third, "measured", kit.plan(0, "1/16"), now)  # settled: a third generation
    yield
    ledger.end_lease(third, now)
    fourth = ledger.adopt(key, "fourth", now + timedelta(hours=1), kit.lease)
    ledger.record_staged(key, "staged", "release-1.parquet", now, fourth)
    ledger.record_published(key, now, fourth)
    yield
    restated = ledger.reserve(Key("load", "day 0", 1), eighth, "fourth", now, kit.lease)
    ledger.void(Key("load", "day 0", 1), "a person said so", now, restated)
    yield
    with pytest.raises(BudgetError):
        ledger.reserve(Key("load", "day 1"), kit.plan(1, "1"), "fourth", now, kit.lease)
    dearer = ledger.reserve(Key("load", "day 1"), kit.plan(4, "1/8"), "fourth", now, kit.lease)
    ledger.begin_draw(dearer, now)
    with pytest.raises(LedgerError, match="VOID"):
        ledger.record_drawn(dearer, "measured", kit.plan(4, "1/4"), now)
    yield
    for owner in ("a", "b", "c"):
        ledger.begin_draw(
            ledger.reserve(Key("load", "day 2"), kit.plan(8, "1/8"), owner, now, kit.lease), now
        )
        now += timedelta(hours=1)
    with pytest.raises(LedgerError, match="VOID"):
        ledger.reserve(Key("load", "day 2"), kit.plan(8, "1/8"), "d", now, kit.lease)
    yield
    ledger.withdraw(key, "the supplier erred", now)
    ledger.compromise(Key("load", "day 2"), "a seeded sampler", now)
    ledger.amend(kit.terms(epsilon="2"), "a person said so", now)
    yield
    now, key = kit.now + timedelta(days=1), Key("load", "day 9")
    held = ledger.reserve(key, kit.plan(36, "1/3"), "night", now, kit.lease)
    ledger.begin_draw(held, now)
    ledger.call_off_draw(held, now)
    ledger.begin_draw(held, now)
    ledger.record_drawn(held, "measured", kit.plan(36, "1/3"), now)
    ledger.record_staged(key, "staged", "release-2.parquet", now, held)
    ledger.record_published(key, now, held)
    revising = ledger.revise(key, "next night", now, kit.lease)
    ledger.record_vintage(revising, Vintage(2, "basis", "bytes", "release-3.parquet", False), now)
    ledger.record_vintage_published(revising, 2, now)
    ledger.revise(key, "third night", now, kit.lease)
    ledger.release_lease(key, "the machine is gone", now)
    yield
    reopened = open_ledger(url)
    assert reopened.verify() == []
    reopened.worst("customers")
    states = [record.state.value for record in reopened.releases("load")]
    assert states == ["PUBLISHED", "VOID", "VOID", "VOID", "PUBLISHED"]


def stored(connection):
    """What the ledger's rows hold of each kind of event, of the terms and of the spends."""
    columns = "period, revision, number, at, kind, body, previous"
    events = connection.execute(text(f"SELECT {columns} FROM events ORDER BY id")).all()
    head, model = connection.execute(text("SELECT head, model FROM streams")).one()
    spends = connection.execute(text("SELECT DISTINCT document FROM spends ORDER BY document")).scalars()
    hashes = connection.execute(text("SELECT spends_hash FROM releases ORDER BY id")).scalars()
    return {
        "events": {event.kind: list(event) for event in events},
        "head": head,
        "model": model,
        "spends": list(spends),
        "spends_hashes": sha256("".join(hashes).encode()).hexdigest(),
    }


@pytest.mark.slow
def test_no_step_of_a_life_changes_a_spend_or_an_event_and_each_kind_is_stored_as_ever(
    ledger, url, kit, round_the_library, edit
):
    """With the triggers gone, so that only the library keeps the guarantee."""

    def rows():
        with round_the_library() as connection:
            return [
                connection.execute(text(f"SELECT * FROM {table} ORDER BY id")).all()
                for table in ("spends", "events", "amendments")
            ]

    edit()
    before = rows()
    for _ in life(ledger, url, kit):
        after = rows()
        assert [new[: len(old)] for old, new in zip(before, after, strict=True)] == before
        before = after
    with round_the_library() as connection:
        assert stored(connection) == STORED
