"""The statement of a published release, its guarantee and its cost, and the file that carries it."""

import hashlib
import json
import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from decimal import ROUND_CEILING, ROUND_UP, Context, Decimal
from fractions import Fraction
from functools import cache, cached_property, partial
from typing import Annotated, Any, ClassVar, Literal, get_args

import numpy as np
import polars as pl
from pydantic import (
    AfterValidator,
    ConfigDict,
    Field,
    GetJsonSchemaHandler,
    PlainSerializer,
    PlainValidator,
    Strict,
    WithJsonSchema,
    model_validator,
)
from pydantic.json_schema import JsonSchemaValue

from optstream.catalogue.documents import (
    EXACT,
    PARTITION,
    Amount,
    Count,
    Document,
    Hash,
    Name,
    OrAbsent,
    Period,
    Positive,
    Signed,
    Text,
    absent,
    as_written,
)
from optstream.catalogue.layout import errors_file, measurements_file, release_name
from optstream.catalogue.rows import (
    band_columns,
    check_value_column,
    error_columns,
    hash_rows,
    is_ordered,
    ordered_rows,
    schema,
)
from optstream.errors import PublicationError
from optstream.estimation.constraints import NO_ANSWER, Kept
from optstream.estimation.estimate import Optimality
from optstream.mechanisms import mechanism_named
from optstream.privacy import GaussianSpend, JointSpend, OrderSpend
from optstream.privacy.model import PrivacyModel, Unit, Windows
from optstream.privacy.spends import CUSTOMERS, Spend, StepSpend
from optstream.storage.parquet import GROUP_ROWS, Limits, decode_table, encode_table
from optstream.stream.calendar import DayKind
from optstream.stream.period import day_of

MARGIN = "margin"  # key of `mechanism`: the name of the last level, where it is a margin
TREE = "tree_sha256"
"""In a mechanism's parameters: what identifies the tree of the day, and the list of trees up to it."""
LEAST = 1e-18
"""Figures below it say no more than that the last digits are exact, and differ between processors."""
ONE_DIGIT = Context(prec=1, rounding=ROUND_UP)
DIGITS = 4  # significant ones of a long span's amounts: the same on machines whose floats round differently
GAUSSIAN, ORDER = "discrete Gaussian", "order of a stream"
JOINT = ("noise", "joint_over", "n_nodes")
ErrorsOf = Literal["whole", "noise"]
"""The whole errors of the values, or the part made by noise alone."""
Known = Literal["all", "some", "none"]


def _up(figure: float) -> float:
    return float(ONE_DIGIT.create_decimal(Decimal(repr(figure))))


class Consistency(Document):
    """How near the values are to the optimum of the program that respects the lower bound."""

    gap: float = Field(ge=0, description="primal less dual objective, the sum of weights * misfit^2 / 2")
    distance: float = Field(
        0.0,
        ge=0,
        description="how many of its own standard errors any sum of values may be from the optimum's",
    )
    residual: float = Field(
        ge=0, description="by how many standard deviations of a measurement optimality is missed at most"
    )
    rounds: Count
    converged: bool
    in_words: Text = ""

    @classmethod
    def rounded(cls, found: Optimality) -> "Consistency":
        """Round gap and residual up to one digit, so that another processor's last bits change nothing."""
        gap, residual = _up(max(found.gap, LEAST)), _up(max(found.residual, math.sqrt(LEAST)))
        return cls(gap=gap, residual=residual, rounds=found.rounds, converged=found.converged)

    def _derived(self) -> Mapping[str, Any]:
        distance = _up(math.sqrt(2.0 * self.gap))
        words = in_words("consistency", {"distance": distance, "converged": self.converged})
        return {"distance": distance, "in_words": words}


