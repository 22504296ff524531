"""Put the folder's descriptions next to its catalogue. Lemma: descriptions only move forward, because marks
are taken before the catalogue is read and each put demands its mark.
"""

import hashlib
import json
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import date, timedelta
from functools import cache, cached_property, partial
from itertools import compress
from typing import Any

import polars as pl

from optstream.catalogue import layout
from optstream.catalogue.about import About, find_hierarchy
from optstream.catalogue.backends import Readable, Storage, Transaction, change_folder, open_storage
from optstream.catalogue.index import (
    Catalogue,
    Entry,
    day_entries,
    files_of,
    find_catalogue,
    read_catalogue,
    release_time,
    settle_page_time,
)
from optstream.catalogue.layout import CATALOGUE, CURVES, ERRORS, PAGE
from optstream.catalogue.read import listed_errors, read_statement
from optstream.catalogue.rows import HIERARCHY_COLUMNS, Column, columns_of, columns_of_replicates
from optstream.catalogue.signing import Signer, put_file
from optstream.catalogue.statement import (
    ReleaseStatement,
    in_words,
    plain_number,
    rounded_up,
    template_environment,
)
from optstream.errors import PublicationError
from optstream.privacy import PrivacyModel
from optstream.storage.store import Location
from optstream.stream.period import day_of

# The page of the data users. Lemma: pages only move forward, because a put demands the page that was found
# before the catalogue was read; in a store the catalogue is looked for once more after the put.

MARKER = "optstream-catalogue"
MOST_TRIES = 20
_FIGURES = re.compile(r"[0-9a-f]{64}\.bin")
HEAD = 4096  # bytes at the start of a page that name the catalogue that it was made from
BLANK = (
    b'<!DOCTYPE html>\n<html lang="en">\n<head><meta charset="utf-8"><title>Being rebuilt</title></head>\n'
    b"<body><p>A day was withdrawn, and this page is being rebuilt. The others are in data/.</p></body>\n"
    b"</html>\n"
)
"""Replaces a page that shows a withdrawn day."""


def digest_of(catalogue: Catalogue) -> str:
    """Return the SHA-256 of a catalogue's bytes, which a page that is made of it states."""
    return hashlib.sha256(catalogue.to_bytes()).hexdigest()


def replace_page(folder: Location | str, make: Callable[[Storage, Catalogue], bytes]) -> bool:
    """Atomically replace the page by one of the catalogue that is there; return whether it changed.

    `make` is called outside of any lock, again where another published meanwhile; its page states
    `digest_of`.
    """
    storage = open_storage(folder)
    for _ in range(MOST_TRIES):
        catalogue = read_catalogue(storage)
        data = make(storage, catalogue)

        def put(transaction: Transaction, made: Catalogue = catalogue, data: bytes = data) -> bool | None:
            mark = transaction.mark(PAGE)
            if find_catalogue(transaction) != made:
                return None
            transaction.prepare()
            changed = put_file(transaction, PAGE, data, mark)
            _remove_figures(transaction)
            settle_page_time(transaction, made)
            return changed

        changed = change_folder(storage, put, PAGE, "fix it and run `optstream report`")
        if changed is not None and read_catalogue(storage) == catalogue:
            return changed
    raise PublicationError(f"others publish all the time, and {PAGE} is behind; run `optstream report` later")


def blank_page(transaction: Transaction, catalogue: Catalogue) -> None:
    """Replace a page that may show a withdrawn day by one that shows nothing, as a part of the withdrawal."""
    mark = transaction.mark(PAGE)
    if mark is not None and transaction.read(PAGE) != BLANK:
        if not check_page(transaction, catalogue):
            return
        transaction.replace_marked(PAGE, BLANK, mark)
        oldest = min(entry.period for entry in catalogue.entries)
        # older than any page that shows something
        transaction.settle({PAGE: release_time(oldest) - timedelta(days=1)})
    _remove_figures(transaction)


def _remove_figures(transaction: Transaction) -> None:
    """Remove the figures in `curves/`; what else is there is nobody's, and stops nothing."""
    if names := [name for name in transaction.names_in(CURVES) if _FIGURES.fullmatch(name)]:
        transaction.remove(CURVES, names)


