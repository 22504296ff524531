"""Judged from outside, beyond `tests.faults.judge`: what readers saw, and leftovers."""

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from optstream.ledger import ReleaseState
from tests.faults.books import Books, read_books
from tests.faults.judge import LIVE
from tests.faults.world import World

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
    books = read_books(world)
    return [
        *judge_sightings(sightings(notes), books),
        *judge_voids(books, given_up),
        *judge_remains(world, temporary),
    ]
