"""Which dumps have arrived: folders, markers and file lists. Nothing is opened but the lists.

An entry whose name begins with "." or "_" is hidden, and ignored. Every other entry is a folder of the
layout, a Parquet file of a day, or stops the day. The log of a table stops it too: only a reader of such logs
knows which of the table's files still hold.
"""

import itertools
import os
import re
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path

from optstream.errors import DumpError
from optstream.storage.store import Location, StoreUrl, open_store
from optstream.stream import partition_of, period_from_partition
from optstream.stream.tree import some_of
from tasks.config import Input, Settings
from tasks.config.settings import DELIVERY

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
    return frozenset(_periods_of({name for _, names in _dated_names(settings) for name in names}))


def dated_folders(settings: Settings) -> Iterator[tuple[date, Location]]:
    """Yield the periods that a region has a folder of, each with it, region by region, rising."""
    for top, names in _dated_names(settings):
        yield from ((period, top / name) for period, name in _periods_of(names).items())


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
    later = {f"{DELIVERY}{number}" for number in range(1, 1 + (settings.budget.revisions or 0))}
    found = [name for name in names_in(top) if name not in later]
    regions = [name for name in found if name.startswith(PREFIX)]
    stray = next(_strays(settings, found, regions, days), None)
    return {day: _arrival(settings, day, regions, stray, root) for day in days}


def _strays(
    settings: Settings, names: Sequence[str], regions: Sequence[str], days: Sequence[date]
) -> Iterator[str]:
    """Yield names above the folders of these days that are neither hidden nor a folder of the layout."""
    top = settings.input_folder
    yield from map(_table, _tables_around(top))
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
        elif not _is_hidden(name) and not _is_folder_of(key, place, name):
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


def _is_hidden(name: str) -> bool:
    return name[0] in "._"


def _tables_around(folder: Location) -> Iterator[str]:
    """Yield the log of a table that the input folder is a partition of, or the data of."""
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


def _arrival(
    settings: Settings, day: date, regions: Sequence[str], stray: str | None, root: Location
) -> Arrival | None:
    within, parts = partition_of(day), parts_of(settings, day)
    known = {top_of(part) for part in parts}
    unknown = [name for name in regions if name not in known]
    try:
        delivered = [name for name in unknown if is_anything(settings.input_folder / name / within)]
    except OSError:
        return None
    files, broken, waiting, layout = {}, {}, {}, settings.input_of(day)
    absent, hashes, sizes = list[str](), dict[Location, str](), dict[tuple[str, Location], int]()
    for part in parts:
        place = place_of(part, day)
        try:
            found = _part_files(layout, settings.input_folder / place, place, root)
            sizes |= {(part, file.location): file.size for file in found}
            files[part] = tuple(file.location for file in found)
            hashes |= {file.location: tag for file, tag in found.items() if tag}
        except LateDumpError as error:
            waiting[part] = str(error)
            absent += [part] if isinstance(error, _AbsentDumpError) else []
        except DumpError as error:
            broken[part] = str(error)
        except OSError:
            broken[part] = f"the folder {place} cannot be looked into; fix its permissions"
    broken |= _shared(files, day)
    files = {part: own for part, own in files.items() if part not in broken}
    if sum(sizes.values()) > LARGEST_DAY:
        (part, path), size = max(sizes.items(), key=lambda one: one[1])
        broken[part] = (
            f"{place_of(part, day)}/{path.name!r:.80} has {size / 2**30:,.1f} of the day's "
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


def _shared(files: Mapping[str, tuple[Location, ...]], day: date) -> dict[str, str]:
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
                place = f"{place_of(leaf, day)}/{path.name!r:.80}"
                shared[leaf] = f"{place} is also a file of leaf {owner!r}; deliver each leaf's own readings"
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
        return DumpError(f"{day}: " + _once_each(arrival.broken, day))
    if arrival.waiting:
        return LateDumpError(f"{day}: " + _once_each(arrival.waiting, day))
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
    if announcement not in present:
        raise LateDumpError(f"the {kind} {announcement} of {place} is absent")
    if not present[announcement].is_file:
        raise DumpError(f"the {kind} {place}/{announcement} must be a file; replace it")
    names = sorted(name for name in present if name != announcement and not _is_hidden(name))
    if other := [name for name in names if not name.endswith(".parquet")]:
        raise DumpError(
            f"{place}/{other[0]!r:.80} must end in .parquet; rename it if it is a whole Parquet file, else "
            'move it away, or begin its name with "_", which hides it'
        )
    hashes = dict.fromkeys(names, "")
    if layout.file_list is not None:
        hashes |= _listed(layout.file_list, present[announcement], place, names)
    if not names:
        raise DumpError(f"{place} is marked complete but holds no Parquet file")
    unreadable = UNREADABLE_IN_A_STORE if isinstance(folder, StoreUrl) else frozenset()
    for is_right, rule in (
        (lambda name: present[name].is_file, "must be a file"),
        (str.isprintable, "must have a name of printable characters; rename it"),
        (unreadable.isdisjoint, "must have a name without ?#%*[]\\; rename it"),
    ):
        if odd := [name for name in names if not is_right(name)]:
            raise DumpError(f"{place}/{odd[0]!r:.80} {rule}")
    within = isinstance(folder, Path) and not _leads_out(folder, root)
    if away := [one for one in (announcement, *names) if present[one].leads_out_of(root, within=within)]:
        raise DumpError(
            f"{place}/{away[0]!r:.80} leads outside the input folder; deliver the file itself, "
            "or make input.folder the link"
        )
    return {present[name]: hashes[name] for name in names}


def _listed(file_list: str, found: Found, place: str, names: Sequence[str]) -> dict[str, str]:
    """Return the SHA-256 that a list gives of each Parquet file of its folder, or ""."""
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
        if "/" in name or "\\" in name or "\0" in name or name[0] in "._" or not name.endswith(".parquet"):
            raise DumpError(f"the file list {place}/{file_list} must hold plain names of Parquet files only")
    if len(set(listed)) < len(listed):
        raise DumpError(f"the file list {place}/{file_list} must name each file once")
    if absent := sorted(set(listed) - set(names)):
        raise LateDumpError(f"{place}/{absent[0]!r:.80} is listed but absent")
    if extra := sorted(set(names) - set(listed)):
        raise DumpError(f"{place}/{extra[0]!r:.80} is not in the file list {file_list}")
    return hashes


def _once_each(found: Mapping[str, str], day: date) -> str:
    """Join problems of dumps, by leaf: once where a whole delivery has one."""
    alike: defaultdict[str, list[str]] = defaultdict(list)
    for part, message in found.items():
        alike[message.replace(place_of(part, day), "")].append(part)
    return several(found[first] + likewise(others) for first, *others in alike.values())


def likewise(leaves: Sequence[str]) -> str:
    """Return how a message goes on that holds for other leaves, too."""
    return f" (and so for {some_of(leaves)})" if leaves else ""


def several(messages: Iterable[str]) -> str:
    """Return the problems of a day's dumps in a line that does not grow with the leaves."""
    found = list(messages)
    more = len(found) - MOST_SAID
    return "; ".join(found[:MOST_SAID]) + (f"; and {more:,} more like these" if more > 0 else "")
