"""The store of a URL: which kind, and the connection to it."""

from optstream.storage.location import StoreUrl
from optstream.storage.memory_store import MemoryStore
from optstream.storage.s3 import S3Store
from optstream.storage.store import Store, connect

KINDS: dict[str, type[Store]] = {"s3": S3Store, "memory": MemoryStore}


def open_store(url: StoreUrl) -> Store:
    """Return the store of a URL. Raises PublicationError where its protocol is not known, or not
    installed.
    """
    return KINDS.get(url.protocol, Store)(url, connect(url.protocol))
