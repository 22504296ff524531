"""The configuration's tables as pydantic models, and the rules between them (`RULES`)."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, date, datetime, time, timedelta
from fractions import Fraction
from functools import lru_cache
from inspect import signature
from typing import Annotated, Any, ClassVar, Literal

from cronsim import CronSim
from pydantic import AfterValidator, Field, SecretStr, computed_field, model_validator

from optstream import mechanisms
from optstream.catalogue.about import LONGEST_LINE, TEXTS, About
from optstream.catalogue.rows import CUSTOMERS_ERROR, check_value_column
from optstream.catalogue.standard_errors import MOST_REPLICATES
from optstream.errors import ParameterError
from optstream.mechanisms.period_release import REPLICATES
from optstream.privacy import PrivacyModel
from optstream.privacy.spends import CUSTOMERS
from optstream.stream import AggregationTree, Calendar, DatedHierarchy, Feature, TreeChange
from optstream.stream.changes import MOST_HIERARCHY_CHANGES, hierarchy_problems
from optstream.stream.lattice import MOST_MARGIN_NODES, Margin
from optstream.stream.private_period import LARGEST_UNITS
from tasks.config.fields import (
    AT_LEAST_0,
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
    FixedZone,
    Folder,
    FolderOrUrl,
    Listed,
    LogFile,
    Marker,
    Name,
    NodeName,
    NotNegative,
    Number,
    PathText,
    Positive,
    PositiveShare,
    Section,
    Share,
    StampColumns,
    StampsFormat,
    StepLength,
    Text,
    step_minutes,
)
from tasks.config.pattern import RuleError, path_pattern

Trees = tuple[AggregationTree, ...]
"""The tree of every day, by day; none where the hierarchy is not usable itself."""
RULES: list[Callable[..., Iterable[str]]] = []
"""Each yields key, rule and remedy for what does not fit. Its parameters are tables by name, `source` for
[input], and `trees`; those with the default None need not be valid.
"""


def rule(check: Callable[..., Iterable[str]]) -> Callable[..., Iterable[str]]:
    RULES.append(check)
    return check


def broken_rules(tables: Mapping[str, Any], trees: Trees) -> list[str]:
    """Return contradictions between tables that are themselves valid."""
    known = {"watch": Watch(), **tables, "source": tables.get("input"), "trees": trees}
    problems: list[str] = []
    for check in RULES:
        named = signature(check).parameters
        if all(known.get(name) is not None or one.default is None for name, one in named.items()):
            problems += check(**{name: known.get(name) for name in named})
    return problems


# [stream] and [privacy]: the released stream, and the guarantee.


class Stream(Section):
    name: Name
    unit: Literal["customer", "roaming"] = "customer"
    leaves_per_step: Count = 1
    # no Literal[1]: true and 1.0 equal 1, and are no word
    leaves_per_window: Annotated[int, Field(ge=1, le=1)] | None = Field(
        None, description="1, where each customer's readings of any window lie in one leaf, or left out"
    )
    step: StepLength = Field(description='a length that divides a day, such as "30min" or "1h"')
    time_zone: str = Field(description='an IANA name such as "Europe/Paris"')
    day: Literal["elapsed", "fixed"] = "elapsed"
    period: Literal["day", "hour"] = "day"

    @property
    def calendar(self) -> Calendar:
        """The calendar that cuts local days into steps. Raises ParameterError where they do not fit."""
        return Calendar(step_minutes(self.step), self.time_zone, self.day, self.period)


DELTA = 'a decimal string in [1e-15, 1/1000], such as "1e-6"'


class Privacy(Section):
    epsilon: Positive
    delta: Positive | None = Field(None, description=f"{DELTA}; only for mechanisms of Gaussian noise")
    window: Count
    population: Name
    population_file: Text | None = Field(None, description="the path of the population's file")
    alpha: Positive
    budget_alpha: Positive | None = None
    resolution: Positive = Field("0.001", validate_default=True)
    counts: bool = False
    bounds: tuple[Bound, Bound] = Field(
        strict=False, description='two decimal strings, the lower first, such as ["0", "20000"], up to 10^15'
    )
    lower_bound: Number = Field("0", validate_default=True)

    @model_validator(mode="before")
    @classmethod
    def _round_counts(cls, table: Any) -> Any:
        """Counts are whole numbers."""
        is_of_counts = isinstance(table, dict) and table.get("counts") is True
        return {"resolution": "1", **table} if is_of_counts else table

    @property
    def largest(self) -> Fraction:
        """The largest size of a reading."""
        return max(map(abs, self.bounds))

    @property
    def is_whole(self) -> bool:
        """Whether readings are whole numbers, by the resolution, the bounds and alpha, and not below 0."""
        whole = all(one.denominator == 1 for one in (*self.bounds, self.alpha))
        return whole and self.resolution == 1 and min(*self.bounds, self.lower_bound) >= 0


def delivered_alpha(privacy: Privacy, source: "Input") -> Fraction:
    """Return by how much one customer moves a delivered sum (Lemma 2a, docs/privacy.md)."""
    return privacy.alpha + source.supplier_rounding


def guarantee_of(privacy: Privacy, stream: Stream, source: "Input") -> PrivacyModel:
    """Return the privacy guarantee of three tables. Raises ParameterError where they do not fit."""
    return PrivacyModel(
        epsilon=privacy.epsilon,
        window_length=privacy.window,
        alpha=delivered_alpha(privacy, source),
        resolution=privacy.resolution,
        unit=stream.unit,
        leaves_per_step=stream.leaves_per_step,
        delta=privacy.delta or 0,
    )


@lru_cache(maxsize=64)
def period_lengths(calendar: Calendar) -> frozenset[int]:
    """Return the steps of every kind of period that the zone has, from two whole years."""
    days = [date(2025, 1, 1) + timedelta(days=number) for number in range(730)]
    if calendar.period == "day":
        return frozenset(map(calendar.n_steps, days))
    for day in days:
        if calendar.n_steps(day) != calendar.slots:  # only a day whose clock changes can have part of one
            calendar.periods_of(day)
    return frozenset({calendar.usual_steps})


@rule
def _calendar(stream: Stream, features: Mapping[str, Any] | None = None) -> Iterator[str]:
    if stream.unit == "customer" and stream.leaves_per_step != 1:
        yield f'stream.leaves_per_step must be 1 for unit "customer"; got {stream.leaves_per_step}'
    if stream.unit == "roaming" and stream.leaves_per_window is not None:
        yield 'stream.leaves_per_window must be left out for unit "roaming", whose devices may move freely'
    try:
        # so that no night discovers a day that is not whole steps
        lengths = period_lengths(stream.calendar)
    except ParameterError as error:
        yield f"stream.step, stream.time_zone: {error}"
        return
    if min(lengths) < 1:
        yield f"stream.step must give each day at least one step; got {stream.step!r}"
    for name, times in (features or {}).items():
        try:
            Feature.from_clock(times, stream.calendar.local_times(date(2025, 1, 15)), name)
        except ParameterError as error:
            yield f"features: {error}: the parts of a feature may not overlap"


def _is_countable(largest: Fraction, resolution: Fraction) -> bool:
    """Return whether readings of this size, and those just beyond, are exact integers of this resolution."""
    # readings are cut one whole unit, or one float, outside the bounds before they are rounded
    return (largest + 1) / resolution * (1 + Fraction(1, 2**20)) + 2 < LARGEST_UNITS


@rule
def _bounds(stream: Stream, privacy: Privacy, trees: Trees) -> Iterator[str]:
    low, high = privacy.bounds
    if low >= high:
        yield f"privacy.bounds must have the lower first, the upper greater; got [{low}, {high}]"
    if not _is_countable(privacy.largest, privacy.resolution):
        yield "privacy.bounds must be below 2^50 units of privacy.resolution; choose a coarser resolution"
    if privacy.counts and privacy.resolution != 1:
        yield f'privacy.resolution must be "1" with privacy.counts = true; got {privacy.resolution}'
    if privacy.counts and privacy.lower_bound < 0:
        yield f"privacy.lower_bound must be at least 0 with privacy.counts = true; got {privacy.lower_bound}"
    if privacy.lower_bound >= high:
        got = privacy.lower_bound
        yield f"privacy.lower_bound must be below the upper of privacy.bounds, {high}; got {got}"
    # two hours more than a day, for the day on which the clock goes back
    cells = max((len(tree.leaves) for tree in trees), default=1) * (26 * 60 // step_minutes(stream.step))
    if privacy.largest / privacy.resolution * cells >= LARGEST_UNITS * 2**12:
        yield "privacy.bounds are too large for the sums of a day to stay exact; choose a coarser resolution"


# [mechanism], [sampling] and [features]: which one, its own keys, and the tables that some have.

Noise = Literal["joint", "laplace"] | None


class Mechanism(Section):
    """A mechanism's own keys, called as its parameters are, which check the legal range that the description
    says. tables: what of the file is for it and not for others. fixed: parameters that are always their
    defaults; lineage states them, and the configuration's hash knows them from when they were keys.
    is_checked: whether it is made to check its keys, by themselves and with the model.
    """

    tables: ClassVar[tuple[str, ...]] = ()
    fixed: ClassVar[Mapping[str, Any]] = {}
    is_checked: ClassVar[bool] = True

    name: str

    @property
    def kind(self) -> Any:
        """The mechanism's class, with its facts (`optstream.mechanisms.base`); loads it."""
        return getattr(mechanisms, self.name)

    @property
    def parameters(self) -> dict[str, Any]:
        """The keys that were given or have a default, without the name."""
        given = {key: getattr(self, key) for key in type(self).model_fields if key != "name"}
        return {key: value for key, value in given.items() if value is not None}

    def holidays_around(self, day: date) -> tuple[date, ...]:
        """Return the named days and the country's holidays around a day. Raises ParameterError."""
        return ()


