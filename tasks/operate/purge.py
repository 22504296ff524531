"""Remove from the trusted zone what nothing needs any more, once it is old enough; never measurements."""

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property
from pathlib import Path
from typing import Literal

from optstream.catalogue import Catalogue, find_catalogue
from optstream.catalogue.backends import open_storage
from optstream.catalogue.layout import LARGEST_RELEASE, data_file, superseded_file
from optstream.errors import PublicationError
from optstream.ledger import Ledger, ReleaseOutline, ReleaseState
from optstream.storage.folders import sync_folder
from optstream.stream import period_from
from tasks.config import Settings
from tasks.config.schema import RAW_STATE_DAYS
from tasks.release.lineage import EVENTS
from tasks.release.outcomes import Printed
from tasks.trusted.files import RAW, exclusive_in, files_in, write_private
from tasks.trusted.verdicts import PERIOD, result_files

_RELEASE = re.compile(rf"({PERIOD})-r([0-9]+)")

Key = tuple[str, int]
"""Period and revision."""


@dataclass(frozen=True)
class PurgeContext:
    """The subject of every kind of purging. releases: those of the configured stream."""

    settings: Settings
    ledger: Ledger
    now: datetime
    releases: Mapping[Key, ReleaseOutline]

    @cached_property
    def ended(self) -> Mapping[Key, datetime]:
        """When each release that is over became so; reads all events, once."""
        stream = self.settings.stream.name
        return self.ledger.event_times(stream, "void") | self.ledger.event_times(stream, "published")

    def before(self, days: int) -> datetime:
        """What was recorded earlier than this is past a retention of so many days."""
        return self.now - timedelta(days=days)

    def over(self, parent: Path, days: int) -> Iterator[tuple[ReleaseOutline, Path]]:
        """Releases that are over for longer than so many days, each with its folder below the parent."""
        for key, folder in release_folders(parent / self.settings.stream.name):
            release = self.releases.get(key)
            is_over = release is not None and not release.state.is_under_way
            if release and is_over and self.ended.get(key, self.now) < self.before(days):
                yield release, folder


def _files(folder: Path) -> Iterator[Path]:
    return (path for path in files_in(folder) if path.is_file())


def staged(context: PurgeContext, notes: list[str]) -> Iterator[Path]:
    """The bytes of releases that are over, if they are published as they should be."""
    settings = context.settings
    found = list(context.over(settings.staging_folder, settings.trusted.retention_days))
    catalogue = find_catalogue(settings.published_folder) if found else None
    for release, folder in found:
        if release.state is not ReleaseState.PUBLISHED or _is_published(context, catalogue, release):
            yield from _files(folder)
        else:
            why = "the published folder does not hold its release; see `optstream ledger verify`"
            notes.append(f"{folder} is kept: {why}")


def _is_published(context: PurgeContext, catalogue: Catalogue | None, release: ReleaseOutline) -> bool:
    """Whether the published folder has the release's very bytes, or the day was withdrawn."""
    day, digest = period_from(release.period), release.staged_hash or ""
    entry = catalogue.entry(day) if catalogue else None
    if entry is not None and entry.withdrawn and entry.revision >= release.revision:
        return True
    place = open_storage(context.settings.published_folder)
    for name in (data_file(day, digest), superseded_file(day, digest)):
        with suppress(OSError, PublicationError):
            if hashlib.sha256(place.read(name, LARGEST_RELEASE)).hexdigest() == digest:
                return True
    return False


def verdicts(context: PurgeContext) -> Iterator[Path]:
    """Validation results and pages, by the time in their names; not of a day that a run is busy with."""
    oldest = context.before(context.settings.trusted.retention_days)
    releases = context.releases.values()
    under_way = [period_from(one.period) for one in releases if one.state.is_under_way]
    for file in result_files(context.settings):
        if file.at < oldest and not any(file.first <= day <= file.last for day in under_way):
            yield file.path


def inputs(context: PurgeContext) -> Iterator[Path]:
    """The keyed hashes of the files that old releases came from: they go with the lineage that names them."""
    settings = context.settings
    for _, folder in context.over(settings.inputs_folder, settings.trusted.lineage_retention_days):
        yield from _files(folder)


