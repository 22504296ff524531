"""Which dumps have arrived: folders, markers and file lists. Nothing is opened but the lists.

An entry whose name begins with "." or "_" is hidden, and ignored. Every other entry is a folder of the
layout, a file of a day, or stops the day. The log of a table stops it too: only a reader of such logs knows
which of the table's files still hold.
"""

import itertools
import math
import os
import re
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from functools import partial
from pathlib import Path

from optstream.errors import DumpError
from optstream.storage.store import Location, StoreUrl, name_below, open_store
from optstream.stream import Hour, partition_of, period_from_partition
from optstream.stream.tree import some_of
from tasks.config import Input, Settings
from tasks.config.fields import SETTLED
from tasks.config.pattern import Fields, PathPattern, path_pattern
from tasks.config.settings import DELIVERY
from tasks.ingest.delta import LOG, present_files

# Contents of the input folder, local or in an object store. Only file lists are opened.

UNREADABLE_IN_A_STORE = frozenset("?#%*[]\\")
"""Marks that readers of URLs take for something else."""


@dataclass(frozen=True)
class Found:
    """An entry of a folder. listed: bytes of an object, as the store lists them; a path is asked."""

    location: Location
    listed: int | None = None

    @property
    def is_file(self) -> bool:
        return self.listed is not None if isinstance(self.location, StoreUrl) else self.location.is_file()

    @property
    def size(self) -> int:
        """Bytes of a file. Raises OSError."""
        return self.listed or 0 if isinstance(self.location, StoreUrl) else self.location.stat().st_size

    @property
    def changed(self) -> float:
        """When a file was changed, in seconds since 1970; an object's time is not listed. Raises OSError."""
        return math.inf if isinstance(self.location, StoreUrl) else self.location.stat().st_mtime

    def read(self, largest: int) -> bytes:
        """Its bytes, one more than `largest` at most. Raises OSError."""
        if isinstance(self.location, StoreUrl):
            return open_store(self.location.parent).get(self.location.name, largest).data
        with self.location.open("rb") as file:
            return file.read(largest + 1)

    def leads_out_of(self, root: Location, *, within: bool) -> bool:
        """Whether a link leads out of a resolved folder; within: a file that is no link does not."""
        if isinstance(self.location, StoreUrl) or (within and not self.location.is_symlink()):
            return False
        return _leads_out(self.location, root)


def _leads_out(path: Path, root: Location) -> bool:
    return not Path(os.path.realpath(path)).is_relative_to(str(root))


def entries_of(folder: Location, most: int = sys.maxsize - 1) -> dict[str, Found]:
    """The contents of a folder, at most `most` + 1. Raises OSError where it cannot be listed."""
    if isinstance(folder, StoreUrl):
        listed = itertools.islice(open_store(folder).list_folder().items(), most + 1)
        return {name: Found(folder / name, size) for name, size in listed}
    return {entry.name: Found(entry) for entry in itertools.islice(folder.iterdir(), most + 1)}


def names_in(folder: Location) -> list[str]:
    """The names in it, sorted. Raises OSError where it is missing or cannot be listed."""
    names = sorted(entries_of(folder) if isinstance(folder, StoreUrl) else os.listdir(folder))  # noqa: PTH208
    if isinstance(folder, StoreUrl) and not names:
        raise FileNotFoundError(str(folder))
    return names


def is_anything(place: Location) -> bool:
    """Whether there is a folder or a file of this name. Raises OSError."""
    return bool(entries_of(place)) if isinstance(place, StoreUrl) else os.path.lexists(place)


# Where a period's dump lies: in a folder for each leaf, or in one whose files have a column of regions.

PREFIX = "region="
EVERY = ""
"""In the place of a leaf: the one folder that holds the rows of every leaf."""


def parts_of(settings: Settings, day: date) -> tuple[str, ...]:
    """Return the parts of a day's dump: each leaf, in the tree's order, or `EVERY` alone."""
    return settings.tree_of(day).leaves if settings.input.region is None else (EVERY,)


def top_of(part: str) -> str:
    """Return the folder of a part's days, below the input folder; empty where it is that itself."""
    return f"{PREFIX}{part}" if part else ""