class OptStream(Mechanism):
    tables: ClassVar[tuple[str, ...]] = ("sampling", "features")
    fixed: ClassVar[Mapping[str, Any]] = {"weights": "variance"}
    is_checked: ClassVar[bool] = False  # its parameters stand in other tables

    noise: Noise = None


class Laplace(Mechanism):
    """Laplace and Uniform."""

    noise: Noise = None


class Fourier(Mechanism):
    fixed: ClassVar[Mapping[str, Any]] = {"n_coefficients": 10}


class Kellaris(Mechanism):
    """Budget distribution and budget absorption."""

    fixed: ClassVar[Mapping[str, Any]] = {"distance_share": "1/2"}


class PeGaSus(Mechanism):
    fixed: ClassVar[Mapping[str, Any]] = {"perturber_share": "4/5", "smoother": "median", "groups": "own"}

    threshold: Number | None = Field(None, description=AT_LEAST_0)


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


def public_holidays(country: str, years: Iterable[int]) -> tuple[date, ...]:
    """Return those of these years, rising; raises ParameterError for a country that is not known."""
    import holidays  # only where they are needed

    try:
        return tuple(sorted(holidays.country_holidays(country, years=list(years))))
    except NotImplementedError as error:
        raise ParameterError(
            f'country must be a code that the package holidays knows, such as "FR"; got {country!r}'
        ) from error


