"""Whether the newest release was unlike the days before it, by noisy measurements and published figures."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import date, timedelta
from math import isfinite

import polars as pl

from optstream.catalogue import Catalogue
from optstream.errors import LedgerError, ParameterError
from optstream.ledger import ReleaseOutline, ReleaseState
from optstream.mechanisms import HistoryInformedTree
from optstream.stream import Measured
from optstream.stream.calendar import ORIGIN
from tasks.config import Settings
from tasks.monitoring.published_files import kept_figures
from tasks.release.build_mechanism import mechanism_for
from tasks.storage.private_files import read_verified

FACTOR = 10.0
"""Between the published mean of a day and the median of those before."""
DEVIATIONS = 8.0
"""Of the day's noise; a Laplace value is so far from its mean once in 80,000 times."""
LEAST_DAYS, MOST_DAYS = 7, 28


def unlike_day(settings: Settings, releases: Mapping[date, ReleaseOutline]) -> date | None:
    """The newest published day, if the self-check of its mechanism found it unlike all others.

    Only HistoryInformed has one: the day's blocks missed what habits predict by more than noise can explain,
    and it was estimated with wider priors. Reads the stored measurements of that day, which are noisy, and no
    dump. None where they are gone, or of another configuration.
    """
    out = [day for day, one in releases.items() if one.state is ReleaseState.PUBLISHED]
    if not out:
        return None
    newest, release = max(out), releases[max(out)]
    mechanism = mechanism_for(settings, newest, release.revision)
    if not isinstance(mechanism, HistoryInformedTree):
        return None
    with suppress(LedgerError, ParameterError, OSError):
        folder = settings.measurements_of(newest, release.revision)
        measured = Measured.from_bytes(read_verified(folder, release.measurements_hash))
        if (newest - ORIGIN) // timedelta(days=1) in mechanism.events(measured):
            return newest
    return None


@dataclass(frozen=True)
class FarRegion:
    """A region, the newest listed day, and how many times the median of the days before its mean is."""

    day: date
    region: str
    ratio: float

    @property
    def words(self) -> str:
        if self.ratio < 0:
            return "of the other sign than"
        return f"{self.ratio:.3g} times" if self.ratio > 1 else f"1/{1 / self.ratio:.3g} of"


def far_regions(settings: Settings, catalogue: Catalogue | None) -> tuple[FarRegion, ...]:
    """The leaves whose published mean of the newest listed day is ten times the median of the up to 28 listed
    days before, or a tenth, or of the other sign, and by more than noise explains.

    A region in another unit, or negated, published within its bounds. Of published figures alone, as the
    pages keep them: it costs no privacy. Empty before a week is listed.
    """
    listed = [] if catalogue is None else [one for one in catalogue.entries if not one.withdrawn]
    kept = kept_figures(settings) if len(listed) > LEAST_DAYS else None
    if kept is None:
        return ()
    newest, before = listed[-1], [one.file_hash for one in listed[-1 - MOST_DAYS : -1]]
    leaves = pl.col("node").is_in(list(settings.tree.leaves))
    usual = (
        kept.filter(leaves & pl.col("file_hash").is_in(before))
        .group_by("node")
        .agg(pl.col("mean").median().alias("usual"), pl.len().alias("days"))
        .filter(pl.col("days") >= LEAST_DAYS)
    )
    today = kept.filter(leaves & (pl.col("file_hash") == newest.file_hash)).join(usual, on="node")
    found = []
    for row in today.sort("node").iter_rows(named=True):
        mean, middle, noise = row["mean"], row["usual"], row["noise"] or 0.0
        if not isfinite(mean) or not middle or abs(mean - middle) <= DEVIATIONS * noise:
            continue
        ratio = mean / middle
        if not 1 / FACTOR < ratio < FACTOR:
            found.append(FarRegion(newest.period, row["node"], ratio))
    return tuple(found)