def raw_states(context: PurgeContext, *, everything: bool) -> Iterator[Path]:
    """Raw state that no later day would take, and the last day's once it is old."""
    stream, releases = context.settings.stream.name, context.releases
    folders = release_folders(context.settings.measurements_folder / stream)
    held = {key: paths for key, folder in folders if (paths := sorted(folder.glob(f"*{RAW}")))}
    if not held:
        return
    drawn = context.ledger.event_times(stream, "drawn")
    oldest = context.before(min(context.settings.trusted.retention_days, RAW_STATE_DAYS))
    # nothing goes on from a restatement, nor from a day whose next one that is not void is drawn
    firsts = {one.first_step: one for one in releases.values() if one.revision == 0}
    for key, paths in held.items():
        release = releases.get(key)
        if release is None or release.state.is_under_way:
            continue
        after = firsts.get(release.end)
        while after is not None and after.state is ReleaseState.VOID:
            after = firsts.get(after.end)
        is_wanted = release.revision == 0 and release.state is not ReleaseState.VOID
        is_wanted &= after is None or after.state is ReleaseState.RESERVED
        if everything or drawn.get(key, oldest) < oldest or not is_wanted:
            yield from paths


def release_folders(parent: Path) -> Iterator[tuple[Key, Path]]:
    """The folders that are named after releases."""
    for path in files_in(parent):
        named = _RELEASE.fullmatch(path.name)
        if named and path.is_dir():
            yield (named[1], int(named[2])), path


class Purged(Printed):
    """How many files (of lineage: events) of each kind are removed; notes: what was kept, and why."""

    format: Literal["optstream.purge/1"] = "optstream.purge/1"
    dry_run: bool
    n_removed: dict[str, int]
    notes: tuple[str, ...]


def purge(
    settings: Settings, ledger: Ledger, now: datetime, *, raw_state: bool = False, dry_run: bool = False
) -> Purged:
    """Remove what is past the retentions of `[trusted]`; never measurements, the ledger, or what belongs
    to a release RESERVED or DRAWN. Staged bytes go only if the published folder really has them.
    """
    outlines = ledger.outlines(settings.stream.name)
    context = PurgeContext(settings, ledger, now, {(one.period, one.revision): one for one in outlines})
    removed, notes = dict[str, int](), list[str]()
    for kind, found in (
        ("staged files", staged(context, notes)),
        ("validation results", verdicts(context)),
        ("hashes of inputs", inputs(context)),
        ("raw states", raw_states(context, everything=raw_state)),
    ):
        paths = list(found)
        removed[kind] = len(paths)
        for path in paths if not dry_run else ():
            path.unlink(missing_ok=True)
    if not dry_run:
        _sync(settings)
    removed["lineage events"] = _lineage(context, dry_run)
    return Purged(dry_run=dry_run, n_removed=dict(removed), notes=tuple(notes))


def _lineage(context: PurgeContext, dry_run: bool) -> int:
    """Take old events of the stream out of the file, all others and what cannot be read left as they are."""
    folder = context.settings.lineage_folder
    path = folder / EVENTS
    if not path.is_file():
        return 0
    job = f"{context.settings.stream.name}.release"
    oldest = context.before(context.settings.trusted.lineage_retention_days)
    with exclusive_in(folder):
        lines = path.read_bytes().splitlines(keepends=True)
        kept = [line for line in lines if not _is_old(line, job, oldest)]
        if not dry_run:
            for aside in folder.glob(f".{EVENTS}.*"):  # of a purge that died while it wrote
                aside.unlink()
        if len(kept) < len(lines) and not dry_run:
            write_private(path, b"".join(kept))
    return len(lines) - len(kept)


def _is_old(line: bytes, job: str, oldest: datetime) -> bool:
    try:
        event = json.loads(line)
        return event["job"]["name"] == job and datetime.fromisoformat(event["eventTime"]) < oldest
    except (ValueError, KeyError, TypeError):
        return False


def _sync(settings: Settings) -> None:
    """Make the removals durable, and remove the folders that are empty now."""
    stream = settings.stream.name
    parents = [settings.staging_folder / stream, settings.inputs_folder / stream]
    for folder in (folder for parent in parents for _, folder in release_folders(parent)):
        with suppress(OSError):  # not empty: its release is not over
            folder.rmdir()
    measured = [folder for _, folder in release_folders(settings.measurements_folder / stream)]
    for folder in (*measured, *parents, settings.validation_folder / stream):
        if folder.is_dir():
            sync_folder(folder)
