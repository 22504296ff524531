"""Reading the catalogue of a published folder. What is read is not trusted: anyone may have written it."""

import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from pathlib import Path
from typing import Any, NoReturn

from optstream.catalogue.backends import Location, Readable, StoreUrl, open_storage
from optstream.catalogue.documents import LONGEST_TEXT
from optstream.catalogue.index import FORMAT, LARGEST_SEQUENCE, NUMBERED, Catalogue, Entry, check_ledger_head
from optstream.catalogue.layout import CATALOGUE, is_hash
from optstream.catalogue.rows import check_value_column
from optstream.errors import ParameterError, PublicationError
from optstream.stream.period import Hour, day_of, period_from

LARGEST_CATALOGUE = 64 * 2**20
"""Bytes; about a hundred thousand periods."""
FIRST_YEAR, LAST_YEAR = 1970, 2199
"""Of days, as the command line takes them: who shows every day of a span shows no more than these."""
_MUST_HAVE = {"revision", "vintage", "file", "file_hash", "rows_hash", "manifest", "ledger_head"}
_MAY_HAVE = {"withdrawn", "closed_in"}


def find_catalogue(
    folder: Location | str | Readable, check: Callable[[bytes], object] | None = None
) -> Catalogue | None:
    """Return the catalogue of a published folder, if there is one.

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
    """Return the catalogue of a published folder.

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
            _refuse(f"{place}: {name} must be an integer in [0, {2**31 - 1}]")
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
