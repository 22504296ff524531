"""Figures that take seconds to compute and are the same each night: kept in a file of the trusted zone."""

import hashlib
import json
from collections.abc import Callable, Sequence
from contextlib import suppress
from fractions import Fraction
from importlib.metadata import version
from pathlib import Path
from typing import Any

import optstream
from optstream.privacy.composition import Compose, Draw, composed
from tasks.storage.private_files import write_private

MOST_KEPT = 16
"""In a file, the newest last."""


def kept(file: Path, facts: Sequence[object], make: Callable[[], Any]) -> Any:
    """Return what was made of these facts by the present programs before, or make it and keep it.

    facts: public, JSON-ready, and all that the result is a function of. A file that cannot be read or written
    costs the time again, and nothing else.
    """
    programs = (optstream.__version__, version("dp-accounting"))
    key = hashlib.sha256(json.dumps([facts, programs]).encode()).hexdigest()
    known: dict[str, Any] = {}
    with suppress(OSError, ValueError):
        read = json.loads(file.read_bytes())
        known = read if isinstance(read, dict) else {}
    if key not in known:
        known[key] = make()
        with suppress(OSError):
            write_private(file, json.dumps(dict(list(known.items())[-MOST_KEPT:])).encode())
    return known[key]


def kept_composition(file: Path) -> Compose:
    """Return `composed`, which looks into this file first."""

    def compose(
        draws: frozenset[tuple[Draw, int]], pure: frozenset[tuple[Fraction, int]], delta: float
    ) -> float:
        facts = (
            sorted([shift, str(scale), count] for (shift, scale), count in draws),
            sorted([str(epsilon), count] for epsilon, count in pure),
            delta,
        )
        return float(kept(file, facts, lambda: composed(draws, pure, delta)))

    return compose