class Constraints(Document):
    """The public facts that the values keep, and how exactly."""

    facts: Annotated[tuple[dict[str, Any], ...], Strict(False)] = Field(description="as configured")
    gap: float = Field(ge=0, description="primal less dual objective, the sum of weights * misfit^2 / 2")
    residual: float = Field(ge=0, description="by how much rounded values miss a fact at most, in their unit")
    converged: bool
    in_words: Text = ""

    @classmethod
    def rounded(cls, facts: Any, kept: Kept, residual: float) -> "Constraints":
        """Round gap and residual up to one digit, so that another processor's last bits change nothing."""
        gap, residual = (_up(float(f"{max(x, LEAST):.6g}")) for x in (kept.gap, residual))
        return cls(facts=facts, gap=gap, residual=residual, converged=kept.converged)

    def _derived(self) -> Mapping[str, Any]:
        facts = {**dict(self), "has_answer": self.gap < NO_ANSWER}
        return {"in_words": in_words("constraints", facts)}


def _below_one(amount: Fraction) -> Fraction:
    if not 0 < amount < 1:
        raise ValueError(f"must be between 0 and 1; got {amount}")
    return amount


class LongSpan(Document):
    """What all readings of one customer in so many days in a row lose by the plan."""

    n_days: Positive
    epsilon: Amount
    delta: Annotated[Amount, AfterValidator(_below_one)]
    plain_sum: Amount = Field(description="epsilon at delta 0, or rho")
    composed: Literal["draws", "windows", "plain", "rho"]

    @classmethod
    def rounded(
        cls, n_days: int, epsilon: float, delta: Fraction, plain_sum: Fraction, composed: str
    ) -> "LongSpan":
        """Round both amounts up to four significant digits: alike on every machine, never understated."""
        given = {"epsilon": Fraction(epsilon), "plain_sum": plain_sum}
        up = Context(DIGITS, ROUND_CEILING)
        amounts = {name: Fraction(up.divide(one.numerator, one.denominator)) for name, one in given.items()}
        return cls.read({"n_days": n_days, "delta": delta, "composed": composed, **amounts})


class NoiseScale(Document):
    """The noise of one measurement; three keys are of joint noise alone, and law of Gaussian noise."""

    model_config = ConfigDict(
        json_schema_extra={"dependentRequired": {one: [key for key in JOINT if key != one] for one in JOINT}}
    )
    level: Count = Field(description="depth in the tree, root 0")
    stage: str = Field(description='what was measured, such as "samples"')
    scale: Amount | None = Field(
        description="in the unit of the values; null where no one scale describes it"
    )
    scale_units: Amount | None = Field(description="the same in units of the resolution")
    noise: OrAbsent[str] = absent()
    joint_over: OrAbsent[Count] = absent("how many measurements share joint noise at most")
    n_nodes: OrAbsent[Positive] = absent("of the level")
    law: OrAbsent[Literal["discrete Gaussian", "order of a stream"]] = absent(
        "discrete Gaussian: scale is its standard deviation; order of a stream: joint noise of all of it"
    )

    @property
    def needs_one_leaf(self) -> bool:
        """Whether it is priced for customers whose readings lie in one leaf (Lemmas 16 and 16b)."""
        return self.n_nodes is not None and self.n_nodes > 1

    def _derived(self) -> Mapping[str, Any]:
        if self.joint_over is None:
            return {"noise": None, "n_nodes": None}
        if self.n_nodes is None:
            raise ValueError("joint noise has a number of nodes")
        of_window = " of any window" if self.law == ORDER else ""
        what = "steps" if self.stage == "samples" else self.stage
        return {"noise": f"joint over {self.joint_over} {what}{of_window}"}


def noise_scales(spends: Iterable[Spend], resolution: Fraction) -> tuple[NoiseScale, ...]:
    """Return the distinct noise scales of a release's spends, in their order."""
    of_readings = (spend for spend in spends if spend.stage != CUSTOMERS)
    return tuple(dict.fromkeys(_noise_of(spend, resolution) for spend in of_readings))


