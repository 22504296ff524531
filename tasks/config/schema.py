"""The configuration's tables, as pydantic models."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import UTC, date, datetime, time, timedelta
from fractions import Fraction
from functools import cache
from itertools import accumulate, pairwise
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, ConfigDict, Field, SecretStr, computed_field, model_validator

from optstream import mechanisms
from optstream.catalogue.about import LONGEST_LINE, TEXTS, About
from optstream.errors import ParameterError
from optstream.privacy import PrivacyModel
from optstream.stream import TreeChange
from optstream.stream.changes import MOST_HIERARCHY_CHANGES
from optstream.stream.lattice import MOST_MARGIN_NODES, Margin
from optstream.stream.private_period import LARGEST_UNITS
from tasks.config.fields import (
    CRON_FIELDS,
    DAYS,
    LARGEST_BOUND,
    Block,
    Bound,
    ClockTime,
    Column,
    Count,
    Cron,
    Day,
    Days,
    FileName,
    LogFile,
    Name,
    NodeName,
    NotNegative,
    Number,
    Positive,
    PositiveShare,
    RuleError,
    Section,
    Share,
    StepLength,
)

# The `[mechanism]` table: which mechanism, and its own keys, with their legal ranges as errors say them.

MOST_HOLIDAYS = 10_000
NOISE = '"joint" or "laplace"'


class Mechanism(Section):
    """A mechanism's own keys, called as its parameters are, which check the legal range that the description
    says. tables: what of the file is for it and not for others. fixed: parameters that are always their
    defaults; lineage states them, and the configuration's hash knows them from when they were keys.
    """

    tables: ClassVar[tuple[str, ...]] = ()
    fixed: ClassVar[Mapping[str, Any]] = {}

    name: str

    @classmethod
    def variants(cls, numbers: Sequence[int]) -> Iterator[tuple[str, dict[str, dict[str, Any]]]]:
        """What is worth trying: how each is called, its keys by table. numbers: of samples or the like."""
        yield "", {}

    @property
    def kind(self) -> Any:
        """The mechanism's class, which says what is true of it (`optstream.mechanisms.base`); loads it."""
        return getattr(mechanisms, self.name)

    def check(self, model: PrivacyModel) -> None:
        """Raise ParameterError for a key outside its range, or that does not fit another or the model."""
        self.kind(model, **self.parameters)

    def holidays_around(self, day: date) -> tuple[date, ...]:
        """The public holidays that it was told of, and those of its country in the years around a day."""
        return ()

    @property
    def parameters(self) -> dict[str, Any]:
        """The keys that were given or have a default, without the name."""
        given = {key: getattr(self, key) for key in type(self).model_fields if key != "name"}
        return {key: value for key, value in given.items() if value is not None}


class OptStream(Mechanism):
    tables: ClassVar[tuple[str, ...]] = ("sampling", "features")
    fixed: ClassVar[Mapping[str, Any]] = {"weights": "variance"}

    noise: Literal["joint", "laplace"] | None = Field(None, description=NOISE)

    @classmethod
    def variants(cls, numbers: Sequence[int]) -> Iterator[tuple[str, dict[str, dict[str, Any]]]]:
        """As any mechanism's."""
        for number in numbers:
            yield f", {number} samples", {"sampling": {"n_samples": number}}

    def check(self, model: PrivacyModel) -> None:
        """Do nothing: what it is made with stands in other tables."""


class Plain(Mechanism):
    """A mechanism that has nothing to set."""


class Laplace(Mechanism):
    """Laplace and Uniform."""

    noise: Literal["joint", "laplace"] | None = Field(None, description=NOISE)


class Fourier(Mechanism):
    fixed: ClassVar[Mapping[str, Any]] = {"n_coefficients": 10}


class Kellaris(Mechanism):
    """Budget distribution and budget absorption."""

    fixed: ClassVar[Mapping[str, Any]] = {"distance_share": "1/2"}


class PeGaSus(Mechanism):
    fixed: ClassVar[Mapping[str, Any]] = {"perturber_share": "4/5", "smoother": "median", "groups": "own"}

    threshold: Number | None = Field(None, description='a decimal string of at least 0, such as "50"')


class Fast(Mechanism):
    fixed: ClassVar[Mapping[str, Any]] = {
        "n_samples": None,
        "sampling": "adaptive",
        "predictor": "kalman",
        "proportional": 0.9,
        "integral": 0.1,
        "derivative": 0.0,
        "integration_time": None,
        "interval_step": 5.0,
        "set_point": 0.1,
        "min_interval": 1,
        "process_deviation": None,
        "error_floor": None,
    }


