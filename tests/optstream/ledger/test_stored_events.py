"""Bytes of stored events, terms and spends stay as they were: published catalogues hash them."""

import json
from datetime import timedelta
from hashlib import sha256
from pathlib import Path

import pytest
from sqlalchemy import text

from optstream.ledger import Key, Vintage
from tests.optstream.ledger.test_append_only import life

STORED = json.loads(Path(__file__).with_name("stored_events.json").read_text(encoding="utf-8"))
"""One event of each kind, columns of terms and spends, and the head of the chain, as of 2026-11-22."""
COLUMNS = "period, revision, number, at, kind, body, previous"


@pytest.fixture
def whole_life(ledger, url, kit):
    """A ledger in which everything happened that is recorded, at fixed times."""
    for _ in life(ledger, url, kit):
        pass
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
    return ledger


def stored(connection):
    """What the ledger's rows hold of each kind of event, of the terms and of the spends."""
    events = connection.execute(text(f"SELECT {COLUMNS} FROM events ORDER BY id")).all()
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
def test_every_kind_of_event_is_stored_as_ever(whole_life, round_the_library):
    with round_the_library() as connection:
        found = stored(connection)
    assert found == STORED
    assert whole_life.verify() == []
