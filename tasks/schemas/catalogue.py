"""The catalogue of a published folder."""

from typing import Annotated, Literal

from pydantic import Field

from tasks.schemas.fields import Count, DataFile, Hash, Name, OrAbsent, Part, Period, Positive, Text

Head = Annotated[str, Field(pattern="^[0-9A-Za-z:_-]{1,128}$", description="hash of the ledger's last event")]


class Entry(Part):
    """The current release of a day, or what is left of it."""

    revision: Count
    vintage: Count
    file: DataFile
    file_hash: Hash
    rows_hash: Hash
    manifest: str = Field(pattern=r"^manifests/release-[0-9a-f]{64}\.json$")
    ledger_head: Head
    withdrawn: OrAbsent[Literal[True]] = Field(
        None, description="a tombstone: what it names is no longer published"
    )
    closed_in: OrAbsent[Hash] = Field(
        None, description="of an hour of a closed day: the SHA-256 of the day's file"
    )


Periods = Annotated[dict[Period, Entry], Field(json_schema_extra={"additionalProperties": False})]


class Catalogue(Part):
    """The whole document, where catalogues are not signed."""

    format: Literal["optstream.catalogue/1"]
    stream: Name
    value_column: Text
    ledger_head: Head
    periods: Periods


class NumberedCatalogue(Part):
    """The whole document, where they are."""

    format: Literal["optstream.catalogue/2"]
    sequence: Positive = Field(
        description="how many signed catalogues there were, this one counted: an older one has less"
    )
    stream: Name
    value_column: Text
    ledger_head: Head
    periods: Periods