class HistoryInformed(Mechanism):
    """All of it must be public."""

    is_checked: ClassVar[bool] = False  # to make it may take seconds
    fixed: ClassVar[Mapping[str, Any]] = {
        "history_days": 56,
        "relearn_days": 28,
        "proxy": None,
    }

    scale: float | None = Field(None, ge=1e-9, le=1e15, description="a number in [1e-09, 1e+15]")
    n_blocks: int | None = Field(None, ge=1, description="an integer of at least 1")
    block_length: int | None = Field(None, ge=1, description="an integer of at least 1")
    country: str | None = Field(None, pattern=r"^[A-Z]{2}$", description='a country such as "FR"')
    holidays: Listed[date] = Field((), max_length=10_000, description="a list of dates, at most 10000")
    noise: Noise = None

    @property
    def parameters(self) -> dict[str, Any]:
        """As any mechanism's; holidays are in its `days`."""
        return {key: one for key, one in super().parameters.items() if key not in ("country", "holidays")}

    def holidays_around(self, day: date) -> tuple[date, ...]:
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
MECHANISMS = {name: _WITH_KEYS.get(name, Mechanism) for name in mechanisms.MECHANISMS}
NAMES = " or ".join(f'"{name}"' for name in MECHANISMS)
OWN_TABLES = {table for section in MECHANISMS.values() for table in section.tables}
"""What of the file is for some mechanisms only."""


def kinds_with(fact: str, value: object = True) -> str:
    """Return those whose class states this of itself, as a message names them; loads them all."""
    return " and ".join(
        f'"{name}"' for name in MECHANISMS if getattr(getattr(mechanisms, name), fact) == value
    )


class Sampling(Section):
    n_samples: int = Field(10, ge=2, le=10**6, description="an integer in [2, privacy.window]")
    threshold: NotNegative | None = None

    @computed_field  # type: ignore[prop-decorator]
    @property
    def method(self) -> str:
        """What statements, lineage and the configuration's hash say of it; once a key of its own."""
        return "equally_spaced" if self.threshold is None else "l1"

    @model_validator(mode="before")
    @classmethod
    def _without_method(cls, table: Any) -> Any:
        """A method that says what the threshold says is as if left out."""
        if not isinstance(table, dict):
            return table
        follows = "equally_spaced" if table.get("threshold") is None else "l1"
        return {key: value for key, value in table.items() if (key, value) != ("method", follows)}


Features = Annotated[
    dict[str, Annotated[Listed[ClockTime], Field(max_length=1440)]],
    Field(max_length=100, description="at most 100 tables"),
]
USUAL_FEATURES = {"day parts": ("07:00", "12:00", "18:00"), "day": ()}


@rule
def _noise(
    mechanism: Mechanism, privacy: Privacy, stream: Stream, trees: Trees, sampling: Sampling | None = None
) -> Iterator[str]:
    if mechanism.kind.currency == "epsilon" and privacy.delta is not None:
        yield (
            f"privacy.delta is for mechanism.name {kinds_with('currency', 'rho')}, of Gaussian noise; got "
            f"{mechanism.name!r}: leave delta out, or take another mechanism"
        )
    if mechanism.kind.currency == "rho" and privacy.delta is None:
        yield f'privacy.delta must be given for mechanism.name "{mechanism.name}": {DELTA}'
    if sampling is not None and sampling.n_samples > privacy.window:
        yield f"sampling.n_samples must be an integer in [2, {privacy.window}]; got {sampling.n_samples}"
    if getattr(mechanism, "noise", None) != "joint":
        return
    if stream.leaves_per_window is None and any(len(tree.leaves) > 1 for tree in trees):
        yield (
            'mechanism.noise "joint" at levels of several nodes is for customers whose readings of any '
            'window lie in one leaf: say so with stream.leaves_per_window = 1, which stream.unit "customer" '
            'and input.schema "aggregated" allow, or leave noise out for joint noise at levels of one node'
        )
    if sampling is not None and sampling.threshold is not None:
        yield 'mechanism.noise "joint" is for equally spaced points: leave it out, or sampling.threshold'


# [hierarchy] and [budget]: the tree, what becomes of it, its margin, and the shares of epsilon.

HIERARCHY_CHANGES = "[[hierarchy.changes]]"
NodeNames = Listed[NodeName]
Parts = NodeNames | dict[NodeName, Positive]
"""Units that a unit becomes, or the public size of each."""


class HierarchyChange(Section):
    """What becomes of some units at the start of a local day, `valid_from`; all others stay as they are."""

    valid_from: Day
    renamed: dict[NodeName, NodeName] = Field({}, description='a table old code = "new code"')
    split: dict[NodeName, Parts] = Field(
        {},
        description='a table leaf = ["its", "parts"], or leaf = { its = "2", parts = "1" } with public sizes',
    )
    merged: dict[NodeName, NodeNames] = Field({}, description='a table new code = ["leaves", "that end"]')
    added: dict[NodeName, NodeName] = Field({}, description='a table new code = "parent"')
    removed: NodeNames = Field((), description='a list of codes such as ["21"]')
    moved: dict[NodeName, NodeName] = Field({}, description='a table code = "parent from now on"')


