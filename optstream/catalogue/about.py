"""What readers are told beside the figures: publisher, licence, names of nodes, and noise that became known.

It stands in `about.json` of the published folder, which is there only where there is any of it. It shapes no
release: no figure and no hash of a configuration goes by it.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from optstream.catalogue.backends import Location, Readable
from optstream.catalogue.layout import ABOUT
from optstream.catalogue.signing import Signer, put_fact
from optstream.errors import ParameterError, PublicationError

# Nodes as people know them: a name and a place. They shape no release.

LONGEST_NAME = 100


@dataclass(frozen=True)
class NodeFacts:
    """A node as people know it.

    Attributes:
        name: What it is called, printable, 1 to 100 characters; None where no name is given.
        latitude: In degrees, from -90 to 90; None where no place is given.
        longitude: In degrees, from -180 to 180; None where, and only where, `latitude` is.

    Raises:
        ParameterError: A field is outside its range; names it.
    """

    name: str | None = None
    latitude: float | None = None
    longitude: float | None = None

    def __post_init__(self) -> None:
        if self.name is not None and not is_name(self.name):
            raise ParameterError(f"name must be printable text of 1 to {LONGEST_NAME} characters")
        if (self.latitude is None) != (self.longitude is None):
            raise ParameterError("latitude and longitude must be given together")
        if self.latitude is not None and not (_within(self.latitude, 90) and _within(self.longitude, 180)):
            raise ParameterError("latitude must be in [-90, 90] and longitude in [-180, 180]")


def called(node: str, facts: Mapping[str, NodeFacts]) -> str:
    """Return what a person is told of a node: its name with its code, "Bretagne (53)", or the code alone."""
    told = facts.get(node)
    return node if told is None or told.name in (None, node) else f"{told.name} ({node})"


def is_name(text: object, longest: int = LONGEST_NAME) -> bool:
    """Return whether a text may stand on a page as a name: no control characters, no reversed text."""
    return isinstance(text, str) and 0 < len(text) <= longest and text.isprintable() and text == text.strip()


def is_address(text: str) -> bool:
    """Return whether a printable text may stand as the address of a page, of the web alone."""
    return text.startswith(("http://", "https://")) and " " not in text


def _within(degrees: object, most: int) -> bool:
    return isinstance(degrees, int | float) and not isinstance(degrees, bool) and abs(degrees) <= most


FORMAT = "optstream.about/1"
LONGEST_LINE = 200
LINES = (
    *("publisher", "licence", "title", "description", "contact", "citation"),
    *("intended_use", "region", "sector", "curator_type"),
)
ADDRESSES = ("address", "licence_address")
OWN = (*LINES, *ADDRESSES)
"""What is told of the whole series."""
KNOWN_NOISE, MOST_NAMED = "known_noise", 20
"""Key of the document; releases that words name."""
NODE_KEYS = frozenset(one.name for one in fields(NodeFacts))
LARGEST_ABOUT = 2**28
"""Bytes."""


@dataclass(frozen=True)
class About:
    """What `about.json` tells.

    Attributes:
        publisher: For citations; None where not given.
        licence: Of the published data, such as "CC BY 4.0"; None where not given.
        nodes: By node, those of which anything is told.
        title: What people call the series; None where the stream's name is to do.
        description: What the series is, in a sentence or two; None where not given.
        contact: An e-mail address, or the address of a page, of who answers questions; None where not given.
        citation: How the series is to be cited, such as a DOI; None where not given.
        address: Where the published folder is on the web; None where not given.
        licence_address: Where the licence can be read; None where not given.
        intended_use: What the series is for; None where not given.
        region: Where its customers are; None where not given.
        sector: Which industry it describes, such as "Energy"; None where not given.
        curator_type: What kind of body publishes it, such as "Government"; None where not given.
        known_noise: Stream and period of each release of the privacy budget, also of its other streams, whose
            noise others know: windows with a step of one of them are not protected.

    Raises:
        ParameterError: A text is not printable, or longer than 200 characters; an address does not begin with
            http:// or https://, or holds a space.
    """

    publisher: str | None = None
    licence: str | None = None
    nodes: Mapping[str, NodeFacts] = field(default_factory=dict)
    title: str | None = None
    description: str | None = None
    contact: str | None = None
    citation: str | None = None
    address: str | None = None
    licence_address: str | None = None
    intended_use: str | None = None
    region: str | None = None
    sector: str | None = None
    curator_type: str | None = None
    known_noise: tuple[tuple[str, str], ...] = ()

    def __post_init__(self) -> None:
        for key in OWN:
            if (text := getattr(self, key)) is not None and not is_name(text, LONGEST_LINE):
                raise ParameterError(f"{key} must be printable text of 1 to {LONGEST_LINE} characters")
        for key in ADDRESSES:
            if (text := getattr(self, key)) is not None and not is_address(text):
                raise ParameterError(f"{key} must begin with http:// or https:// and hold no space")
        for one in self.known_noise:
            if not all(is_name(text, LONGEST_LINE) for text in one):
                raise ParameterError(f"{KNOWN_NOISE} must name streams and periods in printable text")

    @property
    def known_noise_in_words(self) -> str:
        """Which windows are not protected; "" where no noise became known."""
        if not self.known_noise:
            return ""
        named = ", ".join(f"{stream} {period}" for stream, period in self.known_noise[:MOST_NAMED])
        more = len(self.known_noise) - MOST_NAMED
        rest = f" and {more:,} more, which {ABOUT} names" if more > 0 else ""
        return (
            f"The noise of {len(self.known_noise):,} release(s) of this privacy budget became known ({named}"
            f"{rest}): windows with a step of one of them are not protected, whatever else is said of them."
        )

    def to_bytes(self, stream: str) -> bytes:
        """Return `about.json` of this stream's folder; the same facts give the same bytes."""
        nodes = {node: _told(one) for node, one in sorted(self.nodes.items())}
        own = {key: text for key in OWN if (text := getattr(self, key)) is not None}
        document: dict[str, Any] = {"format": FORMAT, "stream": stream, **own, "nodes": nodes}
        if self.known_noise:
            document[KNOWN_NOISE] = [{"stream": name, "period": period} for name, period in self.known_noise]
        return (json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False) + "\n").encode()


