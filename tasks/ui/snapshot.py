"""One look at a stream for the operators' pages: what the watch sees, since when, and how long nights ran."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import get_args
from zoneinfo import ZoneInfo

import polars as pl

from optstream.errors import OptStreamError
from optstream.ledger import Ledger
from optstream.privacy import PrivacyModel
from optstream.stream import period_from
from tasks.config import Settings, load_settings
from tasks.config.schema import next_fire
from tasks.ledger.open import ledger_if_any
from tasks.monitor.days import Key
from tasks.monitor.facts import kept_figures, max_runtime
from tasks.monitor.notify import read_told
from tasks.monitor.records import LONGEST_WATCH, Work, last_end
from tasks.monitor.view import StreamView, watch
from tasks.operate.permissions import check_trusted
from tasks.plan.dry_run import level_warnings
from tasks.plan.nightly import looks_of
from tasks.reports.operator import DataDoc, data_docs
from tasks.trusted.failures import unexpected
from tasks.trusted.verdicts import folder_of
from tasks.ui.growth import Growth, growth_of
from tasks.ui.runs import StreamRun
from tasks.ui.surprises import Surprises, surprises_of


@dataclass(frozen=True)
class Night:
    """When a day's newest release was reserved and published. published: None where it is not."""

    reserved: datetime
    published: datetime | None = None

    @property
    def took(self) -> timedelta | None:
        """From the reservation to the publication; None where there is none."""
        return None if self.published is None else max(self.published - self.reserved, timedelta())


@dataclass(frozen=True)
class Snapshot:
    """What one look at a stream found.

    stream: its name; that of the file where it cannot be read. at: when the stream was last seen. settings:
    None where the configuration was never read. view: days, budget and alarms at that time; None where none
    was ever seen. problem: why the newest look failed: then all else is as old as `at`; None where it did
    not. since: when the watch first saw an alarm, of those that it has seen. nights: by day. figures: means
    and noise of published files (`tasks.monitor.facts.kept_figures`). guarantees: of the
    stream's privacy budget, by number; the highest is that of new days. warnings: levels that are as good as
    nothing by the configuration, as a dry run says it. surprises: regions beside their history, by published
    figures. growth: what ledger and folders take. docs: Great Expectations' pages of the last weeks; a link
    is a file's name. runs: the last ones that the orchestrator knows; None where none was asked.
    runs_problem: why it was asked in vain, if so. ended: when the last look of a night and the last watch
    ended, of those that ever did.
    """

    file: Path
    stream: str
    at: datetime
    settings: Settings | None = field(default=None, repr=False)
    view: StreamView | None = field(default=None, repr=False)
    problem: str | None = None
    since: Mapping[Key, datetime] = field(default_factory=dict)
    nights: Mapping[date, Night] = field(default_factory=dict)
    figures: pl.DataFrame | None = field(default=None, repr=False, compare=False)
    guarantees: Mapping[int, PrivacyModel] = field(default_factory=dict, repr=False)
    warnings: tuple[str, ...] = ()
    surprises: Surprises | None = None
    growth: Growth | None = None
    docs: tuple[DataDoc, ...] = ()
    runs: tuple[StreamRun, ...] | None = None
    runs_problem: str | None = None
    ended: Mapping[Work, datetime] = field(default_factory=dict)


def take_snapshot(file: Path, now: datetime, before: Snapshot | None = None) -> Snapshot:
    """Look at the stream of a configuration as `optstream status` does; what fails is part of the answer.

    before: the look before this one, which is shown on where this one fails. Nothing is raised: one stream's
    trouble must not hide the others.
    """
    try:
        settings = load_settings(file)
        check_trusted(settings)
        with ledger_if_any(settings) as ledger:
            view = watch(settings, ledger, now, live=settings.watch is not None)
            name = settings.stream.name
            nights = {} if ledger is None else _nights(ledger, name)
            guarantees = {} if ledger is None else ledger.guarantees(name)
        since = {key: told.since for key, told in read_told(settings).items() if told.lasts}
        figures, docs = kept_figures(settings), data_docs(settings, now, folder_of(settings))
        growth = growth_of(settings, now, before.growth if before else None)
        warnings = _warnings(settings, now.date(), before)
        surprises = surprises_of(settings, view, figures, before.surprises if before else None)
    except OptStreamError as error:
        problem = str(error)
    except Exception as error:  # noqa: BLE001 - the page of twenty streams outlives a defect in one
        problem = unexpected(error)
    else:
        return Snapshot(
            file,
            name,
            now,
            settings,
            view,
            None,
            since,
            nights,
            figures,
            guarantees,
            warnings,
            surprises,
            growth,
            docs,
            ended=_ended(settings),
        )
    before = before or Snapshot(file, file.stem, now)
    ended = before.ended if before.settings is None else _ended(before.settings)
    return replace(before, problem=problem, ended=ended)


def overdue(found: Snapshot, now: datetime) -> tuple[Work, ...]:
    """The scheduled works that ended once, and by their crons should have again.

    A look has [watch] max_runtime from the hour at which it is due, a watch twice its longest time.
    """
    settings = found.settings
    if settings is None:
        return ()
    crons = {"look": looks_of(settings), "watch": (settings.scheduling.watch_cron,)}
    patience = {"look": max_runtime(settings), "watch": 2 * LONGEST_WATCH}
    zone = ZoneInfo(settings.stream.time_zone)
    due = {work: next_fire(crons[work], at.astimezone(zone)) for work, at in found.ended.items()}
    return tuple(work for work, at in due.items() if at + patience[work] < now)


def _ended(settings: Settings) -> dict[Work, datetime]:
    found = {work: last_end(settings, work) for work in get_args(Work)}
    return {work: at for work, at in found.items() if at is not None}


def _warnings(settings: Settings, day: date, before: Snapshot | None) -> tuple[str, ...]:
    """What the configuration warns of, worked out once for each configuration."""
    if before is not None and before.settings == settings:
        return before.warnings
    try:
        return level_warnings(settings, day)
    except OptStreamError:
        return ()  # a run of that day says why


def _nights(ledger: Ledger, stream: str) -> dict[date, Night]:
    """Of each day the newest revision's times."""
    reserved, published = (ledger.event_times(stream, kind) for kind in ("reserved", "published"))
    found = {}
    for key, at in sorted(reserved.items()):
        found[period_from(key[0])] = Night(at, published.get(key))
    return found