def _noise_of(spend: Spend, resolution: Fraction) -> NoiseScale:
    facts: dict[str, Any] = {}
    scale = None
    if isinstance(spend, JointSpend):
        largest = max((len(group) for group in spend.groups), default=0)
        scale, facts = spend.scale, {"joint_over": largest, "n_nodes": spend.n_nodes}
    elif isinstance(spend, OrderSpend):
        scale, facts = spend.scale, {"law": ORDER, "joint_over": spend.n_blocks, "n_nodes": spend.n_nodes}
    elif isinstance(spend, GaussianSpend):
        scale, facts = spend.scale, {"law": GAUSSIAN}
    elif isinstance(spend, StepSpend) and all(weight == int(weight) for weight in spend.weights):
        scale = spend.scale  # a part of a weight stands for a larger one
    whole = None if scale is None else scale * resolution
    return NoiseScale(level=spend.level, stage=spend.stage, scale=whole, scale_units=scale, **facts)


class StandardErrors(Document):
    """For which values the columns *_noise_se and *_se are known."""

    noise: Known = Field(description="what the noise did to the estimate")
    posterior: Known = Field(description="how far the estimate is taken to be from the truth, noise and all")
    in_words: Text = ""


class CountBands(Document):
    """For which counts the columns *_low and *_high are known."""

    known: Known
    share: Annotated[Amount, AfterValidator(_below_one)] = Field(
        Fraction(19, 20), description="of steps that a band is to hold at least"
    )
    estimate: OrAbsent[bool] = absent("true where the column *_estimate is there; absent in older releases")
    wide: Annotated[tuple[str, ...], Strict(False)] = absent(
        "nodes whose mean band is wider than their mean value, the first 1,000; absent without any", ()
    )
    in_words: Text = ""


class StatedMeasurements(Document):
    """The file of the noisy measurements that the release is computed from."""

    file: str = Field(
        "",
        pattern=rf"^measurements/{PARTITION}/revision-[0-9]+-[0-9a-f]{{64}}\.parquet$",
        description="relative to the published folder",
    )
    file_hash: Hash = Field(description="SHA-256 of that file")
    later: Annotated[tuple[Period, ...], Strict(False)] = absent(
        "the later days that a new estimate is made of, rising; absent for a first one",
        (),
        json_schema_extra={"minItems": 1},
    )

    @model_validator(mode="after")
    def _rises(self) -> "StatedMeasurements":
        if list(self.later) != sorted(set(self.later)):
            raise ValueError("later must be rising days")
        return self


class StatedErrors(Document):
    """The file of replicates, which gives the standard error of any figure (docs/data/sums.md)."""

    file: str = Field(
        "",
        pattern=rf"^errors/{PARTITION}/revision-[0-9]+-vintage-[0-9]+-[0-9a-f]{{64}}\.parquet$",
        description="relative to the published folder",
    )
    file_hash: Hash = Field(description="SHA-256 of that file")
    of: ErrorsOf = Field(
        description="whether of the whole errors, or of what the noise alone did to the values"
    )
    replicates: OrAbsent[Annotated[int, Field(ge=1)]] = absent("how many; absent in files of version 0.2")


_MODEL_SCHEMA: JsonSchemaValue = {
    "type": "object",
    "description": "The privacy guarantee.",
    "properties": {
        "epsilon": EXACT,
        "window_length": {"type": "integer", "minimum": 1},
        "alpha": EXACT,
        "resolution": EXACT,
        "unit": {"type": "string", "enum": list(get_args(Unit))},
        "leaves_per_step": {"type": "integer", "minimum": 1},
        "windows": {"type": "string", "enum": list(get_args(Windows))},
        "delta": EXACT | {"description": "in addition to epsilon, for Gaussian noise only"},
        "rho": EXACT | {"description": "the most of it, zero-concentrated privacy, in any window"},
    },
    "required": ["epsilon", "window_length", "alpha", "resolution", "unit", "leaves_per_step", "windows"],
    "additionalProperties": False,
}


