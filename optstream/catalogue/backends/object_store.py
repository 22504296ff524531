"""A published folder in an object store: no lock, no rename; a conditional put says who came first.

A transaction reads the catalogue and its tag, puts files under names that nothing had, and replaces the
catalogue on the condition that it still has that tag. Whoever comes second begins again from the catalogue
that is there. No two catalogues of a folder have the same bytes, for what they list of a day only ever moves
forward: so a tag, which goes by the bytes, never comes back.
"""

import errno
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime

from optstream.catalogue.backends.protocol import ConflictError, OtherBytes, Result, Transaction
from optstream.catalogue.layout import CATALOGUE
from optstream.errors import PublicationError
from optstream.storage.store import Store

PROBE = ".conditional-puts"
PROBE_TEXT = b"OptStream puts this again before it publishes, to see that the store refuses a second one.\n"
WRONG_TAG = f'"{"0" * 32}"'
MOST_TRANSACTIONS = 100
"""Each conflict means that another publisher succeeded; after so many the caller is told to come back."""
MOST_TRIES = 10


class ObjectStorage:
    """`Storage` in an object store."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def __str__(self) -> str:
        return str(self._store.url)

    def read(self, name: str, largest: int) -> bytes:
        """Return the bytes of an object; what the store refuses is a PublicationError."""
        with self._reading():
            stored = self._store.get(name, largest)
        return bounded(stored.data, name, largest)

    def is_file(self, name: str) -> bool:
        with self._reading():
            return self._store.is_object(name)

    def names_below(self, folder: str) -> list[str]:
        with self._reading():
            return self._store.names_below(folder)

    @contextmanager
    def _reading(self) -> Iterator[None]:
        try:
            yield
        except FileNotFoundError:
            raise
        except OSError as error:
            raise PublicationError(
                f"the published folder {self._store.url} cannot be read ({error.strerror})"
            ) from None

    def change(self, work: Callable[[Transaction], Result]) -> Result:
        """Run `work` until it meets no conflict. Raises PublicationError for a store without conditions."""
        check_conditions(self._store)
        for number in range(MOST_TRANSACTIONS):
            try:
                return work(ObjectTransaction(self._store, is_again=number > 0))
            except ConflictError:
                learn_how_tags_are_named(self._store)
        raise OSError(errno.EBUSY, "others replaced the catalogue every time")


class ObjectTransaction:
    """`Transaction` on an object store. What cannot be read is an OSError here, as what cannot be written."""

    is_alone = False

    def __init__(self, store: Store, *, is_again: bool) -> None:
        self._store, self.is_again = store, is_again
        self._tag: str | None = None

    def read(self, name: str, largest: int) -> bytes:
        """Return the bytes of an object; of the catalogue, the tag is kept for `replace_catalogue`."""
        if name == CATALOGUE:
            self._tag = None
        stored = self._store.get(name, largest)
        if name == CATALOGUE:
            self._tag = stored.tag
        return bounded(stored.data, name, largest)

    def prepare(self, *folders: str) -> None:
        """Do nothing: a store has no folders, and an object is put whole or not at all."""

    def create_new(self, name: str, data: bytes) -> bool:
        """Create the file; False if these bytes are there already. Raises OtherBytes if others are."""
        for _ in range(MOST_TRIES):
            if self._store.put_new(name, data):
                return True
            try:
                found = self._store.get(name, len(data)).data
            except FileNotFoundError:
                continue
            if found != data:
                raise OtherBytes(name)
            return False
        raise OSError(errno.EBUSY, f"{name} comes and goes")

    def replace_catalogue(self, data: bytes) -> None:
        """Put the catalogue on the condition that the stored one still has the tag that was read."""
        self.replace_marked(CATALOGUE, data, self._tag)

    def confirm_catalogue(self) -> None:
        """Check that no other catalogue has come; what a store has answered for is durable."""
        if self.mark(CATALOGUE) != self._tag:
            raise ConflictError

    def mark(self, name: str) -> str | None:
        try:
            return self._store.get_whole(name).tag
        except FileNotFoundError:
            return None

    def replace_marked(self, name: str, data: bytes, mark: str | None) -> None:
        """Replace the object if its mark is still this one; None: if there is none."""
        done = self._store.put_new(name, data) if mark is None else self._store.put_instead(name, data, mark)
        if not done:
            raise ConflictError

    def names_in(self, folder: str) -> list[str]:
        """Return the objects below the folder whose names have no further "/"."""
        below = (name.removeprefix(f"{folder}/") for name in self._store.names_below(folder))
        return [name for name in below if "/" not in name]

    def move(self, source: str, target: str) -> None:
        """Copy the object, then remove the source; where the target has other bytes, both are left."""
        # another publisher may have moved it, or a withdrawal removed it
        with suppress(FileNotFoundError):
            data = self._store.get_whole(source).data
            if self._store.put_new(target, data) or self._store.get_whole(target).data == data:
                self._store.delete(source)

    def remove(self, folder: str, names: Sequence[str]) -> None:
        for name in names:
            self._store.delete(f"{folder}/{name}".lstrip("/"))

    def settle(self, times: Mapping[str, datetime]) -> None:
        """Do nothing: a store has its own times, which nobody can set (docs/data/object-stores.md)."""


def bounded(data: bytes, name: str, largest: int) -> bytes:
    """Return the bytes. Raises PublicationError if there are too many."""
    if len(data) > largest:
        raise PublicationError(f"{name} is larger than {largest} bytes; it was not written by this OptStream")
    return data


def check_conditions(store: Store) -> None:
    """Raise PublicationError unless the store refuses puts whose condition does not hold.

    Some take the condition and ignore it. A small object is put under a name that has it, and in the place of
    a tag that it does not have: both must be refused. It stays, so that the next run needs two requests.
    """
    is_new = store.put_new(PROBE, PROBE_TEXT)
    if (is_new and store.put_new(PROBE, PROBE_TEXT)) or store.put_instead(PROBE, PROBE_TEXT, WRONG_TAG):
        raise PublicationError(
            f"the store of {store.url} does not refuse a put whose condition fails (If-None-Match, "
            "If-Match): two runs could lose each other's days, and nothing was published; use a store that "
            "does, as AWS S3, or a newer version of this one, or publish to a local folder and copy that"
        )


def learn_how_tags_are_named(store: Store) -> None:
    """After a conflict, find out whether the store knows its own tags without their quotes alone.

    Ceph's gateway (16) compares the condition's quotes, too, and so refuses every tag that is given as it
    gave it. Bare tags are used only with a store that refuses the right tag in quotes and a wrong one
    without: so a put on the condition of a bare tag is refused where it must be.
    """

    def heeds() -> bool:
        return not store.put_instead(PROBE, PROBE_TEXT, WRONG_TAG) and store.put_instead(
            PROBE, PROBE_TEXT, store.get_whole(PROBE).tag
        )

    with suppress(FileNotFoundError):  # somebody removed the probe: nothing is learned
        if not heeds():
            store.bare_tags = True
            store.bare_tags = heeds()