class Hierarchy(Section):
    parents: dict[str, str] | None = Field(
        None, description='a table node = "parent", the root\'s parent being "", every name a text'
    )
    file: Text | None = Field(None, description="the path of a .csv or .parquet file of nodes and parents")
    names: dict[str, str] = Field({}, description='a table node = "a printable name"')
    places: dict[str, Annotated[tuple[float, float], Field(strict=False)]] = Field(
        {}, description="a table node = [latitude, longitude], in degrees, such as [48.9, 2.3]"
    )
    changes: Listed[HierarchyChange] = Field(
        (),
        max_length=MOST_HIERARCHY_CHANGES,
        description=f"a list of at most {MOST_HIERARCHY_CHANGES} tables, each headed {HIERARCHY_CHANGES}",
    )
    margins: dict[Name, Annotated[NodeNames, Field(min_length=1, max_length=MOST_MARGIN_NODES)]] = Field(
        {},
        description=f'a table of one margin = ["its", "nodes"], 1 to {MOST_MARGIN_NODES}, which makes a cell '
        "of each leaf and node",
    )
    cells: dict[str, NodeNames] = Field({}, description='a table leaf = ["some", "nodes"] of the margin')

    @property
    def tree_changes(self) -> tuple[TreeChange, ...]:
        """The changes as the hierarchy takes them; parts without sizes have the same."""
        changes = []
        for one in self.changes:
            sizes = {
                old: parts if isinstance(parts, dict) else dict.fromkeys(parts, Fraction(1))
                for old, parts in one.split.items()
            }
            changes.append(TreeChange(**{**dict(one), "split": sizes}))
        return tuple(changes)

    @property
    def margin(self) -> Margin | None:
        """What makes cells of the leaves; None where there is none, or more than one."""
        if len(self.margins) != 1:
            return None
        ((name, nodes),) = self.margins.items()
        return Margin(name, nodes, tuple(self.cells.items()))

    def trees(self, parents: Mapping[str, str | None]) -> tuple[Trees, list[str]]:
        """Return the tree of every time, oldest first, and their problems."""
        parts = tuple(parents.items()), self.tree_changes, self.margin
        problems = [f"hierarchy: {problem}" for problem in hierarchy_problems(*parts)]
        return (() if problems else tuple(tree for _, tree in DatedHierarchy(*parts).periods)), problems


class Budget(Section):
    levels: Listed[Share] = Field(
        (),
        max_length=64,
        description='a list of shares in [0, 1], at most 64, root first, such as ["1/2", "1/2"]; '
        "if left out, equal ones",
    )
    margins: dict[Name, Share] = Field(
        {}, description='a table margin = "share" in [0, 1], for that of hierarchy.margins; 0: derived'
    )
    stream_share: PositiveShare = Field("1", validate_default=True)
    restatement_share: Share = Field("1/10", validate_default=True)
    revisions: int | None = Field(
        None, ge=1, le=100, description="an integer in [1, 100]: the planned later deliveries of a day"
    )

    @model_validator(mode="before")
    @classmethod
    def _equal_shares(cls, table: Any) -> Any:
        """Where revisions are planned and no share is given, all deliveries of a day have the same."""
        n = table.get("revisions") if isinstance(table, dict) else None
        return {"restatement_share": f"{n}/{n + 1}", **table} if type(n) is int and n > 0 else table

    @property
    def shares(self) -> int:
        """How many restatements of a day `restatement_share` is divided among."""
        return self.revisions or 1

    def over(self, tree: AggregationTree) -> "Budget":
        """Return the table with equal shares of what no margin has, where it says none of the levels."""
        if self.levels:
            return self
        n_levels, margins = tree.tree.n_levels, self.margins
        if tree is not tree.tree and not margins:
            margins = {tree.level_name(tree.n_levels - 1): Fraction(1, n_levels + 1)}
        share = (1 - sum(margins.values())) / Fraction(n_levels)
        return self.model_copy(update={"levels": (share,) * n_levels, "margins": margins})


@rule
def _budget(budget: Budget, trees: Trees) -> Iterator[str]:
    levels = budget.levels
    if (whole := sum((*levels, *budget.margins.values()))) > 1:
        named = "levels and budget.margins" if budget.margins else "levels"
        yield f"budget.{named} must add up to at most 1; got {whole}"
    if budget.restatement_share == 1:
        yield "budget.restatement_share must be less than 1: first releases need a share too; got 1"
    if budget.revisions and not budget.restatement_share:
        most = Fraction(budget.revisions, budget.revisions + 1)
        yield f'budget.restatement_share must be above 0 with budget.revisions, such as "{most}"; got 0'
    if not trees:
        return
    tree = trees[0].tree
    if len(levels) != tree.n_levels:
        below = ", the cells' among them, and a margin's in budget.margins" if tree is not trees[0] else ""
        yield f"budget.levels must have a share for each of {tree.n_levels} levels{below}; got {len(levels)}"
        return
    for level in sorted({int(tree.depths[index]) for tree in trees for index in tree.leaf_indices}):
        if levels[level] == 0:
            yield f"budget.levels[{level}] must be greater than 0, for leaves stand on it; got 0"


@rule
def _margin(
    hierarchy: Hierarchy,
    budget: Budget | None = None,
    source: "Input | None" = None,
    mechanism: Mechanism | None = None,
    privacy: Privacy | None = None,
) -> Iterator[str]:
    margins = hierarchy.margins
    if len(margins) > 1:
        yield f"hierarchy.margins must have one margin: three cannot be rounded; got {', '.join(margins)}"
    if budget is not None and set(budget.margins) != set(margins):
        yield (
            "budget.margins must have a share for each of hierarchy.margins and no other: "
            f"{', '.join(margins) or 'none'}; got {', '.join(budget.margins) or 'none'}"
        )
    if source is not None and source.margin is not None and (not margins or source.region is None):
        yield "input.margin must be left out without hierarchy.margins and input.region: it goes with both"
    if hierarchy.cells and not margins:
        yield "hierarchy.cells must be left out without hierarchy.margins, whose nodes they are of"
    if not margins or mechanism is None:
        return
    if not mechanism.kind.takes_margin:
        able = kinds_with("takes_margin")
        yield f"hierarchy.margins is for {able}; got {mechanism.name!r}: leave it out, or take one of them"
    if privacy is not None and privacy.counts and "counts" in mechanism.kind.__dataclass_fields__:
        yield f"privacy.counts must be false for {mechanism.name} with hierarchy.margins; got true"