Model = Annotated[
    PrivacyModel,
    PlainValidator(lambda value: value if isinstance(value, PrivacyModel) else PrivacyModel(**value)),
    PlainSerializer(PrivacyModel.to_document),
    WithJsonSchema(_MODEL_SCHEMA),
]


def _mechanism(value: object) -> Mapping[str, Any]:
    if not isinstance(value, Mapping) or not isinstance(value.get("name"), str):
        raise ValueError("must be a mapping with a name")
    return value


Mechanism = Annotated[
    Mapping[str, Any],
    PlainValidator(_mechanism),
    PlainSerializer(dict),
    WithJsonSchema(
        {
            "type": "object",
            "description": "The mechanism, with all its parameters.",
            "properties": {
                "name": {"type": "string", "minLength": 1},
                "level_shares": {
                    "type": "array",
                    "minItems": 1,
                    "items": EXACT,
                    "description": "each level's share of epsilon, root first; absent in older releases",
                },
                TREE: {
                    "type": "string",
                    "pattern": "^[0-9a-f]{64}$",
                    "description": "identifies the day's tree and those before it; only where the hierarchy "
                    "changes",
                },
            },
            "required": ["name"],
        }
    ),
]


ValueColumn = Annotated[
    Text,
    AfterValidator(check_value_column),
    Field(description="name of the published values, which also tells their unit"),
]


