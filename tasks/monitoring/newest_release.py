"""What the stored measurements of the newest published day say: they are noisy, and of no dump."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from functools import cached_property

from optstream.errors import LedgerError, ParameterError
from optstream.ledger import ReleaseOutline, ReleaseState
from optstream.mechanisms.history_informed.covariate_memory import COVARIATES, LATE
from optstream.stream import Measured
from optstream.stream.calendar import ORIGIN
from optstream.stream.covariate import Covariate
from tasks.config import Settings
from tasks.covariates.reading import read_covariates
from tasks.release.build_mechanism import mechanism_for
from tasks.storage.private_files import read_verified


def newest_published(releases: Mapping[date, ReleaseOutline]) -> date | None:
    """The newest day whose release is published; None without one."""
    published = (day for day, one in releases.items() if one.state is ReleaseState.PUBLISHED)
    return max(published, default=None)


@dataclass(frozen=True)
class NewestRelease:
    """The newest published day. Its measurements are read when they are first asked for, and once."""

    settings: Settings
    day: date
    outline: ReleaseOutline

    @cached_property
    def measured(self) -> Measured | None:
        """Its measurements; None where they are gone or cannot be read."""
        folder = self.settings.measurements_of(self.day, self.outline.revision)
        try:
            return Measured.from_bytes(read_verified(folder, self.outline.measurements_hash))
        except (LedgerError, ParameterError, OSError):
            return None


def newest_release(settings: Settings, releases: Mapping[date, ReleaseOutline]) -> NewestRelease | None:
    """The newest published day of the ledger's releases; None without one."""
    day = newest_published(releases)
    return None if day is None else NewestRelease(settings, day, releases[day])


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


def missing_covariates(newest: NewestRelease | None) -> dict[date, tuple[str, ...]]:
    """The newest published day, with a sentence for each covariate that its measurements went without.

    Reads the stored measurements of that day, which are noisy, and the covariates' files; no dump. Empty
    where nothing is missing or configured, and where the measurements are gone.
    """
    if newest is None or not newest.settings.covariates.given or newest.measured is None:
        return {}
    settings, measured = newest.settings, newest.measured
    before, day = measured.before or {}, (newest.day - ORIGIN).days
    known = [Covariate.from_document(one) for key in (COVARIATES, LATE) for one in before.get(key, ())]
    # of one that is public on a later day only, the newest value may be as old as that
    in_time = {one.name for one in known if one.tells(day + 1 - max(one.lag_days, 1))}
    missing = [one for one in settings.covariates.given if one.name not in in_time]
    if not missing:
        return {}
    unread = {one.name: one.why for one in read_covariates(settings, newest.day).unread}
    without = (f"covariate {one.name}: {one.path} had no value of the day" for one in missing)
    return {
        newest.day: tuple(unread.get(one.name, words) for one, words in zip(missing, without, strict=True))
    }
