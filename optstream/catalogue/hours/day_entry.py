"""A day of hours as one entry: for what shows or describes days, whatever periods they are published by."""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date
from itertools import groupby

from optstream.catalogue.index import Entry
from optstream.stream.period import Hour, day_of


@dataclass(frozen=True)
class DayEntry(Entry):
    """The published hours of a day, or the tombstones of all of them.

    `file_hash` is that of the closed day's file; of a day that is open, the hash of its hours' hashes: it
    names what the rows are made of, and no file.

    Attributes:
        own: The entries of its hours, rising: the published ones if there are any.
    """

    own: tuple[Entry, ...] = ()

    @property
    def file(self) -> str:
        """The day's file, or that of its last hour, relative to the published folder."""
        return self.own[-1].shown_in

    @property
    def manifest(self) -> str:
        """Where the manifest of its last hour is, relative to the published folder."""
        return self.own[-1].manifest


def day_entries(entries: Iterable[Entry]) -> tuple[Entry, ...]:
    """Return the entries of days: of a catalogue's days as they are, of its hours one a day."""
    return tuple(
        one
        for day, own in groupby(entries, key=lambda entry: day_of(entry.period))
        for one in _of(day, [*own])
    )


def _of(day: date, own: list[Entry]) -> list[Entry]:
    if not isinstance(own[0].period, Hour):
        return own
    listed = tuple(entry for entry in own if not entry.withdrawn)
    shown = listed or tuple(own)
    closed = {entry.closed_in for entry in shown}
    (named,) = closed if len(closed) == 1 else {None}
    return [
        DayEntry(
            day,
            revision=max(entry.revision for entry in shown),
            vintage=max(entry.vintage for entry in shown),
            file_hash=named or _together(entry.file_hash for entry in shown),
            rows_hash=_together(entry.rows_hash for entry in shown),
            ledger_head=shown[-1].ledger_head,
            withdrawn=not listed,
            closed_in=named,
            own=shown,
        )
    ]


def _together(hashes: Iterable[str]) -> str:
    return hashlib.sha256("\n".join(hashes).encode()).hexdigest()


def files_of(entry: Entry) -> frozenset[str]:
    """Return the files of data/ with the rows of an entry, relative to the published folder."""
    return frozenset(one.shown_in for one in (entry.own if isinstance(entry, DayEntry) else (entry,)))
