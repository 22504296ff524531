"""What the files of a folder say in public: names, columns, types and stamps of one file, never a reading."""

import os
import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from itertools import product, takewhile
from pathlib import Path
from zoneinfo import ZoneInfo

import polars as pl

from data_contracts.metrics import LIMITS
from optstream.errors import DumpError
from optstream.storage.parquet import claims_of
from optstream.stream import Calendar
from tasks.config.pattern import PathPattern, path_pattern
from tasks.config.schema import DEFAULT_MARKER
from tasks.config.settings import UNITS
from tasks.ingest.arrivals import ENDINGS, TABLE_LOG, Found
from tasks.ingest.clock import EPOCH, shifted_slots
from tasks.ingest.delta import LOG, present_files
from tasks.ingest.formats import UNREADABLE, scan_file
from tasks.ingest.text import TextForm, header_of, microseconds_of, scan_text

MOST_FILES = 1_000_000
FILES_OF_REGIONS = 31
"""Files whose column of regions is read for their names."""
DATES = (
    (r"year=(\d{4})/month=(\d\d?)/day=(\d\d?)(?!\d)", "year={date:%Y}/month={date:%m}/day={date:%d}"),
    (r"(?<!\d)(\d{4})/(\d\d?)/(\d\d?)(?!\d)", "{date:%Y}/{date:%m}/{date:%d}"),
    (r"(?<!\d)(\d{4})-(\d\d?)-(\d\d?)(?!\d)", "{date:%Y-%m-%d}"),
    (r"(?<!\d)(\d{4})_(\d\d?)_(\d\d?)(?!\d)", "{date:%Y_%m_%d}"),
    (r"(?<!\d)(\d{4})(\d\d)(\d\d)(?!\d)", "{date:%Y%m%d}"),
    (r"year=(\d{4})/month=(\d\d?)(?!\d)", "year={date:%Y}/month={date:%m}"),
    (r"(?<!\d)(\d{4})/(\d\d)(?!\d)", "{date:%Y}/{date:%m}"),
    (r"(?<!\d)(\d{4})-(\d\d)(?!\d)", "{date:%Y-%m}"),
    (r"(?<!\d)(\d{4})_(\d\d)(?!\d)", "{date:%Y_%m}"),
    (r"(?<!\d)(\d{4})(\d\d)(?!\d)", "{date:%Y%m}"),
    (r"(?<!\d)(\d{4})(?!\d)", "{date:%Y}"),
)
"""How names write dates, the longest first, and the same in `input.path`."""
COMMON_ZONES = (
    "Europe/Paris", "Europe/London", "Europe/Athens", "America/New_York", "America/Chicago", "America/Denver",
    "America/Los_Angeles", "Australia/Sydney", "America/Sao_Paulo", "Asia/Kolkata", "Asia/Tokyo",
)  # fmt: skip
"""Zones that a usual answer may be: the first that fits."""
DAYS = (
    "%d/%m/%Y", "%m/%d/%Y", "%d.%m.%Y", "%m.%d.%Y", "%d-%m-%Y", "%m-%d-%Y", "%Y/%m/%d", "%Y.%m.%d",
    "%d-%b-%Y",
)  # fmt: skip
CLOCKS = ("", " %H:%M", " %H:%M:%S", " %I:%M %p", " %I:%M:%S %p")
FORMATS = tuple(day + clock for day in DAYS for clock in CLOCKS)
"""Of stamps that are not written by ISO 8601."""
USUAL = "region={region}/date={date:%Y-%m-%d}/*.parquet"
IN_ONE = "date={date:%Y-%m-%d}/*.parquet"
MARK = "\0"
PART = re.compile(r"(part|chunk|file|data)?[-_.]?[0-9a-f-]*", re.IGNORECASE)
"""Names that only number the files of one dump."""