def place_of(part: str, day: date) -> str:
    """Return the folder of a part's dump of a day, below the input folder."""
    dated = partition_of(day)
    return f"{top_of(part)}/{dated}" if part else dated


def pattern_of(settings: Settings) -> PathPattern | None:
    """Return the pattern of the files' paths; None where they have the usual layout."""
    return None if settings.input.path is None else path_pattern(settings.input.path)


def shown_place(settings: Settings, part: str, day: date) -> str:
    """Return where the dump of a part and a day lies, as messages name it."""
    pattern = pattern_of(settings)
    return place_of(part, day) if pattern is None else pattern.shown(part, day)


def name_of(settings: Settings, part: str, day: date, file: Location) -> str:
    """Return what messages call a file of a part and a day."""
    if settings.input.path is None:
        return f"{place_of(part, day)}/{file.name}"
    return name_below(file, settings.input_folder)


def quoted_name_of(settings: Settings, part: str, day: date, file: Location) -> str:
    """Return the same with the file's own name in quotes, and short."""
    folder, slash, _ = name_of(settings, part, day, file).rpartition("/")
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
MOST_FILES = 10_000
"""Entries of one folder of a day."""
LARGEST_FOLDER = 10**6
"""Entries of one folder of many days."""
ENDINGS = (".parquet", ".csv", ".csv.gz", ".tsv", ".tsv.gz", ".zip", ".xls")
"""Of the files of the usual layout; `.xls` of texts, which suppliers name so, and no workbooks."""
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
    if pattern := pattern_of(settings):
        found = {tuple(one.dated.items()) for one in _walk(settings, pattern)}
        return frozenset(period for one in found for period in _periods_in(settings, pattern, dict(one)))
    return frozenset(_periods_of({name for _, names in _dated_names(settings) for name in names}))


def deliveries(settings: Settings) -> Iterator[tuple[date, Callable[[], Collection[str]]]]:
    """Yield the periods that a region has files of, and a function that lists them and their markers."""
    if pattern := pattern_of(settings):
        for one in _walk(settings, pattern):
            for period in _periods_in(settings, pattern, one.dated)[:1]:
                yield period, partial(set, {*one.marks, one.found.location.name})
    else:
        for top, names in _dated_names(settings):
            for period, name in _periods_of(names).items():
                yield period, partial(entries_of, top / name, MOST_FILES)


def _dated_names(settings: Settings) -> Iterator[tuple[Location, list[str]]]:
    """Yield each region's folder with the names in it, rising."""
    for part in settings.dated_hierarchy.leaves() if settings.input.region is None else (EVERY,):
        top = settings.input_folder / top_of(part) if part else settings.input_folder
        names = _names_if_any(top)
        if settings.stream.period == "hour":
            names = [f"{name}/{hour}" for name in names for hour in _names_if_any(top / name)]
        yield top, names


def _periods_of(names: Iterable[str]) -> dict[date, str]:
    """Return the periods that some of these are folders of, each with its folder's name."""
    found = {}
    for name in names:
        with suppress(ValueError):
            found[period_from_partition(name)] = name
    return found


def _names_if_any(folder: Location) -> list[str]:
    with suppress(OSError):
        return names_in(folder)
    return []


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


def arrivals_of(settings: Settings, days: Sequence[date]) -> dict[date, Arrival | None]:
    """Return the arrivals of each day, None if a store cannot list them; raises OSError."""
    top = settings.input_folder
    root = Path(os.path.realpath(top)) if isinstance(top, Path) else top
    found = [name for name in names_in(top) if name not in _later(settings)]
    if pattern := pattern_of(settings):
        return _patterned(settings, pattern, days, root)
    regions = [name for name in found if name.startswith(PREFIX)]
    stray = next(_strays(settings, found, regions, days), None)
    return {day: _usual_arrival(settings, day, regions, stray, root) for day in days}


def _later(settings: Settings) -> set[str]:
    """Return the folders of planned revisions, which are no part of the first delivery."""
    return {f"{DELIVERY}{number}" for number in range(1, 1 + (settings.budget.revisions or 0))}


