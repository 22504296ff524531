"""Remove from the trusted zone what nothing needs any more, once it is old enough; never measurements."""

import json
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime

from optstream.ledger import Ledger
from optstream.storage.durable import sync_folder
from tasks.config import Settings
from tasks.operations.expired import PurgeContext, inputs, raw_states, release_folders, staged, verdicts
from tasks.release.records.lineage_file import EVENTS
from tasks.storage.private_files import exclusive_in, write_private


@dataclass(frozen=True)
class Purged:
    """How many files (of lineage: events) of each kind are removed; notes: what was kept, and why."""

    n_removed: Mapping[str, int]
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
    return Purged(dict(removed), tuple(notes))


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
    staging = context.settings.staging_folder / context.stream
    inputs_folder = context.settings.inputs_folder / context.stream
    for parent in (staging, inputs_folder):
        for _, folder in release_folders(parent):
            with suppress(OSError):  # not empty: its release is not over
                folder.rmdir()
    for _, folder in release_folders(context.settings.measurements_folder / context.stream):
        sync_folder(folder)
    for folder in (staging, inputs_folder, context.settings.validation_folder / context.stream):
        if folder.is_dir():
            sync_folder(folder)
