"""Where folders lie: on this machine, or in an object store; and how a published one is changed there."""

from optstream.catalogue.backends.choose_backend import change_folder, open_storage
from optstream.catalogue.backends.protocol import ConflictError, OtherBytes, Readable, Storage, Transaction
from optstream.storage.store import Location, StoreUrl, locate

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
