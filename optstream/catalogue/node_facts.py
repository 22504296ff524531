"""What readers are told of each node beside its figures: a name, and where it lies. Public facts, no data.

They stand in `nodes.json` of the published folder, which is there only where the configuration names any.
They shape no release: no figure, no hash of a configuration and no privacy guarantee goes by them.
"""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from optstream.catalogue.backends import Readable
from optstream.catalogue.layout import NODES
from optstream.errors import ParameterError, PublicationError

FORMAT = "optstream.nodes/1"
LONGEST_NAME = 100
LARGEST_NODES = 2**28
"""Bytes."""


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


def is_name(text: object) -> bool:
    """Return whether a node may be shown under this name: no control characters, no reversed text.

    Args:
        text: Anything.

    Returns:
        False also for what is no text.
    """
    return (
        isinstance(text, str)
        and 0 < len(text) <= LONGEST_NAME
        and text.isprintable()
        and text == text.strip()
    )


def _within(degrees: object, most: int) -> bool:
    return (
        isinstance(degrees, int | float)
        and not isinstance(degrees, bool)
        and math.isfinite(degrees)
        and abs(degrees) <= most
    )


def nodes_document(stream: str, facts: Mapping[str, NodeFacts]) -> bytes:
    """Return `nodes.json`: the same facts give the same bytes.

    Args:
        stream: Whose nodes they are.
        facts: By node.

    Returns:
        UTF-8 text.
    """
    nodes = {
        node: {key: value for key, value in vars(one).items() if value is not None}
        for node, one in sorted(facts.items())
    }
    document = {"format": FORMAT, "stream": stream, "nodes": nodes}
    return (json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False) + "\n").encode()


def read_node_facts(storage: Readable) -> dict[str, NodeFacts]:
    """Read `nodes.json`. What is read is not trusted.

    Args:
        storage: The published folder.

    Returns:
        Facts by node; empty where there is no such file.

    Raises:
        PublicationError: It cannot be read, or is not as OptStream writes it.
    """
    try:
        return parse_node_facts(storage.read(NODES, LARGEST_NODES))
    except FileNotFoundError:
        return {}


def parse_node_facts(data: bytes) -> dict[str, NodeFacts]:
    """Read the facts from the bytes of `nodes.json`, which anyone may have written.

    Args:
        data: The whole file.

    Returns:
        Facts by node.

    Raises:
        PublicationError: The bytes are something else.
    """
    try:
        document: Any = json.loads(data)
        if document["format"] != FORMAT or not isinstance(document["nodes"], dict):
            raise ValueError
        return {node: NodeFacts(**facts) for node, facts in document["nodes"].items()}
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise PublicationError(
            f"{NODES} is not of format {FORMAT}; `optstream report` writes it anew, or remove it"
        ) from error
