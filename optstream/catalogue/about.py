"""What readers find next to the figures: publisher, licence, names of nodes, and noise that became known.

It stands in `about.json` of the published folder, which is there only where there is any of it. It shapes no
release: no figure and no hash of a configuration goes by it.
"""

import json
from collections.abc import Callable, Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    PlainSerializer,
    Strict,
    WithJsonSchema,
    model_validator,
)

from optstream.catalogue.backends import Location, Readable
from optstream.catalogue.documents import Document, OrAbsent, absent
from optstream.catalogue.layout import ABOUT
from optstream.catalogue.signing import Signer, put_fact
from optstream.errors import PublicationError

LONGEST_NAME, LONGEST_LINE = 100, 200
LARGEST_ABOUT = 2**28
"""Bytes."""
MOST_NAMED = 20
"""Releases that words name."""


def _line(longest: int) -> AfterValidator:
    """A text that may stand on a page as a name: no control characters, no reversed text."""

    def check(text: str) -> str:
        if not (0 < len(text) <= longest and text.isprintable() and text == text.strip()):
            raise ValueError(f"must be printable text of 1 to {longest} characters")
        return text

    return AfterValidator(check)


def _address(text: str) -> str:
    if not text.startswith(("http://", "https://")) or " " in text:
        raise ValueError("must begin with http:// or https:// and hold no space")
    return text


Line = Annotated[str, _line(LONGEST_LINE)]
Address = Annotated[Line, AfterValidator(_address)]
Latitude = Annotated[float, Field(ge=-90, le=90)]
Longitude = Annotated[float, Field(ge=-180, le=180)]
KnownNoise = Annotated[
    tuple[Line, Line],
    BeforeValidator(lambda one: (one["stream"], one["period"]) if isinstance(one, Mapping) else one),
    PlainSerializer(lambda one: {"stream": one[0], "period": one[1]}),
    WithJsonSchema(
        {
            "type": "object",
            "properties": {"stream": {"type": "string"}, "period": {"type": "string"}},
            "required": ["stream", "period"],
        }
    ),
]
"""Stream and period of a release."""


class NodeFacts(Document):
    """A node as people know it; a key that is not given is None, and a place has both coordinates."""

    called: ClassVar[str] = ""
    name: OrAbsent[Annotated[str, _line(LONGEST_NAME)]] = absent()
    latitude: OrAbsent[Latitude] = absent()
    longitude: OrAbsent[Longitude] = absent()

    @model_validator(mode="after")
    def _has_a_place(self) -> "NodeFacts":
        if (self.latitude is None) != (self.longitude is None):
            raise ValueError("latitude and longitude must be given together")
        return self


def called(node: str, facts: Mapping[str, NodeFacts]) -> str:
    """Return how people call a node: its name with its code, "Bretagne (53)", or the code alone."""
    known = facts.get(node)
    return node if known is None or known.name in (None, node) else f"{known.name} ({node})"


class About(Document):
    """The document `about.json`.

    Attributes:
        stream: Whose folder it is in; "" where there is no document.
        publisher: For citations.
        licence: Of the published data, such as "CC BY 4.0".
        title: What people call the series; None where the stream's name is to do.
        description: What the series is, in a sentence or two.
        contact: An e-mail address, or the address of a page, of who answers questions.
        citation: How the series is to be cited, such as a DOI.
        intended_use: What the series is for.
        region: Where its customers are.
        sector: Which industry it describes, such as "Energy".
        curator_type: What kind of body publishes it, such as "Government".
        address: Where the published folder is on the web.
        licence_address: Where the licence can be read.
        nodes: By node, those of which anything is known.
        known_noise: Stream and period of each release of the privacy budget, also of its other streams, whose
            noise others know: windows with a step of one of them are not protected.
    """

    called: ClassVar[str] = ""
    format: Literal["optstream.about/1"] = "optstream.about/1"
    stream: str = ""
    publisher: OrAbsent[Line] = absent()
    licence: OrAbsent[Line] = absent()
    title: OrAbsent[Line] = absent()
    description: OrAbsent[Line] = absent()
    contact: OrAbsent[Line] = absent()
    citation: OrAbsent[Line] = absent()
    intended_use: OrAbsent[Line] = absent()
    region: OrAbsent[Line] = absent()
    sector: OrAbsent[Line] = absent()
    curator_type: OrAbsent[Line] = absent()
    address: OrAbsent[Address] = absent()
    licence_address: OrAbsent[Address] = absent()
    nodes: Mapping[str, NodeFacts] = Field(default_factory=dict)
    known_noise: Annotated[tuple[KnownNoise, ...], Strict(False)] = absent(None, ())

    def _derived(self) -> Mapping[str, Any]:
        return {"nodes": dict(sorted(self.nodes.items()))}

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

    def to_bytes(self) -> bytes:
        """Return the file's bytes; the same facts give the same bytes."""
        return (json.dumps(self.to_json(), indent=1, ensure_ascii=False, allow_nan=False) + "\n").encode()


TEXTS = tuple(name for name, one in About.model_fields.items() if one.default is None)
"""What may be said of the whole series, each a line."""


def read_about(storage: Readable, check: Callable[[bytes], object] | None = None) -> About:
    """Return `about.json`, empty where there is none; `check` is called with its bytes before they are
    parsed.
    """
    try:
        data = storage.read(ABOUT, LARGEST_ABOUT)
    except FileNotFoundError:
        return About()
    if check is not None:
        check(data)
    return parse_about(data)


def parse_about(data: bytes) -> About:
    """Return what the bytes of `about.json` say, unknown keys aside. Raises PublicationError."""
    try:
        document: Any = json.loads(data)
        if not {"format", "nodes"} <= document.keys():
            raise ValueError
        return About.read(document)
    except (PublicationError, ValueError, AttributeError, RecursionError) as error:
        raise PublicationError(
            f"{ABOUT} is not of format optstream.about/1; `optstream report` replaces it, or remove it"
        ) from error


def put_about(folder: Location | str, about: About, signer: Signer | None = None) -> bool:
    """Atomically replace `about.json`, signed if there is a key; where it would say nothing, none is made.

    Returns whether anything changed. Raises as `put_fact`.
    """
    says_something = about != About(stream=about.stream)
    return put_fact(folder, ABOUT, about.to_bytes(), says_something, LARGEST_ABOUT, signer)
