"""The sections of the configuration file. A field's description is its legal range, as errors state it."""

from typing import Annotated, Literal

from pydantic import ConfigDict, Field, SecretStr

from optstream.stream.hierarchy.dated_hierarchy import MOST_HIERARCHY_CHANGES
from optstream.stream.lattice import MOST_MARGIN_NODES
from tasks.config.tables.base import Section
from tasks.config.tables.covariates import Covariates
from tasks.config.tables.fields import (
    DAYS,
    Block,
    Bound,
    ClockTime,
    Column,
    Count,
    Day,
    Days,
    FileName,
    LogFile,
    Name,
    NotNegative,
    Number,
    Positive,
    PositiveShare,
    Share,
    StepLength,
)
from tasks.config.tables.hierarchy_changes import HIERARCHY_CHANGES, HierarchyChange, NodeNames
from tasks.config.tables.mechanisms import Mechanism
from tasks.config.tables.published import COLUMN, FOLDER, PLACE, Published
from tasks.config.tables.schedule import Schedule

FACTOR = 'a decimal string greater than 0, such as "0.001" for kW where alpha is in MW'
MARKER = 'a plain file name such as "_SUCCESS"'
FILE_LIST = 'a plain file name such as "_FILES"'
CHANGES = "[[input.changes]]"
WITNESS = 'a second place that knows how far the ledger is, a folder or a URL such as "s3://bucket/witness"'
MOST_LEVELS = 64
"""Levels of a hierarchy: each has a share of its own."""
MOST_FEATURES = 100
MOST_CHANGES = 1000
MOST_STREAMS = 32
"""Other streams of one population, among which epsilon is shared."""
MOST_GAPS = 10_000
MOST_BLOCKS = 20
MOST_HORIZON_DAYS = 366
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


class Horizon(Section):
    """The days at whose price joint and Laplace noise are compared."""

    days: Annotated[int, Field(ge=1, le=MOST_HORIZON_DAYS)]
    delta: Positive = Field("1e-6", validate_default=True)


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
    horizon: Horizon | None = Field(
        None,
        description=f'a table {{ days = 365, delta = "1e-6" }}: a whole number of days in [1, '
        f"{MOST_HORIZON_DAYS:,}], and a decimal string in [1e-10, 1/10] or left out",
    )


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
    areas: str | None = Field(
        None,
        min_length=1,
        description="the path of a GeoJSON file of polygons, each with its node as id or property node",
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
    levels: (
        Annotated[tuple[Share, ...], Field(strict=False, min_length=1, max_length=MOST_LEVELS)]
        | Literal["model"]
    ) = Field(
        description=f'a list of shares in [0, 1], at most {MOST_LEVELS}, root first, such as ["1/2", "1/2"]; '
        'with HistoryInformed and its scale also "model"',
    )
    margins: dict[Name, Share] = Field(
        default_factory=dict,
        description='a table margin = "share" in [0, 1], for that of hierarchy.margins; 0: derived',
    )
    stream_share: PositiveShare | Literal["model"] = Field(
        "1",
        validate_default=True,
        description="a share of epsilon in (0, 1] that this stream plans with, the population's other "
        'streams having the rest; or "model" beside shared_with',
    )
    shared_with: tuple[Annotated[str, Field(min_length=1)], ...] = Field(
        (),
        strict=False,
        max_length=MOST_STREAMS,
        description=f"a list of at most {MOST_STREAMS} paths of the configurations of the population's other "
        "streams",
    )
    restatement_share: Share = Field(
        "1/10",
        validate_default=True,
        description="a share of epsilon in [0, 1) that first releases leave to restatements; with 0 no day "
        "is measured again",
    )
    stages: tuple[PositiveShare, ...] | None = Field(
        None,
        strict=False,
        max_length=3,
        description="a list of shares in (0, 1]: with method \"l1\" the sampling's, then the samples' and, "
        "where there are features, theirs",
    )


class Sampling(Section):
    method: Literal["equally_spaced", "l1"] = Field(description='"equally_spaced" or "l1"')
    n_samples: int = Field(ge=2, le=10**6, description="an integer in [2, privacy.window]")
    threshold: NotNegative | None = Field(None, description='a decimal string of at least 0, such as "50"')
    allocation: Literal["even", "optimal"] | None = Field(None, description='"even" or "optimal"')


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

    folder: str = Field(min_length=1, description=PLACE)
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


class Trusted(Section):
    """The retentions are what `optstream purge` goes by."""

    folder: str = Field(min_length=1, description=FOLDER)
    staging_retention_days: Days = 30
    validation_retention_days: Days = 90
    lineage_retention_days: Days = 3650
    raw_state_retention_days: Days = 7
    witness: str | None = Field(None, min_length=1, description=WITNESS)


class Ledger(Section):
    url: SecretStr = Field(
        description="an SQLAlchemy URL of an SQLite file or a PostgreSQL database, such as "
        '"sqlite:///trusted/ledger.sqlite"'
    )


class Watch(Section):
    """What alarms go by; a configuration need not have it. That it does says that the stream runs nightly."""

    late_after: ClockTime = Field(
        "12:00", description='a clock time such as "12:00", of the day after a day, or so long after an hour'
    )
    max_runtime: StepLength = Field("2h", description='a length such as "30min" or "2h", at most "9999h"')
    suspect_share: Share = Field(
        "1/20",
        validate_default=True,
        description="a share in [0, 1] of a region's readings that may be clamped, absent, doubled or "
        "unusable",
    )
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