# [input]: how dumps are laid out, and from which day on.

CHANGES = "[[input.changes]]"
OF_FILES = ("path", "decimal", "stamps", "stamps_zone", "stamps_format", "period_number", "step", "revision")
"""Keys that say how files are written."""
DEFAULT_MARKER = "_SUCCESS"
Bounds = tuple[Fraction, Fraction]


class Change(Section):
    """What changes in the dumps from a date on; keys that are not given keep their value."""

    valid_from: Day
    timestamp: StampColumns | None = None
    value: Column | None = None
    customer: Column | None = None
    factor: Positive | None = None
    marker: Marker | None = None
    file_list: FileName | None = None
    decimal: Literal[".", ","] | None = None
    stamps: Literal["start", "end"] | None = None
    stamps_zone: FixedZone | None = None
    stamps_format: StampsFormat | None = None
    period_number: Column | None = None
    step: StepLength | None = None
    revision: Column | None = None


class Input(Section):
    """How dumps are laid out. region: column of the leaves' names, where one folder holds the rows of all.
    margin: column of the margin's nodes, where a row's leaf is the cell of its region and of that node.
    factor: what a number of the value column is multiplied by, exactly, to be a reading in the unit of alpha
    and bounds. marker, file_list: the file whose presence says that a dump has arrived, or that lists its
    files; marker "": files without either count once they were unchanged for `SETTLED`.
    """

    folder: FolderOrUrl = "dumps"
    path: PathText | None = None
    schema_: Literal["aggregated", "metered"] = Field("aggregated", alias="schema")
    timestamp: StampColumns = "timestamp"
    value: Column
    customer: Column = "customer_id"
    region: Column | None = None
    margin: Column | None = None
    factor: Positive = Field("1", validate_default=True)
    marker: Marker | None = None
    file_list: FileName | None = None
    decimal: Literal[".", ","] = "."
    stamps: Literal["start", "end"] = "start"
    stamps_zone: FixedZone | None = None
    stamps_format: StampsFormat | None = None
    period_number: Column | None = None
    step: StepLength | None = None
    revision: Column | None = None
    missing_rows: Literal["refuse", "zero"] = "refuse"
    combine: Literal["sum", "mean"] | None = None
    changes: Listed[Change] = Field(
        (), max_length=1000, description=f"a list of at most 1000 tables, each headed {CHANGES}"
    )
    supplier_rounding: NotNegative = Field("0", validate_default=True)
    time_limit: StepLength = "6h"
    raw_retention_days: Days | None = None

    @property
    def layouts(self) -> tuple[tuple[date, "Input"], ...]:
        """The table as each change leaves it, with the first day: of the oldest `date.min`."""
        marker = self.announcement if self.file_list is None else None
        layout = self.model_copy(update={"changes": (), "marker": marker})
        found = [(date.min, layout)]
        for change in self.changes:
            given = {key: value for key, value in change if value is not None and key != "valid_from"}
            if given.keys() & {"marker", "file_list"}:
                given = {"marker": None, "file_list": None, **given}
            layout = layout.model_copy(update=given)
            found.append((change.valid_from, layout))
        return tuple(found)

    @property
    def announcement(self) -> str:
        """The file without which a dump has not arrived; empty where the age of its files says it."""
        return self.file_list or (DEFAULT_MARKER if self.marker is None else self.marker)

    @property
    def is_usual(self) -> bool:
        """Whether files lie and are written as simulated dumps are."""
        given = (getattr(self, key) != Input.model_fields[key].default for key in OF_FILES)
        return not any(given) and isinstance(self.timestamp, str)

    @property
    def stamp_columns(self) -> tuple[str, ...]:
        """The columns that say when a row's step is."""
        columns = (self.timestamp,) if isinstance(self.timestamp, str) else self.timestamp
        return columns if self.period_number is None else (*columns, self.period_number)

    def rows_a_step(self, step: str) -> int:
        """Return how many rows of a file make a step of the stream."""
        return step_minutes(step) // step_minutes(self.step or step)

    @property
    def columns(self) -> list[str]:
        """The columns that are read: a dump may hold others of any name."""
        customer = self.customer if self.schema_ == "metered" else None
        known = *self.stamp_columns, self.value, customer, self.region, self.margin, self.revision
        return [column for column in known if column is not None]

    def in_column_units(self, bounds: Bounds, resolution: Fraction, rows: int = 1) -> tuple[Bounds, Fraction]:
        """Return bounds and resolution divided by the factor, exactly (docs/privacy.md, Lemma 2), for a mean
        of some rows those of their sum.
        """
        factor = self.factor / (rows if self.combine == "mean" else 1)
        return (bounds[0] / factor, bounds[1] / factor), resolution / factor


def layout_key(name: str, first: date) -> str:
    """Return what messages call a key of the layout that begins on a day."""
    return f"input.{name}" if first == date.min else f"{name} of {CHANGES} from {first}"


