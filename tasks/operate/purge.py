"""Remove from the trusted zone what nothing needs any more, once it is old enough; never measurements."""

import hashlib
import json
import re
from collections import Counter
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

# Files of the trusted zone that are past their retention: found, not touched.

_RELEASE = re.compile(rf"({PERIOD})-r([0-9]+)")

Key = tuple[str, int]
"""Period and revision."""


@dataclass(frozen=True)
class PurgeContext:
    """What every kind of purging looks at. releases: those of the configured stream."""

    settings: Settings
    ledger: Ledger
    now: datetime
    releases: Mapping[Key, ReleaseOutline]

    @property
    def stream(self) -> str:
        return self.settings.stream.name

    @cached_property
    def ended(self) -> Mapping[Key, datetime]:
        """When each release that is over became so; reads all events, once."""
        void, published = (self.ledger.event_times(self.stream, kind) for kind in ("void", "published"))
        return {**void, **published}

    def before(self, days: int) -> datetime:
        """What was recorded earlier than this is past a retention of so many days."""
        return self.now - timedelta(days=days)

    def over(self, parent: Path, days: int) -> Iterator[tuple[ReleaseOutline, Path]]:
        """Releases that are over for longer than so many days, each with its folder below the parent."""
        for key, folder in release_folders(parent / self.stream):
            release = self.releases.get(key)
            if release is None or release.state.is_under_way:
                continue
            if self.ended.get(key, self.now) < self.before(days):
                yield release, folder


def _files(folder: Path) -> Iterator[Path]:
    return (path for path in files_in(folder) if path.is_file())


def staged(context: PurgeContext, notes: list[str]) -> Iterator[Path]:
    """The bytes of releases that are over, if they are published as they should be."""
    settings = context.settings
    found = list(context.over(settings.staging_folder, settings.trusted.retention_days))
    catalogue = find_catalogue(settings.published_folder) if found else None
    for release, folder in found:
        if release.state is ReleaseState.PUBLISHED and not _is_published(context, catalogue, release):
            notes.append(
                f"{folder} is kept: the published folder does not hold its release; see "
                "`optstream ledger verify`"
            )
            continue
        yield from _files(folder)


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
    folders = release_folders(context.settings.measurements_folder / context.stream)
    held = {key: paths for key, folder in folders if (paths := sorted(folder.glob(f"*{RAW}")))}
    if not held:
        return
    drawn = context.ledger.event_times(context.stream, "drawn")
    oldest = context.before(min(context.settings.trusted.retention_days, RAW_STATE_DAYS))
    wanted = _may_be_taken(context)
    for key, paths in held.items():
        release = context.releases.get(key)
        if release is None or release.state.is_under_way:
            continue
        if everything or drawn.get(key, oldest) < oldest or key not in wanted:
            yield from paths


def _may_be_taken(context: PurgeContext) -> frozenset[Key]:
    """Releases from which a day to come might go on: what follows them, void days aside, is undrawn."""
    # nothing goes on from a restatement
    firsts = {one.first_step: one for one in context.releases.values() if one.revision == 0}
    undrawn = (ReleaseState.RESERVED, ReleaseState.VOID)
    drawn = {first: one for first, one in firsts.items() if one.state not in undrawn}
    wanted = set()
    for one in drawn.values():
        end = one.end
        while (after := firsts.get(end)) is not None and after.state is ReleaseState.VOID:
            end = after.end  # never drawn any more: who comes after it goes on from the day before it
        if end not in drawn:
            wanted.add((one.period, one.revision))
    return frozenset(wanted)


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
    """Remove what is past the retentions of `[trusted]`, of the configured stream.

    Staged bytes, counted from when the ledger has their release as PUBLISHED or VOID, and only if the
    published folder really has them; validation results, from when they were judged; lineage events, from
    their own time, and the keyed hashes of inputs with them; raw state at once where no later day would take
    it, else from when it was drawn, or at once with `raw_state`: it costs the next day accuracy, no privacy.
    What belongs to a release that is RESERVED or DRAWN is left, and measurements and the ledger always. Each
    file goes by itself, so that a crash leaves the rest to the next call; runs may go on meanwhile.
    """
    outlines = ledger.outlines(settings.stream.name)
    context = PurgeContext(settings, ledger, now, {(one.period, one.revision): one for one in outlines})
    removed: Counter[str] = Counter()
    notes: list[str] = []
    for kind, paths in (
        ("staged files", staged(context, notes)),
        ("validation results", verdicts(context)),
        ("hashes of inputs", inputs(context)),
        ("raw states", raw_states(context, everything=raw_state)),
    ):
        for path in list(paths):
            removed[kind] += 1
            if not dry_run:
                path.unlink(missing_ok=True)
        removed[kind] += 0
    if not dry_run:
        _sync(context)
    removed["lineage events"] = _lineage(context, dry_run)
    return Purged(dry_run=dry_run, n_removed=dict(removed), notes=tuple(notes))


def _lineage(context: PurgeContext, dry_run: bool) -> int:
    """Take old events of the stream out of the file, all others and what cannot be read left as they are."""
    folder = context.settings.lineage_folder
    path = folder / EVENTS
    if not path.is_file():
        return 0
    oldest = context.before(context.settings.trusted.lineage_retention_days)
    with exclusive_in(folder):
        lines = path.read_bytes().splitlines(keepends=True)
        kept = [line for line in lines if not _is_old(line, f"{context.stream}.release", oldest)]
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


def _sync(context: PurgeContext) -> None:
    """Make the removals durable, and take away the folders that are empty now."""
    settings, stream = context.settings, context.stream
    parents = [settings.staging_folder / stream, settings.inputs_folder / stream]
    for folder in (folder for parent in parents for _, folder in release_folders(parent)):
        with suppress(OSError):  # not empty: its release is not over
            folder.rmdir()
    measured = [folder for _, folder in release_folders(settings.measurements_folder / stream)]
    for folder in (*measured, *parents, settings.validation_folder / stream):
        if folder.is_dir():
            sync_folder(folder)