def _strays(
    settings: Settings, names: Sequence[str], regions: Sequence[str], days: Sequence[date]
) -> Iterator[str]:
    """Yield names above the folders of these days that are neither hidden nor a folder of the layout."""
    top = settings.input_folder
    yield from map(_table, _tables_around(settings))
    yield from _odd_names("", names, "region" if settings.input.region is None else "date")
    folders = [(place, "date") for place in regions]
    if settings.stream.period == "hour":
        places = (place_of(part, day).rpartition("/")[0] for day in days for part in parts_of(settings, day))
        folders += [(place, "hour") for place in dict.fromkeys(places)]
    alike: dict[str, set[str]] = {"date": set(), "hour": set()}
    for place, key in folders:
        try:
            new = {*names_in(top / place)} - alike[key]
        except NotADirectoryError:
            yield f"{place!r:.80} must be a folder; {_MOVE}"
        except OSError:
            continue  # its days are missing, or cannot be looked into: they say so
        else:
            yield from _odd_names(f"{place}/", sorted(new), key)
            alike[key] |= new  # else they had stopped all days


def _odd_names(place: str, names: Iterable[str], key: str) -> Iterator[str]:
    """Yield a message for each name of a folder that holds only folders `key=…`."""
    for name in names:
        if TABLE_LOG.fullmatch(name):
            yield _table(f"{place}{name!r:.80}")
        elif not is_hidden(name) and not _is_folder_of(key, place, name):
            yield (f"{place}{name!r:.80} is no folder {_FOLDERS[key]}; {_MOVE}")


_MOVE = (
    'move its readings into the folder of their day, move it away, or begin its name with "_", which hides it'
)
_FOLDERS = {"region": "region=CODE", "date": "date=YYYY-MM-DD", "hour": "hour=HH"}


def _is_folder_of(key: str, place: str, name: str) -> bool:
    if name.startswith(PREFIX):
        return not place  # in place of a day's folder it stops that day alone
    if key == "region":
        return False
    with suppress(ValueError):
        period_from_partition(f"{place.strip('/').rpartition('/')[2]}/{name}" if key == "hour" else name)
        return True
    return False


def is_hidden(name: str) -> bool:
    """Whether a name begins with "." or "_", or is of what Windows and Office leave in folders."""
    return name[0] in "._" or name.startswith("~$") or name.lower() in ("thumbs.db", "desktop.ini")


def _tables_around(settings: Settings) -> Iterator[str]:
    """Yield the log of a table that the input folder is a partition of, or the data of."""
    folder = settings.input_folder
    if folder.name in _later(settings):  # which is below the first delivery's folder, and no part of it
        folder = folder.parent
    if isinstance(folder, Path):
        folder = Path(os.path.realpath(folder))
    while "=" in folder.name or folder.name == "data":
        holds_data, folder = folder.name == "data", folder.parent
        for name in filter(TABLE_LOG.fullmatch, _names_if_any(folder)):
            # of another folder's metadata nothing follows: Iceberg's has files of this ending
            is_log = name != "metadata" or any(
                one.endswith(".metadata.json") for one in _names_if_any(folder / name)
            )
            if is_log or not holds_data:
                yield f"{str(folder)!r:.80}/{name}"


def _table(log: str) -> str:
    return (
        f"{log} is the log of a table, whose folder keeps files with deleted and replaced rows; deliver the "
        "table's present rows as plain Parquet files in a folder without it"
    )


def _usual_arrival(
    settings: Settings, day: date, regions: Sequence[str], stray: str | None, root: Location
) -> Arrival | None:
    within, known = partition_of(day), {top_of(part) for part in parts_of(settings, day)}
    unknown = [name for name in regions if name not in known]
    try:
        delivered = [name for name in unknown if is_anything(settings.input_folder / name / within)]
    except OSError:
        return None
    layout = settings.input_of(day)

    def files_of(part: str) -> dict[Found, str]:
        place = place_of(part, day)
        return _part_files(layout, settings.input_folder / place, place, root)

    return _arrival(settings, day, delivered, stray, files_of)