@rule
def _layouts(source: Input) -> Iterator[str]:
    if source.marker is not None and source.file_list is not None:
        yield "input must have one of the keys marker, file_list; got both"
    if "://" in source.folder and any(not layout.announcement for _, layout in source.layouts):
        yield 'input.marker may be "" for folders of a file system; in a store name a marker or a file_list'
    layouts = source.layouts
    columns = [("input.timestamp, input.value, input.customer and input.region", layouts[0][1].columns)]
    for number, (change, (earlier, before), (first, now)) in enumerate(
        zip(source.changes, layouts, layouts[1:], strict=False), 1
    ):
        named = f"{CHANGES} {number}:"
        if change.marker is not None and change.file_list is not None:
            yield f"{named} must have one of the keys marker, file_list; got both"
        if first <= earlier:
            yield f"{named} valid_from must be later than {earlier}, that of the entry before it; got {first}"
        if now == before:
            yield f"{named} must change something: from {first} on dumps are laid out as before; remove it"
        columns.append((f"{named} timestamp, value, customer and region", now.columns))
    for named, of_layout in columns:
        if len(set(of_layout)) < len(of_layout):
            yield f"{named} must be different columns; got {of_layout}"


@rule
def _steps(source: Input, stream: Stream) -> Iterator[str]:
    layouts = source.layouts
    for first, layout in layouts:
        if layout.step is not None and step_minutes(stream.step) % step_minutes(layout.step):
            key = layout_key("step", first)
            yield f"{key} must divide stream.step, {stream.step}; got {layout.step}: set a longer stream.step"
        if layout.period_number is None:
            continue
        key = layout_key("period_number", first)
        if not isinstance(layout.timestamp, str):
            yield f"{key} goes with one column of dates in timestamp; got {list(layout.timestamp)}"
        if layout.stamps != "start" or layout.stamps_zone is not None:
            yield f"{key} counts the steps of the local day: leave stamps and stamps_zone out"
    finer = [layout for _, layout in layouts if layout.rows_a_step(stream.step) > 1]
    if bool(finer) != (source.combine is not None):
        yield (
            'input.combine must say how rows of a finer input.step make a step of the stream, "sum" for '
            f'counts and energy, "mean" for power, and be left out where none is finer; got {source.combine}'
        )


@rule
def _missing_rows(source: Input, privacy: Privacy) -> Iterator[str]:
    if source.missing_rows == "zero" and not privacy.bounds[0] <= 0 <= privacy.bounds[1]:
        yield 'privacy.bounds must hold 0 with input.missing_rows = "zero": a first row moves more than alpha'


@rule
def _path(source: Input, stream: Stream, watch: "Watch") -> Iterator[str]:
    if source.path is None:
        return
    pattern = path_pattern(source.path)
    if pattern.has_region == (source.region is not None):
        yield (
            "input.path must hold {region}, or input.region name the files' column of regions"
            if source.region is None
            else "input.path must not hold {region}: input.region names the files' column of regions"
        )
    if not pattern.directives and watch.first_day is None:
        yield "watch.first_day must be given for an input.path without {date:…}: the first day of the files"
    if pattern.has_hour and stream.period == "day":
        yield 'input.path may hold {hour} for stream.period "hour" alone: write * in its place'
    if pattern.has_hour and not pattern.is_of_one_day:
        yield "input.path must hold {date:…} with the day before {hour}"


@rule
def _factors(source: Input, privacy: Privacy) -> Iterator[str]:
    for factor, (first, layout) in {one.factor: (day, one) for day, one in reversed(source.layouts)}.items():
        bounds, resolution = layout.in_column_units(privacy.bounds, privacy.resolution)
        largest = max(map(abs, bounds))
        # of a factor of 1 it is privacy.bounds that is too large
        if factor != 1 and (largest > LARGEST_BOUND or not _is_countable(largest, resolution)):
            yield (
                f"{layout_key('factor', first)} must leave privacy.bounds below 10^15 and 2^50 units of "
                f"privacy.resolution in the column's own unit; got {factor}"
            )


@rule
def _metered(source: Input, stream: Stream | None = None) -> Iterator[str]:
    if source.schema_ != "metered":
        return
    if stream is not None and stream.unit == "roaming":
        yield 'input.schema must be "aggregated" for stream.unit "roaming": of two leaves of a row one counts'
    if stream is not None and stream.leaves_per_window is not None:
        yield 'stream.leaves_per_window must be left out for input.schema "metered", with rows in any leaf'
    if source.missing_rows == "zero":
        yield 'input.missing_rows must be left out for input.schema "metered": absent rows are 0 there'
    if source.supplier_rounding:
        got = source.supplier_rounding
        yield f'input.supplier_rounding must be left out for input.schema "metered"; got {got}'


# [published] and the other zones.


def _texts(given: dict[str, str]) -> dict[str, str]:
    if unknown := [key for key in given if key not in TEXTS]:
        raise RuleError(f"of which {unknown[0]!r:.80} is none")
    try:
        About(**given)  # type: ignore[arg-type]  # texts alone
    except ParameterError as error:
        raise RuleError(f"and {error}") from error
    return given


class Published(Section):
    folder: FolderOrUrl = "published"
    value: Column = ""
    rounding: Literal["nearest", "unbiased"] = "nearest"
    not_before: ClockTime | None = None
    measurements: bool = False
    reporting: bool = False
    replicates: Annotated[int, Field(ge=0, le=MOST_REPLICATES)] = REPLICATES
    levels: Listed[int] = Field((), description="a list of levels from 0 on, such as [0, 1]")
    about: Annotated[dict[str, str], AfterValidator(_texts)] = Field(
        {}, description=f"a table of printable texts of 1 to {LONGEST_LINE} characters: {', '.join(TEXTS)}"
    )
    signing_key: Text | None = Field(None, description="a file that `optstream keys new` made")
    public_keys: Listed[str] = Field((), max_length=100, description="a list of at most 100 PEM files")


@rule
def _published(published: Published) -> Iterator[str]:
    try:
        check_value_column(published.value or "value")
    except ParameterError as error:
        rule = str(error).removeprefix("value_column ")
        got = f"{published.value!r:.80}"
        yield f"published.value {rule}; set it, where input.value has another name; got {got}"


