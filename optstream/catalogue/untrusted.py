"""Reading the catalogue of a published folder. What is read is not trusted: anyone may have written it."""

import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, Literal, NoReturn

from pydantic import Field, ValidationError

from optstream.catalogue.backends import Location, Readable, StoreUrl, open_storage
from optstream.catalogue.documents import Count, Document, Hash, Name, OrAbsent, PeriodText, absent
from optstream.catalogue.index import LARGEST_SEQUENCE, NUMBERED, Catalogue, Entry
from optstream.catalogue.layout import CATALOGUE
from optstream.catalogue.statement import ValueColumn
from optstream.errors import PublicationError
from optstream.stream.period import Hour, day_of, period_from

LARGEST_CATALOGUE = 64 * 2**20
"""Bytes; about a hundred thousand periods."""
FIRST_YEAR, LAST_YEAR = 1970, 2199
"""Of days, as the command line takes them: who shows every day of a span shows no more than these."""

Head = Annotated[str, Field(pattern="^[0-9A-Za-z:_-]{1,128}$", description="hash of the ledger's last event")]


class ListedEntry(Document):
    """The current release of a day, or what is left of it."""

    revision: Count
    vintage: Count
    file: str = Field(description="relative to the published folder, as its date and file_hash give it")
    file_hash: Hash
    rows_hash: Hash
    manifest: str = Field(description="likewise")
    ledger_head: Head
    withdrawn: OrAbsent[Literal[True]] = absent("a tombstone: what it names is no longer published")
    closed_in: OrAbsent[Hash] = absent("of an hour of a closed day: the SHA-256 of the day's file")


class ListedCatalogue(Document):
    """The whole document, where catalogues are not signed."""

    format: Literal["optstream.catalogue/1"]
    stream: Name
    value_column: ValueColumn
    ledger_head: Head
    periods: Annotated[
        dict[PeriodText, ListedEntry], Field(json_schema_extra={"additionalProperties": False})
    ]


class NumberedCatalogue(ListedCatalogue):
    """The whole document, where they are."""

    format: Literal["optstream.catalogue/2"]  # type: ignore[assignment]
    sequence: int = Field(
        ge=1,
        lt=LARGEST_SEQUENCE,
        description="how many signed catalogues there were, this one counted: an older one has less",
    )


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
    is_numbered = isinstance(document, dict) and document.get("format") == NUMBERED
    kind = NumberedCatalogue if is_numbered else ListedCatalogue
    try:
        found = kind.model_validate(document)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(map(str, first["loc"]))
        _refuse(f"has a wrong {place!r:.120}: {first['msg']}")
    entries = [_entry(text, one) for text, one in found.periods.items()]
    if len({isinstance(entry.period, Hour) for entry in entries}) > 1:
        _refuse("lists days and hours")
    entries.sort(key=lambda entry: entry.period)
    facts = (found.stream, found.value_column, found.ledger_head, tuple(entries))
    catalogue = Catalogue(*facts, found.sequence if isinstance(found, NumberedCatalogue) else None)
    catalogue.__dict__["_encoded"] = data  # a cached property: hashes and signatures are of what was read
    return catalogue


def _entry(text: str, listed: ListedEntry) -> Entry:
    """Return an entry whose paths are those that its period and hash give: no other path is ever followed."""
    place = f"period {text}"
    try:
        period = period_from(text)
    except ValueError:
        _refuse(f"{place} is not a date YYYY-MM-DD, nor an hour YYYY-MM-DDTHH")
    if not FIRST_YEAR <= period.year <= LAST_YEAR:
        _refuse(f"has a period outside the years {FIRST_YEAR} to {LAST_YEAR}")
    if null := sorted(name for name in listed.model_fields_set if getattr(listed, name) is None):
        _refuse(f"{place}: {null[0]} must be left out where it has no value")
    if listed.closed_in is not None and (listed.withdrawn or not isinstance(period, Hour)):
        _refuse(f"{place}: closed_in is of an hour that is there")
    hashes = listed.file_hash, listed.rows_hash, listed.ledger_head
    is_gone = listed.withdrawn is not None
    entry = Entry(period, listed.revision, listed.vintage, *hashes, is_gone, listed.closed_in)
    if (listed.file, listed.manifest) != (entry.file, entry.manifest):
        _refuse(f"{place}: file and manifest must be the relative names that its date and file_hash give")
    return entry


def _unique(pairs: list[tuple[str, Any]]) -> Mapping[str, Any]:
    if len({name for name, _ in pairs}) != len(pairs):
        raise ValueError("a key occurs twice")
    return dict(pairs)


def _refuse(rule: str) -> NoReturn:
    raise PublicationError(f"{CATALOGUE} {rule}; it was not written by this OptStream")
