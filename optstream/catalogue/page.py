"""The page of the published folder. Lemma: pages only move forward, because a put demands the page that was
found before the catalogue was read; in a store the catalogue is looked for once more after the put.
"""

import hashlib
import re
from collections.abc import Callable
from datetime import timedelta
from functools import partial

from optstream.catalogue.backends import Readable, Storage, Transaction, change_folder, open_storage
from optstream.catalogue.index import Catalogue, find_catalogue, read_catalogue
from optstream.catalogue.layout import CATALOGUE, CURVES, PAGE
from optstream.catalogue.times import release_time, settle_page_time
from optstream.errors import PublicationError
from optstream.storage.store import Location

LARGEST_PAGE = 2**26
"""Bytes."""
MARKER = "optstream-catalogue"
MOST_TRIES = 20
_STATED = re.compile(rb'<meta name="' + MARKER.encode() + rb'" content="([0-9a-f]{64})">')
_FIGURES = re.compile(r"[0-9a-f]{64}\.bin")
HEAD = 4096
"""Bytes in which a page says of which catalogue it was made."""
BLANK = (
    b'<!DOCTYPE html>\n<html lang="en">\n<head><meta charset="utf-8"><title>Being made anew</title></head>\n'
    b"<body><p>A day was withdrawn, and this page is being made anew. The others are in data/.</p></body>\n"
    b"</html>\n"
)
"""What stands in the place of a page that shows a withdrawn day."""


def digest_of(catalogue: Catalogue) -> str:
    """Return the SHA-256 of a catalogue's bytes, which a page that is made of it states."""
    return hashlib.sha256(catalogue.to_bytes()).hexdigest()


def replace_page(folder: Location | str, make: Callable[[Storage, Catalogue], bytes]) -> bool:
    """Atomically replace the page by one of the catalogue that is there; return whether it changed.

    `make` is called outside of any lock, since it may read years of files, and again where another published
    meanwhile; its page must state `digest_of` the catalogue.
    """
    storage = open_storage(folder)
    for _ in range(MOST_TRIES):
        catalogue = read_catalogue(storage)
        data = make(storage, catalogue)
        work = partial(_put, made=catalogue, data=data)
        put = change_folder(storage, work, PAGE, "mend it and run `optstream report`")
        if put is not None and read_catalogue(storage) == catalogue:
            return put
    raise PublicationError(f"others publish all the time, and {PAGE} is behind; run `optstream report` later")


def _put(transaction: Transaction, made: Catalogue, data: bytes) -> bool | None:
    """Return whether the page changed; None if it was made of another catalogue than is there."""
    mark = transaction.mark(PAGE)
    if find_catalogue(transaction) != made:
        return None
    before = b"" if mark is None else transaction.read(PAGE, LARGEST_PAGE)
    changed = mark is None or before != data
    if changed:
        transaction.prepare()
        transaction.replace_marked(PAGE, data, mark)
    _remove_figures(transaction)
    settle_page_time(transaction, made)
    return changed


def blank_page(transaction: Transaction, catalogue: Catalogue) -> None:
    """Replace a page that may show a withdrawn day by one that shows nothing, as a part of the withdrawal."""
    mark = transaction.mark(PAGE)
    if mark is not None and transaction.read(PAGE, LARGEST_PAGE) != BLANK:
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
    try:
        stated = _STATED.search(storage.read(PAGE, LARGEST_PAGE)[:HEAD])
    except FileNotFoundError:
        return []
    except PublicationError as error:
        return [str(error)]
    if stated is None or stated[1].decode() != digest_of(catalogue):
        return [f"{PAGE} is not of the days that {CATALOGUE} lists; `optstream report` makes it anew"]
    return []