class HistoryInformed(Mechanism):
    """All of it must be public. Ranges are checked here: to make the mechanism may take seconds."""

    fixed: ClassVar[Mapping[str, Any]] = {
        "n_blocks": None,
        "block_length": None,
        "history_days": 56,
        "relearn_days": 28,
        "proxy": None,
    }

    scale: float | None = Field(None, ge=1e-9, le=1e15, description="a number in [1e-09, 1e+15]")
    country: str | None = Field(
        None, pattern=r"^[A-Z]{2}$", description='a country whose public holidays count, such as "FR"'
    )
    holidays: tuple[date, ...] = Field(
        (), strict=False, max_length=MOST_HOLIDAYS, description=f"a list of dates, at most {MOST_HOLIDAYS}"
    )
    noise: Literal["joint", "laplace"] | None = Field(None, description=NOISE)

    @property
    def parameters(self) -> dict[str, Any]:
        """As any mechanism's; holidays are in its `days`."""
        given = super().parameters
        return {key: value for key, value in given.items() if key not in ("country", "holidays")}

    def check(self, model: PrivacyModel) -> None:
        """Do nothing: see above."""

    def holidays_around(self, day: date) -> tuple[date, ...]:
        """As any mechanism's. Raises ParameterError for a country that is not known."""
        from tasks.config.holidays import public_holidays  # only where one asks

        years = range(day.year - 1, day.year + 2)
        return (*self.holidays, *(public_holidays(self.country, years) if self.country else ()))


_WITH_KEYS: dict[str, type[Mechanism]] = {
    "OptStream": OptStream,
    "Laplace": Laplace,
    "Uniform": Laplace,
    "Fourier": Fourier,
    "BudgetDistribution": Kellaris,
    "BudgetAbsorption": Kellaris,
    "PeGaSus": PeGaSus,
    "Fast": Fast,
    "HistoryInformed": HistoryInformed,
}
MECHANISMS = {name: _WITH_KEYS.get(name, Plain) for name in mechanisms.MECHANISMS}
NAMES = " or ".join(f'"{name}"' for name in MECHANISMS)
OWN_TABLES = {table for section in MECHANISMS.values() for table in section.tables}
"""What of the file is for some mechanisms only."""


def names_with(table: str) -> str:
    """Those that have a table, as a message says them."""
    return " or ".join(f'"{name}"' for name, section in MECHANISMS.items() if table in section.tables)


def kinds_with(fact: str) -> str:
    """Those of whose class a fact is true, as a message says them; loads them all."""
    return " and ".join(f'"{name}"' for name in MECHANISMS if getattr(getattr(mechanisms, name), fact))


def names_in(currency: str) -> str:
    """Those that are priced in a currency, as a message says them; loads them all."""
    return " or ".join(f'"{name}"' for name in MECHANISMS if getattr(mechanisms, name).currency == currency)


def section_of(table: Any) -> type[Mechanism] | None:
    """The section for what the table calls itself; None if it names no known mechanism."""
    name = table.get("name") if isinstance(table, dict) else None
    return MECHANISMS.get(name) if isinstance(name, str) else None


# The `[[covariates]]` tables: public series that explain part of the readings.

COVARIATES = "[[covariates]]"
MOST_COVARIATES = 8
MOST_NODES = 1000
MOST_ROWS = 1000
"""Nodes times covariates: an estimate holds up to 105 numbers for each at each of up to 336 blocks."""
SOURCE = "a text of 1 to 300 characters that says who publishes it and under which terms"
PATH = (
    "the path of another stream's published folder, or of a .parquet or .csv file whose sha256 is given, "
    "relative to the configuration file's folder or absolute"
)
ENDINGS = (".parquet", ".csv")
SHA256 = "of a file, what `sha256sum` prints: 64 hexadecimal digits"


class PublicSeries(Section):
    """One covariate: naming it asserts that it is public."""

    name: Name = Field(
        description="1 to 64 letters, digits, '_', '.' or '-', starting with a letter or digit"
    )
    path: str = Field(min_length=1, description=PATH)
    sha256: str | None = Field(None, pattern="^[0-9a-f]{64}$", description=SHA256)
    value: Column = Field("value", description="the name of the column of values, numbers")
    source: str = Field(min_length=1, max_length=300, description=SOURCE)
    publication_lag_days: int = Field(
        1, ge=0, le=366, description="after how many days a day's value is public, an integer in [0, 366]"
    )
    nodes: tuple[str, ...] = Field(
        (),
        strict=False,
        max_length=MOST_NODES,
        description="a list of nodes of the hierarchy below which alone it applies",
    )


