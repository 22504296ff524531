"""Public covariates that the newest release had to go without."""

from datetime import date

from optstream.mechanisms.history_informed.covariate_memory import COVARIATES, LATE
from optstream.stream.calendar import ORIGIN
from optstream.stream.covariate import Covariate
from tasks.covariates.reading import read_covariates
from tasks.monitoring.newest_release import NewestRelease


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
