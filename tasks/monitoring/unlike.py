"""Whether the newest release was unlike the days before it, by noisy measurements and published figures."""

from collections.abc import Mapping
from contextlib import suppress
from datetime import date, timedelta

from optstream.catalogue import Catalogue
from optstream.errors import LedgerError, ParameterError
from optstream.ledger import ReleaseOutline, ReleaseState
from optstream.mechanisms import HistoryInformedTree
from optstream.stream import Measured
from optstream.stream.calendar import ORIGIN
from tasks.config import Settings
from tasks.monitoring.compared import LEAST_DAYS, Comparison, compare
from tasks.monitoring.published_files import kept_figures
from tasks.release.build_mechanism import mechanism_for
from tasks.storage.private_files import read_verified


def unlike_days(settings: Settings, releases: Mapping[date, ReleaseOutline]) -> tuple[date, ...]:
    """The days that the self-check of the newest published day's mechanism found unlike all others.

    Only HistoryInformed has one: such a day's blocks missed what habits predict by more than noise can
    explain, and it was estimated with wider priors. Reads the stored measurements of the newest day, which
    are noisy and hold what is known of the days before, and no dump. Rising; empty where they are gone, or of
    another configuration.
    """
    newest = newest_published(releases)
    if newest is None:
        return ()
    release = releases[newest]
    mechanism = mechanism_for(settings, newest, release.revision)
    if not isinstance(mechanism, HistoryInformedTree):
        return ()
    with suppress(LedgerError, ParameterError, OSError):
        folder = settings.measurements_of(newest, release.revision)
        measured = Measured.from_bytes(read_verified(folder, release.measurements_hash))
        return tuple(ORIGIN + timedelta(days=number) for number in mechanism.events(measured))
    return ()


def newest_published(releases: Mapping[date, ReleaseOutline]) -> date | None:
    """The newest day whose release is published; None without one."""
    published = (day for day, one in releases.items() if one.state is ReleaseState.PUBLISHED)
    return max(published, default=None)


def far_regions(settings: Settings, catalogue: Catalogue | None) -> tuple[Comparison, ...]:
    """The leaves whose published mean of the newest listed day is ten times the median of the up to 28 listed
    days before, or a tenth, or of the other sign, and by more than noise explains.

    A region in another unit, or negated, published within its bounds. Of published figures alone, as the
    pages keep them: it costs no privacy. Empty before a week is listed.
    """
    listed = [] if catalogue is None else [one for one in catalogue.entries if not one.withdrawn]
    kept = kept_figures(settings) if len(listed) > LEAST_DAYS else None
    if kept is None:
        return ()
    return tuple(
        one for one in compare(kept, listed, settings.tree_of(listed[-1].period).leaves) if one.is_far
    )