class Covariates(Section):
    """All of them, in the file's order."""

    given: tuple[PublicSeries, ...] = Field(
        (),
        strict=False,
        max_length=MOST_COVARIATES,
        description=f"a list of at most {MOST_COVARIATES} tables, each headed {COVARIATES}",
    )


# The table [published]: where releases go, what lies beside them, and what describes them.

FOLDER = "the path of a folder, relative to the configuration file's folder or absolute"
PLACE = f"{FOLDER}, or the URL of one in an object store, such as s3://bucket/folder"
COLUMN = "the name of a column"
MOST_KEYS = 100


def _texts(given: dict[str, str]) -> dict[str, str]:
    if unknown := [key for key in given if key not in TEXTS]:
        raise RuleError(f"of which {unknown[0]!r:.80} is none")
    try:
        About(**given)  # type: ignore[arg-type]  # texts alone
    except ParameterError as error:
        raise RuleError(f"and {error}") from error
    return given


class Published(Section):
    folder: str = Field("published", min_length=1, description=PLACE)
    value: Column = Field("", description=f"{COLUMN}; if left out, that of input.value")
    rounding: Literal["nearest", "unbiased"] = Field("nearest", description='"nearest" or "unbiased"')
    not_before: ClockTime | None = Field(
        None, description='a clock time such as "06:00", of the day after a day, or so long after an hour'
    )
    measurements: bool = Field(False, description="true or false")
    about: Annotated[dict[str, str], AfterValidator(_texts)] = Field(
        default_factory=dict,
        description=f"a table of printable texts of 1 to {LONGEST_LINE} characters: {', '.join(TEXTS)}",
    )
    signing_key: str | None = Field(
        None,
        min_length=1,
        description="the path of a file in the trusted folder, made by `optstream keys new`",
    )
    public_keys: tuple[str, ...] = Field(
        (),
        strict=False,
        max_length=MOST_KEYS,
        description=f"a list of at most {MOST_KEYS} paths of PEM files with public keys",
    )


# The table [schedule]: when nights run under `optstream serve`.

EVERY_HOUR = "5 * * * *"
"""When a stream that is released by the hour runs, where nothing is said."""
CRON = 'five fields of numbers as cron takes them, such as "0 3 * * *"'


class Schedule(Section):
    """A configuration need not have it. Until which hour dumps are waited for is [watch] late_after."""

    cron: Cron = Field("0 3 * * *", validate_default=True, description=CRON)
    catch_up_days: int = Field(7, ge=1, le=366, description="a number of days, an integer in [1, 366]")
    watch_cron: Cron = Field("5 * * * *", validate_default=True, description=CRON)


def clock_of(cron: str) -> int | None:
    """The minute of the day at which a cron fires, or None if it does at several."""
    minute, hour, *_ = cron.split()
    return 60 * int(hour) + int(minute) if minute.isdigit() and hour.isdigit() else None


def next_fire(crons: Iterable[str], after: datetime) -> datetime | None:
    """The next minute, by the clock of its time zone, at which one of the crons fires after an instant; None
    where none does within a year.
    """
    minute = after.astimezone(UTC).replace(second=0, microsecond=0) + timedelta(minutes=1)
    end = minute + timedelta(days=366)
    while minute < end:
        at = minute.astimezone(after.tzinfo)
        fits = [_fits(cron, at) for cron in crons]
        if any(in_hour and in_minute for in_hour, in_minute in fits):
            return at
        minute += timedelta(minutes=1 if any(in_hour for in_hour, _ in fits) else 60 - at.minute)
    return None


def _fits(cron: str, at: datetime) -> tuple[bool, bool]:
    """Whether a cron fires in this hour of this day, and at this minute of an hour.

    As cron has it, a day fits by its month's day or by its week's where neither is "*".
    """
    now = (at.minute, at.hour, at.day, at.month, at.isoweekday() % 7)
    minute, hour, day, month, weekday = (
        value in _numbers(field, limits)
        for field, value, limits in zip(cron.split(), now, CRON_FIELDS, strict=True)
    )
    of_day = day and weekday if "*" in (cron.split()[2], cron.split()[4]) else day or weekday
    return hour and month and of_day, minute


