"""Days whose hours are over, each closed into one file in one transaction; the hours' own files move to
superseded/, where readers of an older catalogue find them. What changes an hour opens its day first.
"""

import hashlib
from collections.abc import Collection, Iterable
from contextlib import suppress
from datetime import date
from functools import partial
from itertools import groupby

from optstream.catalogue.backends import Transaction, change_folder, open_storage
from optstream.catalogue.index import Catalogue, Entry, find_catalogue
from optstream.catalogue.layout import (
    DATA,
    LARGEST_RELEASE,
    SUPERSEDED,
    closed_file,
    data_file,
    folder_of,
    release_name,
)
from optstream.catalogue.read import encode_day, read_file, read_rows
from optstream.catalogue.signing import Signer, put_catalogue
from optstream.catalogue.sweep import clear_superseded, finish_listing
from optstream.catalogue.times import settle_times
from optstream.storage.store import Location
from optstream.stream.period import Hour, day_of


def open_days(catalogue: Catalogue) -> dict[date, list[Entry]]:
    """Return the days published by the hour without a file of their own, with their entries, rising."""
    found: dict[date, list[Entry]] = {}
    for entry in catalogue.entries:
        if isinstance(entry.period, Hour):
            found.setdefault(day_of(entry.period), []).append(entry)
    return {day: own for day, own in found.items() if any(_is_open(entry) for entry in own)}


def _is_open(entry: Entry) -> bool:
    return not entry.withdrawn and entry.closed_in is None


def close_days(
    folder: Location | str, days: Collection[date], signer: Signer | None = None
) -> tuple[date, ...]:
    """Put each day into one file, all in one transaction; return the days that were closed."""
    work = partial(_close, days=days, signer=signer)
    return change_folder(folder, work, "the published folder", "what is listed is whole")


def finish_closing(folder: Location | str, catalogue: Catalogue, since: date) -> None:
    """Move out of data/ the hours' own files that an interrupted close left there, from a first day on."""
    closed = (one for one in catalogue.entries if one.closed_in and day_of(one.period) >= since)
    for _, own in groupby(closed, key=lambda entry: day_of(entry.period)):
        entries = [*own]
        # they are moved in the order of the hours, so the last one tells of all
        last = entries[-1]
        with suppress(FileNotFoundError):
            open_storage(folder).read(data_file(last.period, last.file_hash), LARGEST_RELEASE)
            for entry in entries:
                finish_listing(folder, entry.period)


def _close(transaction: Transaction, days: Collection[date], signer: Signer | None) -> tuple[date, ...]:
    known = find_catalogue(transaction)
    if known is None:
        return ()
    if signer is not None:
        signer.take_up(transaction, known)
    transaction.prepare()
    fresh: dict[date, Entry] = {}
    for day, entries in open_days(known).items():
        own = [entry for entry in entries if not entry.withdrawn]
        if day not in days or not all(map(_is_open, own)):
            continue
        frames = [read_rows(transaction, known, entry, verify=True) for entry in own]
        if len({tuple(frame.schema.items()) for frame in frames}) > 1:
            continue
        data = encode_day(own, frames)
        digest = hashlib.sha256(data).hexdigest()
        transaction.create_new(closed_file(day, digest), data)
        fresh |= {entry.period: entry.changed(closed_in=digest) for entry in own}
    if not fresh:
        return ()
    catalogue = put_catalogue(transaction, known, known.changed(periods=known.periods | fresh), signer)
    for entry in fresh.values():
        clear_superseded(transaction, entry)
        transaction.remove(folder_of(DATA, entry.period), ())
    settle_times(transaction, catalogue, fresh.values())
    return tuple(sorted({day_of(period) for period in fresh}))


Left = tuple[tuple[str, str], ...]
"""Folders and names of files that are to be removed once the catalogue no longer needs them."""


def reopened(
    transaction: Transaction, catalogue: Catalogue, periods: Iterable[date]
) -> tuple[Catalogue, Left]:
    """Put the hours of closed days back into data/; return the new catalogue, and what to remove after."""
    days = {day_of(period) for period in periods}
    own = [one for one in catalogue.entries if one.closed_in and day_of(one.period) in days]
    for entry in own:
        # in data/ still, where whoever closed the day died before it was moved
        data = read_file(transaction, entry, verify=True)
        transaction.create_new(data_file(entry.period, entry.file_hash), data)
    names = [(folder_of(SUPERSEDED, one.period), release_name(one.file_hash)) for one in own]
    files = {one.shown_in.rpartition("/")[::2] for one in own}
    opened = {one.period: one.changed(closed_in=None) for one in own}
    return catalogue.changed(periods=catalogue.periods | opened), (*names, *sorted(files))


def remove_left(transaction: Transaction, left: Left) -> None:
    """Remove what `reopened` named."""
    for folder, name in left:
        transaction.remove(folder, [name])