class ReleaseStatement(Document):
    """What a release says of itself, in public facts alone: no raw values, clocks or durations.

    The order of the fields is that of the stored bytes.
    """

    called: ClassVar[str] = "a release's statement"
    format: Literal["optstream.statement/1"] = "optstream.statement/1"
    stream: Name
    period: Period
    revision: Count = Field(description="from 0; a higher one is a new measurement of the day")
    vintage: Count = Field(description="from 0; a higher one is a new estimate from the same measurements")
    value_column: ValueColumn
    step_minutes: int = Field(ge=1, le=1440)
    time_zone: Name
    day: DayKind = Field(description="how a day is cut where the clocks change")
    model: Model = Field(alias="privacy_model")
    privacy_in_words: Text = ""
    mechanism: Mechanism
    calibration: Literal["strict", "paper"] = Field(
        description="an earlier version had the noise scales of the papers"
    )
    epsilon_plan: Amount = Field(description="what the plan, repeated, costs any window, as accounted")
    epsilon_own: Amount = Field(description="what this release's measurements alone cost any window")
    noise: Annotated[tuple[NoiseScale, ...], Strict(False)]
    simulated: bool = Field(
        description="a release of seeded noise is never published", json_schema_extra={"const": False}
    )
    code_version: Name
    configuration_hash: Hash
    budget_alpha: OrAbsent[Amount] = absent(
        "the alpha of the budget's other streams, where this one has its own"
    )
    supplier_rounding: Amount = absent(
        "of alpha, the part that is the supplier's rounding of sums; absent where none is", Fraction(0)
    )
    long_spans: Annotated[tuple[LongSpan, ...], Strict(False)] = absent(
        "absent in releases from before it was stated", (), json_schema_extra={"minItems": 1}
    )
    standard_errors: OrAbsent[StandardErrors] = absent(
        "absent in releases from before there were such columns"
    )
    consistency: OrAbsent[Consistency] = absent(
        "absent where no value lay below the bound, and in older releases"
    )
    bands: OrAbsent[CountBands] = absent("absent where readings are no counts")
    measurements: OrAbsent[StatedMeasurements] = absent("absent where it is not published")
    errors: OrAbsent[StatedErrors] = absent("absent where there is none")
    customers_scale: OrAbsent[Amount] = absent(
        "noise scale of the number of customers of a leaf; absent where it is not published"
    )
    no_errors: OrAbsent[Name] = absent("why there is no file of errors; absent where there is one")
    bounds: OrAbsent[Annotated[tuple[Signed, Signed], Strict(False)]] = absent(
        "lowest and highest reading; absent where that is not recorded"
    )
    metered: OrAbsent[bool] = absent(
        "whether each input row was one customer's; absent where that is not recorded"
    )

    constraints: OrAbsent[Constraints] = absent("absent where none was configured for the day")
    published_levels: OrAbsent[int] = absent(
        "how many levels the rows have, from the root on; absent where they have all"
    )

    @model_validator(mode="after")
    def _fits(self) -> "ReleaseStatement":
        if self.bounds is not None and not self.bounds[0] < self.bounds[1]:
            raise ValueError("bounds must have the lower first")
        if self.supplier_rounding >= self.model.alpha:
            raise ValueError("supplier_rounding must be less than the model's alpha")
        for one in self.noise:
            units = one.scale_units
            if one.scale != (None if units is None else units * self.model.resolution):
                raise ValueError("scale of noise must be scale_units times the model's resolution")
        return self

    def _derived(self) -> Mapping[str, Any]:
        found: dict[str, Any] = {"privacy_in_words": in_words("privacy", self)}
        for name, columns in (("standard_errors", error_columns), ("bands", band_columns)):
            if (part := getattr(self, name)) is not None:
                words = in_words(name, part, *columns(self.value_column))
                found[name] = part.model_copy(update={"in_words": words})
        key = self.period, self.revision
        for name, one, place in (
            ("measurements", self.measurements, partial(measurements_file, *key)),
            ("errors", self.errors, partial(errors_file, *key, self.vintage)),
        ):
            if one is not None:
                found[name] = one.model_copy(update={"file": place(one.file_hash)})
        return found

    @property
    def has_columns(self) -> tuple[bool, bool, bool, bool]:
        """Whether the rows have standard errors, bands, estimates to add up, and customers (`columns_of`)."""
        bands, customers = self.bands, self.customers_scale is not None
        return self.standard_errors is not None, bands is not None, bool(bands and bands.estimate), customers

    @property
    def epsilon_of_grant(self) -> Fraction:
        """The greatest cost of any window with a step of this release, over all plans: the ledger's limit."""
        return max(self.model.epsilon, self.epsilon_plan)

    @property
    def covered_change(self) -> Fraction:
        """The change of a reading that epsilon covers: alpha, less the supplier's rounding."""
        return self.model.alpha - self.supplier_rounding

    @property
    def covered_in_words(self) -> str:
        return decimal_below(self.covered_change)

    @property
    def is_for_few_leaves(self) -> bool:
        """Whether the noise is priced for customers whose readings of a period lie in few leaves."""
        kind = mechanism_named(self.mechanism["name"])
        one_leaf = self.model.unit == "customer" and kind is not None and kind.one_leaf_a_period
        return one_leaf or any(entry.needs_one_leaf for entry in self.noise)

    @property
    def terms_in_words(self) -> str:
        """The terms of the draw: the same text for releases with the same protection."""
        return in_words("terms", self)

    @property
    def attachments(self) -> tuple[tuple[str, str], ...]:
        """The files that belong to the release: each by its place in the published folder, and its hash."""
        return tuple((one.file, one.file_hash) for one in (self.measurements, self.errors) if one)