def _arrival(
    settings: Settings,
    day: date,
    delivered: Sequence[str],
    stray: str | None,
    files_of: Callable[[str], Mapping[Found, str]],
) -> Arrival:
    """The files of a day. delivered: what there is of unknown regions. files_of: those of a part, with the
    hashes that lists give. Raises what is wrong with them.
    """
    parts = parts_of(settings, day)
    files, broken, waiting = {}, {}, {}
    absent, hashes, sizes = list[str](), dict[Location, str](), dict[tuple[str, Location], int]()
    for part in parts:
        try:
            found = files_of(part)
            sizes |= {(part, file.location): file.size for file in found}
            files[part] = tuple(file.location for file in found)
            hashes |= {file.location: tag for file, tag in found.items() if tag}
        except LateDumpError as error:
            waiting[part] = str(error)
            absent += [part] if isinstance(error, _AbsentDumpError) else []
        except DumpError as error:
            broken[part] = str(error)
        except OSError:
            place = shown_place(settings, part, day)
            broken[part] = f"the folder {place} cannot be looked into; fix its permissions"
    broken |= _shared(settings, files, day)
    files = {part: own for part, own in files.items() if part not in broken}
    if sum(sizes.values()) > LARGEST_DAY:
        (part, path), size = max(sizes.items(), key=lambda one: one[1])
        broken[part] = (
            f"{quoted_name_of(settings, part, day, path)} has {size / 2**30:,.1f} of the day's "
            f"{sum(sizes.values()) / 2**30:,.1f} GiB, which may have {LARGEST_DAY // 2**30} in all; look at "
            "where it came from, and deliver it again in fewer bytes"
        )
        files.pop(part, None)
    if stray is not None:
        broken = {parts[0]: stray}
        files.pop(parts[0], None)
        waiting.pop(parts[0], None)
    names = tuple(name.removeprefix(PREFIX) for name in delivered)
    return Arrival(day, names, files, waiting, broken, tuple(absent), hashes)


def _shared(settings: Settings, files: Mapping[str, tuple[Location, ...]], day: date) -> dict[str, str]:
    """Return the leaves with a file that an earlier leaf has: its customers would count twice."""
    owners: dict[tuple[int, int], str] = {}
    shared = {}
    for leaf, own in files.items():
        for path in own:
            if isinstance(path, StoreUrl):
                continue
            try:
                found = path.stat()
            except OSError:  # gone since it was listed: its reader says so
                continue
            owner = owners.setdefault((found.st_dev, found.st_ino), leaf)
            if owner != leaf:
                name = quoted_name_of(settings, leaf, day, path)
                shared[leaf] = f"{name} is also a file of leaf {owner!r}; deliver each leaf's own readings"
    return shared


def _dump_of(settings: Settings, day: date, arrival: Arrival | None) -> Dump | DumpError:
    if arrival is None:
        return LateDumpError(f"{day}: the input folder {settings.input.folder!r} cannot be listed; run again")
    if arrival.unknown_regions:
        listed = some_of([PREFIX + name for name in arrival.unknown_regions])
        if settings.input.region is not None:
            return DumpError(
                f"{day}: {listed} lies next to the folder of all regions; remove it, or take input.region out"
            )
        return DumpError(
            f"{day}: {listed} is not a leaf of the hierarchy of that day, which has "
            f"{some_of(parts_of(settings, day))}; add it to [[hierarchy.changes]], or remove its dump"
        )
    if arrival.broken:
        return DumpError(f"{day}: " + _once_each(settings, arrival.broken, day))
    if arrival.waiting:
        return LateDumpError(f"{day}: " + _once_each(settings, arrival.waiting, day))
    return Dump(day, tuple(arrival.files[part] for part in parts_of(settings, day)), arrival.hashes)


