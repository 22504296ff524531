"""The storage that a path, or the URL of an object store, names."""

from pathlib import Path

from optstream.catalogue.backends.local import LocalStorage
from optstream.catalogue.backends.object_store import ObjectStorage
from optstream.catalogue.backends.protocol import Storage
from optstream.storage.location import Location, StoreUrl, locate
from optstream.storage.open import open_store


def open_storage(folder: Location | str | Storage) -> Storage:
    """Return the storage of a published folder, given as a path, as a URL of an object store or as storage.

    Raises ParameterError for a URL that cannot be one, and PublicationError where what reaches such stores
    is not installed.
    """
    if not isinstance(folder, Path | StoreUrl | str):
        return folder
    location = locate(folder)
    if isinstance(location, Path):
        return LocalStorage(location)
    return ObjectStorage(open_store(location))
