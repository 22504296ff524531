"""Where folders lie: on this machine, or in an object store; and how a published one is changed there."""

from collections.abc import Callable
from pathlib import Path

from optstream.catalogue.backends.local import LocalStorage
from optstream.catalogue.backends.object_store import ObjectStorage
from optstream.catalogue.backends.protocol import (
    ConflictError,
    OtherBytes,
    Readable,
    Result,
    Storage,
    Transaction,
)
from optstream.errors import PublicationError
from optstream.storage.store import Location, StoreUrl, locate, open_store

__all__ = [
    "ConflictError",
    "Location",
    "OtherBytes",
    "Readable",
    "Storage",
    "StoreUrl",
    "Transaction",
    "change_folder",
    "locate",
    "open_storage",
]


def open_storage(folder: Location | str | Storage) -> Storage:
    """Return the storage of a path or of a URL, or storage as it is; nothing is looked at or made yet."""
    if not isinstance(folder, Path | StoreUrl | str):
        return folder
    location = locate(folder)
    if isinstance(location, Path):
        return LocalStorage(location)
    return ObjectStorage(open_store(location))


def change_folder(
    folder: Location | str | Storage, work: Callable[[Transaction], Result], what: str, remedy: str
) -> Result:
    """Change a published folder as `Storage.change` does; where the system refuses, raise PublicationError,
    which says what could not be written, and the remedy.
    """
    try:
        return open_storage(folder).change(work)
    except OSError as error:
        raise PublicationError(f"{what} cannot be written ({error.strerror}); {remedy}") from error
