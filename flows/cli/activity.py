"""A command that prints nothing for some seconds says on standard error what it does."""

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from time import monotonic

QUIET_SECONDS = 10.0
LONG_RUNNING = ("serve", "ui")
"""Commands that are quiet while all is well."""


@dataclass
class _Activity:
    """The work under way. words: its name. moves: whether a bar or a spinner shows it."""

    words: str = ""
    moves: bool = False
    spoken_at: float = field(default_factory=monotonic)


_NOW = _Activity()


def spoken() -> None:
    """Note that a line was printed."""
    _NOW.spoken_at = monotonic()


@contextmanager
def work(words: str, moves: bool = False) -> Iterator[None]:
    """Name what is done meanwhile."""
    before = _NOW.words, _NOW.moves
    _NOW.words, _NOW.moves = words, moves
    spoken()
    try:
        yield
    finally:
        _NOW.words, _NOW.moves = before
        spoken()


@contextmanager
def reported(words: list[str]) -> Iterator[None]:
    """While the command of these words runs, report each time that it was quiet for `QUIET_SECONDS`."""
    if not words or words[0] in LONG_RUNNING:
        yield
        return
    ended, begun = threading.Event(), monotonic()

    def watch() -> None:
        while not ended.wait(QUIET_SECONDS / 10):
            now = monotonic()
            if not _NOW.moves and now - _NOW.spoken_at > QUIET_SECONDS:
                spoken()
                print(f"{_NOW.words}: still at work, {now - begun:.0f} s", file=sys.stderr, flush=True)

    with work(f"optstream {words[0]}"):
        threading.Thread(target=watch, daemon=True).start()
        try:
            yield
        finally:
            ended.set()
