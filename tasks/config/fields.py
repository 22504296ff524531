"""Types of the configuration's keys: numbers, names, clock times, crons, and places."""

import re
from collections.abc import Callable
from datetime import date, datetime, timedelta
from fractions import Fraction
from pathlib import Path, PurePosixPath
from types import NoneType
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar, get_args, get_origin

from annotated_types import Ge, Le, Predicate
from cronsim import CronSim, CronSimError
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, PlainSerializer, PlainValidator
from pydantic.fields import FieldInfo

from optstream.errors import ConfigurationError, ParameterError
from optstream.privacy.exact import SIZES, NumberSizeError, exact
from optstream.storage.store import Location, locate
from tasks.config.pattern import RULE, RuleError, path_pattern

if TYPE_CHECKING:
    from sqlalchemy import URL


def _range_in_words(field: FieldInfo) -> str:
    kinds = [one for one in get_args(field.annotation) or (field.annotation,) if one is not NoneType]
    stated = (one.description for one in getattr(kinds[0], "__metadata__", ()) if isinstance(one, FieldInfo))
    if found := next(filter(None, stated), None):
        return found
    literals = get_args(kinds[0]) if get_origin(kinds[0]) is Literal else kinds
    if all(isinstance(one, str) for one in literals):
        return " or ".join(f'"{one}"' for one in literals)
    limits = {type(one): one for one in field.metadata}
    if Ge in limits and Le in limits and kinds[0] is int:
        return f"an integer in [{limits[Ge].ge}, {limits[Le].le}]"
    return "true or false" if kinds[0] is bool else ""


class Section(BaseModel):
    """A table of the file: frozen, strict, refusing unknown keys. Errors and the reference take a legal
    range from a field's description, which follows from its type where it has none.
    """

    model_config = ConfigDict(
        defer_build=True, frozen=True, extra="forbid", strict=True, hide_input_in_errors=True
    )

    @classmethod
    def __pydantic_init_subclass__(cls, **_: Any) -> None:
        for field in cls.model_fields.values():
            field.description = field.description or _range_in_words(field)


LARGEST_BOUND = 10**15
LONGEST_COLUMN = 200
LONGEST_INTEGER = 256
"""Bits; a text may have 64 characters."""
_NODE_NAME = re.compile(r"\w[\w .,'()+-]*")
_CRON_ITEM = r"(\*(/\d{1,2})?|\d{1,2}(-\d{1,2}(/\d{1,2})?)?)"
_CRON_FIELD = rf"{_CRON_ITEM}(,{_CRON_ITEM})*"
_CRON = re.compile(rf"{_CRON_FIELD}( {_CRON_FIELD}){{4}}")


def _number(value: object) -> Fraction:
    if isinstance(value, int) and value.bit_length() > LONGEST_INTEGER:
        raise RuleError(f"at most {LONGEST_INTEGER} bits")
    try:
        return exact(value, "value")
    except NumberSizeError as error:
        raise RuleError(SIZES) from error
    except ParameterError as error:
        raise ValueError(str(error)) from error


def _day(value: object) -> date:
    """A date of TOML's own, or its text."""
    if isinstance(value, date) and not isinstance(value, datetime):
        return value
    if not isinstance(value, str) or not re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", value):
        raise ValueError("not a date")
    return date.fromisoformat(value)


def _read_by(read: Callable[[str], object]) -> AfterValidator:
    """Keep a text that a function reads; it raises ValueError for one that it cannot."""

    def keep(text: str) -> str:
        read(text)
        return text

    return AfterValidator(keep)


_ZONE = re.compile(r"(?:(Etc/)?(?:UTC|GMT|Z))?(?:([+-])([0-9]{1,2})(?::?([0-5][0-9]))?)?")


def offset_minutes(zone: str) -> int:
    """Return the minutes that a zone is ahead of UTC; raises ValueError for one whose clock changes."""
    if not zone or (found := _ZONE.fullmatch(zone)) is None or int(found[3] or 0) > 15:
        raise ValueError("no fixed distance from UTC")
    posix, sign, hours, minutes = found.groups()
    ahead = 60 * int(hours or 0) + int(minutes or 0)
    return -ahead if (sign == "-") != bool(posix) else ahead  # Etc/GMT-1 is ahead of UTC


STAMP_PARTS = {
    "Y": ("year", "[0-9]{4}"),
    "y": ("year", "[0-9]{2}"),
    "m": ("month", "[0-9]{1,2}"),
    "b": ("month", "[A-Za-z]{3,9}"),
    "d": ("day", "[0-9]{1,2}"),
    "H": ("hours", "[0-9]{1,2}"),
    "I": ("hours", "[0-9]{1,2}"),
    "M": ("minutes", "[0-9]{2}"),
    "S": ("seconds", "[0-9]{2}"),
    "f": ("part", "[0-9]{1,9}"),
    "p": ("half", "[AaPp][Mm]"),
    "z": ("offset", "[Zz]|UTC|GMT|[+-][0-9]{2}(?::?[0-9]{2})?"),
}
"""What a format of stamps may hold, by `strftime`'s letters: the group's name and expression for polars."""
SINCE_EPOCH = "epoch"
"""The format of stamps that count from 1970: seconds of 10 digits, milli-, micro- or nanoseconds of more."""


