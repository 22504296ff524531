"""Where the files of a dump lie below the input folder: `region={region}/date={date:%Y-%m-%d}/*.csv`."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, date, timedelta
from functools import cached_property, lru_cache
from unicodedata import normalize
from urllib.parse import unquote

from optstream.stream import Calendar, Hour, day_of
from optstream.stream.calendar import days_from

Fields = Mapping[str, str]
"""What names say of a file: `region`, `hour`, and directives of dates such as `Y` and `m`."""
Dated = frozenset[tuple[str, str]]
"""The same without the region."""
DIRECTIVES = {"Y": "[0-9]{4}", "y": "[0-9]{2}", "m": "[0-9]{2}", "d": "[0-9]{2}", "j": "[0-9]{3}"}
_PART = re.compile(r"\{(region|hour)\}|\{(date|utc):([^{}]+)\}|\*|[{}]")
_DIRECTIVE = re.compile(r"%(.)")
_ENDS, _BEGINS = re.compile(r"(^|[=_. -])\Z"), re.compile(r"\Z|[_. -]")
"""What stands around a month or a day that may be written without a zero."""
_SHORT = ("([0-9]{1,2})", "([0-9]{2})")
ENDINGS = (".parquet", ".csv", ".csv.gz", ".tsv", ".tsv.gz", ".zip", ".xls")
"""Of the files of the usual layout; `.xls` of texts, which suppliers name so, and no workbooks."""
RULE = (
    'a pattern of paths below input.folder such as "{region}/{date:%Y-%m-%d}.csv", with {region} unless '
    "input.region names its column, {date:…} or {utc:…} with %Y, %y, %m, %d or %j, {hour} for hours, and *"
)


class RuleError(ValueError):
    """A value breaks a rule that its key's description does not say; the message does."""


