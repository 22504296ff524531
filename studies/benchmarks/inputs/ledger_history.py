"""Writes a ledger with years of releases behind it, in bulk. Used by `ledger`.

The library would take hours for a million releases, a transaction for each step of each. So the rows that it
would write are computed with the library's own functions and inserted together; `verify` must accept them.
"""

import json
import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import islice
from pathlib import Path
from typing import Any

from optstream import PrivacyModel
from optstream.ledger import Ledger, ReleaseState, StreamTerms, open_ledger
from optstream.ledger.accounting.spends import COLUMNS, spend_rows, spends_hash
from optstream.ledger.hash_chain import HASHED, hashes_of
from optstream.ledger.records import stamp
from optstream.privacy import Spend
from studies.benchmarks.inputs.fixture import STEPS, french_tree, optstream

START = datetime(2016, 1, 1, 2, tzinfo=UTC)
LEASE = timedelta(minutes=15)
MECHANISM = optstream(french_tree())
BODY = json.JSONEncoder(sort_keys=True, separators=(",", ":")).encode
UNDRAWN = dict.fromkeys(
    ("measurements_hash", "staged_hash", "published_name", "reason", "withdrawn", "compromised")
)


@dataclass(frozen=True)
class History:
    """Streams, each with its own privacy budget, that published every day of so many, each so many times.

    A plan is that of `optstream init`'s example, six spends at epsilon 1; the privacy budget is as many
    epsilons as there are revisions, so the windows are full.
    """

    streams: int
    days: int
    revisions: int

    @property
    def releases(self) -> int:
        """The number of releases in the ledger."""
        return self.streams * self.days * self.revisions

    def terms(self, stream: int) -> StreamTerms:
        """Return the terms of one of the streams."""
        model = PrivacyModel(str(self.revisions), STEPS, 10)
        return StreamTerms(
            f"stream {stream}", f"population {stream}", model, "tree", "strict", "30 min, UTC, elapsed"
        )

    def write(self, file: Path) -> Ledger:
        """Make the ledger at `file`, which must not exist."""
        ledger = open_ledger(f"sqlite:///{file}")
        for stream in range(self.streams):
            ledger.enrol(self.terms(stream), START)
        ledger.close()  # else its write-ahead log could not be turned off
        connection = sqlite3.connect(file)
        # nothing here need outlive a power cut
        for pragma in ("journal_mode=OFF", "synchronous=OFF", "cache_size=-2000000"):
            connection.execute(f"PRAGMA {pragma}")
        names = [name for (name,) in connection.execute("SELECT name FROM streams ORDER BY id")]
        heads = dict(connection.execute("SELECT id, head FROM streams").fetchall())
        releases = self._rows(names, heads)
        while rows := list(islice(releases, 20_000)):
            for table in ("releases", "spends", "events"):
                _insert(connection, table, [row for one in rows for row in one[table]])
        longest = max(spend.n_steps for spend in plan_of(0))
        connection.execute("UPDATE grants SET longest_spend = ?", (longest,))
        events = 1 + 5 * self.days * self.revisions
        connection.executemany(
            "UPDATE streams SET head = ?, n_events = ? WHERE id = ?",
            [(head, events, stream) for stream, head in heads.items()],
        )
        connection.commit()
        connection.execute("ANALYZE")
        connection.close()
        return ledger

    def _rows(self, names: list[str], heads: dict[int, str]) -> Iterator[dict[str, list[dict[str, Any]]]]:
        """Yield the rows of each release, night by night as they would have come; `heads` moves along."""
        release_id = 0
        numbers = dict.fromkeys(heads, 1)
        for day in range(self.days):
            now, plan = START + timedelta(days=day), plan_of(day)
            rows = [dict(zip(COLUMNS, row, strict=True)) for row in spend_rows(plan)]
            period = f"{now:%Y-%m-%d}"
            for stream, name in enumerate(names, start=1):
                for revision in range(self.revisions):
                    release_id += 1
                    release = _release(stream, stream, plan, now, release_id)
                    key = {"period": period, "revision": revision}
                    journal = []
                    for kind, changed in _moves(release, now):
                        at, text = stamp(now), BODY(changed)
                        event = (heads[stream], numbers[stream], at, kind, period, revision, text)
                        (heads[stream],) = hashes_of(name, [(*event, "")])
                        numbers[stream] += 1
                        columns = dict(zip(HASHED, event, strict=True))
                        journal.append({"stream_id": stream, **columns, "hash": heads[stream]})
                        release |= changed
                    charged = {"grant_id": stream, "release_id": release_id, "generation": 1}
                    yield {
                        "releases": [{"id": release_id, "stream_id": stream, **key, **release}],
                        "spends": [{**charged, **row} for row in rows],
                        "events": journal,
                    }


def plan_of(day: int) -> tuple[Spend, ...]:
    """Return the plan of a day, counted from the first."""
    return tuple(MECHANISM.plan(STEPS, STEPS * day))


def _release(stream: int, grant: int, plan: Sequence[Spend], now: datetime, number: int) -> dict[str, Any]:
    return {
        "state": ReleaseState.RESERVED.value, "owner": f"night {number}", "lease_until": stamp(now + LEASE),
        "fence": 1, "drawing": False, "redraws": 0, "first_step": plan[0].first_step, "n_steps": STEPS,
        "generation": 1, "spends_hash": spends_hash(grant, plan), "amendment": 0, **UNDRAWN,
    }  # fmt: skip


def _moves(release: dict[str, Any], now: datetime) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield a release's events, each with the columns that it changes."""
    digest = release["spends_hash"]
    yield "reserved", dict(release)
    yield "draw begun", {"drawing": True}
    yield "drawn", {"state": ReleaseState.DRAWN.value, "drawing": False, "measurements_hash": digest}
    yield "staged", {"staged_hash": digest, "published_name": f"{release['owner']}.parquet"}
    yield "published", {"state": ReleaseState.PUBLISHED.value, "lease_until": stamp(now)}


def _insert(connection: sqlite3.Connection, table: str, rows: list[dict[str, Any]]) -> None:
    columns = list(rows[0])
    places = ", ".join(f":{column}" for column in columns)
    connection.executemany(f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({places})", rows)
