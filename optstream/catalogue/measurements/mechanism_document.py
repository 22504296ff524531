"""A mechanism as a JSON-ready document: public parameters alone, enough to estimate with it again."""

from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from fractions import Fraction
from typing import Any

import optstream.mechanisms as mechanisms
from optstream.errors import OptStreamError, ParameterError, PublicationError
from optstream.measurement import EquallySpaced, L1Sampling
from optstream.mechanisms.base import Mechanism
from optstream.privacy import PrivacyModel
from optstream.privacy.exact import exact_from_text
from optstream.stream import AggregationTree, Calendar, Feature, Lattice, PublicDays
from optstream.stream.covariate import Covariate

KIND = "kind"
WRITTEN_OTHERWISE = (
    ValueError,
    LookupError,
    TypeError,
    AttributeError,
    ArithmeticError,
    MemoryError,
    RecursionError,
)
"""What reading a document raises that is not as OptStream writes it; anyone may have written it."""
PARTS = (
    *(PrivacyModel, AggregationTree, Lattice, Feature, PublicDays, Calendar),
    *(EquallySpaced, L1Sampling, Covariate),
)
"""What mechanisms are made of; nothing else is ever made from a document."""
LARGEST_NUMBER = 2**17
"""Of whole numbers, such as the steps of a window: what a mechanism computes grows with them."""
COUNT_NODES = ("declared_leaves", "n_nodes", "parents")
"""Keys whose numbers may be larger: they count the nodes of a tree, or name them."""
LONGEST_RANGE = 2**12
"""Of the parts of a day, in steps."""


def describe(mechanism: Mechanism) -> dict[str, Any] | None:
    """Return a mechanism as a JSON-ready document, fractions exact; None for one with a part that no document
    holds, such as a kernel of one's own.
    """
    try:
        document: dict[str, Any] = _described(mechanism)
    except ParameterError:
        return None
    return document


def mechanism_from(document: Mapping[str, Any]) -> Mechanism:
    """Return the mechanism that `describe` was given, with all its checks made again.

    document: anyone may have written it. Raises PublicationError where it is something else, or has numbers
    beyond what any stream has.
    """
    try:
        found = _made(document, _kinds())
    except (OptStreamError, *WRITTEN_OTHERWISE) as error:
        raise PublicationError("the file of measurements describes no mechanism of this version") from error
    if not isinstance(found, Mechanism):
        raise PublicationError("the file of measurements describes no mechanism of this version")
    return found


def _kinds() -> dict[str, Callable[..., Any]]:
    public = {name: getattr(mechanisms, name) for name in mechanisms.__all__}
    known = {name: kind for name, kind in public.items() if issubclass(kind, Mechanism)}
    return known | {one.__name__: one for one in PARTS}


def _described(value: Any) -> Any:
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, Fraction):
        return {KIND: "exact", "value": str(value)}
    if isinstance(value, range):
        return {KIND: "range", "first": value.start, "stop": value.stop}
    if isinstance(value, frozenset):
        return {KIND: "set", "values": sorted(value)}
    if isinstance(value, tuple | list):
        return [_described(one) for one in value]
    name = type(value).__name__
    if is_dataclass(value) and _kinds().get(name) is type(value):
        told = [one.name for one in fields(value)]
        if isinstance(value, PrivacyModel) and not value.delta:
            # keys that came later: a mechanism without them is described as it always was
            told = [name for name in told if name not in ("delta", "rho")]
        return {KIND: name, **{name: _described(getattr(value, name)) for name in told}}
    raise ParameterError(f"a {name} has no document")


def _made(document: Any, kinds: Mapping[str, Callable[..., Any]]) -> Any:
    if isinstance(document, list):
        return tuple(_made(one, kinds) for one in document)
    if not isinstance(document, Mapping):
        if isinstance(document, int) and abs(document) > LARGEST_NUMBER:
            raise ParameterError(f"a mechanism's whole numbers are at most {LARGEST_NUMBER:,}")
        return document
    kind = document[KIND]
    if kind == "exact":
        return exact_from_text(document["value"])
    if kind == "range":
        found = range(document["first"], document["stop"])
        if found.stop - found.start > LONGEST_RANGE:
            raise ParameterError(f"a range has at most {LONGEST_RANGE} steps")
        return found
    if kind == "set":
        return frozenset(_made(one, kinds) for one in document["values"])
    given = {key: _made(one, kinds) for key, one in document.items() if key not in (KIND, *COUNT_NODES)}
    for key in document.keys() & set(COUNT_NODES):
        given[key] = tuple(document[key]) if isinstance(document[key], list) else document[key]
    if issubclass(kinds[kind], AggregationTree):  # type: ignore[arg-type]  # all kinds are classes
        _check_tree(given["nodes"], given["parents"])
    return kinds[kind](**given)


def _check_tree(nodes: Any, parents: Any) -> None:
    """Raise ParameterError unless each node has a name and, but for the root, a parent that stands before it:
    a tree itself takes their order as it is.
    """
    known = isinstance(nodes, tuple) and isinstance(parents, tuple) and len(nodes) == len(parents) > 0
    if not known or not all(isinstance(name, str) for name in nodes) or len(set(nodes)) < len(nodes):
        raise ParameterError("a tree has nodes, each with a name of its own and a parent")
    rest = enumerate(parents[1:], start=1)
    if parents[0] != -1 or not all(type(up) is int and 0 <= up < place for place, up in rest):
        raise ParameterError("a tree's nodes stand after their parents, the root first")
