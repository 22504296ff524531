"""The storage that a path, or the URL of an object store, names."""

from collections.abc import Callable
from pathlib import Path

from optstream.catalogue.backends.local import LocalStorage
from optstream.catalogue.backends.object_store import ObjectStorage
from optstream.catalogue.backends.protocol import Result, Storage, Transaction
from optstream.errors import PublicationError
from optstream.storage.store import Location, StoreUrl, locate, open_store


def open_storage(folder: Location | str | Storage) -> Storage:
    """Return the storage of a published folder. Nothing is looked at or made yet.

    Args:
        folder: A path, the URL of a folder in an object store, or storage, which is returned as it is.

    Returns:
        The storage.

    Raises:
        ParameterError: The URL cannot be one.
        PublicationError: The kind of store is not known, or what reaches it is not installed.
    """
    if not isinstance(folder, Path | StoreUrl | str):
        return folder
    location = locate(folder)
    if isinstance(location, Path):
        return LocalStorage(location)
    return ObjectStorage(open_store(location))


def change_folder(
    folder: Location | str | Storage, work: Callable[[Transaction], Result], what: str, remedy: str
) -> Result:
    """Change a published folder as `Storage.change` does, and say what could not be written.

    Args:
        folder: As for `open_storage`.
        work: Reads and writes in a transaction.
        what: What is written, as the error calls it.
        remedy: What the error says after the system's words.

    Returns:
        What `work` returns.

    Raises:
        ParameterError: The URL cannot be one.
        PublicationError: The folder cannot be written.
        Exception: Whatever `work` raises.
    """
    try:
        return open_storage(folder).change(work)
    except OSError as error:
        raise PublicationError(f"{what} cannot be written ({error.strerror}); {remedy}") from error
