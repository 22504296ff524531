"""One folder of an object store, through fsspec: reading from any, writing where puts can be conditional."""

import errno
import hashlib
import io
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import IO, Any

from optstream.errors import PublicationError
from optstream.storage.location import StoreUrl

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
    strerror says in plain words what is wrong. Messages of stores and of their libraries are not passed on:
    they may hold parts of credentials.
    """

    bare_tags = False
    """Whether conditions name tags without the quotes that they are given with."""

    def __init__(self, url: StoreUrl, filesystem: Any) -> None:
        self.url, self.filesystem = url, filesystem
        self._root: str = filesystem._strip_protocol(url.text)

    def path(self, name: str) -> str:
        """Return what fsspec calls an object."""
        return f"{self._root}/{name}"

    def get(self, name: str, largest: int) -> Stored:
        """Return an object; of one that is longer than `largest` bytes, one byte more than that."""
        with self.opened(name) as file:
            data = file.read(largest + 1)
        return Stored(data, hashlib.sha256(data).hexdigest())

    def get_whole(self, name: str) -> Stored:
        """Return an object, however long."""
        return self.get(name, 2**62)

    def is_object(self, name: str) -> bool:
        """Return whether there is an object of this name."""
        try:
            return bool(self.facts(name)["type"] == "file")
        except FileNotFoundError:
            return False

    @contextmanager
    def opened(self, name: str, **how: Any) -> Iterator[IO[bytes]]:
        """An object to be read in parts, all from the same one; how: as fsspec's own `open` takes it."""
        with self.in_plain_words(name), self.filesystem.open(self.path(name), "rb", **how) as file:
            yield file

    def facts(self, name: str) -> Mapping[str, Any]:
        """Return what the store says of an object without reading it: size (bytes), and its tag or times."""
        with self.in_plain_words(name):
            found: dict[str, Any] = self.filesystem.info(self.path(name))
        return found

    def list_folder(self) -> dict[str, int | None]:
        """Return the names in the folder itself, with the bytes of each that is an object; empty where
        nothing is.
        """
        try:
            with self.in_plain_words(""):
                found = self.filesystem.ls(self._root, detail=True)
        except FileNotFoundError:
            return {}
        # some tools mark a folder by an empty object, whose name ends in "/"
        named = [(entry["name"].removeprefix(f"{self._root}/"), entry) for entry in found]
        return {
            name.rstrip("/"): int(entry["size"]) if entry["type"] == "file" and name[-1] != "/" else None
            for name, entry in named
            if name.strip("/")
        }

    def for_polars(self, name: str) -> Any:
        """Return what polars scans, and how: here the bytes, for it knows not this kind of store."""
        return {"source": io.BytesIO(self.get_whole(name).data)}

    def names_below(self, folder: str) -> list[str]:
        """Return the names of all objects below a folder, rising; none where there are none."""
        try:
            with self.in_plain_words(folder):
                found = self.filesystem.find(self.path(folder))
        except FileNotFoundError:
            return []
        return sorted(name.removeprefix(f"{self._root}/") for name in found)

    def delete(self, name: str) -> None:
        """Remove an object; one that is gone already is no error."""
        with self.in_plain_words(name):
            self.filesystem.rm_file(self.path(name))

    @contextmanager
    def in_plain_words(self, name: str) -> Iterator[None]:
        """Let nothing out but FileNotFoundError and OSError, whose words are our own."""
        try:
            yield
        except FileNotFoundError:
            raise FileNotFoundError(errno.ENOENT, "there is no such object", name) from None
        except OSError as error:
            for kind, words in REASONS:
                if isinstance(error, kind):
                    raise kind(errno.EIO, words) from None
            raise OSError(errno.EIO, "the store refuses") from None

    def put_new(self, name: str, data: bytes) -> bool:
        """Put an object where there is none. Returns False, with nothing written, if one may be there."""
        raise no_conditions(self.url)

    def put_instead(self, name: str, data: bytes, tag: str) -> bool:
        """Replace the object of this tag. Returns False, with nothing written, if another may be there."""
        raise no_conditions(self.url)


def no_conditions(url: StoreUrl) -> PublicationError:
    return PublicationError(
        f"{url.protocol}:// has no put here that fails when another was faster, so two runs could lose each "
        "other's days: publish to s3:// (AWS, or a store that enforces If-None-Match and If-Match as it "
        "does), or to a local folder, and copy that one"
    )
