"""Whether the newest release was unlike all days before it, by what its own noisy measurements say."""

from collections.abc import Mapping
from contextlib import suppress
from datetime import date, timedelta

from optstream.errors import LedgerError, ParameterError
from optstream.ledger import ReleaseOutline, ReleaseState
from optstream.mechanisms import HistoryInformedTree
from optstream.stream import Measured
from optstream.stream.calendar import ORIGIN
from tasks.mechanism import mechanism_for
from tasks.settings import Settings
from tasks.trusted_store import read_verified


def unlike_day(settings: Settings, releases: Mapping[date, ReleaseOutline]) -> date | None:
    """The newest published day, if the self-check of its mechanism found it unlike all others.

    Only HistoryInformed has one: the day's blocks missed what habits predict by more than noise can explain,
    and it was estimated with wider priors. Reads the stored measurements of that day, which are noisy, and no
    dump. None where they are gone, or of another configuration.
    """
    if settings.mechanism.name != "HistoryInformed":
        return None
    out = [day for day, one in releases.items() if one.state is ReleaseState.PUBLISHED]
    if not out:
        return None
    newest, release = max(out), releases[max(out)]
    mechanism = mechanism_for(settings, newest, release.revision)
    assert isinstance(mechanism, HistoryInformedTree)
    with suppress(LedgerError, ParameterError, OSError):
        folder = settings.measurements_of(newest, release.revision)
        measured = Measured.from_bytes(read_verified(folder, release.measurements_hash))
        if (newest - ORIGIN) // timedelta(days=1) in mechanism.events(measured):
            return newest
    return None
