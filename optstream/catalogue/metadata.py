"""Put the folder's descriptions beside its catalogue, and check that they are of it.

Lemma: descriptions only move forward. In one transaction the marks of those that are there are taken before
the catalogue is read, and each put demands its mark; so one that was made of an older catalogue never takes
the place of a newer one's. Whoever publishes puts them after its catalogue, so the newest catalogue has its
own once its publisher is done. They are functions of the folder: no time of a run, no value of a release.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import date, timedelta
from functools import cached_property
from typing import Any

from optstream.catalogue.about import About
from optstream.catalogue.backends import Location, Readable, Transaction, change_folder, open_storage
from optstream.catalogue.hierarchy_table import find_hierarchy
from optstream.catalogue.index import Catalogue, Entry, day_entries, files_of
from optstream.catalogue.layout import (
    CARD_PAGE,
    CATALOGUE,
    CROISSANT,
    DATA,
    DATA_PACKAGE,
    DCAT,
    DESCRIPTIONS,
    ERRORS,
    HIERARCHY,
)
from optstream.catalogue.page import digest_of
from optstream.catalogue.read import listed_errors, read_statement
from optstream.catalogue.rows import ERROR_COLUMNS, HIERARCHY_COLUMNS, Column, columns_of
from optstream.catalogue.signing import Signer
from optstream.catalogue.statement import ReleaseStatement
from optstream.catalogue.times import settle_page_time
from optstream.catalogue.untrusted import find_catalogue
from optstream.errors import PublicationError

# What every description of a published folder is made of, read from the folder and from nothing else.

MOST_TRIED = 28
"""Of the newest days: one whose file is lost does not describe the series, the one before it does."""


@dataclass(frozen=True)
class Dataset:
    """A published folder as its descriptions tell of it.

    Attributes:
        catalogue: As published.
        about: What the publisher tells of itself and of nodes.
        statement: Of the newest listed release that can be read; None where there is none.
        has_hierarchy: Whether the hierarchy changes, and `hierarchy.parquet` tells how.
        errors: The files of errors of the listed days, rising, as far as the folder was listed.
    """

    catalogue: Catalogue
    about: About
    statement: ReleaseStatement | None
    has_hierarchy: bool = False
    errors: tuple[str, ...] = ()

    @property
    def has_errors(self) -> bool:
        """Whether the newest release has a file of errors beside it."""
        return self.statement is not None and self.statement.errors is not None

    @cached_property
    def listed(self) -> tuple[Entry, ...]:
        """The days that readers find, rising."""
        return day_entries(self.catalogue.listed)

    @cached_property
    def files(self) -> tuple[str, ...]:
        """The files of data/ with the rows of these days, rising."""
        return tuple(file for entry in self.listed for file in sorted(files_of(entry)))

    @property
    def title(self) -> str:
        """What the publisher calls the series, else the stream's name."""
        return self.about.title or self.catalogue.stream

    @property
    def description(self) -> str:
        """What the publisher says of the series, and what protects it."""
        own = self.about.description or f"Differentially private series of {self.catalogue.value_column}."
        protection = "" if self.statement is None else self.statement.in_words()
        return " ".join(filter(None, (own, self.about.known_noise_in_words, protection)))

    @property
    def version(self) -> str:
        """1.0.0, and after the plus the first 16 digits of the SHA-256 of the catalogue's bytes."""
        return version_of(self.catalogue)

    @property
    def slug(self) -> str:
        """The stream's name in lower-case letters, digits, '.', '_' and '-'."""
        return re.sub(r"[^a-z0-9._]", "-", self.catalogue.stream.lower()).strip("-.") or "series"

    @property
    def first_and_last(self) -> tuple[date, date] | None:
        """The first and the last listed day; None where no day is listed."""
        return (self.listed[0].period, self.listed[-1].period) if self.listed else None

    @property
    def citation(self) -> str:
        """How the series is cited, as the publisher says, else by publisher, title and version."""
        who = f"{self.about.publisher}: " if self.about.publisher else ""
        return self.about.citation or f"{who}{self.title}. Version {self.version}."

    @property
    def columns(self) -> tuple[Column, ...]:
        """Of `read_published`, in order; the files lack `date`, which is in their path."""
        bands = self.statement is not None and self.statement.bands is not None
        return columns_of(self.catalogue.value_column, bands)


def version_of(catalogue: Catalogue) -> str:
    """Return what descriptions call a folder's version: 1.0.0+, and 16 digits of its catalogue's hash."""
    return f"1.0.0+{digest_of(catalogue)[:16]}"