@cache
def _numbers(field: str, limits: tuple[int, int]) -> frozenset[int]:
    """The numbers of a field; Sunday, 7, is 0."""
    found = set[int]()
    for item in field.split(","):
        span, _, step = item.partition("/")
        first, _, last = span.partition("-")
        least, greatest = limits if span == "*" else (int(first), int(last or first))
        found.update(range(least, greatest + 1, int(step or 1)))
    return frozenset(number % 7 for number in found) if limits == (0, 7) else frozenset(found)


def minutes_of(clock: str) -> int:
    """The minute of the day of a clock time."""
    parsed = time.fromisoformat(clock)
    return 60 * parsed.hour + parsed.minute


def schedule_problems(schedule: Schedule, watch: Any, stream: Any) -> Iterator[str]:
    """A night begins before the hour at which its day is late; hours are not released once a day."""
    begins = clock_of(schedule.cron)
    if stream.period == "hour":
        if begins is not None and "cron" in schedule.model_fields_set:
            yield (
                f'schedule.cron must fire every hour for stream.period "hour", such as "{EVERY_HOUR}"; '
                f"got {schedule.cron!r}"
            )
        return
    if begins is not None and begins >= minutes_of(watch.late_after):
        yield (
            f"schedule.cron must begin before watch.late_after, {watch.late_after}, until which dumps are "
            f"waited for; got {schedule.cron!r}"
        )


# What becomes of units of the hierarchy from a day on: the tables headed [[hierarchy.changes]].

HIERARCHY_CHANGES = "[[hierarchy.changes]]"
NodeNames = Annotated[tuple[NodeName, ...], Field(strict=False)]
Parts = NodeNames | dict[NodeName, Positive]
"""Units that a unit becomes, or the public size of each."""


class HierarchyChange(Section):
    """What becomes of some units at the start of a local day; all others stay as they are."""

    valid_from: Day = Field(description='the first day on which it holds, such as "2016-07-01"')
    renamed: dict[NodeName, NodeName] = Field(
        default_factory=dict, description='a table old code = "new code"'
    )
    split: dict[NodeName, Parts] = Field(
        default_factory=dict,
        description='a table leaf = ["its", "parts"], or leaf = { its = "2", parts = "1" } with public sizes',
    )
    merged: dict[NodeName, NodeNames] = Field(
        default_factory=dict, description='a table new code = ["leaves", "that end"]'
    )
    added: dict[NodeName, NodeName] = Field(default_factory=dict, description='a table new code = "parent"')
    removed: NodeNames = Field((), description='a list of codes such as ["21"]')
    moved: dict[NodeName, NodeName] = Field(
        default_factory=dict, description='a table code = "parent from now on"'
    )


def changes_of(given: Sequence[HierarchyChange]) -> tuple[TreeChange, ...]:
    """Return the changes as the hierarchy takes them; parts without sizes have the same."""
    return tuple(
        TreeChange(
            valid_from=one.valid_from,
            renamed=one.renamed,
            split={old: _sizes(parts) for old, parts in one.split.items()},
            merged=one.merged,
            added=one.added,
            removed=one.removed,
            moved=one.moved,
        )
        for one in given
    )


def _sizes(parts: Parts) -> dict[str, Fraction]:
    return dict(parts) if isinstance(parts, dict) else dict.fromkeys(parts, Fraction(1))


# The sections of the configuration file. A field's description is its legal range, as errors state it.

FACTOR = 'a decimal string greater than 0, such as "0.001" for kW where alpha is in MW'
MARKER = 'a plain file name such as "_SUCCESS"'
FILE_LIST = 'a plain file name such as "_FILES"'
CHANGES = "[[input.changes]]"
WITNESS = 'a second place that knows how far the ledger is, a folder or a URL such as "s3://bucket/witness"'
MOST_LEVELS = 64
"""Levels of a hierarchy: each has a share of its own."""
MOST_FEATURES = 100
MOST_CHANGES = 1000
MOST_GAPS = 10_000
MOST_BLOCKS = 20
MOST_CUTS = 1440
"""Clock times of one feature: a day has no more minutes."""


