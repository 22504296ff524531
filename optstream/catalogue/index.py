"""The catalogue: which file is the release of which period. Input is untrusted."""

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from datetime import UTC, date, datetime, timedelta
from functools import cached_property, lru_cache
from itertools import groupby
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, NoReturn

from pydantic import BeforeValidator, ConfigDict, Field, ValidationError

from optstream.catalogue import layout
from optstream.catalogue.backends import Readable, Transaction, open_storage, read_if_any
from optstream.catalogue.documents import Count, Document, Hash, Name, OrAbsent, Period, absent, as_written
from optstream.catalogue.layout import CATALOGUE, closed_file, data_file, manifest_file, superseded_file
from optstream.catalogue.statement import ValueColumn
from optstream.errors import PublicationError
from optstream.storage.store import Location, StoreUrl
from optstream.stream.period import Hour, day_of, period_from

FORMATS = ("optstream.catalogue/1", "optstream.catalogue/2")
"""Of catalogues that are not signed, and of signed ones, which are numbered."""
LARGEST_SEQUENCE = 2**53
FIRST_YEAR, LAST_YEAR = 1970, 2199
"""Of days, as the command line takes them: who shows every day of a span shows no more than these."""

Head = Annotated[str, Field(pattern="^[0-9A-Za-z:_-]{1,128}$", description="hash of the ledger's last event")]


class Entry(Document):
    """The current release of one period, or its tombstone, which only a higher revision replaces.

    Revisions count measurements of the day, vintages the estimates from one of them. `closed_in`: the hash of
    the day's file that carries the rows of an hour of a closed day.
    """

    called: ClassVar[str] = "an entry of a catalogue"
    period: Period = Field(exclude=True)
    revision: Count
    vintage: Count
    file: str = Field("", description="relative to the published folder, as its date and file_hash give it")
    file_hash: Hash
    rows_hash: Hash
    manifest: str = Field("", description="likewise")
    ledger_head: Head
    closed_in: OrAbsent[Hash] = absent("of an hour of a closed day: the SHA-256 of the day's file")
    withdrawn: bool = absent(
        "a tombstone: its day is no longer published", False, json_schema_extra={"const": True}
    )

    def _derived(self) -> Mapping[str, Any]:
        place = data_file if self.closed_in is None else superseded_file
        return {"file": place(self.period, self.file_hash), "manifest": manifest_file(self.file_hash)}

    @property
    def shown_in(self) -> str:
        """The file of data/ with its rows, relative to the published folder."""
        return self.file if self.closed_in is None else closed_file(day_of(self.period), self.closed_in)


def _keyed(periods: Any) -> Any:
    if isinstance(periods, tuple):
        return {one.period: one for one in periods}
    if not isinstance(periods, Mapping):
        return periods
    found = {}
    for text, listed in periods.items():
        period = text
        if isinstance(text, str) and isinstance(listed, dict):
            with suppress(ValueError):
                period = period_from(text)
            if not isinstance(period, date) or period.isoformat() != text:
                raise ValueError(f"period {text!a:.40} is not a date YYYY-MM-DD, nor an hour YYYY-MM-DDTHH")
            if not FIRST_YEAR <= period.year <= LAST_YEAR:
                raise ValueError(f"has a period outside the years {FIRST_YEAR} to {LAST_YEAR}")
            listed = {**listed, "period": period}
        found[period] = listed
    return found


