"""How the passes over files are spread: here, or part by part over other processes."""

from collections.abc import Callable, Sequence
from typing import Any

from pydantic import SecretStr

from tasks.config import Settings
from tasks.ingest.schema import SourceFile

Spread = Callable[[Callable[[Any], Any], Sequence[Any]], list[Any]]
"""As `map`, but a list: each of the items goes to some process, with what is to be done. Both are pickled."""


def by_leaf(files: Sequence[SourceFile]) -> list[list[SourceFile]]:
    """The files of each leaf that has any, in the tree's order; those with rows of every leaf together."""
    found: dict[int, list[SourceFile]] = {}
    for file in files:
        found.setdefault(file.leaf, []).append(file)
    return [found[leaf] for leaf in sorted(found)]


def by_part(files: Sequence[SourceFile]) -> list[list[SourceFile]]:
    """The same, but a file with rows of every leaf by itself: for what adds up over any parts."""
    return [
        part
        for own in by_leaf(files)
        for part in ([own] if own[0].layout.region is None else ([file] for file in own))
    ]


def runs_of(files: Sequence[SourceFile], sizes: Sequence[int], n_parts: int) -> list[list[SourceFile]]:
    """The files in runs, each of one day and, but for a day's last, with a part of all bytes at least."""
    runs: list[list[SourceFile]] = []
    size, least = 0, sum(sizes) / n_parts
    for file, own in zip(files, sizes, strict=True):
        if not runs or runs[-1][0].day != file.day or size >= least:
            runs.append([])
            size = 0
        runs[-1].append(file)
        size += own
    return runs


def without_ledger(settings: Settings) -> Settings:
    """Settings that may travel: reading needs no ledger, and its address holds a password."""
    return settings.model_copy(update={"ledger": settings.ledger.model_copy(update={"url": SecretStr("")})})