def _told(one: NodeFacts) -> dict[str, Any]:
    return {key: value for key, value in vars(one).items() if value is not None}


def read_about(storage: Readable, check: Callable[[bytes], object] | None = None) -> About:
    """Return what `about.json` tells, which anyone may have written; nothing where there is no such file.

    check: called with its bytes before they are parsed; raises where they are not signed as they should.
    Raises PublicationError where it cannot be read, or is not as OptStream writes it.
    """
    try:
        data = storage.read(ABOUT, LARGEST_ABOUT)
    except FileNotFoundError:
        return About()
    if check is not None:
        check(data)
    return parse_about(data)


def parse_about(data: bytes) -> About:
    """Return what the bytes of `about.json` tell, which anyone may have written; unknown keys are ignored.

    Raises PublicationError.
    """
    try:
        document: Any = json.loads(data)
        if document["format"] != FORMAT:
            raise ValueError
        nodes = {
            node: NodeFacts(**{key: told for key, told in facts.items() if key in NODE_KEYS})
            for node, facts in document["nodes"].items()
        }
        lost = tuple((one["stream"], one["period"]) for one in document.get(KNOWN_NOISE, ()))
        return About(nodes=nodes, known_noise=lost, **{key: document.get(key) for key in OWN})
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise PublicationError(
            f"{ABOUT} is not of format {FORMAT}; `optstream report` writes it anew, or remove it"
        ) from error


def put_about(folder: Location | str, stream: str, about: About, signer: Signer | None = None) -> bool:
    """Put `about.json` in the place of the one that is there, in one step, signed if there is a key.

    Where nothing is told and no file is there, none is made. Returns whether anything changed. Raises as
    `put_fact`.
    """
    data = about.to_bytes(stream)
    return put_fact(folder, ABOUT, data, about != About(), LARGEST_ABOUT, signer)