TIME = re.compile(
    r"(\w+_)?(time_?stamp|zeitstempel|horodate|date_?time|datum|stamp|ts|tstp|time|date|utc|hours?|heures?|"
    r"zeit|hora|fecha)(_(local|utc|start|end|beginning|ending|from|to|at))*|day|(\w+_)?(start|end|from|at)"
)
ROLES = ("timestamp", "value", "region", "customer")
KEYS = r"s?(_?(id|uid|uuid|code|key|name|label|no|nr|num|number|hash|ref))*"
"""What may follow a noun in the name of a column that names things: no unit, no measure."""
NUMBERED = re.compile(r"(settlement_?)?period(_?(no|nr|num|number|id))?|sp")
CUSTOMER = re.compile(
    rf"(\w+_)?(customer|meter|household|client|user|device|account|person|mpan|pdl|prm|medallion){KEYS}|"
    r"(trip|ride)_id"
)
REGION = re.compile(
    r"((pu|pickup|grid|load|bidding|price)_?)?(region|zone|area|node|district|state|county|borough|location|site|"
    rf"feeder|substation|commune|departement|country|city|province|perimetre|leaf){KEYS}"
)
NO_NAME = re.compile(r"[-+.\d][-+\d.,:TZeE /]*([AaPp][Mm])?|\d\d?[-/. ]?[A-Za-z]{3}[-/. ]?\d.*")
"""A number or a time: a file's first line has it where the names of columns were left out."""
REVISION = re.compile(r"(revision|version|vintage)(_?(no|nr|num|number))?")
ABOUT = re.compile(
    r"(revision|version|vintage|quality|flag|status|row|id|lat|lon|nature|unit|source|type|dst|run)\w*|"
    r"\w+_(id|flag)"
)
MEASURED = re.compile(
    r"(value|load|demand|consumption|consommation|energy|power|usage|reading|amount|volume)\w*"
)
COUNTED = re.compile(
    r"(trips?|visits?|calls?|counts?|number|events?|riders?|passengers?|cases)\w*|\w+_(counts?|trips?)"
)


@dataclass(frozen=True)
class Roles:
    """Which columns are which. region: None where names of files have it. counts: of whole numbers."""

    timestamp: tuple[str, ...]
    period_number: str | None
    value: str
    customer: str | None
    region: str | None
    revision: str | None
    counts: bool


