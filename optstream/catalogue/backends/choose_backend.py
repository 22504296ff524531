"""The storage that a path, or the URL of an object store, names."""

from pathlib import Path

from optstream.catalogue.backends.local import LocalStorage
from optstream.catalogue.backends.object_store import ObjectStorage
from optstream.catalogue.backends.protocol import Storage
from optstream.storage.location import Location, StoreUrl, locate
from optstream.storage.open import open_store


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