class Stream(Section):
    name: Name = Field(
        description="1 to 64 letters, digits, '_', '.' or '-', starting with a letter or digit"
    )
    unit: Literal["customer", "roaming"] = Field("customer", description='"customer" or "roaming"')
    leaves_per_step: Count = 1
    # no Literal[1]: true and 1.0 equal 1, and are no word
    leaves_per_period: Annotated[int, Field(ge=1, le=1)] | None = Field(
        None, description="1, where each customer's readings of a day lie in one leaf, or left out"
    )
    step: StepLength = Field(description='a length that divides a day, such as "30min" or "1h"')
    time_zone: str = Field(description='an IANA name such as "Europe/Paris"')
    day: Literal["elapsed", "fixed"] = Field("elapsed", description='"elapsed" or "fixed"')
    period: Literal["day", "hour"] = Field("day", description='"day" or "hour"')


class Privacy(Section):
    epsilon: Positive = Field(description='a decimal string greater than 0, such as "1" or "0.5"')
    delta: Positive | None = Field(
        None,
        description="for mechanisms of Gaussian noise alone: what may be added to any probability beside the "
        'factor e^epsilon, a decimal string in [1e-15, 1/1000], such as "1e-6"',
    )
    window: Count
    population: Name = Field(
        description="the name of the source and its customers, to whom the privacy budget belongs: 1 to 64 "
        "letters, digits, '_', '.' or '-'"
    )
    population_file: str | None = Field(
        None, min_length=1, description="the path of the file with what the population's streams say alike"
    )
    alpha: Positive = Field(description='a decimal string greater than 0, such as "10"')
    budget_alpha: Positive | None = Field(
        None,
        description="the alpha of the population's other streams, where this stream is of another quantity "
        "and has an alpha of its own: a decimal string greater than 0",
    )
    resolution: Positive = Field(
        "0.001", validate_default=True, description="a decimal string greater than 0"
    )
    counts: bool = Field(False, description="true or false")
    bounds: tuple[Bound, Bound] = Field(
        strict=False, description='two decimal strings, the lower first, such as ["0", "20000"], up to 10^15'
    )
    lower_bound: Number = Field("0", validate_default=True, description='a decimal string such as "0"')


class Hierarchy(Section):
    parents: dict[str, str] | None = Field(
        None, description='a table node = "parent", the root\'s parent being "", every name a text'
    )
    file: str | None = Field(
        None,
        min_length=1,
        description="the path of a .csv or .parquet file with columns node and parent, and perhaps "
        "name, latitude and longitude",
    )
    names: dict[str, str] = Field(
        default_factory=dict,
        description='a table node = "name", each a printable text of 1 to 100 characters',
    )
    places: dict[str, Annotated[tuple[float, float], Field(strict=False)]] = Field(
        default_factory=dict,
        description="a table node = [latitude, longitude], in degrees, such as [48.9, 2.3]",
    )
    changes: tuple[HierarchyChange, ...] = Field(
        (),
        strict=False,
        max_length=MOST_HIERARCHY_CHANGES,
        description=f"a list of at most {MOST_HIERARCHY_CHANGES} tables, each headed {HIERARCHY_CHANGES}",
    )
    margins: dict[Name, Annotated[NodeNames, Field(min_length=1, max_length=MOST_MARGIN_NODES)]] = Field(
        default_factory=dict,
        description='a table of one margin = ["its", "nodes"], which makes a cell of each leaf and node',
    )
    cells: dict[str, NodeNames] = Field(
        default_factory=dict,
        description='a table leaf = ["its", "nodes"] of the margin, for each leaf that has not all of them',
    )


class Budget(Section):
    levels: tuple[Share, ...] = Field(
        (),
        strict=False,
        max_length=MOST_LEVELS,
        description=f'a list of shares in [0, 1], at most {MOST_LEVELS}, root first, such as ["1/2", "1/2"]; '
        "if left out, equal ones",
    )
    margins: dict[Name, Share] = Field(
        default_factory=dict,
        description='a table margin = "share" in [0, 1], for that of hierarchy.margins; 0: derived',
    )
    stream_share: PositiveShare = Field(
        "1",
        validate_default=True,
        description="a share of epsilon in (0, 1] that this stream plans with, the population's other "
        "streams having the rest",
    )
    restatement_share: Share = Field(
        "1/10",
        validate_default=True,
        description="a share of epsilon in [0, 1) that first releases leave to restatements; with 0 no day "
        "is measured again",
    )


