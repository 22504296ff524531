"""Remove from the trusted zone what nothing needs any more, once it is old enough; never measurements."""

import hashlib
import json
import re
from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime, timedelta
from functools import cached_property
from pathlib import Path
from typing import Literal

from optstream.catalogue import Catalogue, find_catalogue
from optstream.catalogue.backends import open_storage
from optstream.catalogue.layout import data_file, superseded_file
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


class Purged(Printed):
    """The number of removed files (of lineage: events) by kind; notes: kept files, and why."""

    format: Literal["optstream.purge/1"] = "optstream.purge/1"
    dry_run: bool
    n_removed: dict[str, int]
    notes: tuple[str, ...]


def purge(
    settings: Settings, ledger: Ledger, now: datetime, *, raw_state: bool = False, dry_run: bool = False
) -> Purged:
    """Remove files past the retentions of `[trusted]`, but nothing that a release RESERVED or DRAWN needs."""
    stream = _Stream(settings, ledger, now)
    removed = dict[str, int]()
    for kind, found in (
        ("staged files", stream.staged()),
        ("validation results", stream.verdicts()),
        ("hashes of inputs", stream.inputs()),
        ("raw states", stream.raw_states(everything=raw_state)),
    ):
        paths = list(found)
        removed[kind] = len(paths)
        for path in paths if not dry_run else ():
            path.unlink(missing_ok=True)
    if not dry_run:
        stream.sync()
    removed["lineage events"] = stream.lineage(dry_run)
    return Purged(dry_run=dry_run, n_removed=removed, notes=tuple(stream.notes))


class _Stream:
    """The trusted files of a stream that are old enough, by kind."""

    def __init__(self, settings: Settings, ledger: Ledger, now: datetime) -> None:
        self.settings, self.ledger, self.now = settings, ledger, now
        self.name, self.trusted, self.notes = settings.stream.name, settings.trusted, list[str]()
        self.releases = {(one.period, one.revision): one for one in ledger.outlines(self.name)}

    @cached_property
    def ended(self) -> dict[tuple[str, int], datetime]:
        """When each release that is over became so; reads all events, once."""
        return self.ledger.event_times(self.name, "void") | self.ledger.event_times(self.name, "published")

    def over(self, parent: Path, days: int) -> Iterator[tuple[ReleaseOutline, Path]]:
        """Releases that are over for longer than so many days, each with its folder below the parent."""
        oldest = self.now - timedelta(days=days)
        for key, folder in release_folders(parent / self.name):
            release = self.releases.get(key)
            if release and not release.state.is_under_way and self.ended.get(key, self.now) < oldest:
                yield release, folder

    def staged(self) -> Iterator[Path]:
        """The bytes of releases that are over, if they are published as they should be."""
        found = list(self.over(self.settings.staging_folder, self.trusted.retention_days))
        catalogue = find_catalogue(self.settings.published_folder) if found else None
        for release, folder in found:
            if release.state is not ReleaseState.PUBLISHED or self._is_published(catalogue, release):
                yield from _files(folder)
            else:
                why = "the published folder does not hold its release; see `optstream ledger verify`"
                self.notes.append(f"{folder} is kept: {why}")

    def _is_published(self, catalogue: Catalogue | None, release: ReleaseOutline) -> bool:
        """Whether the published folder has the release's very bytes, or the day was withdrawn."""
        day, digest = period_from(release.period), release.staged_hash or ""
        entry = catalogue.entry(day) if catalogue else None
        if entry is not None and entry.withdrawn and entry.revision >= release.revision:
            return True
        place = open_storage(self.settings.published_folder)
        for name in (data_file(day, digest), superseded_file(day, digest)):
            with suppress(OSError, PublicationError):
                if hashlib.sha256(place.read(name)).hexdigest() == digest:
                    return True
        return False

    def verdicts(self) -> Iterator[Path]:
        """Validation results and pages, by the time in their names; not of a day that a run is busy with."""
        oldest = self.now - timedelta(days=self.trusted.retention_days)
        under_way = [period_from(one.period) for one in self.releases.values() if one.state.is_under_way]
        for file in result_files(self.settings):
            if file.at < oldest and not any(file.first <= day <= file.last for day in under_way):
                yield file.path

    def inputs(self) -> Iterator[Path]:
        """The keyed hashes of the files that old releases came from: they go with the lineage."""
        for _, folder in self.over(self.settings.inputs_folder, self.trusted.lineage_retention_days):
            yield from _files(folder)

    def raw_states(self, *, everything: bool) -> Iterator[Path]:
        """Raw state that no later day would take, and the last day's once it is old."""
        folders = release_folders(self.settings.measurements_folder / self.name)
        held = {key: paths for key, folder in folders if (paths := sorted(folder.glob(f"*{RAW}")))}
        if not held:
            return
        drawn = self.ledger.event_times(self.name, "drawn")
        oldest = self.now - timedelta(days=min(self.trusted.retention_days, RAW_STATE_DAYS))
        # nothing goes on from a restatement, nor from a day whose next one that is not void is drawn
        firsts = {one.first_step: one for one in self.releases.values() if one.revision == 0}
        for key, paths in held.items():
            release = self.releases.get(key)
            if release is None or release.state.is_under_way:
                continue
            after = firsts.get(release.end)
            while after is not None and after.state is ReleaseState.VOID:
                after = firsts.get(after.end)
            is_wanted = release.revision == 0 and release.state is not ReleaseState.VOID
            is_wanted &= after is None or after.state is ReleaseState.RESERVED
            if everything or drawn.get(key, oldest) < oldest or not is_wanted:
                yield from paths

    def lineage(self, dry_run: bool) -> int:
        """Take old events of the stream out of the file, all others and unreadable lines left as they are."""
        folder = self.settings.lineage_folder
        path = folder / EVENTS
        if not path.is_file():
            return 0
        with exclusive_in(folder):
            lines = path.read_bytes().splitlines(keepends=True)
            kept = [line for line in lines if not self._is_old(line)]
            if not dry_run:
                for aside in folder.glob(f".{EVENTS}.*"):  # of a purge that died while it wrote
                    aside.unlink()
                if len(kept) < len(lines):
                    write_private(path, b"".join(kept))
        return len(lines) - len(kept)

    def _is_old(self, line: bytes) -> bool:
        oldest = self.now - timedelta(days=self.trusted.lineage_retention_days)
        with suppress(ValueError, KeyError, TypeError):
            event = json.loads(line)
            own = event["job"]["name"] == f"{self.name}.release"
            return own and datetime.fromisoformat(event["eventTime"]) < oldest
        return False

    def sync(self) -> None:
        """Make the removals durable, and remove the folders that are empty now."""
        settings = self.settings
        parents = [settings.staging_folder / self.name, settings.inputs_folder / self.name]
        for folder in (folder for parent in parents for _, folder in release_folders(parent)):
            with suppress(OSError):  # not empty: its release is not over
                folder.rmdir()
        measured = [folder for _, folder in release_folders(settings.measurements_folder / self.name)]
        for folder in (*measured, *parents, settings.validation_folder / self.name):
            if folder.is_dir():
                sync_folder(folder)


def _files(folder: Path) -> Iterator[Path]:
    return (path for path in files_in(folder) if path.is_file())


def release_folders(parent: Path) -> Iterator[tuple[tuple[str, int], Path]]:
    """The folders that are named after releases, by period and revision."""
    for path in files_in(parent):
        named = _RELEASE.fullmatch(path.name)
        if named and path.is_dir():
            yield (named[1], int(named[2])), path
