"""Which dumps have arrived: folders, markers and file lists. Nothing is opened but the lists.

An entry whose name begins with "." or "_" is hidden, and ignored. Every other entry is a folder of the
layout, a file of a day, or stops the day. The log of a table stops it too: only a reader of such logs knows
which of the table's files still hold.
"""

import itertools
import math
import os
import re
import stat
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from functools import cache, cached_property, partial
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from optstream.errors import DumpError, ParameterError
from optstream.storage.store import Location, StoreUrl, name_below, open_store
from optstream.stream import Hour
from optstream.stream.tree import some_of
from tasks.config import Input, Settings
from tasks.config.fields import SETTLED
from tasks.config.pattern import ENDINGS, Dated, Fields, PathPattern, path_pattern, usual_pattern
from tasks.config.settings import DELIVERY
from tasks.ingest.delta import LOG, present_files

UNREADABLE_IN_A_STORE = frozenset("?#%*[]\\")
"""Marks that readers of URLs take for something else."""


@dataclass(frozen=True, eq=False)
class Found:
    """An entry of a folder. listed: bytes of an object, as the store lists them; a path is asked once."""

    location: Location
    listed: int | None = None

    @cached_property
    def leads_to(self) -> tuple[bool, os.stat_result | None]:
        """Whether a path is a link, and facts of its file, if any. Raises PermissionError."""
        if isinstance(self.location, StoreUrl):
            return False, None
        try:
            found = self.location.lstat()
            is_link = stat.S_ISLNK(found.st_mode)
            return is_link, self.location.stat() if is_link else found
        except PermissionError:
            raise
        except OSError:
            return False, None

    @property
    def facts(self) -> os.stat_result | None:
        return self.leads_to[1]

    @property
    def is_file(self) -> bool:
        return self.listed is not None if self.facts is None else stat.S_ISREG(self.facts.st_mode)

    @property
    def size(self) -> int:
        return self.listed or 0 if self.facts is None else self.facts.st_size

    @property
    def changed(self) -> float:
        """When a file was changed, in seconds since 1970; an object's time is not listed."""
        return math.inf if self.facts is None else self.facts.st_mtime

    def read(self, largest: int) -> bytes:
        """Its bytes, one more than `largest` at most. Raises OSError."""
        if isinstance(self.location, StoreUrl):
            return open_store(self.location.parent).get(self.location.name, largest).data
        with self.location.open("rb") as file:
            return file.read(largest + 1)


Sizes = dict[str, int | None]
"""Names, of objects with their bytes."""


def sizes_in(folder: Location) -> Sizes:
    """The names in a folder, of objects with their bytes. Raises OSError where it cannot be listed."""
    if not isinstance(folder, StoreUrl):
        with os.scandir(folder) as entries:
            return {entry.name: None for entry in itertools.islice(entries, LARGEST_FOLDER + 1)}
    sizes = open_store(folder).list_folder()
    if not sizes:
        raise FileNotFoundError(str(folder))
    return sizes


# Where a period's dump lies: in a folder for each leaf, or in one whose files have a column of regions.

EVERY = ""
"""In the place of a leaf: the one folder that holds the rows of every leaf."""


def parts_of(settings: Settings, day: date) -> tuple[str, ...]:
    """Return the parts of a day's dump: each leaf, in the tree's order, or `EVERY` alone."""
    return settings.tree_of(day).leaves if settings.input.region is None else (EVERY,)


def pattern_of(settings: Settings) -> PathPattern:
    """Return the pattern of the files' paths."""
    if settings.input.path is not None:
        return path_pattern(settings.input.path)
    return usual_pattern(settings.input.region is None, settings.stream.period == "hour")


def place_of(part: str, day: date) -> str:
    """Return the folder of a part's dump of a day in the usual layout, below the input folder."""
    return usual_pattern(bool(part), isinstance(day, Hour)).shown(part, day)


