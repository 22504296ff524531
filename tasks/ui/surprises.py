"""Which regions of the newest days were far from their history, by published figures alone."""

from dataclasses import dataclass

import polars as pl

from tasks.config import Settings
from tasks.monitor.facts import LEAST_DAYS, MOST_DAYS, Comparison, compare
from tasks.monitor.view import StreamView


@dataclass(frozen=True)
class Surprises:
    """The newest days beside the days before them.

    files: hashes of the listed files that were compared. newest: the regions of the newest listed day, the
    farthest from their history first. far: regions that were far from it, of the last 28 listed days, the
    newest first.
    """

    files: tuple[str, ...] = ()
    newest: tuple[Comparison, ...] = ()
    far: tuple[Comparison, ...] = ()


def surprises_of(
    settings: Settings, view: StreamView, kept: pl.DataFrame | None, before: Surprises | None = None
) -> Surprises:
    """Compare each of the last listed days with the days before it, by published figures alone. Pure.

    kept: the figures that the pages keep; None where there are none. before: of an earlier look, returned
    again while the same files are listed and known. Empty before a week is listed.
    """
    catalogue = view.facts.catalogue
    if catalogue is None or kept is None:
        return Surprises()
    hashes = set(kept["file_hash"].unique())
    listed = [one for one in catalogue.listed if one.file_hash in hashes]
    listed = listed[-2 * MOST_DAYS :]
    files = tuple(one.file_hash for one in listed)
    if before is not None and before.files == files:
        return before
    kept = kept.filter(pl.col("file_hash").is_in(files))
    first = max(LEAST_DAYS, len(listed) - MOST_DAYS)
    days = [
        compare(kept, listed[: end + 1], settings.tree_of(listed[end].period).leaves)
        for end in range(first, len(listed))
    ]
    newest = days[-1] if days else ()
    return Surprises(
        files,
        tuple(sorted(newest, key=lambda one: -one.distance)),
        tuple(one for day in reversed(days) for one in day if one.is_far),
    )
