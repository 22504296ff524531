"""The manifest of a published release, with its statement."""

from typing import Annotated, Literal

from pydantic import ConfigDict, Field

from tasks.schemas.fields import (
    PARTITION,
    Count,
    DataFile,
    Fraction,
    Hash,
    Name,
    OrAbsent,
    Part,
    Period,
    Positive,
    Several,
    Text,
)

Known = Literal["all", "some", "none"]
Size = Annotated[float, Field(ge=0)]
Signed = Annotated[str, Field(pattern="^-?[0-9]+(/[0-9]+)?$", description="exact")]
JOINT = ("noise", "joint_over", "n_nodes")


class Model(Part):
    """The privacy guarantee."""

    epsilon: Fraction
    window_length: Positive
    alpha: Fraction
    resolution: Fraction
    unit: Literal["customer", "roaming"]
    leaves_per_step: Positive
    windows: Literal["sliding", "aligned"]
    delta: OrAbsent[Fraction] = Field(None, description="beside epsilon, for Gaussian noise alone")
    rho: OrAbsent[Fraction] = Field(
        None, description="the most of it, zero-concentrated privacy, in any window"
    )


class Mechanism(Part):
    """The mechanism, with all its parameters."""

    model_config = ConfigDict(extra="allow")
    name: Text
    level_shares: OrAbsent[Several[Fraction]] = Field(
        None, description="each level's share of epsilon, root first; absent in older releases"
    )
    tree_sha256: OrAbsent[Hash] = Field(
        None, description="identifies the day's tree and those before it; only where the hierarchy changes"
    )


class Noise(Part):
    """The noise of one measurement; three keys are of joint noise alone, and law of Gaussian noise."""

    model_config = ConfigDict(
        json_schema_extra={"dependentRequired": {one: [key for key in JOINT if key != one] for one in JOINT}},
    )
    level: Count
    stage: str
    scale: Fraction | None
    scale_units: Fraction | None
    noise: OrAbsent[str] = None
    joint_over: OrAbsent[Count] = None
    n_nodes: OrAbsent[Positive] = None
    law: OrAbsent[Literal["discrete Gaussian"]] = Field(
        None, description="scale is then its standard deviation"
    )


class LongSpan(Part):
    """What all readings of one customer in so many days in a row lose by the plan."""

    n_days: Positive
    epsilon: Fraction
    delta: Fraction
    plain_sum: Fraction = Field(description="epsilon at delta 0, or rho")
    composed: Literal["draws", "windows", "plain", "rho"]


class StandardErrors(Part):
    """Of which values the columns *_noise_se and *_se are known."""

    noise: Known
    posterior: Known
    in_words: Text


class Measurements(Part):
    """The file of the noisy measurements that the release is computed from."""

    file: str = Field(
        pattern=rf"^measurements/{PARTITION}/revision-[0-9]+-[0-9a-f]{{64}}\.parquet$",
        description="relative to the published folder",
    )
    file_hash: Hash = Field(description="SHA-256 of that file")
    later: OrAbsent[Several[Period]] = Field(
        None, description="the later days that a new estimate is made of; absent for a first one"
    )


class Errors(Part):
    """The file of how the errors of the release's values hang together."""

    file: str = Field(
        pattern=rf"^errors/{PARTITION}/revision-[0-9]+-vintage-[0-9]+-[0-9a-f]{{64}}\.parquet$",
        description="relative to the published folder",
    )
    file_hash: Hash = Field(description="SHA-256 of that file")
    of: Literal["whole", "noise"] = Field(
        description="whether of the whole errors, or of what the noise alone did to the values"
    )


class Bands(Part):
    """Of which counts the columns *_low and *_high are known."""

    known: Known
    share: Fraction = Field(description="of steps that a band is to hold at least")
    in_words: Text


class Consistency(Part):
    """How near the values are to the optimum of the program that respects the lower bound."""

    gap: Size = Field(description="primal less dual objective, the sum of weights * misfit^2 / 2")
    distance: Size = Field(
        description="how many of its own standard errors any sum of values may be from the optimum's"
    )
    residual: Size = Field(
        description="by how many standard deviations of a measurement optimality is missed at most"
    )
    rounds: Count
    converged: bool
    in_words: Text


class Statement(Part):
    """What the release says of itself."""

    format: Literal["optstream.statement/1"]
    stream: Name
    period: Period
    revision: Count
    vintage: Count
    value_column: Text
    step_minutes: int = Field(ge=1, le=1440)
    time_zone: Text
    day: Literal["elapsed", "fixed"]
    privacy_model: Model
    privacy_in_words: Text
    mechanism: Mechanism
    calibration: Literal["strict", "paper"]
    epsilon_plan: Fraction
    epsilon_own: Fraction
    noise: list[Noise]
    simulated: Literal[False] = Field(description="a release of seeded noise is never published")
    code_version: Text
    configuration_hash: Hash
    supplier_rounding: OrAbsent[Fraction] = Field(
        None, description="of alpha, the part that is the supplier's rounding of sums; absent where none is"
    )
    long_spans: OrAbsent[Several[LongSpan]] = Field(
        None, description="absent in releases from before it was stated"
    )
    standard_errors: OrAbsent[StandardErrors] = Field(
        None, description="absent in releases from before there were such columns"
    )
    measurements: OrAbsent[Measurements] = Field(None, description="absent where it is not published")
    errors: OrAbsent[Errors] = Field(None, description="absent where there is none")
    no_errors: OrAbsent[Text] = Field(
        None, description="why there is no file of errors; absent where there is one"
    )
    bands: OrAbsent[Bands] = Field(None, description="absent where readings are no counts")
    consistency: OrAbsent[Consistency] = Field(
        None, description="absent where no value lay below the bound, and in older releases"
    )
    bounds: OrAbsent[tuple[Signed, Signed]] = Field(
        None, description="lowest and highest reading; absent where that is not recorded"
    )
    metered: OrAbsent[bool] = Field(
        None,
        description="whether each input row was one customer's; absent where that is not recorded",
    )


class Manifest(Part):
    """The whole document."""

    format: Literal["optstream.manifest/1"]
    file: DataFile
    file_hash: Hash
    rows_hash: Hash
    statement: Statement