class Catalogue(Document):
    """The release file of each period of one stream; `ledger_head` is that of the last publication. Public.

    With two streams (date, step, node) would be no key of `data/`. A tuple of entries is taken for `periods`,
    too.
    """

    model_config = ConfigDict(
        json_schema_extra={
            "oneOf": [
                {"properties": {"format": {"const": FORMATS[0]}}, "not": {"required": ["sequence"]}},
                {"properties": {"format": {"const": FORMATS[1]}}, "required": ["sequence"]},
            ]
        }
    )
    called: ClassVar[str] = CATALOGUE
    format: Literal["optstream.catalogue/1", "optstream.catalogue/2"] = "optstream.catalogue/1"
    sequence: OrAbsent[Annotated[int, Field(ge=1, lt=LARGEST_SEQUENCE)]] = absent(
        "how many signed catalogues there were, this one counted: an older one has less"
    )
    stream: Name
    value_column: ValueColumn
    ledger_head: Head
    periods: Annotated[
        dict[Period, Entry], BeforeValidator(_keyed), Field(json_schema_extra={"additionalProperties": False})
    ] = Field(default_factory=dict)

    def _derived(self) -> Mapping[str, Any]:
        if len({isinstance(period, Hour) for period in self.periods}) > 1:
            raise ValueError("lists days and hours")
        return {
            "format": FORMATS[self.sequence is not None],
            "periods": {period: self.periods[period] for period in sorted(self.periods)},
        }

    @cached_property
    def entries(self) -> tuple[Entry, ...]:
        """One for each period that was ever published, rising."""
        return tuple(self.periods.values())

    @property
    def ledger_heads(self) -> frozenset[str]:
        """Every head that some publication carried; the ledger that wrote them contains them all."""
        return frozenset({self.ledger_head, *(entry.ledger_head for entry in self.entries)})

    @cached_property
    def listed(self) -> tuple[Entry, ...]:
        """The entries of what readers find, rising: no tombstones."""
        return tuple(entry for entry in self.entries if not entry.withdrawn)

    def entry(self, period: date) -> Entry | None:
        """Return the entry of a local day or hour, a tombstone included; None if it never had one."""
        return self.periods.get(period)

    def to_bytes(self) -> bytes:
        """Return the catalogue as JSON: of one that was read the very bytes."""
        return self._encoded

    @cached_property
    def _encoded(self) -> bytes:
        # of one that was read `parse_catalogue` sets it
        return f"{self.model_dump_json(indent=1, ensure_ascii=True)}\n".encode()


# A day of hours as one entry: for what shows or describes days, whatever periods they are published by.


class DayEntry(Entry):
    """The published hours of a day, rising, or the tombstones of all of them; `file` and `file_hash` are the
    closed day's, else the last hour's and the hash of the hours' hashes."""

    own: tuple[Entry, ...] = Field(exclude=True)

    def _derived(self) -> Mapping[str, Any]:
        return {"file": self.own[-1].shown_in, "manifest": self.own[-1].manifest}


def day_entries(entries: Iterable[Entry]) -> tuple[Entry, ...]:
    """Return the entries of days: of a catalogue's days as they are, of its hours one a day."""
    found: list[Entry] = []
    for day, several in groupby(entries, key=lambda entry: day_of(entry.period)):
        own = tuple(several)
        if not isinstance(own[0].period, Hour):
            found += own
            continue
        listed = tuple(entry for entry in own if not entry.withdrawn)
        shown = listed or own
        closed = {entry.closed_in for entry in shown}
        (closed_in,) = closed if len(closed) == 1 else {None}
        found.append(
            DayEntry(
                period=day,
                revision=max(entry.revision for entry in shown),
                vintage=max(entry.vintage for entry in shown),
                file_hash=closed_in or _hash_of(entry.file_hash for entry in shown),
                rows_hash=_hash_of(entry.rows_hash for entry in shown),
                ledger_head=shown[-1].ledger_head,
                withdrawn=not listed,
                closed_in=closed_in,
                own=shown,
            )
        )
    return tuple(found)


def _hash_of(hashes: Iterable[str]) -> str:
    return hashlib.sha256("\n".join(hashes).encode()).hexdigest()


def files_of(entry: Entry) -> frozenset[str]:
    """Return the files of data/ with the rows of an entry, relative to the published folder."""
    return frozenset(one.shown_in for one in (entry.own if isinstance(entry, DayEntry) else (entry,)))


# File times are functions of the release, never of the clock: a draw's duration depends on its noise
# (docs/privacy.md, section 6).

SIGNED = datetime(2000, 1, 1, tzinfo=UTC)
"""Of every signature, and of their folder: it is named by what it signs, and need not look newer."""
MOST_CHANGES = 2**31
"""Seconds; nobody publishes so often, but anyone may have written the revisions of a catalogue."""


def release_time(period: date) -> datetime:
    """Return the modification time of a period's files: when its date or hour ends, as UTC."""
    begins = datetime.combine(day_of(period), datetime.min.time(), UTC)
    return begins + timedelta(hours=period.hour + 1 if isinstance(period, Hour) else 24)


def catalogue_time(catalogue: Catalogue) -> datetime:
    """Return the newest period's time, and a second for each change, so that it rises with every one."""
    newest = max(entry.period for entry in catalogue.entries)
    changes = sum(1 + entry.revision + entry.vintage + entry.withdrawn for entry in catalogue.entries)
    return release_time(newest) + timedelta(seconds=min(changes, MOST_CHANGES))