def day_after(day: date) -> str:
    """Return the date of the midnight that ends a day: what the folder's clock shows for it."""
    return (day + timedelta(days=1)).isoformat()


def read_dataset(storage: Readable, about: About) -> Dataset | None:
    """Return what a folder's descriptions are made of, which anyone may have written.

    about: what its publisher tells. None without a catalogue; raises PublicationError where that is not as
    OptStream writes it.
    """
    catalogue = find_catalogue(storage)
    return None if catalogue is None else dataset_of(storage, catalogue, about)


def dataset_of(storage: Readable, catalogue: Catalogue, about: About) -> Dataset:
    """Return what `read_dataset` does, of a folder whose catalogue was read."""
    statement = None
    for entry in reversed(catalogue.listed[-MOST_TRIED:]):
        with suppress(PublicationError):
            statement = read_statement(storage, entry)
            break
    has_hierarchy = False
    with suppress(PublicationError):
        has_hierarchy = find_hierarchy(storage) is not None
    return Dataset(catalogue, about, statement, has_hierarchy)


# `croissant.json`: schema.org's Dataset in JSON-LD, with the files and columns of Croissant 1.1.
#
# The format: https://docs.mlcommons.org/croissant/docs/croissant-spec-1.1.html

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


# `datapackage.json`: a Data Package of Frictionless, version 2 (https://datapackage.org).

PROFILES = "https://datapackage.org/profiles/2.0"
PARQUET_DATA_PACKAGE = "application/vnd.apache.parquet"
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
        "mediatype": PARQUET_DATA_PACKAGE,
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


# `dcat.jsonld`: a Dataset of DCAT 3 in JSON-LD, as DCAT-AP has it: what catalogues of open data harvest.
#
# The formats: https://www.w3.org/TR/vocab-dcat-3/ and https://semiceu.github.io/DCAT-AP/. That the data are
# differentially private is said by the W3C's Data Privacy Vocabulary; the amounts stand in the deployment
# card.

MEDIA_TYPES = "https://www.iana.org/assignments/media-types/"
DAILY = "http://publications.europa.eu/resource/authority/frequency/DAILY"
CONTEXT_DCAT = {
    "dcat": "http://www.w3.org/ns/dcat#",
    "dct": "http://purl.org/dc/terms/",
    "dpv": "https://w3id.org/dpv#",
    "foaf": "http://xmlns.com/foaf/0.1/",
    "rdfs": "http://www.w3.org/2000/01/rdf-schema#",
    "vcard": "http://www.w3.org/2006/vcard/ns#",
    "xsd": "http://www.w3.org/2001/XMLSchema#",
}


def dcat(dataset: Dataset) -> dict[str, Any]:
    """Return the folder as a DCAT Dataset: files of releases and of errors, and the hierarchy's table;
    JSON-ready.

    Addresses are relative to the file where the publisher tells none. Its size does not grow with the days.
    """
    about = dataset.about
    document: dict[str, Any] = {
        "@context": CONTEXT_DCAT,
        "@id": about.address or "./",
        "@type": "dcat:Dataset",
        "dct:identifier": dataset.slug,
        "dct:title": _text(dataset.title),
        "dct:description": _text(dataset.description),
        "dcat:version": dataset.version,
        "dct:accrualPeriodicity": {"@id": DAILY, "@type": "dct:Frequency"},
        "dpv:hasTechnicalMeasure": {"@id": "dpv:DifferentialPrivacy"},
        "foaf:page": {"@id": CARD_PAGE, "@type": "foaf:Document"},
        "dcat:distribution": _distributions(dataset),
    }
    if about.publisher:
        document["dct:publisher"] = {"@type": "foaf:Agent", "foaf:name": about.publisher}
    if about.contact:
        document["dcat:contactPoint"] = _contact(about.publisher or dataset.title, about.contact)
    if about.citation:
        document["dct:bibliographicCitation"] = about.citation
    if span := dataset.first_and_last:
        first, last = span
        document["dct:issued"], document["dct:modified"] = (_date(day_after(day)) for day in span)
        document["dct:temporal"] = {
            "@type": "dct:PeriodOfTime",
            "dcat:startDate": _date(first.isoformat()),
            "dcat:endDate": _date(last.isoformat()),
        }
    if dataset.statement is not None:
        document["dcat:temporalResolution"] = {
            "@value": f"PT{dataset.statement.step_minutes}M",
            "@type": "xsd:duration",
        }
    return document