def _part_files(layout: Input, folder: Location, place: str, root: Location) -> dict[Found, str]:
    """Return the Parquet files of a complete dump, each with its SHA-256 if a list gives it, else "". root:
    the input folder, resolved.
    """
    if isinstance(folder, Path) and not folder.is_dir():
        raise _AbsentDumpError(f"the dump {place} is missing")
    try:
        present = entries_of(folder, MOST_FILES)
    except OSError:
        raise DumpError(f"the folder {place} cannot be listed") from None
    if isinstance(folder, StoreUrl) and not present:
        raise _AbsentDumpError(f"the dump {place} is missing")
    if len(present) > MOST_FILES:
        raise DumpError(f"{place} must hold at most {MOST_FILES:,} files; merge them")
    announcement, kind = layout.announcement, "marker" if layout.file_list is None else "file list"
    if logs := sorted(filter(TABLE_LOG.fullmatch, present)):
        raise DumpError(_table(f"{place}/{logs[0]!r:.80}"))
    if announcement and announcement not in present:
        raise LateDumpError(f"the {kind} {announcement} of {place} is absent")
    if announcement and not present[announcement].is_file:
        raise DumpError(f"the {kind} {place}/{announcement} must be a file; replace it")
    names = sorted(name for name in present if name != announcement and not is_hidden(name))
    if other := [name for name in names if not name.endswith(ENDINGS)]:
        raise DumpError(
            f"{place}/{other[0]!r:.80} must end in {', '.join(ENDINGS[:-1])} or {ENDINGS[-1]}; rename "
            "it if it is a whole file of that kind, else move it away, or begin its name with "
            '"_", which hides it'
        )
    hashes = dict.fromkeys(names, "")
    if layout.file_list is not None:
        hashes |= _listed(layout.file_list, present[announcement], place, names)
    if not names and not announcement:
        raise LateDumpError(f"{place} holds no Parquet or CSV file")
    if not names:
        raise DumpError(f"{place} is marked complete but holds no Parquet or CSV file")
    within = isinstance(folder, Path) and not _leads_out(folder, root)
    looked_at = [*names, *filter(None, [announcement])]
    _check({f"{place}/{name!r:.80}": present[name] for name in looked_at}, root, within=within)
    if not announcement:
        _check_settled({f"{place}/{name!r:.80}": present[name] for name in names})
    return {present[name]: hashes[name] for name in names}


def _check_settled(files: Mapping[str, Found]) -> None:
    """Raise LateDumpError for the first of some files, by what messages call them, that changed just now."""
    for name, found in files.items():
        age = time.time() - found.changed
        if (left := SETTLED.total_seconds() - age) > 0:
            raise LateDumpError(
                f"{name} changed just now, may still be written, and has no marker (input.marker): run again "
                f"in {math.ceil(left / 60)} min{', or correct its time, which is to come' * (age < 0)}"
            )


def _check(files: Mapping[str, Found], root: Location, *, within: bool) -> None:
    """Raise DumpError for the first of some files, by what messages call them, that cannot be read."""
    for name, found in files.items():
        own = found.location.name
        if not found.is_file:
            rule = "must be a file"
        elif not own.isprintable():
            rule = "must have a name of printable characters; rename it"
        elif isinstance(root, StoreUrl) and not UNREADABLE_IN_A_STORE.isdisjoint(own):
            rule = "must have a name without ?#%*[]\\; rename it"
        elif found.leads_out_of(root, within=within):
            rule = "leads outside the input folder; deliver the file itself, or make input.folder the link"
        else:
            continue
        raise DumpError(f"{name} {rule}")


# Files whose paths a pattern describes: folders are walked as far as the names fit wanted days.


@dataclass(frozen=True)
class _Match:
    """A file that fits the pattern. marks: markers and lists in its folder or above. names: of its folder."""

    found: Found
    place: str
    fields: Fields
    marks: Mapping[str, Found]
    names: Sequence[str]

    @property
    def region(self) -> str:
        return self.fields.get("region", EVERY)

    @property
    def dated(self) -> Fields:
        return _dated(self.fields)


def _dated(fields: Fields) -> Fields:
    return {key: value for key, value in sorted(fields.items()) if key != "region"}


def _periods_in(settings: Settings, pattern: PathPattern, fields: Fields) -> Sequence[date]:
    """Return the periods of a file; of one with many days those before today."""
    days = pattern.days(fields)
    if days is None:
        return ()
    if hour := fields.get("hour"):
        return (Hour(days[0], int(hour[:2]), hour.endswith("B")),)
    if pattern.is_of_one_day:
        return settings.calendar.periods(*days)
    over = settings.local_day(datetime.now(UTC)) - timedelta(days=1)
    return settings.calendar.periods(max(days[0], settings.watching.first_day or days[0]), min(days[1], over))


