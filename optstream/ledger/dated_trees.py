"""The list of trees by which a stream's days are released, as the ledger knows it: steps and hashes."""

import json
from collections.abc import Mapping, Sequence
from itertools import pairwise

Entries = tuple[tuple[int | None, str], ...]
"""(running index of the first step, hash of the list up to here); None for the oldest tree, then rising."""


def continues(known: Entries, wanted: Entries, reserved_until: int) -> bool:
    """Return whether every step before `reserved_until` has the same tree by both lists (Lemma 18)."""
    same = 0
    for ours, theirs in zip(known, wanted, strict=False):
        if ours != theirs:
            break
        same += 1
    rest = (*known[same:], *wanted[same:])
    return same > 0 and all(step is not None and step >= reserved_until for step, _ in rest)


def hash_at(entries: Entries, first_step: int) -> str:
    """Return what identifies the tree of a period that begins at this step, and all before it."""
    return [name for step, name in entries if step is None or step <= first_step][-1]


def problem_of(entries: object, hierarchy_hash: str) -> str | None:
    """Return in words why this is no list that ends with this hash; None for one."""
    if not isinstance(entries, tuple) or not entries:
        return "must be a tuple of (first step, hash), at least one"
    steps = [step for step, _ in entries]
    later = steps[1:]
    if steps[0] is not None or any(type(step) is not int for step in later):
        return "must have None as the first step of the oldest tree, and integers after it"
    if any(second <= first for first, second in pairwise(later)):
        return "must have steps that rise"
    if entries[-1][1] != hierarchy_hash:
        return "must end with hierarchy_hash"
    return None


def to_text(entries: Entries) -> str:
    """Return the list as the ledger keeps it: empty for one tree, which `hierarchy_hash` identifies."""
    return json.dumps(entries[1:] and [list(one) for one in entries], separators=(",", ":"))


def from_list(stored: Sequence[Sequence[int | str | None]], hierarchy_hash: str) -> Entries:
    """Return what `to_text` wrote, as JSON reads it."""
    found = tuple((step, str(name)) for step, name in stored)
    return found or ((None, hierarchy_hash),)  # type: ignore[return-value]  # checked by `problem_of`


def trees_said(body: Mapping[str, object]) -> Entries:
    """Return the list of trees that an event about a stream's terms says."""
    given = body.get("hierarchy", ())
    if not isinstance(given, list | tuple):
        raise TypeError("a list of trees is a list")
    return from_list(given, str(body["hierarchy_hash"]))
