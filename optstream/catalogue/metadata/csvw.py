"""Metadata of CSV on the Web for an exported CSV file: its columns, types, key, licence and protection.

The format: https://www.w3.org/TR/tabular-metadata/. Tools find it beside the file, under its name with
`-metadata.json` after it. That the data are differentially private is said by the W3C's Data Privacy
Vocabulary, https://w3id.org/dpv.
"""

from collections.abc import Sequence
from typing import Any

from optstream.catalogue.metadata.dataset import Dataset
from optstream.catalogue.metadata.described_columns import Column

PROTECTED = {"@id": "https://w3id.org/dpv#DifferentialPrivacy"}
KINDS = {"datetime": "dateTime", "date": "date", "integer": "integer", "number": "double"}
"""By the kind of a column; of others `string`."""
METADATA = "-metadata.json"
"""After the name of the CSV file: where tools look for it."""
KEY = ("date", "step", "node")


def csvw(dataset: Dataset, name: str, columns: Sequence[Column]) -> dict[str, Any]:
    """Return the metadata of a CSV file of published rows, which lies in the same folder; JSON-ready."""
    about = dataset.about
    document: dict[str, Any] = {
        "@context": ["http://www.w3.org/ns/csvw", {"@language": "en"}],
        "url": name,
        "dc:title": dataset.title,
        "dc:description": dataset.description,
        "dc:hasVersion": dataset.version,
        "dc:bibliographicCitation": dataset.citation,
        "https://w3id.org/dpv#hasTechnicalMeasure": PROTECTED,
    }
    if about.publisher:
        document["dc:publisher"] = {"schema:name": about.publisher}
    if about.licence_address or about.licence:
        known = {"@id": about.licence_address, "schema:name": about.licence}
        document["dc:license"] = {key: text for key, text in known.items() if text}
    names = [column.name for column in columns]
    document["tableSchema"] = {
        "columns": [_column(column) for column in columns],
        "primaryKey": [key for key in KEY if key in names],
    }
    return document


def _column(column: Column) -> dict[str, Any]:
    return {
        "name": column.name,
        "titles": column.name,
        "dc:description": column.meaning,
        "datatype": KINDS.get(column.kind, "string"),
        "required": not column.may_be_null,
    }
