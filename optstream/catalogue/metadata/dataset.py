"""What every description of a published folder is made of, read from the folder and from nothing else."""

import re
from contextlib import suppress
from dataclasses import dataclass
from datetime import date, timedelta
from functools import cached_property

from optstream.catalogue.about import About
from optstream.catalogue.backends import Readable
from optstream.catalogue.hierarchy_table import find_hierarchy
from optstream.catalogue.hours.day_entry import day_entries, files_of
from optstream.catalogue.index import Catalogue, Entry
from optstream.catalogue.metadata.described_columns import Column, columns_of
from optstream.catalogue.page import digest_of
from optstream.catalogue.reading.catalogue import find_catalogue
from optstream.catalogue.reading.columns import read_statement
from optstream.catalogue.statements.statement import ReleaseStatement
from optstream.errors import PublicationError

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