def check_page(storage: Readable, catalogue: Catalogue) -> list[str]:
    """Return a line if the page is not of this catalogue; none without a page, as in older folders."""
    return list(_behind(storage, PAGE, f'<meta name="{MARKER}" content="{digest_of(catalogue)}">', HEAD))


def _behind(storage: Readable, name: str, stated: str, within: int | None = None) -> Iterator[str]:
    """Yield a line if a file that is there cannot be read, or its first bytes do not have this text."""
    try:
        is_of = stated.encode() in storage.read(name)[:within]
    except FileNotFoundError:
        return
    except PublicationError as error:
        yield str(error)
        return
    if not is_of:
        yield f"{name} is not of the days that {CATALOGUE} lists; `optstream report` rebuilds it"


# What every description of a published folder is made of, read from the folder and from nothing else.

MOST_TRIED = 28
"""Of the newest days: one whose file is lost does not describe the series, the one before it does."""


@dataclass(frozen=True)
class Table:
    """A table of a published folder: a file, or a folder (`place`) of a folder for each day."""

    name: str
    title: str
    description: str
    place: str
    files: str | list[str]
    columns: tuple[Column, ...]
    keys: tuple[str, ...] = ()

    @property
    def is_file(self) -> bool:
        return self.place == self.files


@dataclass(frozen=True)
class Dataset:
    """The newest readable statement, whether there is a hierarchy, and the listed files of errors."""

    catalogue: Catalogue
    about: About
    statement: ReleaseStatement | None
    has_hierarchy: bool = False
    errors: tuple[str, ...] = ()

    @property
    def replicates(self) -> int:
        """How many replicates the newest release has a file of; 0 without one."""
        stated = self.statement and self.statement.errors
        return (stated and stated.replicates) or 0

    @cached_property
    def listed(self) -> tuple[Entry, ...]:
        """The days that readers find, rising."""
        return day_entries(self.catalogue.listed)

    @property
    def title(self) -> str:
        """What the publisher calls the series, else the stream's name."""
        return self.about.title or self.catalogue.stream

    @property
    def description(self) -> str:
        """What the publisher says of the series, and what protects it."""
        own = self.about.description or f"Differentially private series of {self.catalogue.value_column}."
        protection = "" if self.statement is None else self.statement.privacy_in_words
        return " ".join(filter(None, (own, self.about.known_noise_in_words, protection)))

    @property
    def version(self) -> str:
        return version_of(self.catalogue)

    @property
    def citation(self) -> str:
        """How the folder is to be cited."""
        publisher = f"{self.about.publisher}: " if self.about.publisher else ""
        return self.about.citation or f"{publisher}{self.title}. Version {self.version}."

    @property
    def slug(self) -> str:
        """The stream's name in lower-case letters, digits, '.', '_' and '-'."""
        return re.sub(r"[^a-z0-9._]", "-", self.catalogue.stream.lower()).strip("-.") or "series"

    @property
    def tables(self) -> tuple[Table, ...]:
        """The tables that the folder has: releases, errors and the hierarchy's."""
        has = () if self.statement is None else (True, *self.statement.has_columns[1:])
        releases = Table(
            "releases",
            "A row for each day, step and node, a Parquet file for each published day",
            "The local day is in the path, date=YYYY-MM-DD.",
            f"{layout.DATA}/",
            [file for entry in self.listed for file in sorted(files_of(entry))],
            columns_of(self.catalogue.value_column, *has),
            ("date", "step", "node"),
        )
        errors = Table(
            "errors",
            "Replicates of the values: a figure's standard deviation over them is its standard error",
            "A file for each published day that has one, with the rows of its release.",
            f"{ERRORS}/",
            list(self.errors),
            (Column("date", pl.Date(), "The local day."), *columns_of_replicates(self.replicates)),
        )
        hierarchy = Table(
            "hierarchy",
            "Units of the hierarchy, with the days on which they hold and what each became",
            "Joined to the releases by node and local day.",
            layout.HIERARCHY,
            layout.HIERARCHY,
            HIERARCHY_COLUMNS,
        )
        there = (True, self.replicates, self.has_hierarchy)
        return tuple(compress((releases, errors, hierarchy), there))


