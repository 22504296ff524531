"""The store that a URL names, and the connections of this process."""

import os
from functools import lru_cache
from typing import Any

from optstream.errors import PublicationError
from optstream.storage.location import StoreUrl
from optstream.storage.s3 import S3Store
from optstream.storage.store import Store

KINDS: dict[str, type[Store]] = {"s3": S3Store}
"""Protocols whose puts can be conditional; of any other, objects are read alone."""
INSTALL = "install what reaches it: pip install 'optstream[s3]' for s3://"


def open_store(url: StoreUrl) -> Store:
    """Return the store of a URL. Raises PublicationError for a protocol not known, or not installed."""
    return KINDS.get(url.protocol, Store)(url, connect(url.protocol))


def connect(protocol: str) -> Any:
    """Return fsspec's file system, which takes address and credentials from the environment, and caches no
    listing.

    One for all threads of a process: each has connections of its own to look after.
    Raises PublicationError where the protocol is not known, or what it needs is not installed.
    """
    return _connected(protocol, os.getpid())


@lru_cache
def _connected(protocol: str, _process: int) -> Any:
    import fsspec  # of the extra `s3`

    try:
        return fsspec.filesystem(protocol, use_listings_cache=False, skip_instance_cache=True)
    except (ImportError, ValueError) as error:
        raise PublicationError(f"{protocol}:// is not a store that can be reached here; {INSTALL}") from error