@dataclass(frozen=True)
class Survey:
    """Public facts of a folder's files. path: None for the usual layout. regions: the leaves' names. stamps:
    the unique ones of one file of n_days from `day` on, in microseconds, without a zone, or in UTC if zoned.
    stamps_format: how texts write them, None by ISO 8601. marked: whether there is any marker. zone: one
    whose change of the clock the stamps show.
    """

    folder: Path
    path: str | None
    first: date
    last: date
    regions: tuple[str, ...]
    roles: Roles
    decimal: str
    zoned: bool
    stamps: pl.Series
    stamps_format: str | None
    day: date
    n_days: int
    marked: bool
    zone: str | None

    @property
    def unit(self) -> str:
        """The unit at the end of the value column's name; empty where there is none."""
        end = plain(self.roles.value).rpartition("_")[2]
        return end if end in UNITS else ""

    @property
    def step_minutes(self) -> int:
        """The usual distance of neighbouring stamps, of those that divide a day."""
        if self.roles.period_number is not None:
            return 30
        apart = Counter(self.stamps.diff().drop_nulls().to_list())
        whole = {one: n for one, n in apart.items() if one and not one % 60_000_000}
        minutes = [(n, one // 60_000_000) for one, n in whole.items() if 1440 % (one // 60_000_000) == 0]
        return max(minutes, default=(0, 1440))[1]

    @property
    def is_undated(self) -> bool:
        """Whether the names of files have no dates."""
        return self.path is not None and not path_pattern(self.path).directives

    @property
    def span(self) -> tuple[datetime, datetime]:
        """The first and the last stamp of the file that was looked at."""
        first, last = self.stamps[0], self.stamps[-1]
        return EPOCH + timedelta(microseconds=first), EPOCH + timedelta(microseconds=last)

    def meanings(self, zone: str, minutes: int) -> list[tuple[bool, bool, bool]]:
        """Return what fits the file's days: whether stamps are instants, ends of steps, and days UTC's."""
        if self.roles.period_number is not None:
            return [(False, False, False)]
        if self.is_undated:
            clocks = (True,) if self.zoned else (False, True)
            return [(in_utc, by_end, False) for in_utc, by_end in product(clocks, (False, True))]
        (first, last), found = self.span, []
        for in_utc, utc_days, by_end in product((False, True), repeat=3):
            if (self.zoned and not in_utc) or (utc_days and not in_utc):
                continue
            days = ZoneInfo(zone if in_utc and not utc_days else "UTC")
            begins, ends = (
                datetime(one.year, one.month, one.day, tzinfo=days).astimezone(UTC).replace(tzinfo=None)
                for one in (self.day, self.day + timedelta(days=self.n_days))
            )
            lead = timedelta(minutes=minutes * by_end)
            if begins <= first - lead and last - lead < ends:
                found.append((in_utc, by_end, utc_days))
        return found


def plain(name: str) -> str:
    """Return a name in small letters without accents, words apart by "_"."""
    letters = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode("ascii")
    letters = re.sub(r"[kMG]Wh?(?![a-z])", lambda unit: f"_{unit[0].lower()}", letters)
    return re.sub(r"[^a-z0-9]+", "_", re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", letters).lower()).strip("_")


def survey(folder: Path, zone: str, named: Mapping[str, str] | None = None) -> Survey:
    """Look at a folder. zone: which days' files are looked at first. named: columns by `ROLES`, where a
    person says which they are.

    Raises DumpError where no configuration can describe the files.
    """
    files, marked = _files_in(folder)
    columns = _File.opened(folder / files[0]).types
    by_number = "region" not in (named or {}) and not any(REGION.fullmatch(plain(one)) for one in columns)
    path, found = _pattern(folder, files, by_number)
    pattern = path_pattern(path)
    days = {name: pattern.days(fields) for name, fields in found.items()}
    if not pattern.directives:
        days = dict.fromkeys(
            days, _days_in([_File.opened(folder / name) for name in days], named or {}, pattern)
        )
    spans = sorted({span for span in days.values() if span is not None})
    # a day that no UTC clock shares tells more
    moved = [span for span in spans if datetime(*span[0].timetuple()[:3], tzinfo=ZoneInfo(zone)).utcoffset()]
    # and one after the 12th which number of a date is the day's
    begins, ends = max(moved or spans, key=lambda span: (span[1].day > 12, span))
    name = next(one for one, span in days.items() if span == (begins, ends))
    file = _File.opened(folder / name)
    roles = _roles(name, file.types, named or {}, pattern.has_region)
    stamps, zoned, written = file.stamps(roles)
    if pattern.has_region:
        regions = {fields["region"] for fields in found.values()}
    else:
        some = [*found][:: max(1, len(found) // FILES_OF_REGIONS)][:FILES_OF_REGIONS]
        regions = {one for each in some for one in _File.opened(folder / each).names(str(roles.region))}
    return Survey(
        folder=folder,
        # a marker at the top goes with a pattern alone
        path=None if path in (USUAL, IN_ONE) and (not marked or name.rpartition("/")[0] in marked) else path,
        first=spans[0][0],
        last=spans[-1][1],
        regions=tuple(sorted(regions)),
        roles=roles,
        # of a text whose columns are apart by semicolons: a reading does not decide it
        decimal="," if file.form is not None and file.form.separator == ";" else ".",
        zoned=zoned,
        stamps=stamps,
        stamps_format=written,
        day=begins,
        n_days=(ends - begins).days + 1,
        marked=bool(marked),
        zone=None if zoned or roles.period_number else _zone_shown(folder, days, zone, roles, written),
    )


def _days_in(files: Sequence["_File"], named: Mapping[str, str], pattern: PathPattern) -> tuple[date, date]:
    """Return the first and the last day of files whose names have no date."""
    ends = list[datetime]()
    for file in files:
        stamps, *_ = file.stamps(_roles(file.path.name, file.types, named, pattern.has_region))
        ends += [datetime(1970, 1, 1) + timedelta(microseconds=int(stamps[place])) for place in (0, -1)]
    return min(ends).date(), max(ends).date()


# Names: which files there are, where they write the date, and where the region.


def _files_in(folder: Path) -> tuple[list[str], set[str]]:
    """Return the files below a folder that are not hidden, rising, and the folders with a marker."""
    files, marked = list[str](), set[str]()
    if (commits := folder / LOG).is_dir():
        with _readable(commits):
            present = present_files({one.name: Found(one).read for one in commits.iterdir()})
        return sorted(present), {"."}
    for parent, inner, names in os.walk(folder):
        if log := next(filter(TABLE_LOG.fullmatch, (*inner, *names)), None):
            raise DumpError(
                f"{Path(parent) / log} is the log of a table, whose folder keeps files with deleted and "
                "replaced rows; write the table's present rows as Parquet or CSV files into another folder"
            )
        inner[:] = sorted(one for one in inner if one[0] not in "._")
        below = Path(parent).relative_to(folder)
        marked |= {below.as_posix()} if DEFAULT_MARKER in names else set()
        files += [(below / one).as_posix() for one in names if one[0] not in "._"]
        if len(files) > MOST_FILES:
            raise DumpError(f"{folder} holds more than {MOST_FILES:,} files; name a folder with some of them")
    if odd := [one for one in files if not one.lower().endswith(ENDINGS)]:
        raise DumpError(
            f"{folder / odd[0]} ends in none of {', '.join(ENDINGS)}; rename it if it is a Parquet file or a "
            'text, else move it away, or begin its name with "_", which hides it'
        )
    if not files:
        raise DumpError(f"{folder} holds no file that is not hidden; name the folder of the dumps")
    return sorted(files), marked


def _pattern(folder: Path, files: Sequence[str], by_number: bool) -> tuple[str, dict[str, Mapping[str, str]]]:
    """Return the pattern that all files fit, and what their names say by it. by_number: no column of regions
    says what numbers in names may say.
    """
    for written, directives in DATES:
        expression = re.compile(written)
        marked = [expression.sub(MARK, one, count=1) for one in files]
        if not all(MARK in one for one in marked):
            continue
        dates = [expression.search(one)[0] for one in files]  # type: ignore[index]
        for text in _patterns(folder, marked, dates, by_number=by_number):
            path = text.replace(MARK, directives)
            try:
                known = _fields(path, files)
            except ValueError:
                continue
            if known is not None:
                return _all_dates(path, known)
    is_table = (folder / LOG).is_dir()
    if is_table or not any(re.search(written, one) for written, _ in DATES for one in files):
        for text in _patterns(folder, files, [""] * len(files), by_number=by_number, numbered=is_table):
            with suppress(ValueError):
                pattern = path_pattern(text)
                fitting = [(one, fields) for one in files if (fields := _match(pattern, one)) is not None]
                if len(fitting) == len(files):
                    return text, dict(fitting)
    raise DumpError(
        f"{folder} holds files such as {files[0]!r:.120}, whose paths do not all name a date in the "
        "same way: rename or move those that differ, to paths such as 2024/01/15.csv or "
        "date=2024-01-15/part-0.parquet"
    )


def _fields(path: str, files: Sequence[str]) -> dict[str, Mapping[str, str]] | None:
    """Return what a pattern says of each file, None where one does not fit. Raises ValueError for none."""
    pattern = path_pattern(path)
    found = {one: _match(pattern, one) for one in files}
    known = {one: fields for one, fields in found.items() if fields is not None and pattern.days(fields)}
    return known if len(known) == len(files) else None


def _all_dates(path: str, known: dict[str, Mapping[str, str]]) -> tuple[str, dict[str, Mapping[str, str]]]:
    """Return the pattern with the dates that all files so far have alike, as of a folder of their year."""
    for written, directives in DATES:
        # what stands as a directive already stays
        parts = re.split(r"(\{[^}]*\})", path)
        wider = "".join(one if one.startswith("{") else re.sub(written, directives, one) for one in parts)
        if wider != path and (found := _fields(wider, [*known])) is not None:
            path, known = wider, found
    return path, known


def _match(pattern: PathPattern, path: str) -> Mapping[str, str] | None:
    names, fields = path.split("/"), dict[str, str]()
    if len(names) != len(pattern.segments):
        return None
    for depth, name in enumerate(names):
        found = pattern.match(depth, name, fields)
        if found is None:
            return None
        fields = dict(found)
    return fields


def _patterns(
    folder: Path, marked: Sequence[str], dates: Sequence[str], *, by_number: bool, numbered: bool = False
) -> Iterator[str]:
    """Yield patterns with a mark for the date: with the region in a folder, in the file's name, nowhere.

    numbered: names of files mean nothing, as a table's.
    """
    rows = [one.split("/") for one in marked]
    if len({len(one) for one in rows}) > 1:
        return
    *folders, names = (sorted({*column}) for column in zip(*rows, strict=True))
    varying = [depth for depth, own in enumerate(folders) if len({one.replace(MARK, "") for one in own}) > 1]
    keyed = [depth for depth, own in enumerate(folders) if all(re.match(r"region=.", one) for one in own)]
    if len(varying) > 1 or (keyed and varying not in ([], keyed)):
        return
    top = [own[0] for own in folders]
    last = _file_pattern(names)
    for depth in varying or keyed:
        own = folders[depth]
        folder_name = "region={region}" if depth in keyed else "{region}"
        if depth not in keyed and any(MARK in one or "=" in one for one in own):
            folder_name = _between(own, folder_name)
        yield "/".join([*top[:depth], folder_name, *top[depth + 1 :], last])
    if not varying and not keyed:
        dated = [*zip((row[-1] for row in rows), dates, strict=True)]
        named = None if numbered else _named_region(names, dated, by_number)
        if named is not None:
            yield "/".join([*top, named])
        yield "/".join([*top, last])


def _between(names: Sequence[str], by: str) -> str:
    """Return the names with what differs replaced: what they begin and end with, up to a sign, stays."""
    begins, ends = _alike(names), _alike([one[::-1] for one in names])[::-1]
    begins = re.sub(r"[^=_\-. \0]*$", "", begins)
    ends = re.sub(r"^[^=_\-. \0]*", "", ends[max(0, len(begins) + len(ends) - min(map(len, names))) :])
    return f"{begins}{by}{ends}"


def _alike(names: Sequence[str]) -> str:
    """Return what all names begin with."""
    letters = takewhile(lambda one: len({*one}) == 1, zip(*names, strict=False))
    return "".join(one[0] for one in letters)


def _file_pattern(names: Sequence[str]) -> str:
    """Return the pattern of files' names, whatever numbers the files of one dump."""
    begins, ends = _alike(names), _alike([one[::-1] for one in names])[::-1]
    ending = ends[ends.index(".") :] if "." in ends else "*"
    if not any(MARK in one for one in names):
        return f"*{ending}"
    if MARK in begins and len(names) > 1:
        return f"{begins[: begins.index(MARK) + 1]}*{ending}"
    return names[0] if len(names) == 1 else _between(names, "*")


def _named_region(names: Sequence[str], dated: Sequence[tuple[str, str]], by_number: bool) -> str | None:
    """Return the pattern of names that hold a region: the same ones on every date. Raises DumpError for one
    that lacks it, such as the file of a nation among those of its regions.
    """
    if len(names) < 2 or len({MARK in one for one in names}) > 1:
        return None
    found = _between(names, "{region}")
    begins, _, ends = found.partition("{region}")
    short, *others = sorted(names, key=len)
    left = re.escape(short[len(begins) :])
    if len(others) > 1 and all(re.search(rf"[_. -]{left}$", one) for one in others):
        raise DumpError(
            f"the name {short.replace(MARK, '…')!r:.120} lacks what names a region in that of the other "
            "files: move it away, or rename it"
        )
    regions = {one: one[len(begins) : len(one) - len(ends)] for one in names}
    of_date = defaultdict[str, set[str]](set)
    for name, day in dated:
        of_date[day].add(regions[name])
    steady = all(one == {*regions.values()} for one in of_date.values())
    numbered = all(PART.fullmatch(one.partition(".")[0].replace(MARK, "")) for one in names)
    digits = all(one.isdigit() for one in regions.values())
    return found if steady and (not numbered or (by_number and digits)) else None


# Columns by their names and types, and the stamps of one file.

Types = Mapping[str, pl.DataType | None]
"""Of columns; None in a text."""


@dataclass(frozen=True)
class _File:
    """A file with the types of its columns, and the form of a text. Reading raises DumpError."""

    path: Path
    types: Types
    form: TextForm | None

    @classmethod
    def opened(cls, path: Path) -> "_File":
        """Read the footer, or the header."""
        with _readable(path):
            if not path.name.lower().endswith(".parquet"):
                form = header_of(path)
                if any(map(NO_NAME.fullmatch, form.names)):
                    raise DumpError(
                        f"{path} begins with a row and not with names of columns: add them, or, where each "
                        "time of day has a column of its own, write a row for each step"
                    )
                return cls(path, dict.fromkeys(filter(None, form.names)), form)
            claims = claims_of(path)
            if claims is None or not claims.within(LIMITS):
                raise OSError("it claims too much")
            return cls(path, dict(scan_file(path).collect_schema()), None)

    def _unique(self, columns: Sequence[str], what: pl.Expr) -> pl.Series:
        rows = scan_file(self.path) if self.form is None else scan_text(self.path, self.form.reading(columns))
        with _readable(self.path):
            return rows.select(what).unique().drop_nulls().collect(engine="streaming").to_series()

    def names(self, column: str) -> list[str]:
        """Return the names in a column of regions."""
        return self._unique([column], pl.col(column).cast(pl.String)).to_list()

    def stamps(
        self, roles: Roles, formats: Sequence[str | None] = (None, *FORMATS)
    ) -> tuple[pl.Series, bool, str | None]:
        """Return the unique stamps in microseconds, rising, whether they are instants, and the one of the
        formats that most texts have, None for ISO 8601. Raises DumpError where that may be several. Rows of
        sums whose value is empty have no stamp: a supplier of half-hours may write such rows at the quarters.
        """
        written: str | None = None
        timestamp, used = roles.timestamp, [*roles.timestamp, *[roles.value] * (roles.customer is None)]
        kind = self.types[timestamp[0]]
        if isinstance(kind, pl.Datetime):
            found, zoned = self._unique([], pl.col(timestamp[0]).dt.epoch("us")), kind.time_zone is not None
        else:
            is_read = pl.all_horizontal(pl.col(used).is_not_null())
            joined = pl.concat_str(timestamp, separator=" ").cast(pl.String)
            texts = self._unique(used, joined.filter(is_read))
            known = {
                (one, offset): pl.select(microseconds_of(pl.lit(texts), {offset: 0}, one)).to_series()
                for one in formats
                for offset in ((False, True) if one is None else (False,))
            }
            most = max(own.count() for own in known.values())
            fitting = [key for key, own in known.items() if own.count() == most]
            if most and len(among := dict.fromkeys(one for one, _ in fitting)) > 1:
                raise DumpError(
                    f"{self.path}: days and months cannot be told apart, of stamps up to the 12th: add a "
                    "file of a later day, or write a configuration of your own (optstream init FILE) with "
                    f"[input] stamps_format = {' or '.join(map(repr, among))}"
                )
            (written, zoned), found = fitting[0], known[fitting[0]]
        if not found.count():
            raise DumpError(
                f"{self.path}: no row of {' and '.join(map(repr, timestamp))} is a time by ISO 8601, such as "
                "2024-01-15 00:30:00+01:00, or such as 15/01/2024 00:30: write it so in the files, or name "
                "the format by [input] stamps_format in a configuration of your own (optstream init FILE)"
            )
        return found.drop_nulls().unique().sort(), zoned, written


@contextmanager
def _readable(file: Path) -> Iterator[None]:
    try:
        yield
    except UNREADABLE:
        raise DumpError(
            f'{file} cannot be read; look at where it came from, or begin its name with "_", which hides it'
        ) from None


def _roles(name: str, columns: Types, given: Mapping[str, str], has_region: bool) -> Roles:
    """Find out which column is which; raises DumpError that lists them."""
    listed = ", ".join(f"{one!r:.60}" for one in [*columns][:20])

    def named(expression: re.Pattern[str], *, but: Iterable[str | None] = ()) -> list[str]:
        return [one for one in columns if expression.fullmatch(plain(one)) and one not in but]

    def of_type(one: str, *kinds: type[pl.DataType]) -> bool:
        return isinstance(columns[one], kinds)

    for role, column in given.items():
        if column not in columns:
            raise DumpError(
                f"{name} has no column {column!r:.60}, which --column {role} names; it has {listed}"
            )
    numbered = next(iter(named(NUMBERED)), None)
    times = named(TIME, but=[numbered])
    if instants := [one for one in columns if of_type(one, pl.Datetime)]:
        timestamp = ([one for one in times if one in instants] or instants)[:1]
    else:
        times = [one for one in times if columns[one] is None or of_type(one, pl.String, pl.Date, pl.Time)]
        dates = [one for one in times if re.fullmatch(r"(.*_)?(date|day|datum|fecha)", plain(one))]
        clocks = [one for one in times if re.fullmatch(r"(.*_)?(time|hours?|heures?|zeit|hora)", plain(one))]
        if not (dates and (clocks or numbered)):
            timestamp = [one for one in times if one not in dates][:1] or dates[:1]
        else:
            timestamp = [dates[0], *clocks[: numbered is None]]
    if "timestamp" in given:
        timestamp, numbered = [given["timestamp"]], None
    if not timestamp:
        raise DumpError(
            f"{name} has no column of time by its name or type, of {listed}: name it by --column "
            "timestamp=COLUMN"
        )
    customer = given.get("customer") or next(iter(named(CUSTOMER)), None)
    region = given.get("region") or next(iter(named(REGION, but=(customer,))), None)
    if not has_region and region is None:
        raise DumpError(
            f"{name}: neither its path nor a column, of {listed}, says which region its rows are of: name "
            "the column by --column region=COLUMN, or move the files into folders region=NAME, one for all "
            "where there are no regions; where each region has a column of its own, write a row for each "
            "region and step"
        )
    used = {*timestamp, numbered, customer, region, *named(ABOUT), *named(TIME), *named(REGION)}
    left = [one for one in columns if one not in used and (not (kind := columns[one]) or kind.is_numeric())]
    best = [one for one in left if plain(one).rpartition("_")[2] in UNITS]
    best = best or [one for one in left if one in (*named(MEASURED), *named(COUNTED))] or left
    value = given.get("value")
    if value is None and len(best) != 1:
        which = ", ".join(f"{one!r:.60}" for one in best) or f"one of {listed}"
        raise DumpError(f"{name}: say by --column value=COLUMN which one is released: {which}")
    chosen = value or best[0]
    kind = columns[chosen]
    counts = bool(COUNTED.fullmatch(plain(chosen))) and (kind is None or kind.is_integer())
    region, revision = None if has_region else region, next(iter(named(REVISION)), None)
    return Roles(tuple(timestamp), numbered, chosen, customer, region, revision, counts)


def _zone_shown(
    folder: Path, days: Mapping[str, tuple[date, date] | None], usual: str, roles: Roles, written: str | None
) -> str | None:
    """Return a zone for whose hour that no clock shows a file has no stamp, though for those around it."""
    for zone in dict.fromkeys((usual, *COMMON_ZONES)):
        calendar = Calendar(60, zone, "fixed")
        for name, span in days.items():
            if span is None or span[0] != span[1] or not (skipped := shifted_slots(calendar, span[0])[0]):
                continue
            stamps, *_ = _File.opened(folder / name).stamps(roles, [written])
            hours = {one // 3_600_000_000 % 24 for one in stamps}
            if hours.isdisjoint(skipped) and {skipped[0] - 1, skipped[-1] + 1} <= hours:
                return zone
            break
    return None
