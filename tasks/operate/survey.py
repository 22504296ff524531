"""What the files of a folder say in public: names, columns, types and stamps of one file, never a reading."""

import os
import re
import unicodedata
from calendar import month_abbr, month_name
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta
from itertools import count, pairwise, product, takewhile
from pathlib import Path
from typing import NamedTuple
from zoneinfo import ZoneInfo

import polars as pl

from data_contracts.metrics import LIMITS
from optstream.errors import DumpError
from optstream.storage.parquet import claims_of
from optstream.stream import Calendar
from tasks.config.fields import SINCE_EPOCH
from tasks.config.pattern import ENDINGS, PathPattern, path_pattern
from tasks.config.schema import DEFAULT_MARKER
from tasks.config.settings import UNITS
from tasks.ingest.arrivals import TABLE_LOG, Found, is_hidden
from tasks.ingest.clock import EPOCH, shifted_slots
from tasks.ingest.delta import LOG, present_files
from tasks.ingest.formats import UNREADABLE, scan_file
from tasks.ingest.inspect import TEXTS_OF_TIME
from tasks.ingest.text import TextForm, header_of, microseconds_of, scan_text, some_match

MOST_FILES = 1_000_000
MOST_JOINED = 300
"""Files whose stamps are looked at where names say no days, or each of a day's files has one."""
MINUTE, DAY_LONG = 60_000_000, 86_400_000_000
"""Microseconds."""
LONGEST_DAY = 1500
"""Minutes of one of 25 hours."""
FARTHEST_ZONE = 14
"""Hours from UTC."""
FILES_OF_REGIONS = 31
"""Files whose column of regions is read for their names."""
DATES = (
    (r"year=(\d{4})/month=(\d\d?)/day=(\d\d?)(?!\d)", "year={date:%Y}/month={date:%m}/day={date:%d}"),
    (r"(?<!\d)((?:19|20)\d\d)/(\d\d?)/(\d\d?)(?!\d)", "{date:%Y}/{date:%m}/{date:%d}"),
    (r"(?<!\d)((?:19|20)\d\d)-(\d\d?)-(\d\d?)(?!\d)", "{date:%Y-%m-%d}"),
    (r"(?<!\d)((?:19|20)\d\d)_(\d\d?)_(\d\d?)(?!\d)", "{date:%Y_%m_%d}"),
    (r"(?<!\d)((?:19|20)\d\d)\.(\d\d?)\.(\d\d?)(?!\d)", "{date:%Y.%m.%d}"),
    (r"(?<!\d)((?:19|20)\d\d)(\d\d)(\d\d)(?=(\d\d){0,3}(?!\d))", "{date:%Y%m%d}"),
    *(
        (rf"(?<!\d)(\d\d{re.escape(sign)}){{2}}(19|20)\d\d(?!\d)", f"{{date:{sign.join(order)}}}")
        for sign in ("-", "_", ".", "")
        for order in (("%m", "%d", "%Y"), ("%d", "%m", "%Y"))
    ),
    (r"year=(\d{4})/month=(\d\d?)(?!\d)", "year={date:%Y}/month={date:%m}"),
    (r"(?<!\d)((?:19|20)\d\d)/(\d\d)(?!\d)", "{date:%Y}/{date:%m}"),
    (r"(?<!\d)((?:19|20)\d\d)-(\d\d)(?!\d)", "{date:%Y-%m}"),
    (r"(?<!\d)((?:19|20)\d\d)_(\d\d)(?!\d)", "{date:%Y_%m}"),
    (r"(?<!\d)((?:19|20)\d\d)\.(\d\d)(?!\d)", "{date:%Y.%m}"),
    (r"(?<!\d)((?:19|20)\d\d)(\d\d)(?!\d)", "{date:%Y%m}"),
    (r"(?<!\d)((?:19|20)\d\d)(\d{3})(?!\d)", "{date:%Y%j}"),
    (r"(?<!\d)(\d\d)(\d\d)(\d\d)(?!\d)", "{date:%y%m%d}"),
    (r"(?<!\d)((?:19|20)\d\d)(?!\d)", "{date:%Y}"),
)
"""How names write dates, the longest first, and the same in `input.path`."""
COMMON_ZONES = (
    "Europe/Paris", "Europe/London", "Europe/Athens", "America/New_York", "America/Chicago", "America/Denver",
    "America/Los_Angeles", "Australia/Sydney", "America/Sao_Paulo", "Asia/Kolkata", "Asia/Tokyo",
)  # fmt: skip
"""Zones that a usual answer may be: the first that fits."""
DAYS = (
    "%d/%m/%Y", "%m/%d/%Y", "%d.%m.%Y", "%m.%d.%Y", "%d-%m-%Y", "%m-%d-%Y", "%Y/%m/%d", "%Y.%m.%d",
    "%d-%b-%Y", "%d %b %Y", "%b %d, %Y", "%d/%m/%y", "%m/%d/%y", "%d.%m.%y", "%d-%b-%y", "%Y-%m-%d",
    "%Y %m %d",
)  # fmt: skip
CLOCKS = ("", " %H", " %H:%M", " %H.%M", " %H:%M:%S", " %I:%M %p", " %I:%M:%S %p")
FORMATS = (*(day + clock for day in DAYS for clock in CLOCKS), "%Y%m%d%H%M", "%Y%m%d%H", SINCE_EPOCH)
"""Of stamps that are not written by ISO 8601."""
SAMPLE = 200
"""Stamps that a format is tried on before all."""
MONTH_NAMES = {one.lower() for one in (*month_name, *month_abbr)}
HOURS = {f"{one:02}" for one in range(24)}
USUAL = "region={region}/date={date:%Y-%m-%d}/*.parquet"
IN_ONE = "date={date:%Y-%m-%d}/*.parquet"
WEEK = re.compile(r"(?<![a-z])(w|kw|week)[-_ ]?\d\d(?!\d)", re.IGNORECASE)
"""A week in the name of a file; its days may be of two years."""
NO_REGION = re.compile(rf"{WEEK.pattern}|\d[-_. ]?({'|'.join(month_abbr[1:])})", re.IGNORECASE)
"""A week, or a month after its day, where a year says when."""
MARK = "\0"
TIME_OF_DAY = re.compile(
    rf"(?<=[{MARK}*])([T _-]*([01]\d|2[0-3])([-_.:h]?[0-5]\d){{2}}|T?([01]\d|2[0-3])([-_.:h]?[0-5]\d)?|"
    r"[T _-]([01]\d|2[0-3])[-.:h][0-5]\d)Z?(?!\d)"
)
"""After a date in a name."""
PART = re.compile(r"(part|chunk|file|data)?[-_.]?[0-9a-f-]*", re.IGNORECASE)
"""Names that only number the files of one dump."""

