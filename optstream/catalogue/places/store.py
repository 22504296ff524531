"""One folder of an object store, through fsspec: reading from any, writing where puts can be conditional."""

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from optstream.catalogue.places.location import StoreUrl
from optstream.errors import PublicationError

INSTALL = "install what reaches it: pip install 'optstream[s3]' for s3://"
REASONS: tuple[tuple[type[OSError], str], ...] = (
    (PermissionError, "the store refuses access; see the credentials in the environment, and their rights"),
    (TimeoutError, "the store does not answer"),
    (ConnectionError, "the store cannot be reached; see its address in the environment"),
)


@dataclass(frozen=True)
class Stored:
    """An object's bytes and its tag, which is another whenever the bytes are."""

    data: bytes = field(repr=False)
    tag: str


class Store:
    """Objects below one URL, by their names relative to it. Reads are of what was put last.

    Everything raises FileNotFoundError for an object that is not there, and for all else OSError, whose
    strerror says in plain words what is wrong: messages of stores may hold names of keys, and are not passed
    on.
    """

    def __init__(self, url: StoreUrl, filesystem: Any) -> None:
        self.url, self.filesystem = url, filesystem
        self._root: str = filesystem._strip_protocol(url.text)

    def path(self, name: str) -> str:
        """What fsspec calls an object."""
        return f"{self._root}/{name}"

    def get(self, name: str, largest: int) -> Stored:
        """An object; of one that is longer than `largest` bytes, one byte more than that."""
        with in_plain_words(name), self.filesystem.open(self.path(name), "rb") as file:
            data: bytes = file.read(largest + 1)
        return Stored(data, hashlib.sha256(data).hexdigest())

    def is_object(self, name: str) -> bool:
        """Whether there is an object of this name."""
        try:
            with in_plain_words(name):
                found: bool = self.filesystem.info(self.path(name))["type"] == "file"
        except FileNotFoundError:
            return False
        return found

    def names_below(self, folder: str) -> list[str]:
        """The names of all objects below a folder, rising; none where there are none."""
        try:
            with in_plain_words(folder):
                found = self.filesystem.find(self.path(folder))
        except FileNotFoundError:
            return []
        return sorted(name.removeprefix(f"{self._root}/") for name in found)

    def delete(self, name: str) -> None:
        """Remove an object; one that is gone already is no error."""
        with in_plain_words(name):
            self.filesystem.rm_file(self.path(name))

    def put_new(self, name: str, data: bytes) -> bool:
        """Put an object where none is. Returns False, with nothing written, if one may be there."""
        raise _no_conditions(self.url)

    def put_instead(self, name: str, data: bytes, tag: str) -> bool:
        """Put an object in the place of the one with this tag. False, with nothing written, if that is gone."""
        raise _no_conditions(self.url)


def open_store(url: StoreUrl) -> Store:
    """The store of a URL. Raises PublicationError where its protocol is not known, or not installed."""
    from optstream.catalogue.places.memory import MemoryStore
    from optstream.catalogue.places.s3 import S3Store

    kinds = {"s3": S3Store, "s3a": S3Store, "memory": MemoryStore}
    return kinds.get(url.protocol, Store)(url, connect(url.protocol))


def connect(protocol: str) -> Any:
    """fsspec's file system, which takes address and credentials from the environment, and caches no listing.

    Raises PublicationError where the protocol is not known, or what it needs is not installed.
    """
    import fsspec

    try:
        return fsspec.filesystem(protocol, use_listings_cache=False)
    except (ImportError, ValueError) as error:
        raise PublicationError(f"{protocol}:// is not a store that can be reached here; {INSTALL}") from error


@contextmanager
def in_plain_words(name: str) -> Iterator[None]:
    """Let nothing out but FileNotFoundError and OSError, whose words are our own."""
    try:
        yield
    except FileNotFoundError:
        raise FileNotFoundError(name) from None
    except OSError as error:
        reason = next((words for kind, words in REASONS if isinstance(error, kind)), "the store refuses")
        raise type(error)(error.errno or 5, reason) from None


def _no_conditions(url: StoreUrl) -> PublicationError:
    return PublicationError(
        f"{url.protocol}:// has no put here that fails when another was faster, so two runs could lose each "
        "other's days: publish to s3:// (AWS, or a store that enforces If-None-Match and If-Match as it "
        "does), or to a local folder, and copy that one"
    )
