"""Put the folder's descriptions beside its catalogue, and check that they are of it.

Lemma: descriptions only move forward. In one transaction the marks of those that are there are taken before
the catalogue is read, and each put demands its mark; so one that was made of an older catalogue never takes
the place of a newer one's. Whoever publishes puts them after its catalogue, so the newest catalogue has its
own once its publisher is done. They are functions of the folder: no time of a run, no value of a release.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from optstream.catalogue.about import About
from optstream.catalogue.backends import Location, Readable, Transaction, change_folder, open_storage
from optstream.catalogue.index import Catalogue
from optstream.catalogue.layout import CATALOGUE, CROISSANT, DATA_PACKAGE, DCAT, DESCRIPTIONS, ERRORS
from optstream.catalogue.metadata.croissant import croissant
from optstream.catalogue.metadata.data_package import data_package
from optstream.catalogue.metadata.dataset import Dataset, read_dataset, version_of
from optstream.catalogue.metadata.dcat import dcat
from optstream.catalogue.reading.read import listed_errors
from optstream.catalogue.signing import Signer
from optstream.catalogue.times import settle_page_time
from optstream.errors import PublicationError

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
