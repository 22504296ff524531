"""The catalogue: which file is the release of which period. What is read back is not trusted."""

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any, NoReturn

from optstream.catalogue.backends import Location, Readable, StoreUrl, open_storage
from optstream.catalogue.layout import CATALOGUE, data_file, is_hash, manifest_file
from optstream.catalogue.rows import check_value_column
from optstream.catalogue.statements.statement import LONGEST_TEXT
from optstream.errors import ParameterError, PublicationError

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
    """The current release of one period.

    file, manifest: relative to the published folder. file_hash, rows_hash: SHA-256.
    ledger_head: hash of the ledger's last event when it was published.
    withdrawn: a tombstone: what it names is no longer published, and only a higher revision takes its place.
    """

    period: date
    revision: int
    vintage: int
    file_hash: str
    rows_hash: str
    ledger_head: str
    withdrawn: bool = False

    @property
    def file(self) -> str:
        return data_file(self.period, self.file_hash)

    @property
    def manifest(self) -> str:
        return manifest_file(self.file_hash)


@dataclass(frozen=True)
class Catalogue:
    """One stream's published periods, rising.

    A folder holds one stream: with two, (date, step, node) would not be a key of `data/`.
    ledger_head: the head that the last publication carried. sequence: how many signed catalogues there were,
    this one counted; None where none was.
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

    def entry(self, period: date) -> Entry | None:
        """Return the period's entry, a tombstone included; None if nothing was ever published."""
        return next((entry for entry in self.entries if entry.period == period), None)

    def with_entries(self, entries: Iterable[Entry]) -> "Catalogue":
        """Return the catalogue after these are published at once, all under one head."""
        known = {entry.period: entry for entry in self.entries}
        fresh = {entry.period: entry for entry in entries}
        (head,) = {entry.ledger_head for entry in fresh.values()}
        ordered = sorted((known | fresh).values(), key=lambda entry: entry.period)
        return replace(self, ledger_head=head, entries=tuple(ordered))

    def to_bytes(self) -> bytes:
        """Return the catalogue as JSON, the same bytes every time."""
        numbered = self.sequence is not None
        document = {
            "format": NUMBERED if numbered else FORMAT,
            **({"sequence": self.sequence} if numbered else {}),
            "stream": self.stream,
            "value_column": self.value_column,
            "ledger_head": self.ledger_head,
            "periods": {entry.period.isoformat(): _to_document(entry) for entry in self.entries},
        }
        return (json.dumps(document, indent=1, allow_nan=False) + "\n").encode()


def check_ledger_head(head: object) -> None:
    """Raise PublicationError unless `head` can stand in a catalogue."""
    if not isinstance(head, str) or not _HEAD.fullmatch(head):
        raise PublicationError("a ledger head is 1 to 128 letters, digits, colons, hyphens or underscores")


def find_catalogue(
    folder: Location | str | Readable, check: Callable[[bytes], object] | None = None
) -> Catalogue | None:
    """Return the catalogue of a published folder, None where there is none. Raises as `read_catalogue`."""
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
    """Return the catalogue of a published folder: a path, or a URL such as s3://bucket/folder.

    Raises PublicationError where there is none, and, naming the rule, where it is not as OptStream writes it.
    """
    catalogue = find_catalogue(folder, check)
    if catalogue is None:
        raise PublicationError(
            f"there is no {CATALOGUE} in the published folder; check its path, or publish first"
        )
    return catalogue


def check_days(catalogue: Catalogue, now: datetime) -> None:
    """Raise PublicationError if the catalogue lists a day that is still to come, anywhere on earth."""
    tomorrow = now.astimezone(UTC).date() + timedelta(days=1)
    newest = max((entry.period for entry in catalogue.entries), default=tomorrow)
    if newest > tomorrow:
        _refuse(f"lists {newest}, which is still to come")


def parse_catalogue(data: bytes) -> Catalogue:
    """Read a catalogue from bytes that anyone may have written. Raises PublicationError naming the rule."""
    if len(data) > LARGEST_CATALOGUE:
        _refuse(f"is larger than {LARGEST_CATALOGUE} bytes")
    try:
        document = json.loads(data, object_pairs_hook=_unique)
    except (ValueError, RecursionError) as error:
        raise PublicationError(
            f"{CATALOGUE} is not JSON with unique keys; publish it anew from the ledger"
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
    entries.sort(key=lambda entry: entry.period)
    facts = (stream, document["value_column"], document["ledger_head"], tuple(entries))
    return Catalogue(*facts, document.get("sequence"))


def _to_document(entry: Entry) -> dict[str, Any]:
    document = {
        "revision": entry.revision,
        "vintage": entry.vintage,
        "file": entry.file,
        "file_hash": entry.file_hash,
        "rows_hash": entry.rows_hash,
        "manifest": entry.manifest,
        "ledger_head": entry.ledger_head,
    }
    return {**document, "withdrawn": True} if entry.withdrawn else document


def _from_document(text: str, document: object) -> Entry:
    """Return an entry whose paths are those that its period and hash give: no other path is ever followed."""
    try:
        period = date.fromisoformat(text)
    except ValueError:
        _refuse("has a period that is not a date YYYY-MM-DD")
    if not FIRST_YEAR <= period.year <= LAST_YEAR:
        _refuse(f"has a period outside the years {FIRST_YEAR} to {LAST_YEAR}")
    place = f"period {period}"
    if period.isoformat() != text or not isinstance(document, dict):
        _refuse(f"{place} must be a date YYYY-MM-DD with an entry")
    known = {"revision", "vintage", "file", "file_hash", "rows_hash", "manifest", "ledger_head"}
    if set(document) - {"withdrawn"} != known:
        _refuse(f"{place} must have {', '.join(sorted(known))}, and may have withdrawn")
    for name in ("revision", "vintage"):
        if type(document[name]) is not int or not 0 <= document[name] < 2**31:
            _refuse(f"{place}: {name} must be a whole number of at least 0")
    for name in ("file_hash", "rows_hash"):
        if not is_hash(document[name]):
            _refuse(f"{place}: {name} must be a SHA-256 in lower-case hexadecimal")
    check_ledger_head(document["ledger_head"])
    if document.get("withdrawn", True) is not True:
        _refuse(f"{place}: withdrawn must be true where it is given")
    facts = {name: document[name] for name in known - {"file", "manifest"}}
    entry = Entry(period=period, withdrawn="withdrawn" in document, **facts)
    if (document["file"], document["manifest"]) != (entry.file, entry.manifest):
        _refuse(f"{place}: file and manifest must be the relative names that its date and file_hash give")
    return entry


def _unique(pairs: list[tuple[str, Any]]) -> Mapping[str, Any]:
    if len({name for name, _ in pairs}) != len(pairs):
        raise ValueError("a key occurs twice")
    return dict(pairs)


def _refuse(rule: str) -> NoReturn:
    raise PublicationError(f"{CATALOGUE} {rule}; it was not written by this OptStream")
