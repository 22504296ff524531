"""The catalogue: which file is the release of which period."""

import hashlib
import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import date
from functools import cached_property
from itertools import groupby
from typing import Any

from optstream.catalogue.layout import closed_file, data_file, manifest_file, superseded_file
from optstream.errors import PublicationError
from optstream.stream.period import Hour, day_of

FORMAT = "optstream.catalogue/1"
NUMBERED = "optstream.catalogue/2"
"""Of a stream whose catalogues are signed: one key more, `sequence`."""
LARGEST_SEQUENCE = 2**53
_HEAD = re.compile(r"[0-9A-Za-z:_-]{1,128}")


@dataclass(frozen=True)
class Entry:
    """The current release of one period, or what is left of it.

    Attributes:
        period: The local day, or hour.
        revision: 0 for the first release of the day, from 1 on for restatements.
        vintage: 0 for the first estimate, from 1 on for new estimates of the same measurements.
        file_hash: SHA-256 of the Parquet file, in hexadecimal.
        rows_hash: SHA-256 of its rows, whatever file carries them.
        ledger_head: Hash of the ledger's last event when the release was published.
        withdrawn: Whether this is a tombstone: what it names is no longer published, and only a higher
            revision takes its place.
        closed_in: Of an hour of a closed day, the SHA-256 of the day's file, which has its rows.
    """

    period: date
    revision: int
    vintage: int
    file_hash: str
    rows_hash: str
    ledger_head: str
    withdrawn: bool = False
    closed_in: str | None = None

    @property
    def file(self) -> str:
        """Where its own Parquet file is, relative to the published folder."""
        if self.closed_in is not None:
            return superseded_file(self.period, self.file_hash)
        return data_file(self.period, self.file_hash)

    @property
    def shown_in(self) -> str:
        """The file of data/ with its rows, relative to the published folder."""
        return self.file if self.closed_in is None else closed_file(day_of(self.period), self.closed_in)

    @property
    def manifest(self) -> str:
        """Where the manifest is, relative to the published folder."""
        return manifest_file(self.file_hash)


@dataclass(frozen=True)
class Catalogue:
    """The published periods of one stream.

    A folder holds one stream: with two, (date, step, node) would not be a key of `data/`.

    Attributes:
        stream: Name of the stream.
        value_column: Name of the published values, which also tells their unit ("load_mw").
        ledger_head: The head that the last publication carried.
        entries: One for each period that was ever published, rising.
        sequence: How many signed catalogues there were, this one counted; None where none was signed.
    """

    stream: str
    value_column: str
    ledger_head: str
    entries: tuple[Entry, ...]
    sequence: int | None = None

    @property
    def ledger_heads(self) -> frozenset[str]:
        """Every head that some publication carried; the ledger that wrote them contains them all."""
        return frozenset({self.ledger_head, *(entry.ledger_head for entry in self.entries)})

    @property
    def listed(self) -> tuple[Entry, ...]:
        """The entries of what readers find, rising: no tombstones."""
        return tuple(entry for entry in self.entries if not entry.withdrawn)

    def entry(self, period: date) -> Entry | None:
        """Return a period's entry, a tombstone included.

        Args:
            period: The local day, or hour.

        Returns:
            The entry; None if nothing of the period was ever published.
        """
        return next((entry for entry in self.entries if entry.period == period), None)

    def with_entries(self, entries: Iterable[Entry]) -> "Catalogue":
        """Return the catalogue as it is after these entries are published, all under one head.

        Args:
            entries: At least one, a period each, all with the same `ledger_head`. They replace those of their
                periods.

        Returns:
            The new catalogue, with that head.

        Raises:
            ValueError: There is no entry, or their heads differ.
        """
        known = {entry.period: entry for entry in self.entries}
        fresh = {entry.period: entry for entry in entries}
        (head,) = {entry.ledger_head for entry in fresh.values()}
        ordered = sorted((known | fresh).values(), key=lambda entry: entry.period)
        return replace(self, ledger_head=head, entries=tuple(ordered))

    def to_bytes(self) -> bytes:
        """Return the catalogue as JSON.

        Returns:
            UTF-8 text: of a catalogue that was read the very bytes, else the same for the same catalogue.
        """
        return self._encoded

    @cached_property
    def _encoded(self) -> bytes:
        """The bytes that it was read from (`parse_catalogue`), or those of a new one, worked out once."""
        numbered = self.sequence is not None
        facts = {
            "format": NUMBERED if numbered else FORMAT,
            **({"sequence": self.sequence} if numbered else {}),
            "stream": self.stream,
            "value_column": self.value_column,
            "ledger_head": self.ledger_head,
        }
        periods = ",\n".join(map(_to_text, self.entries))
        periods = f"{{\n{periods}\n }}" if periods else "{}"
        return f'{json.dumps(facts, indent=1)[:-2]},\n "periods": {periods}\n}}\n'.encode()


_encode = json.JSONEncoder(separators=(",\n   ", ": "), allow_nan=False).encode
"""Of an entry, laid out as `indent=1` does at its depth: asked to indent, the library takes much longer."""


def _to_text(entry: Entry) -> str:
    document: dict[str, Any] = {
        "revision": entry.revision,
        "vintage": entry.vintage,
        "file": entry.file,
        "file_hash": entry.file_hash,
        "rows_hash": entry.rows_hash,
        "manifest": entry.manifest,
        "ledger_head": entry.ledger_head,
    }
    if entry.closed_in is not None:
        document["closed_in"] = entry.closed_in
    if entry.withdrawn:
        document["withdrawn"] = True
    return f'  "{entry.period.isoformat()}": {{\n   {_encode(document)[1:-1]}\n  }}'


def check_ledger_head(head: object) -> None:
    """Raise PublicationError unless `head` can stand in a catalogue."""
    if not isinstance(head, str) or not _HEAD.fullmatch(head):
        raise PublicationError("a ledger head is 1 to 128 letters, digits, colons, hyphens or underscores")


# A day of hours as one entry: for what shows or describes days, whatever periods they are published by.


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
