"""The month and the year that statements give: composed once for a plan and a year, then kept."""

from datetime import date
from typing import Any

from optstream.catalogue import LongSpan
from tasks.config import Settings
from tasks.planning.plan_horizon import plan_horizons
from tasks.release.run import terms_of
from tasks.storage.kept_figures import kept

_made: dict[tuple[object, ...], list[dict[str, Any]]] = {}
"""Of this process, by what they are a function of."""


def long_spans_of(settings: Settings, day: date, revision: int) -> tuple[LongSpan, ...]:
    """Return what all readings of one customer in 30 and in 365 days lose by the configured plan, rounded up.

    Public facts alone: a function of the configuration, the stream's share and the day's year. Costs no
    privacy.
    """
    # a share that the model chooses is a function of other streams' files, too
    share = str(settings.stream_share)
    plan = (settings.configuration_hash, share, terms_of(settings).hierarchy_hash, day.year, revision > 0)
    if plan not in _made:
        _made[plan] = kept(settings.long_spans_file, plan, lambda: _documents(settings, day, revision))
    return tuple(LongSpan.from_document(span) for span in _made[plan])


def _documents(settings: Settings, day: date, revision: int) -> list[dict[str, Any]]:
    found = plan_horizons(settings, day, revision)
    return [
        LongSpan.rounded(n_days, loss.epsilon, loss.delta, loss.plain, loss.composed).to_document()
        for n_days, loss in found
    ]