class Sampling(Section):
    n_samples: int = Field(10, ge=2, le=10**6, description="an integer in [2, privacy.window]")
    threshold: NotNegative | None = Field(
        None,
        description='a decimal string of at least 0, such as "50"; if left out, points are equally spaced',
    )

    @computed_field  # type: ignore[prop-decorator]
    @property
    def method(self) -> str:
        """What statements, lineage and the configuration's hash say of it; once a key of its own."""
        return "equally_spaced" if self.threshold is None else "l1"

    @model_validator(mode="before")
    @classmethod
    def _without_method(cls, table: Any) -> Any:
        """A method that says what the threshold says is as if left out."""
        given = table.get("threshold") if isinstance(table, dict) else None
        follows = "equally_spaced" if given is None else "l1"
        if isinstance(table, dict) and table.get("method") == follows:
            return {key: value for key, value in table.items() if key != "method"}
        return table


class Features(Section):
    model_config = ConfigDict(strict=False)  # a list of the file is a tuple here

    named: dict[str, Annotated[tuple[ClockTime, ...], Field(max_length=MOST_CUTS)]] = Field(
        default_factory=dict, max_length=MOST_FEATURES
    )


class Change(Section):
    """What is other in the dumps from a day on; what is not given stays as it was before."""

    valid_from: Day = Field(description='the first day that is laid out so, such as "2015-07-01"')
    timestamp: Column | None = Field(None, description=COLUMN)
    value: Column | None = Field(None, description=COLUMN)
    customer: Column | None = Field(None, description=COLUMN)
    factor: Positive | None = Field(None, description=FACTOR)
    marker: FileName | None = Field(None, description=MARKER)
    file_list: FileName | None = Field(None, description=FILE_LIST)


class Input(Section):
    """Columns, factor, marker and file list are the oldest layout's: for a day ask `Settings.input_of`.

    With `region` the rows of all leaves lie in one folder a day, on all days; with `margin` a cell's code is
    that of its region and of its node of the margin, from two columns.
    """

    folder: str = Field("dumps", min_length=1, description=PLACE)
    schema_: Literal["aggregated", "metered"] = Field(alias="schema", description='"aggregated" or "metered"')
    timestamp: Column = Field("timestamp", description=COLUMN)
    value: Column = Field(description=COLUMN)
    customer: Column = Field("customer_id", description=COLUMN)
    region: Column | None = Field(None, description=COLUMN)
    margin: Column | None = Field(None, description=COLUMN)
    factor: Positive = Field("1", validate_default=True, description=FACTOR)
    marker: FileName | None = Field(None, description=MARKER)
    file_list: FileName | None = Field(None, description=FILE_LIST)
    changes: tuple[Change, ...] = Field(
        (),
        strict=False,
        max_length=MOST_CHANGES,
        description=f"a list of at most {MOST_CHANGES} tables, each headed {CHANGES}",
    )
    supplier_rounding: NotNegative = Field(
        "0",
        validate_default=True,
        description='a decimal string of at least 0, such as "1" for sums rounded to whole numbers',
    )
    time_limit: StepLength = Field("6h", description='a length such as "30min" or "6h", at most "9999h"')
    raw_retention_days: int | None = Field(None, ge=1, le=36500, description=DAYS)


RAW_STATE_DAYS = 7
"""Raw state is private, and no day takes it up after that."""


class Trusted(Section):
    """The retentions are what `optstream purge` goes by."""

    folder: str = Field("trusted", min_length=1, description=FOLDER)
    retention_days: Days = 90
    lineage_retention_days: Days = 3650
    witness: str | None = Field(None, min_length=1, description=WITNESS)


class Ledger(Section):
    url: SecretStr = Field(
        SecretStr("sqlite:///trusted/ledger.sqlite"),
        description="an SQLAlchemy URL of an SQLite file or a PostgreSQL database, such as "
        '"sqlite:///trusted/ledger.sqlite"',
    )


class Watch(Section):
    """What alarms go by; a configuration need not have it. That it does says that the stream runs nightly."""

    late_after: ClockTime = Field(
        "12:00", description='a clock time such as "12:00", of the day after a day, or so long after an hour'
    )
    max_runtime: StepLength = Field("2h", description='a length such as "30min" or "2h", at most "9999h"')
    first_day: Day | None = Field(None, description='the first day that is to be released, "2016-02-01"')
    accepted_gaps: tuple[Day, ...] = Field(
        (),
        strict=False,
        max_length=MOST_GAPS,
        description=f'a list of at most {MOST_GAPS} days such as ["2016-02-03"], which raise no alarm',
    )
    notify: tuple[Block, ...] = Field(
        (),
        strict=False,
        max_length=MOST_BLOCKS,
        description=f"a list of at most {MOST_BLOCKS} notification blocks of Prefect, each by type and name, "
        'such as ["custom-webhook/optstream"]',
    )
    log: LogFile | None = Field(
        None, description='the path of a file that ends in .jsonl, such as "trusted/events.jsonl"'
    )