@dataclass(frozen=True)
class PathPattern:
    """Segments as expressions, with what their groups mean. in_utc: dates of names are UTC's days. is_usual:
    names are exact, each folder of files has its own marker, and files end in one of `ENDINGS`.
    """

    text: str
    segments: tuple[re.Pattern[str], ...]
    groups: tuple[tuple[str, ...], ...]
    in_utc: bool
    is_usual: bool = False

    @property
    def last(self) -> int:
        """The depth of files."""
        return len(self.segments) - 1

    @cached_property
    def directives(self) -> frozenset[str]:
        """Those of dates."""
        return frozenset(key for own in self.groups for key in own) & DIRECTIVES.keys()

    @property
    def has_region(self) -> bool:
        return any("region" in own for own in self.groups)

    @property
    def has_hour(self) -> bool:
        return any("hour" in own for own in self.groups)

    @property
    def is_of_one_day(self) -> bool:
        """Whether a file holds one of the stream's days, or a part of one; else rows of others are usual."""
        return not self.in_utc and ("d" in self.directives or "j" in self.directives)

    def is_whole(self, depth: int) -> bool:
        """Whether a folder at a depth has files of one region and date alone: their names say neither."""
        return 0 < depth == self.last and not self.groups[-1]

    def is_literal(self, depth: int) -> bool:
        """Whether a folder of the pattern has one name alone: what lies next to it is nobody's."""
        return not self.groups[depth] and ".*?" not in self.segments[depth].pattern

    def match(self, depth: int, name: str, known: Fields) -> Fields | None:
        """Return the fields with those that a name has at a depth; None if it does not fit, or is no date."""
        found = self.segments[depth].fullmatch(name if self.is_usual else normalize("NFC", unquote(name)))
        if found is None:
            return None
        fields = dict(known)
        values = (value for value in found.groups() if value is not None)
        for key, value in zip(self.groups[depth], values, strict=True):
            value = value.zfill(2) if key in "md" else value
            if fields.setdefault(key, value) != value:
                return None
        return None if self.directives <= fields.keys() and self.days(fields) is None else fields

    def match_path(self, path: str) -> Fields | None:
        """Return the fields of a file; None if its path does not fit."""
        names = path.split("/")
        fields: Fields | None = {} if len(names) == len(self.segments) else None
        for depth, name in enumerate(names):
            fields = None if fields is None else self.match(depth, name, fields)
        return fields

    def wanted(self, period: date, calendar: Calendar, by_end: bool) -> list[Dated]:
        """Return what files say that hold rows of a period, as far as dates and hours go."""
        if not self.in_utc:
            hour = [("hour", period.clock[1:])] if self.has_hour and isinstance(period, Hour) else []
            return [self._dated(day_of(period)).union(hour)]
        begins, ends = (at(period).astimezone(UTC) for at in (calendar.begins_at, calendar.ends_at))
        last = ends if by_end else ends - timedelta(microseconds=1)
        return [*dict.fromkeys(map(self._dated, days_from(begins.date(), last.date())))]

    def _dated(self, day: date) -> Dated:
        texts = ((key, day.strftime(f"%{key}").zfill(4 if key == "Y" else 2)) for key in self.directives)
        return frozenset(texts)

    def days(self, fields: Fields) -> tuple[date, date] | None:
        """Return the first and the last day that a file may hold; None where its names are no date."""
        if not self.directives:
            return date.min, date.max
        year = int(fields["Y"]) if "Y" in fields else 2000 + int(fields["y"])
        try:
            if "j" in fields:
                first = date(year, 1, 1) + timedelta(days=int(fields["j"]) - 1)
                return (first, first) if first.year == year else None
            first = date(year, int(fields.get("m", 1)), int(fields.get("d", 1)))
            if "d" in fields:
                return first, first
            month = first.month if "m" in fields else 12
            return first, date(year + month // 12, month % 12 + 1, 1) - timedelta(days=1)
        except (ValueError, OverflowError):
            return None

    def shown(self, part: str, period: date) -> str:
        """Return the path of a period's dump, as messages name it: its folder where files have any name."""
        hour = period.clock[1:] if isinstance(period, Hour) else ""
        known = {"region": part or "*", "hour": hour}
        return _PART.sub(
            lambda found: known[found[1]] if found[1] else period.strftime(found[3]) if found[2] else "*",
            self.text.removesuffix("/*"),
        )


@lru_cache(maxsize=64)
def path_pattern(text: str, is_usual: bool = False) -> PathPattern:
    """Return the pattern of a text; raises RuleError."""
    segments, groups, kinds = [], [], set[str]()
    for segment in text.split("/"):
        if segment[:1] in "._" or "\\" in segment or not segment.isprintable():
            raise RuleError(
                'and it must name folders and a file below input.folder, none hidden by "." or "_"'
            )
        own: list[str] = []
        loose = "".join(_expressions(segment, own, kinds))
        strict = loose.replace(*_SHORT)
        # two digits first: a region's name may end in a number
        either = strict if is_usual or strict == loose else f"{strict}|{loose}"
        segments.append(re.compile(either, re.DOTALL))
        groups.append(tuple(own))
    if is_usual:
        segments[-1] = re.compile(f".*(?:{'|'.join(map(re.escape, ENDINGS))})", re.DOTALL)
    found = PathPattern(text, tuple(segments), tuple(groups), "utc" in kinds, is_usual)
    keys = found.directives
    if {"date", "utc"} <= kinds or (keys and not keys & {"Y", "y"}) or ("d" in keys and "m" not in keys):
        raise RuleError("and a date in it must have its year, and its month where it has the day")
    return found


def usual_pattern(by_region: bool, by_hour: bool) -> PathPattern:
    """Return the pattern where `input.path` is left out. by_region: each region has a folder of its own."""
    text = "region={region}/" * by_region + "date={date:%Y-%m-%d}/" + "hour={hour}/" * by_hour + "*"
    return path_pattern(text, is_usual=True)


def _expressions(segment: str, groups: list[str], kinds: set[str]) -> Iterator[str]:
    """Yield the expressions of a segment's parts, and note what their groups mean."""
    place = 0
    for part in _PART.finditer(segment):
        yield re.escape(normalize("NFC", segment[place : part.start()]))
        place = part.end()
        if part[0] in "{}":
            raise RuleError("and it has a brace that is none of these")
        if part[1]:
            groups.append(part[1])
            yield "(.+?)" if part[1] == "region" else "([01][0-9]B?|2[0-3]B?)"
        elif part[2]:
            kinds.add(part[2])
            start = 0
            for directive in _DIRECTIVE.finditer(part[3]):
                if directive[1] not in DIRECTIVES:
                    raise RuleError(f"and %{directive[1]} is none of its parts of a date")
                yield re.escape(part[3][start : directive.start()])
                groups.append(directive[1])
                before = part[3][start : directive.start()] or (segment[: part.start()] if not start else "%")
                start = directive.end()
                apart = _ENDS.search(before) and _BEGINS.match(part[3][start:] or segment[part.end() :])
                yield _SHORT[0] if directive[1] in "md" and apart else f"({DIRECTIVES[directive[1]]})"
            yield re.escape(part[3][start:])
        else:
            yield ".*?"
    yield re.escape(normalize("NFC", segment[place:]))