def stamp_expression(written: str) -> str:
    """Return the expression of stamps of a format; raises ValueError for one without a day."""
    if written == SINCE_EPOCH:
        return r"^([1-9][0-9]{9}(?:[0-9]{3}){0,3})(?:\.0*)?$"
    texts, keys = re.split("%.", written), re.findall("%(.)", written)
    named = {STAMP_PARTS[key][0] for key in keys if key in STAMP_PARTS}
    is_whole = len(keys) == len(named) and {"year", "month", "day"} <= named
    if not is_whole or ("I" in keys) != ("p" in keys) or "%" in "".join(texts):
        raise ValueError("no format of a stamp")
    groups = {key: f"(?<{name}>{part})" for key, (name, part) in STAMP_PARTS.items()}
    used = "".join(groups[key] + re.escape(text) for key, text in zip(keys, texts[1:], strict=True))
    unnamed = dict.fromkeys(name for name, _ in STAMP_PARTS.values() if name not in named)
    absent = "".join(f"(?<{name}>$.)?" for name in unnamed)
    return f"^{re.escape(texts[0])}{used}{absent}$"


def _is_file_name(text: str) -> bool:
    """Whether it is a plain file name: nothing that could leave the folder it is looked up in."""
    return text == PurePosixPath(text).name and "\\" not in text and "\0" not in text


def _is_log_file(text: str) -> bool:
    """Whether it ends in ".jsonl": no other file of the trusted zone does, so nothing else is added to."""
    return text.isprintable() and "://" not in text and text.endswith(".jsonl")


def is_node_name(name: object) -> bool:
    """Whether a node may be called so: its name becomes part of folder names, so no "/", no leading dot."""
    return isinstance(name, str) and _NODE_NAME.fullmatch(name) is not None and len(name.encode()) <= 200


def _is_cron(text: str) -> bool:
    """Whether it is five fields of numbers, lists, ranges and steps; no names, no seconds, no nicknames."""
    try:
        return _CRON.fullmatch(text) is not None and CronSim(text, datetime.min) is not None
    except CronSimError:
        return False


T = TypeVar("T")
Listed = Annotated[tuple[T, ...], Field(strict=False)]
"""A list of the file."""
_EXACT = Annotated[Fraction, PlainValidator(_number), PlainSerializer(str, return_type=str)]
Number = Annotated[_EXACT, Field(description='a decimal string such as "0" or "5200"')]
POSITIVE = 'a decimal string greater than 0, such as "1" or "0.001"'
Positive = Annotated[_EXACT, Field(gt=0, description=POSITIVE)]
AT_LEAST_0 = 'a decimal string of at least 0, such as "50"'
NotNegative = Annotated[_EXACT, Field(ge=0, description=AT_LEAST_0)]
Share = Annotated[_EXACT, Field(ge=0, le=1, description='a share in [0, 1], such as "1/10"')]
PositiveShare = Annotated[_EXACT, Field(gt=0, le=1, description='a share in (0, 1], such as "1/2"')]
Bound = Annotated[_EXACT, Field(ge=-LARGEST_BOUND, le=LARGEST_BOUND)]
Count = Annotated[int, Field(ge=1, le=10**6)]
Days = Annotated[int, Field(ge=1, le=36500, description="a number of days, an integer in [1, 36500]")]
Day = Annotated[
    date,
    PlainValidator(_day),
    PlainSerializer(date.isoformat, return_type=str),
    Field(description='a day such as "2016-07-01"'),
]
NodeName = Annotated[str, Predicate(is_node_name)]
FILE = 'a plain file name such as "_SUCCESS" or "_FILES"'
SETTLED = timedelta(minutes=5)
"""How long files without a marker must have been unchanged."""
NO_MARKER = f'{FILE}, or "" where files count once unchanged for {SETTLED.seconds // 60} minutes'
FileName = Annotated[str, Predicate(_is_file_name), Field(description=FILE)]
Marker = Annotated[str, Predicate(lambda name: not name or _is_file_name(name)), Field(description=NO_MARKER)]
LOG = 'the path of a file that ends in .jsonl, such as "trusted/events.jsonl"'
LogFile = Annotated[str, Predicate(_is_log_file), Field(description=LOG)]
NAME = "1 to 64 letters, digits, '_', '.' or '-', starting with a letter or digit"
Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}\z", description=NAME)]
COLUMN = f"the name of a column, of 1 to {LONGEST_COLUMN} characters"
Column = Annotated[str, Field(min_length=1, max_length=LONGEST_COLUMN, description=COLUMN)]
STAMPS = f'{COLUMN}, or of those of date and time, ["date", "time"]'
StampColumns = Annotated[
    Column | Annotated[tuple[Column, ...], Field(strict=False, min_length=2, max_length=4)],
    Field(description=STAMPS),
]
ZONE = (
    '"UTC", or a fixed distance from it such as "UTC+01:00"; left out for stamps by the clock of '
    "stream.time_zone, and of sums where stamps have an offset of their own"
)
FixedZone = Annotated[str, _read_by(offset_minutes), Field(description=ZONE)]
WRITTEN = (
    'a format such as "%d/%m/%Y %H:%M", of %Y or %y, %m or %b, %d and perhaps %H or %I with %p, %M, %S, %f, '
    f'%z, each once; or "{SINCE_EPOCH}"'
)
StampsFormat = Annotated[str, _read_by(stamp_expression), Field(max_length=60, description=WRITTEN)]
Text = Annotated[str, Field(min_length=1)]
FOLDER = "the path of a folder, relative to the configuration file's folder or absolute"
Folder = Annotated[Text, Field(description=FOLDER)]
STORE = f"{FOLDER}, or the URL of one in an object store, such as s3://bucket/folder"
FolderOrUrl = Annotated[Text, Field(description=STORE)]
PathText = Annotated[str, _read_by(path_pattern), Field(description=RULE)]
CLOCK = 'a clock time such as "12:00", of the day after a day, or so long after an hour'
ClockTime = Annotated[str, Field(pattern=r"^([01][0-9]|2[0-3]):[0-5][0-9]\z", description=CLOCK)]
Block = Annotated[str, Field(pattern=r"^[a-z0-9]+(-[a-z0-9]+)*/[a-z0-9]+(-[a-z0-9]+)*\z")]
LENGTH = 'a length such as "30min" or "2h", at most "9999h"'
StepLength = Annotated[str, Field(pattern=r"^[1-9][0-9]{0,3}(min|h)\z", description=LENGTH)]
CRON = 'five fields of numbers as cron takes them, such as "0 3 * * *"'
Cron = Annotated[str, Predicate(_is_cron), Field(description=CRON)]


