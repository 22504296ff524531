"""A command that has printed nothing for some seconds reports its activity on standard error."""

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic
from types import SimpleNamespace

QUIET_SECONDS = 10.0
LONG_RUNNING = ("serve", "ui")  # commands that are quiet while all is well
_NOW = SimpleNamespace(words="", spoken_at=0.0)


def spoken() -> None:
    """Note that a line was printed."""
    _NOW.spoken_at = monotonic()


@contextmanager
def work(words: str) -> Iterator[None]:
    """Name the work of the block; "" where a bar or a spinner shows it."""
    before, _NOW.words = _NOW.words, words
    spoken()
    try:
        yield
    finally:
        _NOW.words = before
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
            if _NOW.words and now - _NOW.spoken_at > QUIET_SECONDS:
                spoken()
                print(f"{_NOW.words}: still at work, {now - begun:.0f} s", file=sys.stderr, flush=True)

    with work(f"optstream {words[0]}"):
        threading.Thread(target=watch, daemon=True).start()
        try:
            yield
        finally:
            ended.set()
