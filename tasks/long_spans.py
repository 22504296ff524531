"""The month and the year that statements give: computed once for a plan and a year, then kept."""

import hashlib
import json
from contextlib import suppress
from datetime import date
from importlib.metadata import version

import optstream
from optstream.catalogue import LongSpan
from optstream.errors import OptStreamError
from tasks.plan_horizon import plan_horizons
from tasks.release import terms_of
from tasks.settings import Settings
from tasks.trusted_store import write_private

MOST_KEPT = 16
"""Plans in the file, the newest last."""
_made: dict[str, tuple[LongSpan, ...]] = {}
"""Of this process: a function of the key alone."""


def long_spans_of(settings: Settings, day: date, revision: int) -> tuple[LongSpan, ...]:
    """What all readings of one customer in 30 and in 365 days lose by the configured plan, rounded up.

    Nearly every night is one look into a file: composing takes some seconds. A file that cannot be read or
    written only costs them again. Public facts alone.
    """
    key, file = _key(settings, day, revision), settings.long_spans_file
    if key in _made:
        return _made[key]
    kept: dict[str, list[dict[str, object]]] = {}
    with suppress(OSError, ValueError, TypeError, AttributeError, KeyError, OptStreamError):
        kept = dict(json.loads(file.read_bytes()).items())
        _made[key] = tuple(LongSpan.from_document(span) for span in kept[key])
        return _made[key]
    _made[key] = tuple(
        LongSpan.rounded(n_days, loss.epsilon, loss.delta, loss.plain, loss.composed)
        for n_days, loss in plan_horizons(settings, day, revision)
    )
    kept = {**kept, key: [span.to_document() for span in _made[key]]}
    with suppress(OSError):
        write_private(file, json.dumps(dict(list(kept.items())[-MOST_KEPT:])).encode())
    return _made[key]


def _key(settings: Settings, day: date, revision: int) -> str:
    """All that the figures are a function of, and the programs that compute them."""
    shares = "first" if revision == 0 else "again"
    programs = (optstream.__version__, version("dp-accounting"))
    public = (settings.configuration_hash, terms_of(settings).hierarchy_hash, day.year, shares, *programs)
    return hashlib.sha256(json.dumps(public).encode()).hexdigest()