def _walk(
    settings: Settings,
    pattern: PathPattern,
    wanted: Collection[Fields] | None = None,
    odd: list[tuple[str, Fields]] | None = None,
) -> Iterator[_Match]:
    """Yield the files of wanted dates, or all. odd: gets names that do not fit, with what folders say."""
    markers = {layout.announcement for _, layout in settings.input.layouts} - {""}
    later = _later(settings)
    strays, last = [] if odd is None else odd, len(pattern.segments) - 1
    known: dict[frozenset[str], set[frozenset[tuple[str, str]]]] = {}

    def is_wanted(fields: Fields) -> bool:
        dated = _dated(fields)
        keys = frozenset(dated)
        if wanted is not None and keys not in known:
            known[keys] = {frozenset((key, one[key]) for key in keys if key in one) for one in wanted}
        return wanted is None or frozenset(dated.items()) in known[keys]

    def below(folder: Location, place: str, fields: Fields, marks: Mapping[str, Found]) -> Iterator[_Match]:
        depth = place.count("/")
        try:
            entries = entries_of(folder, LARGEST_FOLDER)
        except OSError:
            hides = ', move it away, or begin its name with "_", which hides it' if place else ""
            rule = (
                f"{place or 'the input folder'!r:.80} must be a folder that can be listed; permit it{hides}"
            )
            strays.append((rule, fields))
            return
        if len(entries) > LARGEST_FOLDER:
            strays.append((f"{place!r:.80} must hold at most {LARGEST_FOLDER:,} files", fields))
            return
        marks = {**marks, **{name: entries[name] for name in markers & entries.keys()}}
        names = sorted(name for name in entries if name not in markers and not is_hidden(name))
        names = names if place else [name for name in names if name not in later]
        for log in sorted(filter(TABLE_LOG.fullmatch, entries)):
            strays.append((_table(f"{place}{log!r:.80}"), fields))
        for name in names:
            found = pattern.match(depth, name, fields)
            is_dated = found is not None and pattern.directives <= found.keys()
            if found is None or (is_dated and pattern.days(found) is None):
                if depth == last or not pattern.is_literal(depth):
                    strays.append(
                        (f"{place}{name!r:.80} does not fit input.path, {pattern.text!r}; {_HIDE}", fields)
                    )
            elif is_wanted(found) and depth == last:
                yield _Match(entries[name], f"{place}{name}", found, marks, names)
            elif is_wanted(found):
                yield from below(entries[name].location, f"{place}{name}/", found, marks)

    def in_table(log: Found) -> Iterator[_Match]:
        """The files of a Delta table, whose log is the marker of all."""
        commits = entries_of(log.location, LARGEST_FOLDER).items()
        names = present_files({name: found.read for name, found in commits})
        for place in sorted(names):
            fields: Fields | None = {} if place.count("/") == last else None
            location = settings.input_folder
            for depth, name in enumerate(place.split("/")):
                fields = None if fields is None else pattern.match(depth, name, fields)
                location /= name
            if fields is None or pattern.days(fields) is None:
                strays.append((f"{place!r:.200} of the table does not fit input.path, {pattern.text!r}", {}))
            elif is_wanted(fields):
                yield _Match(Found(location), place, fields, dict.fromkeys(markers, log), ())

    try:
        log = entries_of(settings.input_folder, LARGEST_FOLDER).get(LOG)
        yield from below(settings.input_folder, "", {}, {}) if log is None else in_table(log)
    except DumpError as error:
        strays.append((str(error), {}))
    except OSError:
        strays.append(("the input folder or the log of its table cannot be listed", {}))


_HIDE = 'correct one of them, move the file away, or begin its name with "_", which hides it'


