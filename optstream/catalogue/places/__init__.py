"""Where folders lie: on this machine, or in an object store; and how a published one is changed there."""

from optstream.catalogue.places.location import Location, StoreUrl, locate
from optstream.catalogue.places.place import OtherBytes, Overtaken, Place, Readable, Turn, open_place

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