def version_of(catalogue: Catalogue) -> str:
    """Return what descriptions call a folder's version: 1.0.0+, and 16 digits of its catalogue's hash."""
    return f"1.0.0+{digest_of(catalogue)[:16]}"


def day_after(day: date) -> str:
    """Return the date of the midnight that ends a day: the day's date by the folder's clock."""
    return (day + timedelta(days=1)).isoformat()


def read_dataset(storage: Readable, about: About) -> Dataset | None:
    """Return the facts for a folder's descriptions; None without a catalogue. Raises PublicationError."""
    catalogue = find_catalogue(storage)
    if catalogue is None:
        return None
    statement, has_hierarchy = None, False
    for entry in reversed(catalogue.listed[-MOST_TRIED:]):
        with suppress(PublicationError):
            statement = read_statement(storage, entry)
            break
    with suppress(PublicationError):
        has_hierarchy = find_hierarchy(storage) is not None
    return Dataset(catalogue, about, statement, has_hierarchy)


# The descriptions: templates in templates/*.json.jinja, filled with the facts of a folder.
#
# Croissant 1.1: https://docs.mlcommons.org/croissant/docs/croissant-spec-1.1.html. Data Package 2:
# https://datapackage.org. DCAT 3: https://www.w3.org/TR/vocab-dcat-3/ and
# https://semiceu.github.io/DCAT-AP/; that the data are differentially private is said there by the W3C's Data
# Privacy Vocabulary, the amounts stand in the deployment card.

_LICENCE = re.compile(r"[-a-zA-Z0-9._]+")


@cache
def _environment() -> Any:
    environment = template_environment()
    environment.policies["json.dumps_kwargs"] = {}  # the keys' order stays
    environment.filters["inside"] = lambda text: json.dumps(text)[1:-1]
    environment.filters["plain"] = plain_number
    environment.filters["worded"] = _worded
    return environment


def describe(template: str, dataset: Dataset, **facts: Any) -> dict[str, Any]:
    """Return a template filled with a dataset and more facts, without nulls; JSON-ready."""
    about, listed = dataset.about, dataset.listed
    first, last = (listed[0].period, listed[-1].period) if listed else (None, None)
    short, is_email = (about.licence or "").replace(" ", "-"), "@" in (about.contact or "")
    known = {
        "dataset": dataset,
        "about": about,
        "email": about.contact if is_email else None,
        "link": None if is_email else about.contact,
        "licence_name": short if _LICENCE.fullmatch(short) else None,
        "first": first and first.isoformat(),
        "last": last and last.isoformat(),
        "issued": first and day_after(first),
        "modified": last and day_after(last),
    }
    filled: dict[str, Any] = json.loads(
        _environment().get_template(template).render(known | facts),
        object_pairs_hook=lambda pairs: {key: value for key, value in pairs if value is not None},
    )
    return filled


croissant = partial(describe, "croissant.json.jinja")
"""The folder as a live dataset, dated by the midnights that end its days; JSON-ready."""
data_package = partial(describe, "datapackage.json.jinja")
"""Files of the listed days with their columns, and the catalogue; JSON-ready."""
dcat = partial(describe, "dcat.json.jinja")
"""The folder as a Dataset of its tables, whatever the number of days; JSON-ready."""


def _worded(mechanism: Mapping[str, Any]) -> str:
    """Return a mechanism without Python's own notation: keys in parentheses, lists by spaces."""

    def words(value: Any) -> str:
        if isinstance(value, Mapping):
            return f"({', '.join(f'{key} {words(part)}' for key, part in value.items())})"
        if isinstance(value, list | tuple):
            return " ".join(map(words, value)) or "none"
        return str(value)

    return f"{mechanism['name']} {words({key: one for key, one in mechanism.items() if key != 'name'})}"


# The deployment card: a record for the public registry of differential privacy deployments,
# https://registry.opendp.org, with the layout of schemas/deployments-schema.yaml in
# https://github.com/opendp/deployments-registry-data (commit 057e5d8), tier 3. A draft, which its publisher
# hands in: nothing is sent by this program.