def _patterned(
    settings: Settings, pattern: PathPattern, days: Sequence[date], root: Location
) -> dict[date, Arrival | None]:
    """Return the arrivals of each day by the pattern of the files' paths."""
    wanted = {
        day: pattern.wanted(day, settings.calendar, settings.input_of(day).stamps == "end") for day in days
    }
    odd: list[tuple[str, Fields]] = [(_table(log), {}) for log in _tables_around(settings)]
    matches: defaultdict[tuple[tuple[str, str], ...], defaultdict[str, list[_Match]]] = defaultdict(
        lambda: defaultdict(list)
    )
    for one in _walk(settings, pattern, [fields for own in wanted.values() for fields in own], odd):
        matches[tuple(one.dated.items())][one.region].append(one)
    hashes: dict[str, Mapping[str, str]] = {}

    def files_of(part: str, day: date) -> dict[Found, str]:
        layout, shown = settings.input_of(day), pattern.shown(part, day)
        found = [matches[tuple(sorted(one.items()))][part] for one in wanted[day]]
        if not any(found):
            raise _AbsentDumpError(f"the dump {shown} is missing")
        if not all(found):
            raise LateDumpError(f"of the dump {shown} the files of one date are missing")
        files = {}
        for one in (match for own in found for match in own):
            folder = one.place.rpartition("/")[0]
            if layout.announcement and layout.announcement not in one.marks:
                kind = "marker" if layout.file_list is None else "file list"
                raise LateDumpError(f"the {kind} {layout.announcement} of {one.place} is absent")
            _check({f"{one.place!r:.200}": one.found}, root, within=False)
            if not layout.announcement:
                _check_settled({f"{one.place!r:.200}": one.found})
            if layout.file_list is not None and one.names and folder not in hashes:
                listed = one.marks[layout.file_list]
                hashes[folder] = _listed(layout.file_list, listed, folder, one.names, ("",))
            files[one.found] = hashes.get(folder, {}).get(one.found.location.name, "")
        if len(files) > MOST_FILES:
            raise DumpError(f"{shown} must be at most {MOST_FILES:,} files; merge them")
        may_lack = settings.metered or layout.missing_rows == "zero"
        ends = settings.calendar.ends_at(day)
        if may_lack and not pattern.is_of_one_day and max(one.changed for one in files) < ends.timestamp():
            raise LateDumpError(
                f"{shown} was last changed before {day} was over, and absent rows count as 0: wait for its "
                "supplier, or touch it if it has all of the day"
            )
        return files

    arrivals: dict[date, Arrival | None] = {}
    for day in days:
        parts = set(parts_of(settings, day))
        regions = {region for one in wanted[day] for region in matches[tuple(sorted(one.items()))]}
        strays = (words for words, of in odd if any(_dated(of).items() <= one.items() for one in wanted[day]))
        if not pattern.is_of_one_day:  # a file of a month may be of a leaf that begins or ends in it
            known = {leaf for one in wanted[day] for leaf in _leaves_within(settings, pattern.days(one))}
            regions -= known
        unknown = sorted(f"{PREFIX}{region}" for region in regions - parts)
        arrivals[day] = _arrival(settings, day, unknown, next(strays, None), partial(files_of, day=day))
    return arrivals


def _leaves_within(settings: Settings, days: tuple[date, date] | None) -> Iterator[str]:
    """Yield the leaves of some day of a span."""
    if days is not None:
        changes = settings.dated_hierarchy.changes_between(*days)
        for day in (days[0], *(one.valid_from for one in changes)):
            yield from settings.tree_of(day).leaves


def _listed(
    file_list: str, found: Found, place: str, names: Sequence[str], endings: tuple[str, ...] = ENDINGS
) -> dict[str, str]:
    """Return the SHA-256 that a list gives of each file of its folder, or ""."""
    try:
        content = found.read(LARGEST_LIST)
        lines = content.decode("utf-8").splitlines()
    except FileNotFoundError:
        raise LateDumpError(f"the file list {file_list} of {place} is absent") from None
    except (OSError, UnicodeDecodeError):
        raise DumpError(f"the file list {place}/{file_list} must be readable UTF-8 text") from None
    if len(content) > LARGEST_LIST:
        raise DumpError(f"the file list {place}/{file_list} must be at most 16 MiB")
    entries = [entry for line in lines if (entry := LISTED.fullmatch(line.strip()))]
    hashes, listed = {one[2]: (one[1] or "").lower() for one in entries}, [one[2] for one in entries]
    if any(hashes.values()) and not all(hashes.values()):
        raise DumpError(f"the file list {place}/{file_list} must have the SHA-256 of every file, or of none")
    for name in listed:
        if set(name) & {*"/\\\0"} or name[0] in "._" or not name.endswith(endings):
            raise DumpError(f"the file list {place}/{file_list} must hold plain names of data files only")
    if len(set(listed)) < len(listed):
        raise DumpError(f"the file list {place}/{file_list} must name each file once")
    if absent := sorted(set(listed) - set(names)):
        raise LateDumpError(f"{place}/{absent[0]!r:.80} is listed but absent")
    if extra := sorted(set(names) - set(listed)):
        raise DumpError(f"{place}/{extra[0]!r:.80} is not in the file list {file_list}")
    return hashes


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
