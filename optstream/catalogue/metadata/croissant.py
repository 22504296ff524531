"""`croissant.json`: schema.org's Dataset in JSON-LD, with the files and columns of Croissant 1.1.

The format: https://docs.mlcommons.org/croissant/docs/croissant-spec-1.1.html
"""

from typing import Any

from optstream.catalogue.layout import CATALOGUE, DATA, ERRORS, HIERARCHY
from optstream.catalogue.metadata.dataset import Dataset, day_after
from optstream.catalogue.metadata.described_columns import (
    ERROR_COLUMNS,
    HIERARCHY_COLUMNS,
    Column,
)

VERSION = "http://mlcommons.org/croissant/1.1"
PARQUET = "application/x-parquet"
"""As Croissant's reference library knows it."""
TERMS = (
    *("citeAs", "column", "equivalentProperty", "extract", "field", "fileProperty", "fileObject", "fileSet"),
    *("format", "includes", "isLiveDataset", "jsonPath", "key", "md5", "parentField", "path", "recordSet"),
    *("references", "regex", "repeated", "replace", "samplingRate", "separator", "source", "subField"),
    "transform",
)
CONTEXT: dict[str, Any] = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "sc": "https://schema.org/",
    "cr": "http://mlcommons.org/croissant/",
    "rai": "http://mlcommons.org/croissant/RAI/",
    "dct": "http://purl.org/dc/terms/",
    "conformsTo": "dct:conformsTo",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "examples": {"@id": "cr:examples", "@type": "@json"},
    **{term: f"cr:{term}" for term in TERMS},
}
KINDS = {
    "date": "sc:Date",
    "datetime": "sc:DateTime",
    "integer": "sc:Integer",
    "number": "sc:Float",
    "boolean": "sc:Boolean",
}
"""By the kind of a column; of others `sc:Text`."""
FILES, ROWS = "files", "releases"
ERROR_FILES, ERROR_ROWS = "error-files", "errors"
UNITS = "hierarchy"


def croissant(dataset: Dataset) -> dict[str, Any]:
    """Return the folder as a live Croissant dataset, which is one of schema.org, too; JSON-ready.

    Its size does not grow with the number of days. The dates are those of the folder's clock: the midnights
    that end the first and the last day.
    """
    about = dataset.about
    document: dict[str, Any] = {
        "@context": CONTEXT,
        "@type": "sc:Dataset",
        "conformsTo": VERSION,
        "name": dataset.title,
        "description": dataset.description,
        "citeAs": dataset.citation,
        "isLiveDataset": True,
        "version": dataset.version,
    }
    told = {"url": about.address, "license": about.licence_address or about.licence}
    document |= {key: text for key, text in told.items() if text}
    if about.publisher:
        document["creator"] = document["publisher"] = _organisation(about.publisher, about.contact)
    if span := dataset.first_and_last:
        document["temporalCoverage"] = "/".join(day.isoformat() for day in span)
        document["datePublished"], document["dateModified"] = map(day_after, span)
    document["variableMeasured"] = dataset.catalogue.value_column
    document["distribution"] = [
        _file(CATALOGUE, "Which file is the release of which day, with its SHA-256.", "application/json"),
        _files(FILES, "A file for each published day; its path names the local day.", f"{DATA}/*/*.parquet"),
    ]
    keys = ("date", "step", "node")
    document["recordSet"] = [_rows(ROWS, FILES, "A row for each day, step and node.", keys, dataset.columns)]
    if dataset.has_errors:
        described = "How the errors of each day's values hang together, in terms: nodes times steps."
        document["distribution"].append(_files(ERROR_FILES, described, f"{ERRORS}/*/*.parquet"))
        columns = (Column("date", "date", "The local day."), *ERROR_COLUMNS)
        document["recordSet"].append(_rows(ERROR_ROWS, ERROR_FILES, described, (), columns))
    if dataset.has_hierarchy:
        described = "Units of the hierarchy, with the days on which they hold and what each became."
        document["distribution"].append(_file(HIERARCHY, described, PARQUET))
        document["recordSet"].append(_rows(UNITS, HIERARCHY, described, (), HIERARCHY_COLUMNS))
    return document


def _organisation(name: str, contact: str | None) -> dict[str, str]:
    found = {"@type": "sc:Organization", "name": name}
    if contact:
        found["email" if "@" in contact else "url"] = contact
    return found


def _named(kind: str, name: str, description: str, **more: Any) -> dict[str, Any]:
    return {"@type": f"cr:{kind}", "@id": name, "name": name, "description": description, **more}


def _file(name: str, description: str, encoding: str) -> dict[str, Any]:
    return _named("FileObject", name, description, contentUrl=name, encodingFormat=encoding)


def _files(name: str, description: str, includes: str) -> dict[str, Any]:
    return _named("FileSet", name, description, encodingFormat=PARQUET, includes=includes)


def _rows(
    name: str, files: str, description: str, keys: tuple[str, ...], columns: tuple[Column, ...]
) -> dict[str, Any]:
    key = {"key": [{"@id": f"{name}/{key}"} for key in keys]} if keys else {}
    fields = [_field(column, name, files) for column in columns]
    return _named("RecordSet", name, description, **key, field=fields)


def _field(column: Column, rows: str, files: str) -> dict[str, Any]:
    of = "fileObject" if files == HIERARCHY else "fileSet"
    source: dict[str, Any] = {of: {"@id": files}, "extract": {"column": column.name}}
    if column.name == "date":
        source["extract"] = {"fileProperty": "fullpath"}
        source["transform"] = {"regex": r".*date=(\d{4}-\d{2}-\d{2})/.*"}
    kind = KINDS.get(column.kind, "sc:Text")
    named = {"@id": f"{rows}/{column.name}", "name": column.name, "description": column.meaning}
    return {"@type": "cr:Field", **named, "dataType": kind, "source": source}
