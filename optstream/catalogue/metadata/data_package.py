"""`datapackage.json`: a Data Package of Frictionless, version 2 (https://datapackage.org)."""

import re
from collections.abc import Iterator
from typing import Any

from optstream.catalogue.layout import CATALOGUE, HIERARCHY
from optstream.catalogue.metadata.dataset import Dataset
from optstream.catalogue.metadata.described_columns import (
    ERROR_COLUMNS,
    HIERARCHY_COLUMNS,
    Column,
)

PROFILES = "https://datapackage.org/profiles/2.0"
PARQUET = "application/vnd.apache.parquet"
_LICENCE = re.compile(r"[-a-zA-Z0-9._]+")


def data_package(dataset: Dataset) -> dict[str, Any]:
    """Return a Data Package: files of the listed days with their columns, and the catalogue; JSON-ready."""
    about = dataset.about
    document: dict[str, Any] = {
        "$schema": f"{PROFILES}/datapackage.json",
        "name": dataset.slug,
        "title": dataset.title,
        "description": dataset.description,
        "version": dataset.version,
    }
    if about.address:
        document["homepage"] = about.address
    if about.licence or about.licence_address:
        document["licenses"] = [licence(about.licence, about.licence_address)]
    if about.publisher:
        document["contributors"] = [_publisher(about.publisher, about.contact)]
    document["resources"] = [*_tables(dataset), _catalogue()]
    return document


def licence(name: str | None, address: str | None) -> dict[str, str]:
    """Return a licence as Data Packages have it: its short name, its address and its title, where known."""
    short = (name or "").replace(" ", "-")
    known = {"name": short if _LICENCE.fullmatch(short) else None, "path": address, "title": name}
    return {key: text for key, text in known.items() if text}


def table_schema(columns: tuple[Column, ...]) -> dict[str, Any]:
    """Return a Table Schema of columns, any of which a file may lack if its values may be absent."""
    fields = []
    for column in columns:
        # readers of Parquet, Frictionless' own too, make floats of whole numbers of which some are absent
        kind = "number" if column.may_be_null and column.kind == "integer" else column.kind
        field = {"name": column.name, "type": kind, "description": column.meaning}
        fields.append(field if column.may_be_null else {**field, "constraints": {"required": True}})
    return {"$schema": f"{PROFILES}/tableschema.json", "fieldsMatch": "superset", "fields": fields}


def _publisher(name: str, contact: str | None) -> dict[str, Any]:
    found: dict[str, Any] = {"title": name, "roles": ["publisher"]}
    if contact:
        found["email" if "@" in contact else "path"] = contact
    return found


def _tables(dataset: Dataset) -> Iterator[dict[str, Any]]:
    """Yield the tables that the folder has: releases, errors and the hierarchy's."""
    if dataset.listed:
        files = tuple(column for column in dataset.columns if column.name != "date")
        title = "A file for each published day, a row for each node and step"
        described = "The local day is in the path, date=YYYY-MM-DD."
        yield _parquet("releases", title, described, list(dataset.files), files)
    if dataset.errors:
        title = "How the errors of a day's values hang together, for the standard error of any sum"
        described = "A file for each published day that has one; in terms, nodes times steps."
        yield _parquet("errors", title, described, list(dataset.errors), ERROR_COLUMNS)
    if dataset.has_hierarchy:
        title = "Units of the hierarchy, with the days on which they hold and what each became"
        described = "Joined to the releases by node and local day."
        yield _parquet("hierarchy", title, described, HIERARCHY, HIERARCHY_COLUMNS)


def _parquet(
    name: str, title: str, description: str, path: str | list[str], columns: tuple[Column, ...]
) -> dict[str, Any]:
    return {
        "$schema": f"{PROFILES}/dataresource.json",
        "name": name,
        "title": title,
        "description": description,
        "path": path,
        "format": "parquet",
        "mediatype": PARQUET,
        "schema": table_schema(columns),
    }


def _catalogue() -> dict[str, Any]:
    return {
        "$schema": f"{PROFILES}/dataresource.json",
        "name": "catalogue",
        "title": "Which file is the release of which day, with its SHA-256",
        "path": CATALOGUE,
        "format": "json",
        "mediatype": "application/json",
    }