def step_minutes(length: str) -> int:
    """Return the minutes of a `StepLength` such as "30min" or "4h"."""
    return int(length[:-3]) if length.endswith("min") else 60 * int(length[:-1])


# Places: folders and the ledger's database, relative to the configuration file.

LEGAL = (
    "ledger.url (or OPTSTREAM_LEDGER_URL) must be an SQLAlchemy URL of an SQLite file or a PostgreSQL "
    'database, such as "sqlite:///trusted/ledger.sqlite"'
)


def located(place: str, folder: Path) -> Location:
    """A path, from `folder` on if it is relative, or a store's URL; raises ParameterError, not echoing it."""
    found = locate(place)
    return folder / found if isinstance(found, Path) else found


def lies_within(place: Location, other: Location) -> bool:
    """Whether a place is another one or lies below it, links followed. Raises OSError and its like."""
    if isinstance(place, Path) and isinstance(other, Path):
        return place.resolve().is_relative_to(other.resolve())
    if isinstance(place, Path) or isinstance(other, Path):
        return False
    return place.is_relative_to(other)


def resolve_ledger_url(text: str, folder: Path) -> "URL":
    """Return the URL with a relative SQLite path taken from `folder`, never as text again (a `?` would
    cut the path off); no error echoes it.
    """
    # a process that reads dumps has settings and no ledger, and starts a fifth sooner without this import
    from sqlalchemy import exc, make_url

    try:
        url = make_url(text)
    except (exc.ArgumentError, ValueError):
        raise ConfigurationError(
            f"{LEGAL}; the value is not a URL (not shown: it may hold a password)"
        ) from None
    if (backend := url.get_backend_name()) == "postgresql":
        return url
    if backend != "sqlite":
        raise ConfigurationError(f"{LEGAL}; got another kind of database (not shown: it may hold a password)")
    database = url.database
    if not database or database == ":memory:" or database.startswith("file:"):
        raise ConfigurationError(f"{LEGAL}; a ledger in memory would forget the spent budget")
    if database.startswith("~"):
        raise ConfigurationError(f"{LEGAL}; ~ stands for no folder here: write the path out")
    if url != url.create(url.drivername, database=database):
        raise ConfigurationError(
            f"{LEGAL}; one of SQLite is sqlite:/// and a path, without a host (three slashes, not two) "
            "and without a query: a path with a ? in it can be given relative to the configuration"
        )
    return url.set(drivername=backend, database=str(folder / database))


def ledger_database(url: "URL") -> Path | None:
    """The SQLite file of a resolved URL; None for a server."""
    return Path(str(url.database)) if url.get_backend_name() == "sqlite" else None