class Release(Section):
    """What follows once a day is published; a configuration need not have it."""

    revise_days: int | None = Field(
        None, ge=0, le=366, description="a number of days, an integer in [0, 366]"
    )


class Contracts(Section):
    """Users' own suites; a configuration need not have any."""

    folder: str = Field(min_length=1, description=FOLDER)


SECTIONS: dict[str, type[Section]] = {
    "stream": Stream,
    "mechanism": Mechanism,
    "privacy": Privacy,
    "hierarchy": Hierarchy,
    "budget": Budget,
    "sampling": Sampling,
    "features": Features,
    "input": Input,
    "published": Published,
    "trusted": Trusted,
    "ledger": Ledger,
    "watch": Watch,
    "release": Release,
    "schedule": Schedule,
    "contracts": Contracts,
    "covariates": Covariates,
}
OPTIONAL = ("watch", "release", "schedule", "contracts", "covariates")
"""Tables that a configuration may go without."""
DEFAULT_FEATURES = {"day parts": ["07:00", "12:00", "18:00"], "day": []}


# The margin of the hierarchy, its share and its column: whether they fit the rest of the file.


def margin_of(hierarchy: Hierarchy) -> Margin | None:
    """Return the margin as the hierarchy takes it; None where there is none, or more than one."""
    if len(hierarchy.margins) != 1:
        return None
    ((name, nodes),) = hierarchy.margins.items()
    return Margin(name, nodes, tuple(hierarchy.cells.items()))


def margin_problems(
    hierarchy: Hierarchy,
    budget: Budget | None,
    source: Input | None,
    mechanism: Mechanism | None,
    privacy: Privacy | None,
) -> Iterator[str]:
    """Yield key and rule where what speaks of a margin does not fit the others of the valid sections."""
    margins = hierarchy.margins
    if len(margins) > 1:
        yield (
            "hierarchy.margins must have one margin: numbers of three dimensions cannot always be rounded so "
            f"that all add up; got {', '.join(margins)}"
        )
    if budget is not None and set(budget.margins) != set(margins):
        yield (
            "budget.margins must have a share for each of hierarchy.margins and no other: "
            f"{', '.join(margins) or 'none'}; got {', '.join(budget.margins) or 'none'}"
        )
    if source is not None and source.margin is not None and (not margins or source.region is None):
        yield (
            "input.margin must be left out without hierarchy.margins and input.region: it is the column of "
            "the margin's node in rows whose region stands in another"
        )
    if not margins:
        if hierarchy.cells:
            yield "hierarchy.cells must be left out without hierarchy.margins, whose nodes they are of"
        return
    if mechanism is not None and not mechanism.kind.takes_margin:
        able = kinds_with("takes_margin")
        yield (
            f"hierarchy.margins is for {able}; got {mechanism.name!r}: leave the margin out, or take one of "
            "them"
        )
    counts = privacy is not None and privacy.counts
    if counts and mechanism is not None and "counts" in mechanism.kind.__dataclass_fields__:
        yield (
            f"privacy.counts must be false for {mechanism.name} beside hierarchy.margins: its counts are "
            "shares of one node above each; got true"
        )


# How dumps are laid out, and from which day on: the columns, the value's unit, what completes a dump.

DEFAULT_MARKER = "_SUCCESS"
Bounds = tuple[Fraction, Fraction]


