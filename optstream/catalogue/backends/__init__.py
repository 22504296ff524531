"""Where folders lie: on this machine, or in an object store; and how a published one is changed there."""

from optstream.catalogue.backends.protocol import OtherBytes, Overtaken, Place, Readable, Turn, open_place
from optstream.storage.location import Location, StoreUrl, locate

__all__ = [
    "Location",
    "OtherBytes",
    "Overtaken",
    "Place",
    "Readable",
    "StoreUrl",
    "Turn",
    "locate",
    "open_place",
]