ENERGY = r"(\w+_)?([kmg]wh?|wh)(_\w+)?"
TIME = re.compile(
    rf"(?!{ENERGY}$)(\w+_)?(time_?stamp|zeit(stempel|punkt)|horodate|date_?time|datum|stamp|ts|tstp|time|date|utc|hours?|heures?|"
    r"(uhr)?zeit|hora|fecha|epoch|mtu)(_(local|utc|gmt|cet|cest|start|end|beginning|ending|from|to|at|von|bis))*|day|"
    r"(\w+_)?(start|end|from|at|anfang|ende)"
)
LIKE_TIME = re.compile(r"\w*(date|time|stamp)\w*|week\w*|month\w*")
"""Names of columns of time where none is a usual one."""
DATE = re.compile(r"(.*_)?(date|day|datum|fecha)")
CLOCK = re.compile(
    r"((.*_)?(?<!date_)time|(.*_)?(hours?|heures?|(uhr)?zeit|hora)(_ending)?|anfang|start|begin|from)(_(local|start))?"
)
ENDS, STARTS = {"end", "ending", "ended", "to", "until", "bis", "ende"}, {"start", "beginning", "from", "von"}
IN_UTC = {"utc", "gmt"}
LATER = {
    "created", "update", "updated", "modified", "published", "ingested", "inserted", "received", "processed",
    "loaded", "extracted",
}  # fmt: skip
"""Words in names of columns of time: of a step's end or start, of instants, and of the row itself."""
TOTAL = re.compile(r"(grand_)?(total|all|sum|overall|nation|national|system|gesamt|insgesamt|ensemble)s?")
RUNNING = re.compile(r"(\w+_)?(index|register|cumulative|cumulated|cumul|counter_reading)(_\w+)?")
SIGNED = re.compile(r"(\w+_)?(net|balance|exchange|interchange|flow|temperature|solde|saldo)(_\w+)?")
ROLES = ("timestamp", "value", "region", "customer", "clock", "period_number")
APART = "and with the date alone the time of day by --column clock=COLUMN"
MOST_ALIKE = 12
"""Columns of numbers that differ by a number in their names, at most."""
KEYS = r"s?(_?(id|uid|uuid|code|key|name|label|no|nr|num|number|hash|ref))*"
"""What may follow a noun in the name of a column that names things: no unit, no measure."""
NUMBERED = re.compile(r"((settlement|trading|time)_?)?(period|interval)(_?(no|nr|num|number|id))?|sp")
PEOPLE = "customer|meter|household|client|user|device|account|person"
CUSTOMER = re.compile(
    rf"(?!(\w+_)?({PEOPLE})s$)(\w+_)?({PEOPLE}|mpan|pdl|prm|medallion){KEYS}|(trip|ride)_id"
)
REGION = re.compile(
    r"((pu|pickup|start|grid|load|bidding|price)_?)?(region|zone|area|station|building|sensor|node|district|state|county|borough|location|site|"
    rf"feeder|substation|commune|departement|country|city|province|perimetre|(zahl|zaehl|mess)?stelle|leaf){KEYS}"
)
NO_NAME = re.compile(
    r"[-+.\d][-+\d.,:TZeE /]*([A-Za-z³]{1,4})?|\d\d?[-/. ]?[A-Za-z]{3}[-/. ]?\d.*|[A-Za-z]{3,9} \d.* \d{4}.*"
)
"""A number or a time: a file's first line has it where the names of columns were left out."""
REVISION = re.compile(r"(revision|version|vintage)(_?(no|nr|num|number))?")
ABOUT = re.compile(
    r"(revision|version|vintage|quality|flag|status|row|id|lat|lon|lng|nature|unit|source|type|dst|run)\w*|"
    r"\w+_(id|flag)"
)
MEASURED = re.compile(
    rf"{ENERGY}|(value|load|demand|consumption|consommation|energy|power|usage|reading|amount|volume)\w*"
)
COUNTED = re.compile(
    r"(trips?|visits?|calls?|counts?|number|anzahl|nombre|events?|riders?|passengers?|cases|admissions|arrivals|departures|entries|exits|boardings|deaths)\w*|\w+_(counts?|trips?)|"
    rf"(\w+_)?({PEOPLE}|pedestrian|visitor|vehicle|bike)s"
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
    those of one file of n_days from `day` on. decimal: empty where no other is likely. marked: whether there
    is any marker. split: whether a region has several files of a date. zone: one whose change of the clock
    the stamps show. left: columns that are not used.
    """

    folder: Path
    path: str | None
    first: date
    last: date
    regions: tuple[str, ...]
    roles: Roles
    decimal: str
    stamps: "Stamps"
    day: date
    n_days: int
    marked: bool
    split: bool
    zone: str | None
    left: tuple[str, ...]

    @property
    def unit(self) -> str:
        """The unit at the end of the value column's name; empty where there is none."""
        end = plain(self.roles.value).rpartition("_")[2]
        return end if end in UNITS else ""

    @property
    def step_minutes(self) -> int:
        """The usual distance of neighbouring stamps. Raises DumpError for one that divides no day."""
        if highest := self.stamps.highest:
            return next((one for one in (60, 30, 15, 10, 5) if one * highest <= LONGEST_DAY), 1)
        whole = self.stamps.found.filter(self.stamps.found % MINUTE == 0)
        apart = Counter(whole.diff().drop_nulls().to_list()).most_common(1) or [(DAY_LONG, 1)]
        usual = apart[0][0] if 2 * len(whole) > len(self.stamps.found) else 0
        if not usual or DAY_LONG % usual:
            raise DumpError(
                f"{self.folder}: times of {' and '.join(map(repr, self.roles.timestamp))} have no usual "
                "distance that divides a day: where a row is a trip or an event, write the number or the sum "
                "of those of each region and step; weeks and months are released from Python "
                "(docs/methods/mechanisms.md)"
            )
        return int(usual // MINUTE)

    def doubts(self) -> Iterator[str]:
        """Yield what names leave open, and would make every figure wrong."""
        for leaf in (one for one in self.regions[1:] and self.regions if TOTAL.fullmatch(plain(one))):
            yield f"the region {leaf!r:.60} is a leaf: if it is the sum of others, remove its rows or files"
        if RUNNING.fullmatch(plain(self.roles.value)):
            yield f"{self.roles.value!r:.60} seems to be a running total: write the difference of each step"
        if (self.stamps.written or "").endswith(" %H") and self.span[1].time() == time():
            hour = self.roles.timestamp[-1]
            yield (
                f"{hour!r:.60} is taken for an hour of the wall clock: if it numbers 23 or 25 hours of a day "
                f"on which the clock changes, begin again with --column period_number={hour}"
            )
        if SIGNED.fullmatch(plain(self.roles.value)):
            yield (
                f"{self.roles.value!r:.60} may be below 0, where readings are clamped to 0: write the least "
                "in privacy.bounds and privacy.lower_bound"
            )
        is_long = self.path is not None and not path_pattern(self.path).is_of_one_day
        if is_long and (self.roles.customer is not None or self.roles.counts):
            yield (
                "names of files do not say which days they hold, and rows that are absent count as 0: a day "
                "is released once any file was changed after it was over, even if its own file is missing: "
                "write a file a day, named by it, with the rows of its steps"
                if self.is_undated
                else "a file holds many days, and rows that are absent count as 0: a day is released once a "
                "file was changed after it was over; where its rows come later than that, write a file a day"
            )
        elif self.split and not self.marked and self.roles.customer is not None:
            yield (
                "a day has several files, and rows that are absent count as 0: a day is released without a "
                "file that comes late: write a marker after the last, and name it as input.marker"
            )
        by_name = self.roles.region is None and "region={" not in (self.path or USUAL)
        columns = [one for one in self.left if by_name and REGION.fullmatch(plain(one))]
        if columns and self.roles.customer is not None:
            yield (
                f"names of files say the leaves, such as {self.regions[0]!r:.60}: if {columns[0]!r:.60} is "
                f'the column of regions, begin again with --column "region={columns[0]:.60}"'
            )
        named = re.search(rf"({PEOPLE})[^/]*\{{region\}}", self.path or "")
        if named and self.roles.customer is None:
            yield (
                f"each file seems to be of one {named[1]}, and their names would be published: write the "
                "rows of a region into one file, with a column customer_id"
            )

    @property
    def is_undated(self) -> bool:
        """Whether the names of files have no dates."""
        return self.path is not None and not path_pattern(self.path).directives

    @property
    def span(self) -> tuple[datetime, datetime]:
        """The first and the last stamp of the file that was looked at."""
        first, last = self.stamps.found[0], self.stamps.found[-1]
        return EPOCH + timedelta(microseconds=first), EPOCH + timedelta(microseconds=last)

    def meanings(self, zone: str, minutes: int) -> list[tuple[bool, bool, bool]]:
        """Return what fits the file's days: whether stamps are instants, ends of steps, and days UTC's."""
        if self.stamps.highest:
            return [(False, False, False)]
        (first, last), step, found = self.span, timedelta(minutes=minutes), []
        words = _words(self.roles.timestamp)
        for in_utc, utc_days, by_end in product((False, True), repeat=3):
            if not in_utc and (self.stamps.zoned or utc_days or words & IN_UTC):
                continue
            days = ZoneInfo(zone if in_utc and not utc_days else "UTC")
            begins, ends = (
                datetime(one.year, one.month, one.day, tzinfo=days).astimezone(UTC).replace(tzinfo=None)
                for one in (self.day, self.day + timedelta(days=self.n_days))
            )
            lead = step * by_end
            is_within = begins <= first - lead and last - lead < ends
            if not utc_days if self.is_undated else is_within:
                found.append((in_utc, by_end, utc_days))

        def doubt(meaning: tuple[bool, bool, bool]) -> tuple[bool, bool, bool]:
            """Whether names of columns say otherwise, days are not whole then, or by the stamps alone."""
            in_utc, by_end, utc_days = meaning
            begins, ends = first - step * by_end, last + step * (not by_end)
            is_whole = {begins.time(), ends.time()} == {time()}
            days = ZoneInfo(zone if in_utc and not utc_days else "UTC")
            local = begins.replace(tzinfo=UTC).astimezone(days).time()
            return bool(words & (STARTS if by_end else ENDS)), not is_whole, is_whole and local != time()

        return sorted(found, key=doubt)

    def check_starts(self, zone: str, *, in_utc: bool) -> None:
        """Raise DumpError where most stamps are no starts and no ends of steps of a local day."""
        away = self.span[0].replace(tzinfo=UTC).astimezone(ZoneInfo(zone)).utcoffset() if in_utc else None
        local = self.stamps.found + (away or timedelta()) // timedelta(microseconds=1)
        late = local % (self.step_minutes * MINUTE)
        usual = int(late.mode()[0])
        if usual and not self.stamps.highest:
            raise DumpError(
                f"{self.folder}: times of {' and '.join(map(repr, self.roles.timestamp))} lie mostly "
                f"{timedelta(microseconds=usual)} after the starts of steps of {self.step_minutes} minutes "
                f"in {zone}: write starts or ends of steps, correct the answer to zone, or name "
                "another column by --column timestamp=COLUMN"
            )


def plain(name: str) -> str:
    """Return a name in small letters without accents, words apart by "_"."""
    letters = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode("ascii")
    letters = re.sub(r"[kMG]Wh?(?![a-z])", lambda unit: f"_{unit[0].lower()}", letters)
    return re.sub(r"[^a-z0-9]+", "_", re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", letters).lower()).strip("_")


def _words(columns: Iterable[str]) -> set[str]:
    return {word for one in columns for word in plain(one).split("_")}


def survey(
    folder: Path,
    zone: str,
    named: Mapping[str, str] | None = None,
    *,
    by_end: bool = False,
    dated: bool = True,
) -> Survey:
    """Look at a folder. zone: which days' files are looked at first. named: columns by `ROLES`, where a
    person says which they are. by_end: whether a person says that stamps are ends of steps. dated: whether
    dates in names say which days a file holds.

    Raises DumpError where no configuration can describe the files.
    """
    files, marked = _files_in(folder)
    given, opened = named or {}, _File.opened(folder / files[0])
    column = given.get("region") or next((one for one in opened.types if REGION.fullmatch(plain(one))), None)
    path = _pattern(folder, files, by_number=column is None)
    if "{region}" in path and (given.get("region") or (column and opened.has_several(column, given))):
        path = path.replace("{region}", "*")
    if not dated or _are_of_weeks(path, files):
        path = re.sub(r"(\*|\{date:[^}]*\})+", "*", path)
    pattern = path_pattern(path)
    found = {one: pattern.match_path(one) or {} for one in files}
    days = {name: pattern.days(fields) for name, fields in found.items()}
    if not pattern.directives:
        days = dict.fromkeys(days, _days_in(folder, found, given, pattern))
    spans = sorted({span for span in days.values() if span is not None})
    n_files = Counter(days.values())  # of the newest day some may not be there yet
    begins, ends = max(
        spans, key=lambda span: (2 * n_files[span] > max(n_files.values()), *_tells(span, zone))
    )
    name = next(one for one, span in days.items() if span == (begins, ends))
    file = _File.opened(folder / name)
    roles, stamps = file.read(given, pattern.has_region, (begins, ends) if pattern.directives else None)
    roles = file.with_one_row(roles, given)
    same = [one for one, span in days.items() if span == (begins, ends)]
    if len(stamps.found) == 1:  # of a file for each step
        joined = [_File.opened(folder / one) for one in same[:MOST_JOINED]]
        known = [one.stamps(roles, formats=[stamps.written]) for one in joined]
        stamps = stamps._replace(found=pl.concat(one.found for one in known if one).unique().sort())
    # names may say when files begin or were made, or of a file with ends of steps the day of these
    by_ends = (by_end or _words(roles.timestamp) & ENDS) and stamps.are_those_of(begins, ends)
    if pattern.directives and (by_ends or stamps.mostly_beyond(begins, ends)):
        return survey(folder, zone, named, dated=False)
    some = [*found][:: -(1 + len(found) // FILES_OF_REGIONS)]  # the newest first
    others = [(_File.opened(folder / one), days[one]) for one in some]
    columns = {*roles.timestamp, roles.value, *filter(None, (roles.region, roles.customer))}
    for other in (one for one, span in others if span == (begins, ends)):  # the layout may change by date
        if lacking := columns - other.types.keys():
            raise DumpError(
                f"{other.path} has no column {min(lacking)!r:.60}, which {file.path} has: give it the same "
                "name in each file"
            )
    if roles.region is None:
        regions = {fields["region"] for fields in found.values()}
        if pattern.directives == {"Y"} and all(map(NO_REGION.search, regions)):
            raise DumpError(
                f"{folder}: names of files such as {files[0]!r:.120} say weeks or names of months: name the "
                "files by dates such as 2024-01-15.csv, or their column of regions by --column region=COLUMN"
            )
        own = {folder / one: found[one]["region"] for one in same[:FILES_OF_REGIONS]}
        if "region={" not in path and _are_of_times(own, roles, stamps.written):
            raise _not_read(folder, name)
    else:
        alike = [one for one, _ in others if columns <= one.types.keys()]
        regions = {one for other in alike for one in other.names(roles, stamps.written)}
    begun = defaultdict[str, list[date]](list)
    for one, span in days.items():
        begun[found[one].get("region", "")] += [span[0]] if span else []
    used = {*roles.timestamp, roles.period_number, roles.value, roles.region, roles.customer, roles.revision}
    seen = Survey(
        folder=folder,
        # a marker at the top goes with a pattern alone
        path=None if path in (USUAL, IN_ONE) and (not marked or name.rpartition("/")[0] in marked) else path,
        first=max(map(min, filter(None, begun.values()))),
        last=spans[-1][1],
        regions=tuple(sorted(regions)),
        roles=roles,
        # of a text by what sets its columns apart: a reading does not decide it
        decimal={",": "", ";": ","}.get(file.form.separator, ".") if file.form else "",
        stamps=stamps,
        day=begins,
        n_days=(ends - begins).days + 1,
        marked=bool(marked),
        split=len({(found[one].get("region"), span) for one, span in days.items()}) < len(found),
        zone=None if stamps.zoned or stamps.highest else _zone_shown(folder, days, zone, roles, stamps),
        left=tuple(one for one in file.types if one not in used),
    )
    zones = (zone, *COMMON_ZONES) if dated and pattern.directives else ()
    if zones and not any(seen.meanings(one, seen.step_minutes) for one in zones):  # of the day before
        return survey(folder, zone, named, dated=False)
    return seen


def _tells(span: tuple[date, date], zone: str) -> tuple[object, ...]:
    """Rank the files' days by what they tell: no UTC clock shares them, the clock is not set, and of a date
    which number is the day's.
    """
    after = span[1] + timedelta(days=1)
    away = [
        datetime(one.year, one.month, one.day, tzinfo=ZoneInfo(zone)).utcoffset() for one in (span[0], after)
    ]
    return bool(away[0]), away[0] == away[1], span[1].day > 12, span


def _days_in(
    folder: Path, found: Mapping[str, Mapping[str, str]], given: Mapping[str, str], pattern: PathPattern
) -> tuple[date, date]:
    """Return the first and the last day of files whose names have no date. Raises DumpError where each
    region has a small part of these days alone: their names are times.
    """
    ends, known = defaultdict[str, list[date]](list), None
    for name in [*found][:: -(1 + len(found) // MOST_JOINED)]:  # of very many files some say enough
        file = _File.opened(folder / name)
        alike = known is not None and {*known[0].timestamp, known[0].value} <= file.types.keys()
        stamps = file.stamps(known[0], formats=[known[1].written]) if known and alike else None
        if stamps is None:
            known = _, stamps = file.read(given, pattern.has_region)
        ends[found[name].get("region", "")] += [
            (EPOCH + timedelta(microseconds=int(stamps.found[place]))).date() for place in (0, -1)
        ]
    first, last = min(map(min, ends.values())), max(map(max, ends.values()))
    longest = max(max(own) - min(own) for own in ends.values())
    if 3 * (longest + timedelta(days=1)) < last - first:
        raise _not_read(folder, next(iter(found)))
    return first, last


def _are_of_times(files: Mapping[Path, str], roles: Roles, written: str | None) -> bool:
    """Whether any two regions of some days' files have the same times, or one begins after the other ends."""
    times = defaultdict[str, list[int]](list)
    for one, region in files.items():
        file = _File.opened(one)
        is_alike = {*roles.timestamp, roles.value} <= file.types.keys()
        stamps = file.stamps(roles, formats=[written]) if is_alike else None
        times[region] += [stamps.found[0], stamps.found[-1]] if stamps else []
    ends = sorted({(min(own), max(own)) for own in times.values() if own})
    return len(ends) > 1 and all(own[1] < after[0] for own, after in pairwise(ends))


def _not_read(folder: Path, name: str) -> DumpError:
    return DumpError(
        f"{folder}: names of files such as {name!r:.120} seem to say times in a way that is not read: name "
        "the files by dates such as 2024-01-15.csv, or move them into folders region=NAME/date=2024-01-15, "
        "or name their column of regions by --column region=COLUMN"
    )


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
        inner[:] = sorted(one for one in inner if not is_hidden(one))
        below = Path(parent).relative_to(folder)
        marked |= {below.as_posix()} if DEFAULT_MARKER in names else set()
        files += [(below / one).as_posix() for one in names if not is_hidden(one)]
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


def _pattern(folder: Path, files: Sequence[str], by_number: bool) -> str:
    """Return the pattern that all files fit. by_number: no column of regions says what numbers in names may
    say.
    """
    for written, directives in DATES:
        expression = re.compile(written)
        shown = [[found[0] for found in expression.finditer(one)] for one in files]
        if not all(shown):
            continue
        # a folder may have the month's first day, and a name the day after
        columns = [*zip(*shown, strict=False)]
        at = max(range(len(columns)), key=lambda place: len({*columns[place]}))
        dates, is_one = columns[at], all(len({*own}) == 1 for own in shown)
        marked = [_marked(expression, one, None if is_one else at) for one in files]
        if all(map(TIME_OF_DAY.search, marked)):
            marked = [TIME_OF_DAY.sub("*", one).replace("**", "*") for one in marked]
        for text in _patterns(folder, marked, dates, by_number=by_number):
            path = text.replace(MARK, directives)
            if _fits(path, files):
                return _all_dates(_in_order(folder, path, files), files)
    is_table = (folder / LOG).is_dir()
    if is_table or not any(re.search(written, one) for written, _ in DATES for one in files):
        for text in _patterns(folder, files, [""] * len(files), by_number=by_number, numbered=is_table):
            if _fits(text, files):
                return text
    raise DumpError(
        f"{folder} holds files such as {files[0]!r:.120}, whose paths do not all name a date in the "
        "same way, or differ in more than a date and a region: rename or move those that differ, to paths "
        "such as 2024/01/15.csv or region=NAME/date=2024-01-15/part-0.parquet"
    )


def _marked(expression: re.Pattern[str], name: str, at: int | None) -> str:
    """Return a name with a mark for its dates, or for one of them and "*" for others."""
    places = count()
    return expression.sub(lambda _: MARK if at in (None, next(places)) else "*", name)


def _fits(path: str, files: Sequence[str]) -> bool:
    """Whether all files have names of a pattern, which is one, and of dates."""
    try:
        pattern = path_pattern(path)
    except ValueError:
        return False
    return all(pattern.match_path(one) is not None for one in files)


def _in_order(folder: Path, path: str, files: Sequence[str]) -> str:
    """Return the path with day and month in the order by which the files' days lie closer together. Raises
    DumpError where none is."""
    other = re.sub(r"%m(\W?)%d\1%Y", r"%d\1%m\1%Y", path)
    if other == path or not _fits(other, files):
        return path
    lengths = []
    for pattern in map(path_pattern, (path, other)):
        spans = [pattern.days(pattern.match_path(one) or {}) or (date.max, date.min) for one in files]
        lengths.append(max(last for _, last in spans) - min(first for first, _ in spans))
    if lengths[0] == lengths[1]:
        raise DumpError(
            f"{folder}: days and months cannot be told apart in names of files such as {files[0]!r:.120}: "
            "add a file of a later day, or name files as 2024-01-15.csv"
        )
    return path if lengths[0] < lengths[1] else other


def _are_of_weeks(path: str, files: Sequence[str]) -> bool:
    """Whether names say weeks, and no days. A region may be called W01."""
    pattern = path_pattern(path)
    regions = [(pattern.match_path(one) or {}).get("region", "") for one in files]
    rest = (one.replace(region, "") for one, region in zip(files, regions, strict=True))
    return not pattern.is_of_one_day and all(map(WEEK.search, rest))


def _all_dates(path: str, files: Sequence[str]) -> str:
    """Return the pattern with the dates that all files so far have alike, as of a folder of their year."""
    for written, directives in DATES:
        # what stands as a directive already stays
        parts = re.split(r"(\{[^}]*\})", path)
        wider = "".join(one if one.startswith("{") else re.sub(written, directives, one) for one in parts)
        path = wider if _fits(wider, files) else path
    return path


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
    for depth, own in enumerate(folders):
        in_one = {(row[depth], day) for row, day in zip(rows, dates, strict=True)}
        are_weeks = all(map(WEEK.search, own)) and len(in_one) == len({*dates})
        hours = {re.sub(r"^h(ou)?r?=", "", one.lower()).zfill(2) for one in own}
        if are_weeks or {one.lower() for one in own} <= MONTH_NAMES or hours == HOURS:
            folders[depth] = ["*"]
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
                        f"{path} begins with a row and not with names of columns, or has a number or a time "
                        "for one: write one line of names above rows of one kind; where each time of day has "
                        "a column of its own, write a row for each step"
                    )
                return cls(path, dict.fromkeys(filter(None, form.names)), form)
            claims = claims_of(path)
            if claims is None or not claims.within(LIMITS):
                raise OSError("it claims too much")
            return cls(path, dict(scan_file(path).collect_schema()), None)

    def _rows(self, columns: Sequence[str]) -> pl.LazyFrame:
        return scan_file(self.path) if self.form is None else scan_text(self.path, self.form.reading(columns))

    def _unique(self, columns: Sequence[str], what: pl.Expr, *, usual: bool = False) -> pl.Series:
        """Return the values of an expression. usual: those that a tenth as many rows have as any at least, so
        that one customer's decide nothing.
        """
        with _readable(self.path):
            counted = self._rows(columns).select(what.alias("it")).drop_nulls().group_by("it").len()
            counted = counted.filter(pl.col("len") * 10 >= pl.col("len").max()) if usual else counted
            return counted.collect(engine="streaming")["it"]

    def names(self, roles: Roles, *written: str | None) -> list[str]:
        """Return the names in the column of regions, of rows with a time: others are notes and units."""
        column, times = str(roles.region), roles.timestamp
        if (kind := self.types[column]) is not None and kind.is_float():
            raise DumpError(
                f"{self.path}: {column!r:.60} names regions by numbers with a point: write whole "
                "numbers or text"
            )
        is_row = pl.all_horizontal(pl.col(times).is_not_null())
        if self.form is not None and written:
            stamp = pl.concat_str(times, separator=" ")
            is_row = microseconds_of(stamp, {False: 0, True: 0}, *written).is_not_null()
        named = pl.when(is_row).then(pl.col(column).cast(pl.String))
        return self._unique([column, *times], named).to_list()

    def has_several(self, column: str, given: Mapping[str, str]) -> bool:
        """Whether rows are sums, and those of several names in a column."""
        is_metered = any(CUSTOMER.fullmatch(plain(one)) for one in self.types)
        roles = _roles(self.path.name, self.types, {**given, "region": column}, has_region=False)[0]
        return not is_metered and len(self.names(roles)) > 1

    def with_one_row(self, roles: Roles, given: Mapping[str, str]) -> Roles:
        """Return the roles with the first column of regions of which a step has one row, a customer's or a
        region's. Raises DumpError where none is.
        """
        steps = [*roles.timestamp, *[str(roles.period_number)] * (roles.period_number is not None)]
        customer = [one for one in (roles.customer,) if one is not None]

        def has_one_row(region: str | None) -> bool:
            own = [*customer, *([] if region is None else [region])]
            rows = self._rows([*own, *steps]).drop_nulls([*own, *steps])
            with _readable(self.path):
                if customer:  # all steps of all customers need not fit in memory: one that is like most
                    sizes = rows.group_by(steps).len().sort("len").collect(engine="streaming")
                    rows = rows.join(sizes.lazy().slice(sizes.height // 2, 1), on=steps, how="semi")
                counts = rows.group_by(*own, *steps).len()
                each = counts.group_by(own if not customer else []).agg(pl.col("len").median())
                return bool((each.collect(engine="streaming")["len"] == 1).all())

        if roles.revision is not None or has_one_row(roles.region):
            return roles
        others = [
            one for one in self.types if REGION.fullmatch(plain(one)) and one not in (*steps, *customer)
        ]
        region = next(
            (one for one in others if "region" not in given and roles.region and has_one_row(one)), None
        )
        if region is not None:
            return replace(roles, region=region)
        used = {*steps, *customer, roles.region, roles.value}
        left = ", ".join(f"{one!r:.60}" for one in self.types if one not in used)
        raise DumpError(
            f"{self.path}: most steps of a {'customer' if customer else 'region'} have several rows: keep "
            "those of one kind, such as import, or write their sum; or name by --column region=COLUMN or "
            f"customer=COLUMN the column that tells them apart; other columns are {left or 'none'}"
        )

    def read(
        self, given: Mapping[str, str], has_region: bool, days: tuple[date, date] | None = None
    ) -> tuple[Roles, "Stamps"]:
        """Return which column is which, and the stamps of the first columns of time that have any. Raises
        DumpError.
        """
        roles, timestamps = _roles(self.path.name, self.types, given, has_region)
        of_text = self.form.names if self.form else ()
        used = {roles.value, roles.region, roles.customer, *(one for own, _ in timestamps for one in own)}
        if twice := [one for one in used if of_text.count(str(one)) > 1]:
            raise DumpError(f"{self.path} has several columns {twice[0]!r:.60}: rename all but one")
        for timestamp, number in timestamps:
            own = replace(roles, timestamp=timestamp, period_number=number)
            stamps = self.stamps(own, days, self._formats(timestamp, number))
            is_day = len(timestamp) == 1 and DATE.fullmatch(plain(timestamp[0])) and number is None
            is_day = is_day and len(timestamps) > 1
            if stamps is not None and not (is_day and (stamps.found % DAY_LONG == 0).all()):
                return own, stamps
        columns = max((timestamp for timestamp, _ in timestamps), key=lambda one: len(one))
        if self.form is None and len(columns) == 1:
            raise DumpError(
                f"{self.path}: a column of time of a Parquet file, such as {columns[0]!r:.60}, must hold "
                "timestamps or seconds since 1970, and no text: write it so, or write the files as CSV"
            )
        raise DumpError(
            f"{self.path}: no row of {' and '.join(map(repr, columns))} "
            "is a time by ISO 8601, such as 2024-01-15 00:30:00+01:00, or such as 15/01/2024 00:30: write it "
            f"so in the files, name another column by --column timestamp=COLUMN, {APART}, or name the format "
            "by [input] stamps_format in a configuration of your own (optstream init FILE)"
        )

    def _formats(self, timestamp: tuple[str, ...], number: str | None) -> Sequence[str | None]:
        """Return how stamps may be written; a Parquet column alone is read by its type."""
        kind = self.types[timestamp[0]]
        if kind is None or timestamp[1:] or number is not None:
            return (None, *FORMATS)
        if kind.is_integer():
            return (SINCE_EPOCH,)
        return (None,) if kind in (pl.Datetime, pl.Date) else ()

    def stamps(
        self,
        roles: Roles,
        days: tuple[date, date] | None = None,
        formats: Sequence[str | None] = (None, *FORMATS),
    ) -> "Stamps | None":
        """Return the stamps by the one of the formats that most texts have, None for ISO 8601; None without
        any. Raises DumpError where that may be several. days: that the file's name says. Rows of sums whose
        value is empty have no stamp: a supplier of half-hours may write such rows at the quarters.
        """
        written: str | None = None
        timestamp, used = roles.timestamp, [*roles.timestamp, *[roles.value] * (roles.customer is None)]
        kind, number = self.types[timestamp[0]], roles.period_number
        if isinstance(kind, pl.Datetime) and len(timestamp) == 1:
            found = self._unique([], pl.col(timestamp[0]).dt.epoch("us"), usual=True)
            zoned = kind.time_zone is not None
        else:
            is_read = pl.all_horizontal(pl.col(used).is_not_null())
            joined = pl.concat_str(timestamp, separator=" ").cast(pl.String)
            texts = self._unique(used, joined.filter(is_read), usual=True)

            def parsed(texts: pl.Series, one: str | None, offset: bool) -> pl.Series:
                return pl.select(microseconds_of(pl.lit(texts), {offset: 0}, one)).to_series()

            kinds = [(one, one == SINCE_EPOCH) for one in formats] + [(None, True)] * (None in formats)
            sample = texts[:SAMPLE]
            kinds = [key for key in kinds if some_match(sample, key[0]) and parsed(sample, *key).count()]
            known = {key: parsed(texts, *key) for key in kinds}
            most = max((own.count() for own in known.values()), default=0)
            fitting = [key for key, own in known.items() if own.count() == most]
            if days is not None and len(fitting) > 1:
                within = [key for key in fitting if not Stamps(known[key]).mostly_beyond(*days)]
                fitting = within or fitting
            # such as 2024011500, which would be of 2034
            fitting = [key for key in fitting if key[0] != SINCE_EPOCH] or fitting
            among = [one for one, _ in fitting]
            if len(among) > 1 and None not in among:
                raise DumpError(
                    f"{self.path}: days and months cannot be told apart, of stamps up to the 12th: add a "
                    "file of a later day, or write a configuration of your own (optstream init FILE) with "
                    f"[input] stamps_format = {' or '.join(map(repr, among))}"
                )
            if not most:
                return None
            (written, zoned), found = fitting[0], known[fitting[0]]
        highest = 0
        if number is not None:
            numbers = self._unique([number], pl.col(number).cast(pl.Float64, strict=False), usual=True).sort()
            if not len(numbers) or numbers[0] < 1:
                raise DumpError(f"{self.path}: the numbers of steps in {number!r:.60} must begin at 1")
            highest = int(numbers[-1])
        return Stamps(found.drop_nulls().unique().sort(), zoned, written, highest) if found.count() else None


class Stamps(NamedTuple):
    """Unique stamps of a file, rising, in microseconds without a zone, or in UTC if zoned. written: how texts
    write them, None by ISO 8601. highest: the number of a day's last step, 0 where none has one.
    """

    found: pl.Series
    zoned: bool = False
    written: str | None = None
    highest: int = 0

    def are_those_of(self, begins: date, ends: date) -> bool:
        """Whether clock times begin with the midnight of some days, and end before the next."""
        first, last = (EPOCH + timedelta(microseconds=int(self.found[place])) for place in (0, -1))
        is_daily = (self.found % DAY_LONG == 0).all() or self.highest > 0
        return not is_daily and first == datetime.combine(begins, time()) and last.date() <= ends

    def mostly_beyond(self, begins: date, ends: date) -> bool:
        """Whether most lie outside of some days in every time zone."""
        low, high = ((one - EPOCH.date()).days * DAY_LONG for one in (begins, ends))
        away = FARTHEST_ZONE * 60 * MINUTE
        return 2 * int(self.found.is_between(low - away, high + DAY_LONG + away).sum()) < self.found.count()


@contextmanager
def _readable(file: Path) -> Iterator[None]:
    try:
        yield
    except UNREADABLE:
        raise DumpError(
            f"{file} cannot be read: deliver it again, of a ZIP with several files these, or begin its name "
            'with "_", which hides it'
        ) from None


def _roles(
    name: str, columns: Types, given: Mapping[str, str], has_region: bool
) -> tuple[Roles, list[tuple[tuple[str, ...], str | None]]]:
    """Find out which column is which, and which may be those of time, perhaps with one of numbers of steps,
    the likeliest first; raises DumpError that lists them.
    """
    listed = ", ".join(f"{one!r:.60}" for one in [*columns][:20])

    def named(expression: re.Pattern[str], *, but: Iterable[str | None] = ()) -> list[str]:
        return [one for one in columns if expression.fullmatch(plain(one)) and one not in but]

    for role, column in given.items():
        if column not in columns:
            raise DumpError(
                f"{name} has no column {column!r:.60}, which --column {role} names; it has {listed}; write "
                "texts in UTF-8"
            )
    timestamps = _timestamps(columns, named)
    if (number := given.get("period_number")) is not None:
        timestamps = [((one,), number) for one in named(DATE)]
    if "clock" in given and "timestamp" not in given:
        raise DumpError(f"{name}: --column clock=COLUMN goes with --column timestamp=COLUMN, the date's")
    if "timestamp" in given:
        timestamps = [(tuple(given[one] for one in ("timestamp", "clock") if one in given), number)]
    if not timestamps:
        raise DumpError(
            f"{name} has no column of time by its name or type, of {listed}: name it by --column "
            f"timestamp=COLUMN, {APART}"
        )
    customer = given.get("customer") or next(iter(named(CUSTOMER)), None)
    region = given.get("region") or next(iter(named(REGION, but=(customer,))), None)
    if not has_region and region is None:
        raise DumpError(
            f"{name}: neither its path nor a column, of {listed}, says which region its rows are of: name "
            "the column by --column region=COLUMN, or move the files into folders region=NAME, one for all "
            "where there are no regions, or leave out of names what changes but date and region; where each "
            "region has a column of its own, write a row for each region and step"
        )
    timed = {one for own, number in timestamps for one in (*own, number)}
    used = {*timed, customer, region, *named(ABOUT), *named(TIME), *named(REGION)}
    left = [one for one in columns if one not in used and (not (kind := columns[one]) or kind.is_numeric())]
    likely = {*named(MEASURED), *named(COUNTED)}
    best = [one for one in left if plain(one).rpartition("_")[2] in UNITS or one in likely] or left
    value = given.get("value")
    stems = Counter(re.sub(r"[0-9]+", "", plain(one)) for one in left)
    if max(stems.values(), default=0) >= MOST_ALIKE:
        raise DumpError(
            f"{name} has a column for each step of a day, or for each region, such as {left[0]!r:.60}: "
            "write a row for each region and step"
        )
    if value is None and len(best) != 1:
        which = ", ".join(f"{one!r:.60}" for one in best) or f"one of {listed}"
        raise DumpError(
            f"{name}: say by --column value=COLUMN which one is released: {which}; where each row is a "
            "trip or an event, write their number for each region and step"
        )
    chosen = value or best[0]
    kind = columns[chosen]
    counts = bool(COUNTED.fullmatch(plain(chosen))) and (kind is None or kind.is_integer())
    region, revision = None if has_region else region, next(iter(named(REVISION)), None)
    return Roles(*timestamps[0], chosen, customer, region, revision, counts), timestamps


def _timestamps(
    columns: Types, named: Callable[[re.Pattern[str]], list[str]]
) -> list[tuple[tuple[str, ...], str | None]]:
    """Return which columns may be those of time, the likeliest first, and that of numbers of steps."""

    def unlikely(one: str) -> tuple[bool, bool, bool]:
        kind, words = columns[one], _words((one,))
        is_instant = isinstance(kind, pl.Datetime) and kind.time_zone is not None
        return bool(words & LATER), bool(words & ENDS), not (is_instant or words & IN_UTC)

    numbered = next(iter(named(NUMBERED)), None)
    parts = [one for word in ("year", "month", "day", "hour") for one in columns if plain(one) == word]
    typed = [one for one, kind in columns.items() if isinstance(kind, pl.Datetime)]
    texts = [
        one for one, kind in columns.items() if kind is None or kind.is_integer() or kind in TEXTS_OF_TIME
    ]
    likely = dict.fromkeys((*named(TIME), *named(DATE), *typed)) or named(LIKE_TIME)
    times = sorted((one for one in likely if one in texts and one != numbered), key=unlikely)
    times = [one for one in times if not _words((one,)) & LATER] or times
    dates = [one for one in times if DATE.fullmatch(plain(one))]
    clocks = [one for one in times if CLOCK.fullmatch(plain(one)) and one not in typed]
    return [
        *(((one,), None) for one in times if one not in dates),
        *(((day, clock), None) for day in dates[:1] for clock in clocks[:2]),
        *(((day,), numbered) for day in dates if numbered is not None),
        *[((*parts,), None)] * (len(parts) > 2),
        *(((day,), None) for day in dates),
    ]


def _zone_shown(
    folder: Path, days: Mapping[str, tuple[date, date] | None], usual: str, roles: Roles, shown: Stamps
) -> str | None:
    """Return a zone for whose hour that no clock shows a file has no stamp, though for those around it."""
    for zone in dict.fromkeys((usual, *COMMON_ZONES)):
        calendar = Calendar(60, zone, "fixed")
        for name, span in days.items():
            if span is None or span[0] != span[1] or not (skipped := shifted_slots(calendar, span[0])[0]):
                continue
            stamps = _File.opened(folder / name).stamps(roles, formats=[shown.written])
            hours = {one // 3_600_000_000 % 24 for one in stamps.found} if stamps else set()
            if hours.isdisjoint(skipped) and {skipped[0] - 1, skipped[-1] + 1} <= hours:
                return zone
            break
    return None
