"""The page of the published folder: one file under a fixed name, made of what the catalogue lists.

Lemma: pages only move forward. A page replaces another only where the catalogue that it was made of is still
the newest after it was looked which page is there: under the lock of a local folder, and in a store because
the put demands the page that was found before the catalogue was read. So a page of an older catalogue never
takes the place of a newer one's. In a store a catalogue may still come between look and put; it is looked
for once more after the put, and the page is made anew. Who dies just there leaves a page of the catalogue
before, which `check_page` names and the next page replaces; after a withdrawal in a local folder there is
no such moment.

The page loads figures from `curves/`: files under the hash of their bytes, never changed, put before the page
that names them. A page is only put where all of them are there; what it does not name is removed after it,
also what a crash left. So a page that a reader opens finds its figures until the next page is there. In a
store the removal may meet figures of another run that puts its page at that moment. That page is of a newer
catalogue, for the figures are a function of it; who removed them looks for that after the put, and makes the
page anew, with them. A withdrawal removes them all with the page.
"""

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator
from functools import partial

from optstream.catalogue.backends import Location, Readable, Storage, Transaction, change_folder, open_storage
from optstream.catalogue.index import Catalogue
from optstream.catalogue.layout import CATALOGUE, CURVES, PAGE, curves_file
from optstream.catalogue.times import settle_blank_page_time, settle_page_time
from optstream.catalogue.untrusted import find_catalogue, read_catalogue
from optstream.errors import PublicationError

LARGEST_PAGE = 2**26
"""Bytes."""
MARKER = "optstream-catalogue"
MOST_TRIES = 20
_STATED = re.compile(rb'<meta name="' + MARKER.encode() + rb'" content="([0-9a-f]{64})">')
_NAMED = re.compile(rb'"' + CURVES.encode() + rb'/([0-9a-f]{64})\.bin"')
_FIGURES = re.compile(r"[0-9a-f]{64}\.bin")
LARGEST_CURVES = 2**28
"""Bytes of one file of figures."""
HEAD = 4096
"""Bytes in which a page says of which catalogue it was made."""
BLANK = (
    b'<!DOCTYPE html>\n<html lang="en">\n<head><meta charset="utf-8"><title>Being made anew</title></head>\n'
    b"<body><p>A day was withdrawn, and this page is being made anew. The others are in data/.</p></body>\n"
    b"</html>\n"
)
"""What stands in the place of a page that shows a withdrawn day."""


def digest_of(catalogue: Catalogue) -> str:
    """Return the SHA-256 of a catalogue's bytes: what a page says of the catalogue that it was made of.

    Args:
        catalogue: As it was read.

    Returns:
        64 hexadecimal digits.
    """
    return hashlib.sha256(catalogue.to_bytes()).hexdigest()


def put_curves(folder: Location | str, several: Iterable[bytes]) -> tuple[str, ...]:
    """Put figures that a page will load beside it, each under the hash of its bytes; return these hashes.

    The page states them as "curves/<hash>.bin". Raises ParameterError for a URL that cannot be one,
    PublicationError where the folder cannot be written, or a name holds other bytes.
    """
    files = {hashlib.sha256(data).hexdigest(): data for data in several}

    def put(transaction: Transaction) -> None:
        transaction.prepare(CURVES)
        for digest, data in files.items():
            transaction.create_new(curves_file(digest), data)

    change_folder(folder, put, CURVES, "mend it and run `optstream report`")
    return tuple(files)


def curves_named(page: bytes) -> frozenset[str]:
    """Return the hashes of the figures that a page loads, which anyone may have written."""
    return frozenset(found.decode() for found in _NAMED.findall(page))


def replace_page(folder: Location | str, make: Callable[[Storage, Catalogue], bytes]) -> bool:
    """Put the page that is made of a folder's catalogue in the place of the one that is there, in one step.

    Args:
        folder: A path, or the URL of a folder in an object store.
        make: Returns the page of a catalogue, which must state `digest_of` it. Called outside of any lock,
            since it may read years of files; called again where another published meanwhile.

    Returns:
        False if the same page was there already, else True.

    Raises:
        ParameterError: The URL cannot be one.
        PublicationError: There is no catalogue, the folder cannot be written, or others publish all the time.
        Exception: Whatever `make` raises.
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
    there, named = set(_figures_in(transaction)), {f"{digest}.bin" for digest in curves_named(data)}
    if named - there:
        return None  # another page removed them meanwhile
    before = b"" if mark is None else transaction.read(PAGE, LARGEST_PAGE)
    changed = mark is None or before != data
    if changed:
        transaction.prepare()
        transaction.replace_marked(PAGE, data, mark)
    if there - named:
        transaction.remove(CURVES, sorted(there - named))
    settle_page_time(transaction, made, sorted(f"{CURVES}/{name}" for name in named))
    return changed


def blank_page(transaction: Transaction, catalogue: Catalogue) -> None:
    """Replace a page that may show a withdrawn day by one that shows nothing, and remove the figures that it
    loads, in the transaction that withdraws the day.
    """
    mark = transaction.mark(PAGE)
    if mark is not None and transaction.read(PAGE, LARGEST_PAGE) != BLANK:
        if not check_page(transaction, catalogue):
            return
        transaction.replace_marked(PAGE, BLANK, mark)
        settle_blank_page_time(transaction, catalogue)
    if names := _figures_in(transaction):
        transaction.remove(CURVES, names)


def _figures_in(transaction: Transaction) -> list[str]:
    """Names of figures in `curves/`; of what else is there nobody knows whose it is, and it stops nothing."""
    return [name for name in transaction.names_in(CURVES) if _FIGURES.fullmatch(name)]


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


def check_curves(storage: Storage) -> Iterator[str]:
    """Yield which files of figures the page names and are not there, whole, and which it does not name."""
    try:
        named = curves_named(storage.read(PAGE, LARGEST_PAGE))
    except (FileNotFoundError, PublicationError):
        named = frozenset()
    wanted = {curves_file(digest): digest for digest in named}
    for name in sorted(wanted):
        try:
            digest = hashlib.sha256(storage.read(name, LARGEST_CURVES)).hexdigest()
        except (FileNotFoundError, PublicationError):
            digest = ""
        if digest != wanted[name]:
            yield f"{name} is missing, or not what its name says; remove it and run `optstream report`"
    for name in storage.names_below(CURVES):
        if name not in wanted:
            yield f"{name!r} is not of {PAGE}; `optstream report` removes figures, not what else is there"
