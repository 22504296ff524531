"""fsspec's memory:// as an object store with conditions. What one process puts, no other sees."""

import hashlib
from dataclasses import replace
from threading import Lock

from optstream.storage.store import ANY, Store, Stored

_ONE_AT_A_TIME = Lock()
"""fsspec's memory knows no conditions: they hold among those who come through here."""


class MemoryStore(Store):
    def get(self, name: str, largest: int = ANY) -> Stored:
        with self.in_plain_words(name):
            data: bytes = self.filesystem.cat_file(self.path(name))
        return Stored(data[: largest + 1], _tag(data))

    def delete(self, name: str) -> None:
        with _ONE_AT_A_TIME:
            self.filesystem.store.pop(self.path(name), None)

    def put_new(self, name: str, data: bytes) -> bool:
        with _ONE_AT_A_TIME, self.in_plain_words(name):
            if self.filesystem.isfile(self.path(name)):
                return False
            self.filesystem.pipe_file(self.path(name), data)
            return True

    def put_instead(self, name: str, data: bytes, tag: str) -> bool:
        """Replace the object under the same lock; a tag is the hash of the bytes."""
        with _ONE_AT_A_TIME, self.in_plain_words(name):
            path = self.path(name)
            if not self.filesystem.isfile(path) or _tag(self.filesystem.cat_file(path)) != tag:
                return False
            self.filesystem.pipe_file(path, data)
            return True


class Literal(MemoryStore):
    """A store that gives tags in quotes and takes them without, as Ceph's gateway does."""

    def get(self, name: str, largest: int = ANY) -> Stored:
        stored = super().get(name, largest)
        return replace(stored, tag=f'"{stored.tag}"')

    def put_instead(self, name: str, data: bytes, tag: str) -> bool:
        return self.bare_tags and super().put_instead(name, data, tag.strip('"'))


def _tag(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