class _Stated:
    """What a manifest has of a statement: the keys as they were written, with the schema of a statement."""

    def __get_pydantic_json_schema__(self, _: Any, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return handler(ReleaseStatement.__pydantic_core_schema__)


class Manifest(Document):
    """What a release is, protects and cost: its statement as the file has it. Public."""

    called: ClassVar[str] = "a manifest"
    format: Literal["optstream.manifest/1"] = "optstream.manifest/1"
    file: str = Field(pattern=rf"^(data|superseded)/{PARTITION}/release-[0-9a-f]{{64}}\.parquet$")
    file_hash: Hash
    rows_hash: Hash
    statement: Annotated[dict[str, Any], _Stated()]

    def to_bytes(self) -> bytes:
        return (json.dumps(self.to_json(), indent=1, allow_nan=False) + "\n").encode()

    @property
    def stated(self) -> ReleaseStatement:
        """The statement. Raises PublicationError where it is not as OptStream writes it."""
        return ReleaseStatement.read(self.statement)

    @classmethod
    def from_bytes(cls, data: bytes) -> "Manifest":
        """Return the manifest that anyone may have written. Raises PublicationError for something else."""
        with as_written("a manifest is not JSON"):
            return cls.read(json.loads(data))


def _decimal(amount: Fraction) -> str:
    whole, rest = divmod(math.ceil(amount * 10**4), 10**4)
    return f"{whole}.{rest:04d}".rstrip("0").rstrip(".")


def rounded_up(amount: Fraction) -> float:
    """Return four decimals: a loss may be overstated, never understated."""
    return math.ceil(amount * 10**4) / 10**4


def plain_number(amount: Fraction) -> str:
    """An exact number as people read it."""
    return f"{amount.numerator:,}" if amount.denominator == 1 else f"{float(amount):.6g}"


def decimal_below(amount: Fraction) -> str:
    """Return four decimals, rounded down, or the fraction itself where these would all be 0."""
    below = Fraction(math.floor(amount * 10**4), 10**4)
    return _decimal(below) if below else str(amount)


def template_environment(**options: Any) -> Any:
    """Return jinja's environment of the catalogue's templates."""
    from jinja2 import Environment, PackageLoader, StrictUndefined  # 15 ms: only where something is written

    loader = PackageLoader("optstream.catalogue")
    return Environment(loader=loader, autoescape=False, undefined=StrictUndefined, **options)


@cache
def _sentences() -> Any:
    environment = template_environment(trim_blocks=True, lstrip_blocks=True)
    environment.filters |= {
        "up": _decimal,
        "four": lambda amount: f"{rounded_up(amount):g}",
        "below": decimal_below,
        "plain": plain_number,
        "up_to_whole": math.ceil,
    }
    return environment.get_template("words.jinja").module


def in_words(name: str, *facts: object) -> str:
    """Return sentences for data users: a macro of templates/words.jinja, its lines joined by spaces."""
    return " ".join(filter(None, getattr(_sentences(), name)(*facts).split("\n")))


# A release as the bytes of its Parquet file. `date` is in the path (`date=2016-02-01`) alone: pyarrow refuses
# a dataset in which a column says it too.

ROWS_KEY = b"optstream.rows_sha256"
STATEMENT_KEY = b"optstream.statement"
LARGEST_STATEMENT = 2**20
LIMITS = Limits(rows=2**26, columns=16, group_rows=2**26, group_bytes=2**34)
"""What the footer of a release may claim: a million nodes at every half-hour of a day."""


@dataclass(frozen=True)
class Footer:
    """What a release's file says about itself, as it stands there: the hash of its rows, the statement."""

    rows_hash: str
    statement: dict[str, Any]

    @cached_property
    def stated(self) -> ReleaseStatement:
        """The statement. Raises PublicationError where it is not as OptStream writes it."""
        return ReleaseStatement.read(self.statement)


def encode(rows: pl.DataFrame, footer: Footer) -> bytes:
    """Return the rows without `date` as Parquet; the same rows and footer give the same bytes."""
    text = json.dumps(footer.statement, separators=(",", ":"), sort_keys=True, allow_nan=False)
    metadata, order = {ROWS_KEY: footer.rows_hash.encode(), STATEMENT_KEY: text.encode()}, None
    if rows.height > GROUP_ROWS and is_ordered(rows):
        n_steps = rows["step"].n_unique()
        order = np.arange(rows.height).reshape(n_steps, -1).T.ravel()
    return encode_table(rows.drop("date"), metadata, order)


def decode(data: bytes, columns: Collection[str] | None = None) -> tuple[pl.DataFrame, Footer]:
    """Return a release's rows, step after step, and its footer; PublicationError beyond `LIMITS`."""
    rows, metadata = decode_table(
        data, LIMITS, "a published file", {*columns, "step"} if columns else columns
    )
    is_stepped = rows.schema.get("step", pl.Null()).is_integer()  # another type is the caller's to refuse
    if is_stepped and not rows["step"].is_sorted():
        rows = rows.sort("step", maintain_order=True)
    text = metadata.get(STATEMENT_KEY, b"")
    with as_written("a published file lacks the footer that a release has"):
        if len(text) > LARGEST_STATEMENT:
            raise ValueError
        footer = Footer(metadata[ROWS_KEY].decode("ascii"), json.loads(text))
    if not isinstance(footer.statement, dict):
        raise PublicationError("a published file lacks the statement that a release has")
    if columns is not None:
        rows = rows.select(name for name in rows.columns if name in columns)
    return rows, footer


@dataclass(frozen=True)
class StagedRelease:
    """The file of a release to be published, and the files that its statement names, by their SHA-256."""

    data: bytes = field(repr=False)
    attachments: Mapping[str, bytes] = field(default_factory=dict, repr=False)

    @cached_property
    def file_hash(self) -> str:
        return hashlib.sha256(self.data).hexdigest()

    @property
    def name(self) -> str:
        return release_name(self.file_hash)

    @cached_property
    def footer(self) -> Footer:
        """What the file says about itself; no row is read."""
        return decode(self.data, ())[1]

    @property
    def statement(self) -> ReleaseStatement:
        return self.footer.stated

    @cached_property
    def named_files(self) -> Mapping[str, bytes]:
        """The files that the statement names, by place, without errors that are lost. Raises PublicationError
        for files of other hashes."""
        statement = self.statement
        optional = {statement.errors and statement.errors.file_hash}
        known = {hashlib.sha256(data).hexdigest(): data for data in self.attachments.values()}
        if {digest for _, digest in statement.attachments} - optional != known.keys() - optional:
            raise PublicationError(
                f"the files attached to {statement.period} differ from their hashes in its statement; "
                "stage it again"
            )
        return {name: known[digest] for name, digest in statement.attachments if digest in known}


def stage(rows: pl.DataFrame, statement: ReleaseStatement) -> StagedRelease:
    """Return the file of the rows of one period, a row for each node at each step, under their statement.

    Equal arguments give equal bytes. Raises PublicationError where the rows are not a whole period.
    """
    stated = {"date": day_of(statement.period), "revision": statement.revision, "vintage": statement.vintage}
    ordered = ordered_rows(rows, statement.value_column, stated, *statement.has_columns)
    return StagedRelease(encode(ordered, Footer(hash_rows(ordered), statement.to_json())))


def read_staged(data: bytes) -> StagedRelease:
    """Return a staged file, its rows checked against their hash in its footer."""
    inner, footer = decode(data)
    if hash_rows(dated_rows(inner, footer.stated)) != footer.rows_hash:
        raise PublicationError(
            "the rows of a staged release differ from the hash in its footer; stage it again"
        )
    return StagedRelease(data)


def dated_rows(inner: pl.DataFrame, statement: ReleaseStatement) -> pl.DataFrame:
    """Return the rows of a file with the date of its statement. Raises PublicationError for other columns."""
    wanted = schema(statement.value_column, *statement.has_columns)
    if "date" in inner.columns or {"date": pl.Date(), **inner.schema} != wanted:
        raise PublicationError(f"the release of {statement.period} has other columns than a release has")
    date = pl.Series("date", [day_of(statement.period)], pl.Date()).new_from_index(0, inner.height)
    return inner.hstack([date])[list(wanted)]
