"""The catalogue: which file is the release of which period. What is read back is not trusted."""

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, NoReturn

from optstream.catalogue.backends import Location, Readable, StoreUrl, open_storage
from optstream.catalogue.layout import (
    CATALOGUE,
    closed_file,
    data_file,
    is_hash,
    manifest_file,
    superseded_file,
)
from optstream.catalogue.rows import check_value_column
from optstream.catalogue.statements.statement import LONGEST_TEXT
from optstream.errors import ParameterError, PublicationError
from optstream.stream.period import Hour, day_of, period_from

FORMAT = "optstream.catalogue/1"
NUMBERED = "optstream.catalogue/2"
"""Of a stream whose catalogues are signed: one key more, `sequence`."""
LARGEST_SEQUENCE = 2**53
LARGEST_CATALOGUE = 64 * 2**20
"""Bytes; about a hundred thousand periods."""
FIRST_YEAR, LAST_YEAR = 1970, 2199
"""Of days, as the command line takes them: who shows every day of a span shows no more than these."""

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


def check_ledger_head(head: object) -> None:
    """Raise PublicationError unless `head` can stand in a catalogue."""
    if not isinstance(head, str) or not _HEAD.fullmatch(head):
        raise PublicationError("a ledger head is 1 to 128 letters, digits, colons, hyphens or underscores")


def find_catalogue(
    folder: Location | str | Readable, check: Callable[[bytes], object] | None = None
) -> Catalogue | None:
    """Return the catalogue of a published folder, if there is one. What is read is not trusted.

    Args:
        folder: A path, the URL of a folder in an object store, or storage that can be read.
        check: Called with the catalogue's bytes before they are parsed; raises to refuse them.

    Returns:
        The catalogue; None where there is none.

    Raises:
        ParameterError: The URL cannot be one.
        PublicationError: The catalogue cannot be read, or is not as OptStream writes it; names the rule.
    """
    source = open_storage(folder) if isinstance(folder, Path | StoreUrl | str) else folder
    try:
        data = source.read(CATALOGUE, LARGEST_CATALOGUE)
    except FileNotFoundError:
        return None
    if check is not None:
        check(data)
    return parse_catalogue(data)


def read_catalogue(
    folder: Location | str | Readable, check: Callable[[bytes], object] | None = None
) -> Catalogue:
    """Return the catalogue of a published folder. What is read is not trusted.

    Args:
        folder: A path, the URL of a folder such as s3://bucket/folder, or storage that can be read.
        check: Called with the catalogue's bytes before they are parsed; raises to refuse them.

    Returns:
        The catalogue.

    Raises:
        ParameterError: The URL cannot be one.
        PublicationError: There is no catalogue, it cannot be read, or it is not as OptStream writes it; names
            the rule.
    """
    catalogue = find_catalogue(folder, check)
    if catalogue is None:
        raise PublicationError(
            f"{str(folder)!r} is no published folder: there is no {CATALOGUE} in it; check the path, or "
            "publish there first"
        )
    return catalogue


def check_days(catalogue: Catalogue, now: datetime) -> None:
    """Refuse a catalogue that lists a day which is still to come, anywhere on earth.

    Args:
        catalogue: As it was read.
        now: An instant with a time zone.

    Raises:
        PublicationError: The newest day is after tomorrow's date in UTC.
    """
    tomorrow = now.astimezone(UTC).date() + timedelta(days=1)
    newest = max((day_of(entry.period) for entry in catalogue.entries), default=tomorrow)
    if newest > tomorrow:
        _refuse(f"lists {newest}, which is still to come")