def shown_place(settings: Settings, part: str, day: date) -> str:
    """Return where the dump of a part and a day lies, as messages name it."""
    return pattern_of(settings).shown(part, day)


def quoted_name_of(settings: Settings, file: Location) -> str:
    """Return what messages call a file, its own name in quotes and short."""
    folder, slash, _ = name_below(file, settings.input_folder).rpartition("/")
    return f"{folder}{slash}{file.name!r:.80}"


def leaves_of(settings: Settings, day: date, parts: tuple[str, ...]) -> tuple[str, ...]:
    """Return the leaves in these parts of a day's dump."""
    return settings.tree_of(day).leaves if EVERY in parts else parts


LARGEST_LIST = 2**24
LARGEST_DAY = 2**37
"""Bytes of all files of a day."""
TABLE_LOG = re.compile(
    r"_delta_log|_spark_metadata|\.hoodie.*|metadata|_iceberg.*|_(started|committed|vacuum)_.*", re.IGNORECASE
)
"""Names of the logs of tables: Delta, Spark's streams, Hudi, Iceberg, Databricks' commits."""
LISTED = re.compile(r"(?:([0-9a-fA-F]{64}) [ *])?(.+)")
"""A line of a file list: a name, perhaps after its SHA-256, as `sha256sum` writes them."""
LEFT_BY_SYSTEMS = {"thumbs.db", "desktop.ini", "lost+found", "@eadir", "$recycle.bin"}
MOST_FILES = 10_000
"""Files of one region and day."""
LARGEST_FOLDER = 10**6
"""Entries of one folder."""
MOST_SAID = 12
"""Messages about one day's dumps: of 10,000 leaves nobody reads more."""


class LateDumpError(DumpError):
    """A region's dump of the day is not there yet, or not complete: waiting may help."""


class _AbsentDumpError(LateDumpError):
    """Not even its folder is there."""


