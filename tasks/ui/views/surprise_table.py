"""What the page of a stream says of days and regions that are unlike their history."""

from dataclasses import dataclass
from datetime import date

from tasks.monitoring.compared import MOST_DAYS, Comparison
from tasks.reports.numbers import shown, unit_of
from tasks.ui.snapshot import Snapshot

MOST_REGIONS = 12
"""Of the newest day that are listed."""


@dataclass(frozen=True)
class SurpriseRow:
    """A region of the newest day: its mean, the median before, and how many times that it is, as texts."""

    region: str
    mean: str
    usual: str
    times: str


@dataclass(frozen=True)
class SurpriseTable:
    """What the section shows.

    newest: the newest published day that was compared. rows: its regions, the farthest from their history
    first; some of `n_regions`. far: regions that were far from their history on one of the last days, the
    newest first. has_check: whether the mechanism has a check of its own. unlike: the days that it finds
    unlike all others, the newest first. unit: of the means; may be empty. most_days: how many are looked at,
    and before each.
    """

    newest: date
    rows: tuple[SurpriseRow, ...]
    n_regions: int
    far: tuple[Comparison, ...]
    has_check: bool
    unlike: tuple[date, ...]
    unit: str
    most_days: int = MOST_DAYS


def surprise_table(snapshot: Snapshot) -> SurpriseTable | None:
    """Return what the section shows; None before a week is published. Pure."""
    settings, view, found = snapshot.settings, snapshot.view, snapshot.surprises
    if settings is None or view is None or found is None or not found.newest:
        return None
    return SurpriseTable(
        found.newest[0].day,
        tuple(
            SurpriseRow(one.region, shown(one.mean), shown(one.usual), shown(one.ratio))
            for one in found.newest[:MOST_REGIONS]
        ),
        len(found.newest),
        found.far,
        settings.mechanism.kind.has_self_check,
        tuple(reversed(view.facts.unlike)),
        unit_of(settings.published.value),
    )
