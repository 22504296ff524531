"""How the passes over files are spread: here, or leaf by leaf over other processes."""

from collections.abc import Callable, Sequence
from typing import Any

from pydantic import SecretStr

from tasks.config import Settings
from tasks.ingest.schema import SourceFile

Spread = Callable[[Callable[[Any], Any], Sequence[Any]], list[Any]]
"""As `map`, but a list: each of the items goes to some process, with what is to be done. Both are pickled."""


def by_leaf(files: Sequence[SourceFile]) -> list[list[SourceFile]]:
    """The files of each leaf that has any, in the tree's order."""
    return [[file for file in files if file.leaf == leaf] for leaf in sorted({file.leaf for file in files})]


def without_ledger(settings: Settings) -> Settings:
    """Settings that may travel: reading needs no ledger, and its address holds a password."""
    return settings.model_copy(update={"ledger": settings.ledger.model_copy(update={"url": SecretStr("")})})
