"""What only the page of the trusted zone says: budget, alarms, and how each day stands."""

import os
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from pathlib import Path

from optstream.ledger import Ledger
from tasks.config import Settings
from tasks.ledger.show import ChargedRelease, Horizon, read_horizons
from tasks.monitor.facts import SUSPECT_DAYS
from tasks.monitor.view import StreamView, watch
from tasks.release.outcomes import Budget
from tasks.trusted.verdicts import folder_of, result_files

MOST_DATA_DOCS = 300


@dataclass(frozen=True)
class DataDoc:
    """A page of what a suite found. link: from the operators' page."""

    first: date
    last: date
    at: datetime
    suite: str
    link: str


@dataclass(frozen=True)
class OperatorFacts:
    """What only the page of the trusted zone says.

    nodes: how many each level has today. charges: of each release of the stream.
    links: what precedes a file's name in the published folder, for the page to link to it; None into a store.
    problem: why data users have no new page; None where they have. horizons: what the last 30 and 365 days
    lost. data_docs: of the last weeks.
    """

    view: StreamView
    nodes: tuple[int, ...]
    charges: tuple[ChargedRelease, ...]
    links: str | None
    problem: str | None = None
    horizons: tuple[Horizon, ...] = ()
    data_docs: tuple[DataDoc, ...] = ()

    @property
    def budget(self) -> Budget:
        """What any window has, and what the worst one has spent."""
        return self.view.facts.budget

    @property
    def at(self) -> datetime:
        """The moment that the page is of."""
        return self.view.at


def operator_facts(
    settings: Settings, ledger: Ledger, now: datetime, links: str | None, problem: str | None
) -> OperatorFacts:
    """Look as `optstream status` does. Opens no dump. Raises LedgerError as `watch`."""
    view = watch(settings, ledger, now, live=settings.watch is not None)
    page = view.facts.page
    own = [] if page is None else [one for one in page.streams if one.terms.stream == settings.stream.name]
    charges = tuple(one for stream in own for one in stream.releases)
    nodes = tuple(len(level) for level in settings.tree_of(settings.local_day(now)).levels)
    return OperatorFacts(
        view,
        nodes,
        charges,
        links,
        problem,
        read_horizons(settings, ledger),
        data_docs(settings, now, settings.report_folder),
    )


def data_docs(settings: Settings, now: datetime, of: Path) -> tuple[DataDoc, ...]:
    """Return Great Expectations' pages of the last weeks, the newest first, with links from a folder."""
    oldest = now - timedelta(days=SUSPECT_DAYS)
    above = os.path.relpath(folder_of(settings), of)
    return tuple(
        DataDoc(one.first, one.last, one.at, one.suite, os.path.normpath(f"{above}/{one.path.name}"))
        for one in result_files(settings)
        if one.at >= oldest and one.path.suffix == ".html" and not one.path.name.startswith(".")
    )[:MOST_DATA_DOCS]