def _distributions(dataset: Dataset) -> list[dict[str, Any]]:
    told = [(f"{DATA}/", "A Parquet file for each published day; the path names the local day")]
    if dataset.has_errors:
        told.append((f"{ERRORS}/", "How the errors of values hang together, a Parquet file for each day"))
    if dataset.has_hierarchy:
        told.append((HIERARCHY, "Units of the hierarchy, with the days on which they hold, as Parquet"))
    return [_distribution(dataset, place, title) for place, title in told]


def _distribution(dataset: Dataset, place: str, title: str) -> dict[str, Any]:
    found: dict[str, Any] = {
        "@type": "dcat:Distribution",
        "dct:title": _text(title),
        "dcat:accessURL": {"@id": f"{(dataset.about.address or '.').rstrip('/')}/{place}"},
        "dcat:mediaType": {
            "@id": f"{MEDIA_TYPES}application/vnd.apache.parquet",
            "@type": "dct:MediaType",
        },
    }
    about = dataset.about
    licence = {"@id": about.licence_address, "rdfs:label": about.licence}
    if told := {key: text for key, text in licence.items() if text}:
        found["dct:license"] = {"@type": "dct:LicenseDocument", **told}
    return found


def _contact(name: str, contact: str) -> dict[str, Any]:
    address = (
        {"vcard:hasEmail": {"@id": f"mailto:{contact}"}}
        if "@" in contact
        else {"vcard:hasURL": {"@id": contact}}
        if contact.startswith(("http://", "https://"))
        else {"rdfs:comment": contact}
    )
    return {"@type": "vcard:Kind", "vcard:fn": name, **address}


def _text(words: str) -> dict[str, str]:
    return {"@value": words, "@language": "en"}


def _date(day: str) -> dict[str, str]:
    return {"@value": day, "@type": "xsd:date"}


LARGEST_METADATA = 2**26
"""Bytes of one description."""
Describe = Callable[[Dataset], bytes]


def to_bytes(document: dict[str, Any]) -> bytes:
    """Return a JSON-ready description as a file of UTF-8 text, with a line for each entry.

    The same facts give the same bytes: signatures, and whether anything is written, rest on that.
    """
    return (json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False) + "\n").encode()


OWN: Mapping[str, Describe] = {
    DATA_PACKAGE: lambda dataset: to_bytes(data_package(dataset)),
    CROISSANT: lambda dataset: to_bytes(croissant(dataset)),
    DCAT: lambda dataset: to_bytes(dcat(dataset)),
}
"""Descriptions that are made of the folder alone."""


def put_metadata(
    folder: Location | str,
    about: About,
    signer: Signer | None = None,
    more: Mapping[str, Describe] | None = None,
) -> bool:
    """Put the descriptions of a folder in the place of those that are there.

    about: what its publisher tells; not read from the folder, where anyone may have written it. signer: signs
    them, if one of its keys signed the catalogue that they are made of. more: other files of `DESCRIPTIONS`
    and what makes them; each must hold the version. Returns whether anything changed; False where there is no
    catalogue. Raises ParameterError for a URL that cannot be one, PublicationError where the folder cannot be
    read or written.
    """

    several = {**OWN, **(more or {})}

    def put(transaction: Transaction) -> bool:
        marks = {name: transaction.mark(name) for name in several}
        dataset = read_dataset(transaction, about)
        if dataset is None:
            return False
        if dataset.has_errors:
            names = listed_errors(storage.names_below(ERRORS), dataset.catalogue)
            dataset = replace(dataset, errors=names)
        transaction.prepare()
        signs = signer is not None and signer.has_signed(transaction, dataset.catalogue, **signer.earlier)
        changed = False
        for name, describe in several.items():
            data = describe(dataset)
            if signer is not None and signs:
                changed |= signer.sign(transaction, data)
            if marks[name] is None or transaction.read(name, LARGEST_METADATA) != data:
                transaction.replace_marked(name, data, marks[name])
                changed = True
        settle_page_time(transaction, dataset.catalogue)
        return changed

    storage = open_storage(folder)
    return change_folder(storage, put, " and ".join(several), "mend it and run `optstream report`")


def check_metadata(storage: Readable, catalogue: Catalogue) -> Iterator[str]:
    """Yield a line for each description that is there and is not of this catalogue."""
    version = version_of(catalogue).encode()
    for name in DESCRIPTIONS:
        try:
            is_of = version in storage.read(name, LARGEST_METADATA)
        except FileNotFoundError:
            continue
        except PublicationError:
            is_of = False
        if not is_of:
            yield f"{name} is not of the days that {CATALOGUE} lists; `optstream report` makes it anew"
