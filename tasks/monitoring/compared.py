"""The published mean of each region of a day beside the median of the days before."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import date
from math import inf, isfinite, log

import polars as pl

from optstream.catalogue import Catalogue, Entry
from tasks.config import Settings
from tasks.monitoring.published_files import kept_figures

FACTOR = 10.0
"""Between the published mean of a day and the median of those before."""
DEVIATIONS = 8.0
"""Of the day's noise; a Laplace value is so far from its mean once in 80,000 times."""
DEVIATIONS_OF_ERRORS = 4.0
"""Of the whole error, where a model tells that and not the noise; a normal one is so far once in 16,000."""
LEAST_DAYS, MOST_DAYS = 7, 28


@dataclass(frozen=True)
class Comparison:
    """A region, which is a leaf, on a day, by published figures alone, in the unit of the values.

    mean: of the day's values. usual: the median of such means of the days before, which is not zero. noise:
    the most that the standard deviation of the noise in `mean` can be; 0 where no file says. error: the same
    of the whole error.
    """

    day: date
    region: str
    mean: float
    usual: float
    noise: float
    error: float = 0.0

    @property
    def ratio(self) -> float:
        """How many times `usual` the mean is."""
        return self.mean / self.usual

    @property
    def is_far(self) -> bool:
        """Whether it is ten times as much, a tenth, or of the other sign, by more than errors explain: a zone
        of one trip a day has days without.
        """
        explained = DEVIATIONS * self.noise if self.noise else DEVIATIONS_OF_ERRORS * self.error
        return abs(self.mean - self.usual) > explained and not 1 / FACTOR < self.ratio < FACTOR

    @property
    def distance(self) -> float:
        """By which comparisons are sorted: the same for twice and for half as much; infinite without a
        logarithm.
        """
        return abs(log(self.ratio)) if self.ratio > 0 else inf

    @property
    def words(self) -> str:
        """What the mean is of the median: "12 times", "1/40 of", "of the other sign than"."""
        if self.ratio < 0:
            return "of the other sign than"
        if self.ratio == 0:
            return "none of"
        times = max(self.ratio, 1 / self.ratio)
        figure = f"{times:.3g}" if times < 100 else f"{times:,.0f}"
        return f"{figure} times" if self.ratio > 1 else f"1/{figure} of"


def compare(kept: pl.DataFrame, listed: Sequence[Entry], leaves: Collection[str]) -> tuple[Comparison, ...]:
    """Compare the last of these days, entries that were not withdrawn, with the up to 28 before it.

    kept: as `tasks.monitoring.published_files.kept_figures` gives it. Returns by region's code a comparison
    for each leaf with a figure of that day, and with figures of a week before whose median is not zero.
    """
    if not listed:
        return ()
    newest, before = listed[-1], [one.file_hash for one in listed[-1 - MOST_DAYS : -1]]
    of_leaves = pl.col("node").is_in(list(leaves))
    usual = (
        kept.filter(of_leaves & pl.col("file_hash").is_in(before))
        .group_by("node")
        .agg(pl.col("mean").median().alias("usual"), pl.len().alias("days"))
        .filter(pl.col("days") >= LEAST_DAYS)
    )
    day = kept.filter(of_leaves & (pl.col("file_hash") == newest.file_hash)).join(usual, on="node")
    return tuple(
        Comparison(
            newest.period, row["node"], row["mean"], row["usual"], row["noise"] or 0.0, row["model"] or 0.0
        )
        for row in day.sort("node").iter_rows(named=True)
        if isfinite(row["mean"]) and row["usual"]
    )


def far_regions(settings: Settings, catalogue: Catalogue | None) -> tuple[Comparison, ...]:
    """The leaves whose published mean of the newest listed day is ten times the median of the up to 28 listed
    days before, or a tenth, or of the other sign, and by more than errors explain.

    A region in another unit, or negated, published within its bounds. Of published figures alone, as the
    pages keep them: it costs no privacy. Empty before a week is listed.
    """
    listed = () if catalogue is None else catalogue.listed
    kept = kept_figures(settings) if len(listed) > LEAST_DAYS else None
    if kept is None:
        return ()
    return tuple(
        one for one in compare(kept, listed, settings.tree_of(listed[-1].period).leaves) if one.is_far
    )
