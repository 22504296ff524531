"""Nodes as people know them: a name, a place, a border. They shape no release."""

from collections.abc import Mapping
from dataclasses import dataclass

from optstream.errors import ParameterError

LONGEST_NAME = 100
Ring = tuple[tuple[float, float], ...]


@dataclass(frozen=True)
class NodeFacts:
    """A node as people know it.

    Attributes:
        name: What it is called, printable, 1 to 100 characters; None where no name is given.
        latitude: In degrees, from -90 to 90; None where no place is given.
        longitude: In degrees, from -180 to 180; None where, and only where, `latitude` is.
        area: Its border for maps: rings of at least three corners (longitude, latitude), those of holes among
            them; None where none is given. Lists are taken, too.

    Raises:
        ParameterError: A field is outside its range; names it.
    """

    name: str | None = None
    latitude: float | None = None
    longitude: float | None = None
    area: tuple[Ring, ...] | None = None

    def __post_init__(self) -> None:
        if self.name is not None and not is_name(self.name):
            raise ParameterError(f"name must be printable text of 1 to {LONGEST_NAME} characters")
        if (self.latitude is None) != (self.longitude is None):
            raise ParameterError("latitude and longitude must be given together")
        if self.latitude is not None and not (_within(self.latitude, 90) and _within(self.longitude, 180)):
            raise ParameterError("latitude must be in [-90, 90] and longitude in [-180, 180]")
        if self.area is not None:
            object.__setattr__(self, "area", _ring_by_ring(self.area))


def called(node: str, facts: Mapping[str, NodeFacts]) -> str:
    """Return what a person is told of a node: its name with its code, "Bretagne (53)", or the code alone."""
    told = facts.get(node)
    return node if told is None or told.name in (None, node) else f"{told.name} ({node})"


def _ring_by_ring(area: object) -> tuple[Ring, ...]:
    """Return rings as tuples, whoever wrote them. Raises ParameterError."""
    if isinstance(area, list | tuple) and area and all(isinstance(ring, list | tuple) for ring in area):
        rings = tuple(tuple(map(_corner, ring)) for ring in area)
        if all(len(ring) >= 3 for ring in rings):
            return rings
    raise ParameterError("area must be rings of at least three corners")


def _corner(corner: object) -> tuple[float, float]:
    if isinstance(corner, list | tuple) and len(corner) == 2:
        longitude, latitude = corner
        if _within(longitude, 180) and _within(latitude, 90):
            return longitude, latitude
    raise ParameterError("corners of an area must be [longitude, latitude], in [-180, 180] and [-90, 90]")


def is_name(text: object, longest: int = LONGEST_NAME) -> bool:
    """Return whether a text may stand on a page as a name: no control characters, no reversed text."""
    return isinstance(text, str) and 0 < len(text) <= longest and text.isprintable() and text == text.strip()


def is_address(text: str) -> bool:
    """Return whether a printable text may stand as the address of a page, of the web alone."""
    return text.startswith(("http://", "https://")) and " " not in text


def _within(degrees: object, most: int) -> bool:
    return isinstance(degrees, int | float) and not isinstance(degrees, bool) and abs(degrees) <= most
