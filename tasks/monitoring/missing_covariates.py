"""Public covariates that the newest release had to go without."""

from collections.abc import Mapping
from datetime import date

from optstream.errors import LedgerError, ParameterError
from optstream.ledger import ReleaseOutline, ReleaseState
from optstream.mechanisms.history_informed.covariate_memory import COVARIATES, LATE
from optstream.stream import Measured
from optstream.stream.calendar import ORIGIN
from optstream.stream.covariate import Covariate
from tasks.config import Settings
from tasks.covariates.reading import read_covariates
from tasks.storage.private_files import read_verified


def missing_covariates(
    settings: Settings, releases: Mapping[date, ReleaseOutline]
) -> dict[date, tuple[str, ...]]:
    """The newest published day, with a sentence for each covariate that its measurements went without.

    Reads the stored measurements of that day, which are noisy, and the covariates' files; no dump. Empty
    where nothing is missing or configured, and where the measurements are gone.
    """
    out = [day for day, one in releases.items() if one.state is ReleaseState.PUBLISHED]
    if not out or not settings.covariates.given:
        return {}
    newest, release = max(out), releases[max(out)]
    try:
        folder = settings.measurements_of(newest, release.revision)
        measured = Measured.from_bytes(read_verified(folder, release.measurements_hash))
    except (LedgerError, ParameterError, OSError):
        return {}
    before, day = measured.before or {}, (newest - ORIGIN).days
    known = [Covariate.from_document(one) for key in (COVARIATES, LATE) for one in before.get(key, ())]
    # of one that is public on a later day only, the newest value may be as old as that
    in_time = {one.name for one in known if one.tells(day + 1 - max(one.lag_days, 1))}
    missing = [one for one in settings.covariates.given if one.name not in in_time]
    if not missing:
        return {}
    unread = {one.name: one.why for one in read_covariates(settings, newest).unread}
    without = (f"covariate {one.name}: {one.path} had no value of the day" for one in missing)
    return {newest: tuple(unread.get(one.name, words) for one, words in zip(missing, without, strict=True))}