@rule
def _reporting(published: Published, source: Input, privacy: Privacy) -> Iterator[str]:
    if not published.reporting:
        return
    if source.schema_ != "metered":
        yield (
            'published.reporting is for input.schema "metered", whose rows name their customers: of sums '
            "only the supplier knows how many stand behind them; leave it out"
        )
    if privacy.delta is not None:
        yield "published.reporting is charged in epsilon: leave it out, or privacy.delta"
    if published.value in (CUSTOMERS, CUSTOMERS_ERROR):
        yield f"published.value must be another column with published.reporting; got {published.value!r}"


@rule
def _published_levels(published: Published, hierarchy: Hierarchy, trees: Trees) -> Iterator[str]:
    levels, n_levels = published.levels, max((tree.n_levels for tree in trees), default=0)
    if levels and (hierarchy.margins or hierarchy.changes):
        yield "published.levels must be left out with hierarchy.margins or hierarchy.changes"
    elif levels != tuple(range(len(levels))) or (trees and len(levels) > n_levels):
        yield f"published.levels must be 0, 1 and so on without gaps, below {n_levels}; got {list(levels)}"


RAW_STATE_DAYS = 7
"""Raw state is private, and no day takes it up after that."""


class Trusted(Section):
    """The retentions are what `optstream purge` goes by."""

    folder: Folder = "trusted"
    retention_days: Days = 90
    lineage_retention_days: Days = 3650
    witness: FolderOrUrl | None = None


class Ledger(Section):
    url: SecretStr = Field(
        SecretStr("sqlite:///trusted/ledger.sqlite"),
        description="an SQLAlchemy URL of an SQLite file or a PostgreSQL database",
    )


class Contracts(Section):
    """Users' own suites; a configuration need not have any."""

    folder: Folder


# [watch], [release] and [schedule]: automatic work and its times. All are optional.


class Watch(Section):
    """What alarms go by. That a configuration has it says that the stream runs nightly."""

    late_after: ClockTime = "12:00"
    max_runtime: StepLength = "2h"
    first_day: Day | None = None
    accepted_gaps: Listed[Day] = Field((), max_length=10_000, description="a list of at most 10000 days")
    notify: Listed[Block] = Field(
        (), max_length=20, description='a list of at most 20 notification blocks such as ["slack-webhook/us"]'
    )
    log: LogFile | None = None


class Release(Section):
    """What follows once a day is published."""

    revise_days: Annotated[int | None, Field(ge=0, le=366)] = None


EVERY_HOUR = "5 * * * *"
"""When a stream that is released by the hour runs, where nothing is said."""


class Schedule(Section):
    """When nights run under `optstream serve`; until when dumps are waited for is [watch] late_after."""

    cron: Cron = "0 3 * * *"
    catch_up_days: Annotated[int, Field(ge=1, le=366)] = 7
    watch_cron: Cron = "5 * * * *"


def clock_of(cron: str) -> int | None:
    """Return the minute of the day at which a cron fires, or None if it does at several."""
    minute, hour, *_ = cron.split()
    return 60 * int(hour) + int(minute) if minute.isdigit() and hour.isdigit() else None


def next_fire(crons: Iterable[str], after: datetime) -> datetime:
    """Return when one of the crons fires next after an instant, by the clock of its time zone."""
    return min((next(CronSim(cron, after)) for cron in crons), key=lambda at: at.astimezone(UTC))


def minutes_of(clock: str) -> int:
    """Return the minute of the day of a clock time."""
    parsed = time.fromisoformat(clock)
    return 60 * parsed.hour + parsed.minute


@rule
def schedule_problems(schedule: Schedule, watch: Watch, stream: Stream) -> Iterator[str]:
    """A night begins before the hour at which its day is late; hours are not released once a day."""
    begins = clock_of(schedule.cron)
    if begins is None:
        return
    if stream.period == "hour" and "cron" in schedule.model_fields_set:
        yield (
            f'schedule.cron must fire every hour for stream.period "hour", such as "{EVERY_HOUR}"; '
            f"got {schedule.cron!r}"
        )
    if stream.period == "day" and begins >= minutes_of(watch.late_after):
        yield f"schedule.cron must begin before watch.late_after, {watch.late_after}; got {schedule.cron!r}"


# [[covariates]]: public series that explain part of the readings.

COVARIATES = "[[covariates]]"
MOST_ROWS = 1000
"""Nodes times covariates: an estimate holds up to 105 numbers for each at each of up to 336 blocks."""
PATH = (
    "the path of another stream's published folder, or of a .parquet or .csv file whose sha256 is given, "
    "relative to the configuration file's folder or absolute"
)
SHA256 = "of a file, what `sha256sum` prints: 64 hexadecimal digits"


class PublicSeries(Section):
    """One covariate: naming it asserts that it is public."""

    name: Name
    path: Text = Field(description=PATH)
    sha256: str | None = Field(None, pattern="^[0-9a-f]{64}$", description=SHA256)
    value: Column = "value"
    source: str = Field(
        min_length=1, max_length=300, description="a text of 1 to 300 characters: who publishes it, how"
    )
    publication_lag_days: Annotated[int, Field(ge=0, le=366)] = 1
    nodes: Listed[str] = Field(
        (), max_length=1000, description="a list of at most 1000 nodes below which alone it applies"
    )


Covariates = Annotated[
    Listed[PublicSeries],
    Field(max_length=8, description=f"a list of at most 8 tables, each headed {COVARIATES}"),
]