@lru_cache(maxsize=2)
def parse_catalogue(data: bytes) -> Catalogue:
    """Read a catalogue from bytes that anyone may have written. Raises PublicationError naming the rule.

    A run reads the file again wherever another may have replaced it, under the lock above all; it judges
    the same bytes once.
    """
    if len(data) > LARGEST_CATALOGUE:
        _refuse(f"is larger than {LARGEST_CATALOGUE} bytes")
    try:
        document = json.loads(data, object_pairs_hook=_unique)
    except (ValueError, RecursionError) as error:
        raise PublicationError(
            f"{CATALOGUE} is not JSON with unique keys; restore it from a copy, or remove it: its publisher "
            "lists the days again with `optstream publish --from DAY --to DAY`"
        ) from error
    if not isinstance(document, dict) or document.get("format") not in (FORMAT, NUMBERED):
        _refuse(f"is not of format {FORMAT} or {NUMBERED}")
    known = {"format", "stream", "value_column", "ledger_head", "periods"}
    if set(document) != known | ({"sequence"} if document["format"] == NUMBERED else set()):
        _refuse("has keys other than format, stream, value_column, ledger_head, periods, and sequence")
    sequence = document.get("sequence", 1)
    if type(sequence) is not int or not 1 <= sequence < LARGEST_SEQUENCE:
        _refuse("has a sequence that is not a whole number of at least 1")
    stream, periods = document["stream"], document["periods"]
    if not isinstance(stream, str) or not 0 < len(stream) <= LONGEST_TEXT or not stream.isprintable():
        _refuse(f"names no stream of 1 to {LONGEST_TEXT} printable characters")
    if not isinstance(periods, dict):
        _refuse("lists no periods")
    try:
        check_value_column(document["value_column"])
    except ParameterError as error:
        raise PublicationError(f"{CATALOGUE}: {error}") from error
    check_ledger_head(document["ledger_head"])
    entries = [_from_document(text, entry) for text, entry in periods.items()]
    if len({isinstance(entry.period, Hour) for entry in entries}) > 1:
        _refuse("lists days and hours")
    entries.sort(key=lambda entry: entry.period)
    facts = (stream, document["value_column"], document["ledger_head"], tuple(entries))
    catalogue = Catalogue(*facts, document.get("sequence"))
    catalogue.__dict__["_encoded"] = data  # a cached property: hashes and signatures are of what was read
    return catalogue


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


_MUST_HAVE = {"revision", "vintage", "file", "file_hash", "rows_hash", "manifest", "ledger_head"}
_MAY_HAVE = {"withdrawn", "closed_in"}


def _from_document(text: str, document: object) -> Entry:
    """Return an entry whose paths are those that its period and hash give: no other path is ever followed."""
    try:
        period = period_from(text)
    except ValueError:
        _refuse("has a period that is not a date YYYY-MM-DD, nor an hour YYYY-MM-DDTHH")
    if not FIRST_YEAR <= period.year <= LAST_YEAR:
        _refuse(f"has a period outside the years {FIRST_YEAR} to {LAST_YEAR}")
    place = f"period {text}"
    if period.isoformat() != text or not isinstance(document, dict):
        _refuse(f"{place} must be a date YYYY-MM-DD, or an hour YYYY-MM-DDTHH, with an entry")
    if document.keys() - _MAY_HAVE != _MUST_HAVE:
        _refuse(f"{place} must have {', '.join(sorted(_MUST_HAVE))}, and may have withdrawn or closed_in")
    for name in ("revision", "vintage"):
        if type(document[name]) is not int or not 0 <= document[name] < 2**31:
            _refuse(f"{place}: {name} must be a whole number of at least 0")
    for name in ("file_hash", "rows_hash"):
        if not is_hash(document[name]):
            _refuse(f"{place}: {name} must be a SHA-256 in lower-case hexadecimal")
    check_ledger_head(document["ledger_head"])
    if document.get("withdrawn", True) is not True:
        _refuse(f"{place}: withdrawn must be true where it is given")
    closed_in = document.get("closed_in")
    may_be = is_hash(closed_in) and isinstance(period, Hour) and "withdrawn" not in document
    if "closed_in" in document and not may_be:
        _refuse(f"{place}: closed_in must be a SHA-256 in lower-case hexadecimal, of an hour that is there")
    entry = Entry(
        period,
        document["revision"],
        document["vintage"],
        document["file_hash"],
        document["rows_hash"],
        document["ledger_head"],
        "withdrawn" in document,
        closed_in,
    )
    if (document["file"], document["manifest"]) != (entry.file, entry.manifest):
        _refuse(f"{place}: file and manifest must be the relative names that its date and file_hash give")
    return entry


def _unique(pairs: list[tuple[str, Any]]) -> Mapping[str, Any]:
    if len({name for name, _ in pairs}) != len(pairs):
        raise ValueError("a key occurs twice")
    return dict(pairs)


def _refuse(rule: str) -> NoReturn:
    raise PublicationError(f"{CATALOGUE} {rule}; it was not written by this OptStream")
