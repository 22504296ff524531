"""Whether the newest release was unlike the days before it, by noisy measurements and published figures."""

from datetime import date, timedelta

from optstream.catalogue import Catalogue
from optstream.errors import ParameterError
from optstream.stream.calendar import ORIGIN
from tasks.config import Settings
from tasks.monitoring.compared import LEAST_DAYS, Comparison, compare
from tasks.monitoring.newest_release import NewestRelease
from tasks.monitoring.published_files import kept_figures
from tasks.release.build_mechanism import mechanism_for


def unlike_days(newest: NewestRelease | None) -> tuple[date, ...]:
    """The days that the self-check of the newest published day's mechanism found unlike all others.

    Such a day's blocks missed what habits predict by more than noise can explain, and it was estimated with
    wider priors. Reads the stored measurements of the newest day, which are noisy and hold what is known of
    the days before, and no dump. Rising; empty for a mechanism without a self-check, and where they are gone,
    or of another configuration.
    """
    if newest is None or not newest.settings.mechanism.kind.has_self_check or newest.measured is None:
        return ()
    mechanism = mechanism_for(newest.settings, newest.day, newest.outline.revision)
    try:
        events = mechanism.events(newest.measured)
    except ParameterError:
        return ()
    return tuple(ORIGIN + timedelta(days=number) for number in events)


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
