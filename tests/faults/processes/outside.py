"""Judged from outside: what readers saw, against the ledger's rows, against the stored measurements.

Beside `tests.faults.judge`, whose guarantees hold here too. Arithmetic is this file's own.
"""

import json
import re
import sqlite3
from collections import defaultdict
from collections.abc import Iterable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import psycopg
from sqlalchemy import make_url

from optstream.ledger import ReleaseState
from tests.faults.books import Books, read_books
from tests.faults.judge import LIVE
from tests.faults.world import World

Spend = dict[str, Any]
SPENDS = """
SELECT releases.period, releases.revision, releases.state, spends.document FROM spends
JOIN releases ON releases.id = spends.release_id AND releases.generation = spends.generation
"""
DIED_TOO_OFTEN = re.compile(r"its owner died \d+ times while drawing")


def sightings(notes: Path) -> list[list[Any]]:
    """What a reader wrote down, whole lines only."""
    if not notes.exists():
        return []
    lines = notes.read_text().split("\n")[:-1]
    return [json.loads(line) for line in lines]


def judge_sightings(seen: Iterable[list[Any]], books: Books) -> list[str]:
    """One content for each day, revision and vintage, however and whenever read; it is the ledger's."""
    broken, contents = [], defaultdict[tuple[Any, ...], set[str]](set)
    for kind, *rest in seen:
        if kind == "error":
            broken.append(f"READER: {rest[0]}")
        elif kind != "looks":
            *key, digest = rest
            contents[kind, *key].add(digest)
    staged = dict(_staged(books))
    states = {(record.period, record.revision): record for record in books.records}
    for (kind, day, revision, vintage), digests in contents.items():
        named = f"{day} revision {revision} vintage {vintage}"
        if len(digests) > 1:
            broken.append(f"DOUBLE SPEND: {named} had {len(digests)} contents for readers ({kind})")
        record = states.get((day, revision))
        if record is None or record.state not in LIVE:
            broken.append(
                f"DOUBLE SPEND: readers saw {named}, which is {record and record.state} in the ledger"
            )
        elif kind == "bytes" and not digests <= {staged.get((day, revision, vintage))}:
            broken.append(f"LIVE: readers saw {named} in bytes that the ledger does not know")
    return broken


def _staged(books: Books) -> Iterator[tuple[tuple[str, int, int], str]]:
    for record in books.records:
        if record.staged_hash is not None:
            yield (record.period, record.revision, 0), record.staged_hash
    for (period, revision), vintages in books.vintages.items():
        for one in vintages:
            yield (period, revision, one.number), one.staged_hash


def charged(world: World) -> list[tuple[str, int, str, Spend]]:
    """What is charged, past the library: (day, revision, state, spend's document)."""
    address = make_url(world.settings.ledger_url)
    if address.get_backend_name() == "sqlite":
        with sqlite3.connect(f"file:{address.database}?mode=ro", uri=True) as connection:
            rows = connection.execute(SPENDS).fetchall()
        connection.close()
    else:
        with psycopg.connect(address.render_as_string(hide_password=False)) as server:
            rows = server.execute(SPENDS).fetchall()
    return [(period, revision, state, json.loads(document)) for period, revision, state, document in rows]


def dearest_window(spends: Iterable[Spend], length: int) -> Fraction:
    """The most that any window of so many steps loses: every window, every step, one by one."""
    known = list(spends)
    if not known:
        return Fraction(0)
    first = min(spend["first_step"] for spend in known) - length + 1
    last = max(spend["first_step"] + _n_steps(spend) for spend in known)
    return max(
        (
            sum((_loss(spend, start, start + length) for spend in known), Fraction(0))
            for start in range(first, last)
        ),
    )


def _n_steps(spend: Spend) -> int:
    match spend["kind"]:
        case "step":
            return len(spend["weights"])
        case "period":
            return len(spend["charges"]) - 1
        case _:
            return int(spend["n_steps"])


def _loss(spend: Spend, start: int, stop: int) -> Fraction:
    """What a window [start, stop) is charged for one spend (Lemma 1)."""
    first = spend["first_step"]
    low, high = max(start, first) - first, min(stop, first + _n_steps(spend)) - first
    if high <= low:
        return Fraction(0)
    if spend["kind"] == "period":
        return Fraction(spend["charges"][high - low])
    unit = Fraction(spend["leaves_changed"] * spend["alpha_units"]) / Fraction(spend["scale"])
    if spend["kind"] == "step":
        return unit * sum((Fraction(weight) for weight in spend["weights"][low:high]), Fraction(0))
    if spend["kind"] == "joint":
        held = [
            max(max(0, min(high, end) - max(low, begin)) for begin, end in group) for group in spend["groups"]
        ]
        return unit * sum(held)
    # not drawn yet: no more points than steps, nor than the cap
    return unit * min(Fraction(high - low), Fraction(spend["cap"]))


def judge_charges(world: World) -> list[str]:
    """Windows under the budget; what was measured is what is charged."""
    rows, model = charged(world), world.settings.model
    worst = dearest_window((spend for *_, spend in rows), model.window_length)
    broken = [f"WINDOW: {worst} by hand"] if worst > Fraction(model.epsilon) else []
    by_release = defaultdict[tuple[str, int], list[Spend]](list)
    states = {}
    for period, revision, state, spend in rows:
        by_release[period, revision].append(spend)
        states[period, revision] = state
    for (period, revision), spends in by_release.items():
        if states[period, revision] in [str(state.value) for state in LIVE]:
            folder = world.folder / "trusted" / "measurements" / world.settings.stream.name
            for file in (folder / f"{period}-r{revision}").glob("[0-9]*"):
                data = file.read_bytes()
                if file.suffix == ".raw" or not data.strip(b"\0"):
                    continue
                measured = json.loads(data.rstrip(b"\0"))["spends"]
                if sorted(map(_text, measured)) != sorted(map(_text, spends)):
                    broken.append(
                        f"WINDOW: {period} revision {revision} is charged other spends than were measured"
                    )
    return broken


def _text(spend: Spend) -> str:
    return json.dumps(spend, sort_keys=True)


def judge_voids(books: Books, given_up: set[str]) -> list[str]:
    """A day may be VOID if three owners died while they drew, or somebody withdrew it (given_up)."""
    broken = []
    for record in books.records:
        if record.state is not ReleaseState.VOID:
            continue
        begun = len(books.of(record.period, record.revision, "draw begun"))
        died = begun >= 3 and DIED_TOO_OFTEN.search(record.reason or "")
        if not died and record.period not in given_up:
            named = f"{record.period} revision {record.revision}"
            broken.append(f"LOST: {named} is VOID after {begun} draws: {record.reason}")
    return broken


def judge_remains(world: World, temporary: Path) -> list[str]:
    """No temporary file, no mark, no raw state but the newest day's, no half-written file."""
    left = [path for path in temporary.rglob("*") if path.is_file() or path.is_symlink()]
    trusted = world.folder / "trusted"
    left += trusted.glob(".backfill-*")
    left += [*trusted.rglob("*.raw")][1:]
    return [f"LEFT BEHIND: {path.relative_to(world.folder.parent)}" for path in sorted(left)[:5]]


def judge_outside(world: World, notes: Path, temporary: Path, given_up: set[str]) -> list[str]:
    """All of it."""
    books = read_books(world)
    return [
        *judge_sightings(sightings(notes), books),
        *judge_charges(world),
        *judge_voids(books, given_up),
        *judge_remains(world, temporary),
    ]
