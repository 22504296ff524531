"""The `[[covariates]]` tables: public series that explain part of the readings."""

from pydantic import Field

from tasks.config.tables.base import Section
from tasks.config.tables.fields import Column, Name

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
    node: Column = Field("node", description="the name of the column of nodes, where there is one")
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
    level: int | None = Field(
        None,
        ge=0,
        le=63,
        description="a level of the hierarchy, root 0, whose nodes respond each in their own way",
    )


class Covariates(Section):
    """All of them, in the file's order."""

    given: tuple[PublicSeries, ...] = Field(
        (),
        strict=False,
        max_length=MOST_COVARIATES,
        description=f"a list of at most {MOST_COVARIATES} tables, each headed {COVARIATES}",
    )