@dataclass(frozen=True)
class Layout:
    """How the dumps of the days from `valid_from` on are laid out, until the next layout. valid_from: None in
    the oldest.

    value, timestamp, customer: columns, the last in metered input. factor: what a number of the value column
    is multiplied by, exactly, to be a reading in the unit of alpha and bounds. marker, file_list: the file
    whose presence says that a dump has arrived, or that lists a dump's files; the other is None. region:
    column of the leaves' names, where one folder holds the rows of all; None where each leaf has a folder;
    the same in every layout of a stream. margin: column of the margin's nodes, where a row's leaf is the cell
    of its region and of that node.
    """

    value: str
    timestamp: str = "timestamp"
    customer: str = "customer_id"
    factor: Fraction = Fraction(1)
    marker: str | None = DEFAULT_MARKER
    file_list: str | None = None
    valid_from: date | None = None
    region: str | None = None
    margin: str | None = None

    @property
    def announcement(self) -> str:
        """The file without which a dump has not arrived."""
        return str(self.file_list or self.marker)

    def key(self, name: str) -> str:
        """Return what a key such as "factor" is called in messages: with its table, and its first day."""
        return f"input.{name}" if self.valid_from is None else f"{name} of {CHANGES} from {self.valid_from}"

    def in_column_units(self, bounds: Bounds, resolution: Fraction) -> tuple[Bounds, Fraction]:
        """Return public bounds and resolution, which are in alpha's unit, divided by the factor: in the value
        column's.

        Clamping a number n to these and rounding it half up to this resolution gives the same integer as
        clamping and rounding the reading n * factor by the stream's own (docs/privacy.md, Lemma 2).
        """
        return (bounds[0] / self.factor, bounds[1] / self.factor), resolution / self.factor


def layouts_of(source: Input) -> tuple[Layout, ...]:
    """Every layout, oldest first."""
    return tuple(accumulate(source.changes, _changed, initial=_changed(Layout(source.value), source)))


def _changed(before: Layout, change: Change | Input) -> Layout:
    given = {
        field.name: getattr(change, field.name)
        for field in fields(Layout)
        if getattr(change, field.name, None) is not None
    }
    if "marker" in given or "file_list" in given:
        given = {"marker": None, "file_list": None, **given}
    return replace(before, **given)


def layout_problems(source: Input) -> Iterator[str]:
    """Whether each layout can be read, and each change is one."""
    if source.marker is not None and source.file_list is not None:
        yield "input must have one of the keys marker, file_list; got both"
    layouts = layouts_of(source)
    yield from _columns("input.timestamp, input.value, input.customer and input.region", source, layouts[0])
    for number, (before, now) in enumerate(pairwise(layouts)):
        yield from _change(f"{CHANGES} {number + 1}:", source.changes[number], before, now)
        yield from _columns(f"{CHANGES} {number + 1}: timestamp, value, customer and region", source, now)


def _change(named: str, change: Change, before: Layout, now: Layout) -> Iterator[str]:
    if change.marker is not None and change.file_list is not None:
        yield f"{named} must have one of the keys marker, file_list; got both"
    if before.valid_from is not None and change.valid_from <= before.valid_from:
        yield (
            f"{named} valid_from must be later than {before.valid_from}, that of the entry before it; "
            f"got {change.valid_from}"
        )
    if replace(now, valid_from=before.valid_from) == before:
        yield (
            f"{named} must change something: from {change.valid_from} on dumps are laid out as before; "
            "remove it, or give what is other"
        )


def _columns(named: str, source: Input, layout: Layout) -> Iterator[str]:
    columns = [layout.timestamp, layout.value]
    columns += [layout.customer] if source.schema_ == "metered" else []
    columns += [one for one in (layout.region, layout.margin) if one is not None]
    if len(set(columns)) < len(columns):
        yield f"{named} must be different columns; got {columns}"


def factor_problems(source: Input, privacy: Privacy) -> Iterator[str]:
    """Whether the bounds can be counted exactly in each layout's own unit."""
    firsts = {layout.factor: layout for layout in reversed(layouts_of(source))}
    for layout in firsts.values():
        if layout.factor == 1:
            continue  # then it is privacy.bounds that is too large
        bounds, resolution = layout.in_column_units(privacy.bounds, privacy.resolution)
        largest = max(abs(bound) for bound in bounds)
        if largest > LARGEST_BOUND or not countable_up_to(largest, resolution):
            yield (
                f"{layout.key('factor')} must leave privacy.bounds below 10^15 and 2^50 units of "
                f"privacy.resolution in the column's own unit; got {layout.factor}"
            )


def countable_up_to(largest: Fraction, resolution: Fraction) -> bool:
    """Whether readings of this size, and those just beyond, are exact integers of this resolution."""
    # Readings are cut one whole unit, or one float, outside the bounds before they are rounded.
    return (largest + 1) / resolution * (1 + Fraction(1, 2**20)) + 2 < LARGEST_UNITS