@dataclass(frozen=True)
class Dump:
    """The complete dump of one day: the files of each of `parts_of`, and the SHA-256 that lists give."""

    day: date
    files: tuple[tuple[Location, ...], ...]
    hashes: Mapping[Location, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Arrival:
    """The arrivals of one day: complete files with listed hashes; missing files and broken rules."""

    day: date
    unknown_regions: tuple[str, ...]
    files: Mapping[str, tuple[Location, ...]]
    waiting: Mapping[str, str]
    broken: Mapping[str, str]
    absent: tuple[str, ...] = ()
    hashes: Mapping[Location, str] = field(default_factory=dict)


def days_with_dumps(settings: Settings) -> frozenset[date]:
    """Return the days for which some region has a folder, whole or not; an unlistable one is empty."""
    found = {one.dated for one in _of_leaves(settings, _Search(settings))}
    return frozenset(period for dated in found for period in _periods_in(settings, dated))


def deliveries(settings: Settings) -> Iterator[tuple[date, Callable[[], Collection[str]]]]:
    """Yield the periods that a region has files of, and a function that lists them and their markers."""
    search, periods_in = _Search(settings), cache(partial(_periods_in, settings))
    for one in _of_leaves(settings, search):
        for period in periods_in(one.dated)[:1]:
            yield period, partial(search.names_of, one)


def _of_leaves(settings: Settings, search: "_Search") -> Iterator["_Delivery"]:
    leaves = {*settings.dated_hierarchy.leaves(), EVERY}
    with suppress(OSError):
        yield from (one for one in search.deliveries() if one.region in leaves)


def discover(settings: Settings, days: Sequence[date]) -> dict[date, Dump | DumpError]:
    """Look for the dumps of some days; in place of a dump LateDumpError or DumpError."""
    try:
        arrivals = arrivals_of(settings, days)
    except OSError as error:
        problem = f"the input folder {settings.input.folder!r} does not exist or cannot be listed"
        if isinstance(settings.input_folder, StoreUrl) and error.strerror:
            problem += f" ({error.strerror})"
        return {day: LateDumpError(f"{day}: {problem}; create it, or correct input.folder") for day in days}
    return {day: _dump_of(settings, day, arrival) for day, arrival in arrivals.items()}


def arrivals_of(settings: Settings, days: Sequence[date]) -> dict[date, Arrival]:
    """Return the arrivals of each day; raises OSError where the input folder cannot be listed."""
    search = _Search(settings, days)
    search.odd += [(_table(log), Dated()) for log in _tables_around(settings)]
    for one in search.deliveries():
        search.found[one.dated][one.region].append(one)
    return {day: search.arrival(day) for day in days}


def _later(settings: Settings) -> set[str]:
    """Return the folders of planned revisions, which are no part of the first delivery."""
    return {f"{DELIVERY}{number}" for number in range(1, 1 + (settings.budget.revisions or 0))}


def is_hidden(name: str) -> bool:
    """Whether a name begins with "." or "_", or is of what systems and Office leave in folders."""
    return name[0] in "._" or name.startswith("~$") or name.lower() in LEFT_BY_SYSTEMS


def _tables_around(settings: Settings) -> Iterator[str]:
    """Yield the log of a table that the input folder is a partition of, or the data of."""
    folder = settings.input_folder
    if folder.name in _later(settings):  # which is below the first delivery's folder, and no part of it
        folder = folder.parent
    if isinstance(folder, Path):
        folder = Path(os.path.realpath(folder))
    while "=" in folder.name or folder.name == "data":
        holds_data, folder = folder.name == "data", folder.parent
        for name in filter(TABLE_LOG.fullmatch, _names_in(folder)):
            # of another folder's metadata nothing follows: Iceberg's has files of this ending
            is_log = name != "metadata" or any(
                one.endswith(".metadata.json") for one in _names_in(folder / name)
            )
            if is_log or not holds_data:
                yield f"{str(folder)!r:.80}/{name}"


def _names_in(folder: Location) -> Collection[str]:
    with suppress(OSError):
        return sizes_in(folder)
    return ()


def _table(log: str) -> str:
    return (
        f"{log} is the log of a table, whose folder keeps files with deleted and replaced rows; deliver the "
        "table's present rows as plain Parquet files in a folder without it"
    )


def _shared(settings: Settings, files: Mapping[str, Iterable[Found]]) -> dict[str, str]:
    """Return the leaves with a file that an earlier leaf has: its customers would count twice."""
    owners, shared = dict[tuple[int, int], str](), dict[str, str]()
    for leaf, own in files.items():
        for file in own:
            if file.facts is not None:
                owner = owners.setdefault((file.facts.st_dev, file.facts.st_ino), leaf)
                if owner != leaf:
                    name = quoted_name_of(settings, file.location)
                    shared[leaf] = (
                        f"{name} is also a file of leaf {owner!r}; deliver each leaf's own readings"
                    )
    return shared


def _dump_of(settings: Settings, day: date, arrival: Arrival) -> Dump | DumpError:
    if arrival.unknown_regions:
        listed = some_of([f"region={name}" for name in arrival.unknown_regions])
        if settings.input.region is not None:
            return DumpError(
                f"{day}: {listed} lies next to the folder of all regions; remove it, or take input.region out"
            )
        return DumpError(
            f"{day}: {listed} is not a leaf of the hierarchy of that day, which has "
            f"{some_of(parts_of(settings, day))}; add it to [[hierarchy.changes]], or remove its dump and "
            "its line in a file list"
        )
    if arrival.broken:
        return DumpError(f"{day}: " + _once_each(settings, arrival.broken, day))
    if arrival.waiting:
        return LateDumpError(f"{day}: " + _once_each(settings, arrival.waiting, day))
    return Dump(day, tuple(arrival.files[part] for part in parts_of(settings, day)), arrival.hashes)


# Folders are walked as far as their names fit wanted dates.


class _Delivery(NamedTuple):
    """Files of one region and date in a folder; or without files such a folder, listed when it is needed.

    marks: markers and file lists in the folder or above it, or the log of a table.
    """

    pattern: PathPattern
    place: str = ""
    region: str = EVERY
    dated: Dated = frozenset()
    marks: Mapping[str, Found] = MappingProxyType({})
    files: Sequence[Found] | None = None

    @property
    def prefix(self) -> str:
        return f"{self.place}/" if self.place else ""

    @property
    def depth(self) -> int:
        return self.prefix.count("/")


class _Search:
    """A search for the deliveries of some days, or of all. odd: problems outside of them, with the dates of
    their folders. found: deliveries by date and region. named: files in lists, by the same.
    """

    def __init__(self, settings: Settings, days: Sequence[date] | None = None) -> None:
        self.settings, self.pattern, self.top = settings, pattern_of(settings), settings.input_folder
        self.root = Path(os.path.realpath(self.top)) if isinstance(self.top, Path) else self.top
        self.markers = {layout.announcement for _, layout in settings.input.layouts} - {""}
        self.wanted = None if days is None else [one for day in days for one in self._wanted_of(day)]
        self.odd: list[tuple[str, Dated]] = []
        self.found = defaultdict[Dated, defaultdict[str, list[_Delivery]]](lambda: defaultdict(list))
        self.named = defaultdict[Dated, defaultdict[str, set[str]]](lambda: defaultdict(set))
        self._judged = defaultdict[tuple[int, Dated], tuple[dict[str, Dated], set[str]]](lambda: ({}, set()))
        self._listed_in, self._is_wanted = cache(self._in_list), cache(self._may_be_wanted)

    def _wanted_of(self, day: date) -> list[Dated]:
        return self.pattern.wanted(day, self.settings.calendar, self.settings.input_of(day).stamps == "end")

    def deliveries(self) -> Iterator[_Delivery]:
        """Raises OSError where the input folder cannot be listed."""
        top = sizes_in(self.top)
        is_table = LOG in top and not self.pattern.is_usual
        yield from self._in_table() if is_table else self._below(_Delivery(self.pattern), top)

    def names_of(self, one: _Delivery) -> set[str]:
        """Return the names of a delivery's files and markers. Raises OSError."""
        names = sizes_in(self._at(one)) if one.files is None else [file.location.name for file in one.files]
        return {*one.marks, *names}

    def arrival(self, day: date) -> Arrival:
        """Return the files of a day, missing files and broken rules."""
        settings, parts, wanted = self.settings, parts_of(self.settings, day), self._wanted_of(day)
        layout = settings.input_of(day)
        whole, broken, waiting = dict[str, dict[Found, str]](), dict[str, str](), dict[str, str]()
        absent = []
        for part in parts:
            try:
                own = [self.found[dated].get(part, ()) for dated in wanted]
                whole[part] = self._complete(part, day, layout, own)
            except LateDumpError as error:
                waiting[part] = str(error)
                absent += [part] if isinstance(error, _AbsentDumpError) else []
            except DumpError as error:
                broken[part] = str(error)
            except OSError:
                place = shown_place(settings, part, day)
                broken[part] = f"the folder {place} cannot be looked into; fix its permissions"
        for part in [*whole] if self.named else ():  # of which a list of another folder may name files
            named = {name for dated in wanted for name in self.named[dated].get(part, ())}
            if left := named - {name_below(file.location, self.top) for file in whole[part]}:
                waiting[part] = self._absent(min(left))
                del whole[part]
        unknown = {region for of in (self.found, self.named) for dated in wanted for region in of[dated]}
        unknown -= {*parts}
        if not self.pattern.is_of_one_day:  # a file of a month may be of a leaf that begins or ends in it
            unknown -= {leaf for dated in wanted for leaf in self._leaves_within(dated)}
        broken |= _shared(settings, whole)
        owners = {file: part for part, own in whole.items() for file in own}
        if (size := sum(file.size for file in owners)) > LARGEST_DAY:
            file = max(owners, key=lambda one: one.size)
            broken[owners[file]] = (
                f"{quoted_name_of(settings, file.location)} has {file.size / 2**30:,.1f} of the day's "
                f"{size / 2**30:,.1f} GiB, which may have {LARGEST_DAY // 2**30} in all; look at where it "
                "came from, and deliver it again in fewer bytes"
            )
        if stray := next((rule for rule, of in self.odd if any(of <= dated for dated in wanted)), None):
            broken = {parts[0]: stray}
            waiting.pop(parts[0], None)
        files = {
            part: tuple(one.location for one in own) for part, own in whole.items() if part not in broken
        }
        hashes = {one.location: tag for own in whole.values() for one, tag in own.items() if tag}
        return Arrival(day, tuple(sorted(unknown)), files, waiting, broken, tuple(absent), hashes)

    def _complete(
        self, part: str, day: date, layout: Input, own: Sequence[Sequence[_Delivery]]
    ) -> dict[Found, str]:
        """Return the files of a part's complete dump, each with the SHA-256 that a list gives it, or ""."""
        shown = partial(shown_place, self.settings, part, day)
        if not any(own):
            raise _AbsentDumpError(f"the dump {shown()} is missing")
        if not all(own):
            raise LateDumpError(f"of the dump {shown()} the files of one day in UTC are missing")
        files = {file: tag for one in itertools.chain(*own) for file, tag in self._checked(one, layout)}
        if not files and layout.announcement:
            raise DumpError(f"{shown()} is marked complete but holds no Parquet or CSV file")
        if not files:
            raise LateDumpError(f"{shown()} holds no Parquet or CSV file")
        if len(files) > MOST_FILES:
            raise DumpError(f"{shown()} must be at most {MOST_FILES:,} files; merge them")
        may_lack = self.settings.metered or layout.missing_rows == "zero"
        if may_lack and not self.pattern.is_of_one_day:
            ends = self.settings.calendar.ends_at(day).timestamp()
            if max(one.changed for one in files) < ends:
                raise LateDumpError(
                    f"{shown()} was last changed before {day} was over, and absent rows count as 0: wait for "
                    "its supplier, or touch it if it has all of the day"
                )
        return files

    def _leaves_within(self, dated: Dated) -> Iterator[str]:
        """Yield the leaves of some day that a file may hold."""
        if days := self.pattern.days(dict(dated)):
            around = timedelta(days=self.pattern.in_utc)  # a day in UTC has parts of two local days
            changes = self.settings.dated_hierarchy.changes_between(days[0] - around, days[1] + around)
            for day in (days[0] - around, *(one.valid_from for one in changes)):
                yield from self.settings.tree_of(day).leaves

    def _checked(self, one: _Delivery, layout: Input) -> Iterator[tuple[Found, str]]:
        """Yield the files of a delivery that is complete, each with the SHA-256 that a list gives, or ""."""
        place, folder, files, marks, odd = one.place, self._at(one), one.files, one.marks, list[str]()
        if files is None:
            marks, sizes = self._listed(one, folder)
            odd = [name for name in sizes if self.pattern.match(self.pattern.last, name, {}) is None]
            files = [Found(folder / name, size) for name, size in sizes.items()]
        else:
            place = f"{one.prefix}{files[0].location.name}"
        mark, kind = marks.get(layout.announcement), "marker" if layout.file_list is None else "file list"
        if layout.announcement and mark is None:
            raise LateDumpError(f"the {kind} {layout.announcement} of {place} is absent")
        if odd:
            raise DumpError(self._stray(one, odd[0]))
        within, settled = not self._leads_out(folder), -math.inf if mark is None else math.inf
        hashes: Mapping[str, str] = {}
        if mark is not None and mark.location.name != LOG:
            self._check([mark], within, math.inf)
            if layout.file_list is not None:
                hashes = self._hashes_of(one, files, mark)
            if one.files is not None or mark.location.parent != folder:
                settled = mark.changed  # which announces other days, too, and may be older than this one
        self._check(files, within, settled)
        for file in files:
            yield file, hashes.get(f"{one.prefix}{file.location.name}", "")

    def _check(self, files: Sequence[Found], within: bool, settled: float) -> None:
        """Raise DumpError for the first unfit file. within: whether their folder is in the input folder.
        settled: when the marker was written, after which a file must rest.
        """
        for found in files:
            location = found.location
            if not found.is_file:
                rule = "must be a file; replace it"
            elif not location.name.isprintable():
                rule = "must have a name of printable characters; rename it"
            elif isinstance(location, StoreUrl) and not UNREADABLE_IN_A_STORE.isdisjoint(location.name):
                rule = "must have a name without ?#%*[]\\; rename it"
            elif (found.leads_to[0] or not within) and self._leads_out(location):
                rule = (
                    "leads outside the input folder; deliver the file itself, or make input.folder the link"
                )
            else:
                continue
            raise DumpError(f"{quoted_name_of(self.settings, location)} {rule}")
        for found in files:
            age = time.time() - found.changed
            if found.changed > settled and (left := SETTLED.total_seconds() - age) > 0:
                name = quoted_name_of(self.settings, found.location)
                raise LateDumpError(
                    f"{name} changed just now, may still be written, and has no marker since (input.marker): "
                    f"run again in {math.ceil(left / 60)} min"
                    f"{', or correct its time, which is to come' * (age < 0)}"
                )

    def _hashes_of(self, one: _Delivery, files: Sequence[Found], mark: Found) -> Mapping[str, str]:
        """Return the SHA-256 that a list gives of each file of a delivery, or ""."""
        listed = self._listed_in(mark).get((one.region, one.dated), {})
        names = {f"{one.prefix}{file.location.name}" for file in files}
        elsewhere = {part.place for part in self.found[one.dated][one.region]} - {one.place}
        left = sorted(listed.keys() - names)
        if absent := [name for name in left if name.rpartition("/")[0] not in elsewhere]:
            raise LateDumpError(self._absent(absent[0]))
        if extra := sorted(names - listed.keys()):
            # a list of several deliveries may be about to name this one
            late = LateDumpError if one.files is not None and not listed else DumpError
            name = quoted_name_of(self.settings, self.top / extra[0])
            raise late(f"{name} is not in the file list {mark.location.name}")
        return listed

    def _absent(self, name: str) -> str:
        return f"{quoted_name_of(self.settings, self.top / name)} is listed but absent"

    def _in_list(self, mark: Found) -> Mapping[tuple[str, Dated], Mapping[str, str]]:
        """Return the files that a list names, by region and date, with the SHA-256 that it gives, or ""."""
        place = name_below(mark.location, self.top)
        folder = place.removesuffix(mark.location.name)
        try:
            content = mark.read(LARGEST_LIST)
            lines = content.decode("utf-8-sig").splitlines()
        except FileNotFoundError:
            raise LateDumpError(f"the file list {place} is absent") from None
        except (OSError, UnicodeDecodeError):
            raise DumpError(f"the file list {place} must be readable UTF-8 text") from None
        if len(content) > LARGEST_LIST:
            raise DumpError(f"the file list {place} must be at most 16 MiB")
        entries = [entry for line in lines if (entry := LISTED.fullmatch(line.strip()))]
        listed = defaultdict[tuple[str, Dated], dict[str, str]](dict)
        for entry in entries:
            name = entry[2].removeprefix("./")
            fields = self.pattern.match_path(f"{folder}{name}")
            if fields is None or set(name) & {*"\\\0"} or any(one[:1] in "._" for one in name.split("/")):
                raise DumpError(f"the file list {place} must hold plain names of data files only, or paths")
            region, dated = fields.get("region", EVERY), _dated(fields)
            self.named[dated][region].add(f"{folder}{name}")
            listed[region, dated][f"{folder}{name}"] = (entry[1] or "").lower()
        hashes = [tag for own in listed.values() for tag in own.values()]
        if any(hashes) and not all(hashes):
            raise DumpError(f"the file list {place} must have the SHA-256 of every file, or of none")
        if len(hashes) < len(entries):
            raise DumpError(f"the file list {place} must name each file once")
        return listed

    def _below(self, one: _Delivery, top: Sizes | None = None) -> Iterator[_Delivery]:
        depth, prefix = one.depth, one.prefix
        is_judged = depth < one.pattern.last and "region" not in one.pattern.groups[depth]
        fitting, unwanted = self._judged[depth, one.dated] if is_judged else ({}, set())
        try:
            marks, sizes = self._listed(one, self._at(one), unwanted, top)
        except DumpError as error:
            self.odd += [(str(error), one.dated)] if not isinstance(error, _AbsentDumpError) else []
            return
        own: defaultdict[tuple[str, Dated], list[Found]] = defaultdict(list)
        for name, size in sizes.items():
            pattern, region, dated = one.pattern, one.region, fitting.get(name)
            if dated is None:
                known = {key: text for key, text in (*one.dated, ("region", one.region)) if text}
                fields = pattern.match(depth, name, known)
                if fields is None and pattern.is_usual and not one.place:
                    # next to the folders of all leaves one of a leaf stops its own days
                    pattern = usual_pattern(True, pattern.has_hour)
                    fields = pattern.match(depth, name, known)
                if fields is None:
                    if depth == pattern.last or not pattern.is_literal(depth):
                        self.odd.append((self._stray(one, name), one.dated))
                    continue
                region, dated = fields.get("region", EVERY), _dated(fields)
                if not self._is_wanted(dated):
                    unwanted.add(name)
                    continue
                fitting[name] = dated
            if depth == pattern.last:
                own[region, dated].append(Found(self._at(one) / name, size))
                continue
            below = _Delivery(pattern, f"{prefix}{name}", region, dated, marks)
            if pattern.is_whole(depth + 1):
                yield below
            else:
                yield from self._below(below)
        for (region, dated), files in own.items():
            yield _Delivery(one.pattern, one.place, region, dated, marks, files)

    def _in_table(self) -> Iterator[_Delivery]:
        """Yield the files of a Delta table, whose log is the marker of all."""
        log, none = self.top / LOG, Dated()
        try:
            names = present_files({name: Found(log / name).read for name in sizes_in(log)})
        except (DumpError, OSError) as error:
            unlisted = "the log of the table in the input folder cannot be listed"
            self.odd.append((unlisted if isinstance(error, OSError) else str(error), none))
            return
        marks = dict.fromkeys(self.markers, Found(log))
        for place in sorted(names):
            fields = self.pattern.match_path(place)
            if fields is None:
                rule = f"does not fit input.path, {self.pattern.text!r}"
                self.odd.append((f"{place!r:.200} of the table {rule}", none))
            elif self._is_wanted(_dated(fields)):
                # an object's size is in no log
                files = [Found(self.top / place, 0 if isinstance(self.top, StoreUrl) else None)]
                parts = fields.get("region", EVERY), _dated(fields), marks, files
                yield _Delivery(self.pattern, place.rpartition("/")[0], *parts)

    def _at(self, one: _Delivery) -> Location:
        return self.top / one.place if one.place else self.top

    def _leads_out(self, place: Location) -> bool:
        root = f"{str(self.root).rstrip('/')}/"
        return isinstance(place, Path) and not f"{os.path.realpath(place)}/".startswith(root)

    def _listed(
        self, one: _Delivery, folder: Location, judged: Collection[str] = (), sizes: Sizes | None = None
    ) -> tuple[Mapping[str, Found], Sizes]:
        """Return the markers of a folder and above, and its other entries that are not hidden, rising."""
        try:
            sizes = sizes_in(folder) if sizes is None else sizes
        except OSError as error:
            is_link = isinstance(folder, Path) and folder.is_symlink()
            if isinstance(error, FileNotFoundError) and not is_link:  # gone since the folder above was listed
                raise _AbsentDumpError(f"the dump {one.place} is missing") from None
            raise DumpError(
                f"{one.place!r:.80} must be a folder that can be listed; permit it, mend its link, move it "
                f"away, or {_HIDE}"
            ) from None
        if len(sizes) > LARGEST_FOLDER:
            raise DumpError(f"{one.place!r:.80} must hold at most {LARGEST_FOLDER:,} files")
        new = sizes.keys() - judged
        for log in sorted(filter(TABLE_LOG.fullmatch, new)):
            rule = _table(f"{one.prefix}{log!r:.80}")
            if one.pattern.is_whole(one.depth):
                raise DumpError(rule)
            self.odd.append((rule, one.dated))
        markers = set() if one.pattern.is_usual and one.depth < one.pattern.last else self.markers
        skipped = markers if one.place else markers | _later(self.settings)
        names = sorted(name for name in new if name not in skipped and not is_hidden(name))
        marks = {name: Found(folder / name, sizes[name]) for name in markers & new}
        return {**one.marks, **marks}, {name: sizes[name] for name in names}

    def _may_be_wanted(self, dated: Dated) -> bool:
        return self.wanted is None or any(dated <= one for one in self.wanted)

    def _stray(self, one: _Delivery, name: str) -> str:
        rule = f"does not fit input.path, {self.pattern.text!r}"
        if self.pattern.is_usual:
            rule += f" with files that end in {', '.join(ENDINGS[:-1])} or {ENDINGS[-1]}"
        return f"{one.prefix}{name!r:.80} {rule}; correct one of them, move it away, or {_HIDE}"


_HIDE = 'begin its name with "_", which hides it'


def _dated(fields: Fields) -> Dated:
    return frozenset((key, value) for key, value in fields.items() if key != "region")


def _periods_in(settings: Settings, dated: Dated) -> Sequence[date]:
    """Return the periods of a file; of one with many days those before today."""
    pattern, fields = pattern_of(settings), dict(dated)
    days = pattern.days(fields)
    if days is None:
        return ()
    if hour := fields.get("hour"):
        period = Hour(days[0], int(hour[:2]), hour.endswith("B"))
        with suppress(ParameterError):  # an hour that its day does not have
            settings.calendar.check_period(period)
            return (period,)
        return ()
    if pattern.is_of_one_day:
        return settings.calendar.periods(*days)
    over = settings.local_day(datetime.now(UTC)) - timedelta(days=1)
    return settings.calendar.periods(max(days[0], settings.watching.first_day or days[0]), min(days[1], over))


def _once_each(settings: Settings, found: Mapping[str, str], day: date) -> str:
    """Join problems of dumps, by leaf: once where a whole delivery has one."""
    alike: defaultdict[str, list[str]] = defaultdict(list)
    for part, message in found.items():
        alike[message.replace(shown_place(settings, part, day), "")].append(part)
    return several(found[first] + likewise(others) for first, *others in alike.values())


def likewise(leaves: Sequence[str]) -> str:
    """Return how a message goes on that holds for other leaves, too."""
    return f" (and so for {some_of(leaves)})" if leaves else ""


def several(messages: Iterable[str]) -> str:
    """Return the problems of a day's dumps in a line that does not grow with the leaves."""
    found = list(messages)
    more = len(found) - MOST_SAID
    return "; ".join(found[:MOST_SAID]) + (f"; and {more:,} more like these" if more > 0 else "")