def settle_times(
    transaction: Transaction,
    catalogue: Catalogue,
    touched: Iterable[Entry],
    near: Iterable[tuple[date, str]] = (),
) -> None:
    """Give the files of a publication those times; near: files that belong to releases, each with its day."""
    listed = catalogue_time(catalogue)
    places: dict[str, datetime] = {}
    for entry in touched:
        places |= dict.fromkeys((entry.file, entry.manifest), release_time(entry.period))
        days = {day_of(entry.period), entry.period}
        places |= dict.fromkeys(
            (layout.folder_of(part, one) for part in layout.PARTS for one in days), listed
        )
        if entry.closed_in:
            places[entry.shown_in] = release_time(day_of(entry.period))
            places[entry.shown_in.rpartition("/")[0]] = listed
    places |= {name: release_time(period) for period, name in near}
    names = (layout.CATALOGUE, layout.MANIFESTS, *layout.PARTS, *layout.HIDDEN, ".")
    transaction.settle(places | dict.fromkeys(names, listed))


def settle_page_time(transaction: Transaction, catalogue: Catalogue) -> None:
    """The page that was made of a catalogue has its time: not before, or caches would keep the one before."""
    if catalogue.entries:
        names = (layout.PAGE, layout.ABOUT, layout.HIERARCHY, *layout.DESCRIPTIONS, layout.CURVES)
        transaction.settle(dict.fromkeys((*names, *layout.HIDDEN, "."), catalogue_time(catalogue)))


# Reading: anyone may have written the bytes.


def find_catalogue(
    folder: Location | str | Readable, check: Callable[[bytes], object] | None = None
) -> Catalogue | None:
    """Return the catalogue of a published folder, None without one; `check` sees its bytes before parsing."""
    source = open_storage(folder) if isinstance(folder, Path | StoreUrl | str) else folder
    data = read_if_any(source, CATALOGUE, check)
    return None if data is None else parse_catalogue(data)


def read_catalogue(
    folder: Location | str | Readable, check: Callable[[bytes], object] | None = None
) -> Catalogue:
    """Return what `find_catalogue` does. Raises PublicationError where there is none."""
    catalogue = find_catalogue(folder, check)
    if catalogue is None:
        raise PublicationError(
            f"{str(folder)!r} is no published folder: there is no {CATALOGUE} in it; check the path, or "
            "publish there first"
        )
    return catalogue


def check_days(catalogue: Catalogue, now: datetime) -> None:
    """Raise PublicationError for a catalogue that lists a day which is still to come, anywhere on earth."""
    tomorrow = now.astimezone(UTC).date() + timedelta(days=1)
    newest = max((day_of(entry.period) for entry in catalogue.entries), default=tomorrow)
    if newest > tomorrow:
        _refuse(f"lists {newest}, which is still to come")


@lru_cache(maxsize=2)
def parse_catalogue(data: bytes) -> Catalogue:
    """Return the catalogue of these bytes, kept for the next call. Raises PublicationError."""
    with as_written(
        f"{CATALOGUE} is not JSON with unique keys; restore it from a copy, or remove it: its publisher "
        "lists the days again with `optstream publish --from DAY --to DAY`"
    ):
        document = json.loads(data, object_pairs_hook=_unique)
    try:
        catalogue = Catalogue.model_validate(document)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(map(str, first["loc"]))
        _refuse(f"has a wrong {place!r:.120}: {first['msg']}")
    if document.get("format") != catalogue.format or "periods" not in document:
        _refuse(f"must have periods, and be of format {FORMATS[0]}, or with a sequence {FORMATS[1]}")
    for text, entry in zip(sorted(document["periods"]), catalogue.entries, strict=True):
        listed, place = document["periods"][text], f"period {text}"
        if null := sorted(name for name, value in listed.items() if value is None or value is False):
            _refuse(f"{place}: {null[0]} must be left out where it has no value")
        if entry.closed_in is not None and (entry.withdrawn or not isinstance(entry.period, Hour)):
            _refuse(f"{place}: closed_in is of an hour that is there")
        if (listed.get("file"), listed.get("manifest")) != (entry.file, entry.manifest):
            # no other path is ever followed
            _refuse(f"{place}: file and manifest must be the relative names that its date and file_hash give")
    catalogue.__dict__["_encoded"] = data  # a cached property: hashes and signatures are of the bytes read
    return catalogue


def _unique(pairs: list[tuple[str, Any]]) -> Mapping[str, Any]:
    if len({name for name, _ in pairs}) != len(pairs):
        raise ValueError("a key occurs twice")
    return dict(pairs)


def _refuse(rule: str) -> NoReturn:
    raise PublicationError(f"{CATALOGUE} {rule}; it was not written by this OptStream")