CURATOR_TYPES = ("Government", "Industry", "Nonprofit")
SECTORS = ("Technology", "Healthcare", "Education", "Government", "Energy", "Finance")
"""That the registry knows; it takes others when they are added to its schema."""


@dataclass(frozen=True)
class StatedTerms:
    """What days were drawn under, as their statements say it: `ReleaseStatement.terms_in_words`."""

    words: str
    first: date
    last: date
    n_days: int


@dataclass(frozen=True)
class Deployment:
    """What the card adds: guarantees oldest first, the other streams of the budget, terms newest last."""

    guarantees: tuple[PrivacyModel, ...]
    sharing: tuple[str, ...]
    terms: tuple[StatedTerms, ...]

    @property
    def model(self) -> PrivacyModel:
        return self.guarantees[-1]


def deployment_card(dataset: Dataset, deployment: Deployment) -> dict[str, Any]:
    """Return the record of a stream in the registry's layout, of public facts alone; JSON-ready."""
    about, statement = dataset.about, dataset.statement
    worst = max(deployment.guarantees, key=lambda one: one.epsilon)
    epsilon = max(worst.epsilon, statement.epsilon_plan) if statement else worst.epsilon
    parameters = {"epsilon": rounded_up(epsilon)}
    if worst.rho is not None:
        parameters |= {"delta": float(worst.delta), "rho": float(worst.rho)}
    wanted = ("publisher", "intended_use", "region")
    missing = [f"[published.about] {name}" for name in wanted if not getattr(about, name)]
    if about.curator_type not in CURATOR_TYPES:
        missing.append(f"[published.about] curator_type ({', '.join(CURATOR_TYPES)})")
    if about.sector and about.sector not in SECTORS:
        missing.append(f"[published.about] sector ({', '.join(SECTORS)}, or ask the registry to add yours)")
    return describe(
        "deployment-card.json.jinja",
        dataset,
        model=deployment.model,
        first_published=day_after(day_of(dataset.catalogue.entries[0].period)),
        parameters=parameters,
        losses=in_words("losses", dataset, deployment),
        sharing=deployment.sharing,
        missing=missing,
    )


# The files.

Describe = Callable[[Dataset], bytes]


def to_bytes(document: dict[str, Any]) -> bytes:
    """Return a description as UTF-8 text, a line for each entry; the same facts give the same bytes."""
    return (json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False) + "\n").encode()


OWN: Mapping[str, Describe] = {
    layout.DATA_PACKAGE: lambda dataset: to_bytes(data_package(dataset)),
    layout.CROISSANT: lambda dataset: to_bytes(croissant(dataset)),
    layout.DCAT: lambda dataset: to_bytes(dcat(dataset)),
}
"""Descriptions that are made of the folder alone."""


def put_metadata(
    folder: Location | str,
    about: About,
    signer: Signer | None = None,
    more: Mapping[str, Describe] | None = None,
) -> bool:
    """Replace the folder's descriptions, signed as the catalogue; return whether any changed."""
    several, storage = {**OWN, **(more or {})}, open_storage(folder)

    def put(transaction: Transaction) -> bool:
        marks = {name: transaction.mark(name) for name in several}
        dataset = read_dataset(transaction, about)
        if dataset is None:
            return False
        if dataset.replicates:
            names = listed_errors(storage.names_below(ERRORS), dataset.catalogue)
            dataset = replace(dataset, errors=names)
        transaction.prepare()
        signs = signer is not None and signer.has_signed(transaction, dataset.catalogue, **signer.earlier)
        changed = [
            put_file(transaction, name, describe(dataset), marks[name], signer if signs else None)
            for name, describe in several.items()
        ]
        settle_page_time(transaction, dataset.catalogue)
        return any(changed)

    return change_folder(storage, put, " and ".join(several), "fix it and run `optstream report`")


def check_metadata(storage: Readable, catalogue: Catalogue) -> Iterator[str]:
    """Yield a line for each description that is there and is not of this catalogue."""
    for name in layout.DESCRIPTIONS:
        yield from _behind(storage, name, version_of(catalogue))
