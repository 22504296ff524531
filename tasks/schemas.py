"""JSON Schemas (2020-12) of what other tools read, from the model of each document.

`python -m tasks.schemas` lists them, `python -m tasks.schemas optstream.status/3` prints one.
"""

import json
import sys
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field

from optstream.catalogue.documents import (
    PARTITION,
    Count,
    Hash,
    Name,
    OrAbsent,
    Part,
    PeriodText,
    Positive,
    Text,
    json_schema,
)
from optstream.catalogue.statement import Manifest
from optstream.errors import ParameterError
from tasks.monitor.document import Status

Head = Annotated[str, Field(pattern="^[0-9A-Za-z:_-]{1,128}$", description="hash of the ledger's last event")]


class Entry(Part):
    """The current release of a day, or what is left of it."""

    revision: Count
    vintage: Count
    file: str = Field(pattern=rf"^(data|superseded)/{PARTITION}/release-[0-9a-f]{{64}}\.parquet$")
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


Periods = Annotated[dict[PeriodText, Entry], Field(json_schema_extra={"additionalProperties": False})]


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


DOCUMENTS: dict[str, tuple[type[BaseModel], str, str]] = {
    "optstream.status/3": (
        Status,
        "optstream status --json",
        "Calendar, budget by the accountant, and alarms of a stream. Holds no reading; for operators.",
    ),
    "optstream.manifest/1": (
        Manifest,
        "The manifest of a published release",
        "What a release is, protects and cost. Public.",
    ),
    "optstream.catalogue/1": (
        Catalogue,
        "catalogue.json of a published folder",
        "Which file is the release of which day. Public.",
    ),
    "optstream.catalogue/2": (
        NumberedCatalogue,
        "catalogue.json of a published folder whose catalogues are signed",
        "Which file is the release of which day, numbered. Public. Its signature is in signatures/.",
    ),
}
"""The type of each format, with the title and the description of its schema."""


def schema_of(name: str) -> dict[str, Any]:
    """Return the JSON Schema of a format such as "optstream.status/3". Raises ParameterError for a name that
    no format has.
    """
    if name not in DOCUMENTS:
        raise ParameterError(f"a format with a schema must be one of {', '.join(DOCUMENTS)}; got {name!r}")
    kind, title, description = DOCUMENTS[name]
    return json_schema(kind, name, title, description)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        print(json.dumps(schema_of(sys.argv[1]), indent=2))
    else:
        print(*DOCUMENTS, sep="\n")