@rule
def _covariates(covariates: Covariates, trees: Trees) -> Iterator[str]:
    tree = max(trees, key=lambda one: len(one.nodes), default=None)
    if tree is not None and len(tree.nodes) * len(covariates) > MOST_ROWS:
        yield (
            f"{COVARIATES} may have at most {MOST_ROWS:,} series of nodes together, for estimates "
            f"hold all in memory; got {len(covariates)} for each of {len(tree.nodes):,} nodes: leave "
            "some out"
        )
    names = [one.name for one in covariates]
    for number, one in enumerate(covariates, 1):
        place, is_file = f"{COVARIATES} {number}:", one.path.endswith((".parquet", ".csv"))
        if one.name in names[: number - 1]:
            yield f"{place} name must not be that of another covariate; got {one.name!r}"
        if is_file and one.sha256 is None:
            yield f"{place} sha256 is missing; it must be, {SHA256}: nothing else vouches for the file"
        if not is_file and one.sha256 is not None:
            yield f"{place} sha256 is for a .parquet or .csv file; got the path {one.path!r:.80}"
        unknown = [node for node in one.nodes if all(node not in each.nodes for each in trees)]
        if tree is not None and unknown:
            known = f"such as {tree.leaves[0]!r:.80}"
            yield f"{place} nodes must be of the hierarchy, {known}; got {unknown[0]!r:.80}"


# [[constraints]]: public facts that estimates keep.

CONSTRAINTS = "[[constraints]]"
FACTS = ("at_most", "most_change", "totals")
MOST_VALUES = 200_000
"""The most nodes times steps of a day for a program that is solved within minutes."""


class PublicFact(Section):
    """One constraint: naming it, or its file, asserts that it is public."""

    nodes: Listed[str] | dict[str, Number] | int | Name = Field(
        (),
        description='a list of nodes such as ["84"], a table node = "weight", or a level: its number, the '
        "root's 0, or the name of a margin",
    )
    at_most: Number | None = None
    most_change: NotNegative | Literal["up"] | None = Field(
        None, description='a decimal string of at least 0, such as "300", or "up" for what never falls'
    )
    totals: Text | None = Field(
        None, pattern=r"\.csv$", description="the path of a .csv file with columns node, date and total"
    )

    def sums_in(self, tree: AggregationTree) -> list[dict[str, float]]:
        """Return the weights of each sum that it states, by nodes of the tree."""
        nodes, known = self.nodes, set(tree.nodes)
        if isinstance(nodes, dict):
            sums = [{node: float(weight) for node, weight in nodes.items()}]
        elif isinstance(nodes, tuple):
            sums = [{node: 1.0} for node in nodes]
        else:
            levels = [k for k in range(tree.n_levels) if nodes in (k, tree.level_name(k))]
            sums = [{tree.nodes[place]: 1.0} for level in levels for place in tree.levels[level]]
        return [one for one in sums if one.keys() <= known]


Constraints = Annotated[
    Listed[PublicFact],
    Field(max_length=100, description=f"a list of at most 100 tables, each headed {CONSTRAINTS}"),
]


@rule
def _constraints(constraints: Constraints, stream: Stream, trees: Trees) -> Iterator[str]:
    cells = max((len(tree.nodes) for tree in trees), default=1) * (24 * 60 // step_minutes(stream.step))
    if constraints and cells > MOST_VALUES:
        yield f"{CONSTRAINTS} is for at most {MOST_VALUES:,} nodes times steps of a day; got {cells:,}"
    known = {node for tree in trees for node in tree.nodes}
    for number, one in enumerate(constraints, 1):
        place, nodes = f"{CONSTRAINTS} {number}:", one.nodes
        facts = [key for key in FACTS if getattr(one, key) is not None]
        if len(facts) != 1:
            yield f"{place} must have one of the keys {', '.join(FACTS)}; got {', '.join(facts) or 'none'}"
        elif bool(nodes in ((), {})) is (one.totals is None):
            got = f"{nodes!r:.80} with {facts[0]}"
            yield f"{place} must have nodes, or totals, whose file names them; got {got}"
        elif one.totals is not None and stream.period == "hour":
            yield f'{place} totals is of whole days; leave it out for stream.period "hour"'
        named = nodes if isinstance(nodes, tuple | dict) else ()
        if trees and not (known.issuperset(named) if named or one.totals else any(map(one.sums_in, trees))):
            got = f"{next((node for node in named if node not in known), nodes)!r:.80}"
            yield f"{place} nodes must be of the hierarchy, such as {trees[0].leaves[0]!r:.80}; got {got}"


@rule
def _abilities(
    stream: Stream,
    mechanism: Mechanism,
    release: Release | None = None,
    covariates: Covariates | None = None,
) -> Iterator[str]:
    """Limits of a mechanism; one that is made for whole days cannot release hours."""
    name, by_hour, revises = mechanism.name, stream.period == "hour", bool(release and release.revise_days)
    if by_hour and not mechanism.kind.serves_hours:
        able = kinds_with("serves_hours")
        yield f'stream.period "hour" is for mechanism.name {able}; got {name!r}: take one, or "day"'
    if covariates and not mechanism.kind.takes_covariates:
        able = kinds_with("takes_covariates")
        yield f"{COVARIATES} is for mechanism.name {able}; got {name!r}: leave it out"
    if covariates and by_hour:
        yield 'covariates is for stream.period "day"; leave it out, or publish by the day'
    got = release and release.revise_days
    if revises and not mechanism.kind.revises:
        able = kinds_with("revises")
        yield f"release.revise_days must be 0 or left out for mechanism {name!r}: it is for {able}; got {got}"
    if revises and by_hour:
        yield f'release.revise_days must be 0 or left out for stream.period "hour"; got {got}'


OPTIONAL = ("watch", "release", "schedule", "contracts", "covariates", "constraints")
"""Tables that are None, or empty, where they are left out."""
