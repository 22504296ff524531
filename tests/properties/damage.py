"""Bytes that were hurt on their way, and texts that nobody would choose as a name."""

import copy
from collections.abc import Callable, Iterator
from typing import Any

from hypothesis import strategies as st

CANARY = 71234.5
CANARY_TEXT = "71234"
"""A reading that no error may show, and the digits by which it would be known."""

NAMES = (
    *("..", "../x", "../../trusted", "/etc", "a/b", "a\\b", ".hidden", "..%2Fx", "%2e%2e"),
    *("date=2025-01-15", "region=84", "FR", "CON", "~", "$HOME", "{84}", "*", "?", "[84]"),
    *("", " ", "84 ", "a\0b", "a\nb", "\u202e84", "\ud83d", "\udcff", "\x1b[31m", "\ufeff84", "84\u0301"),
    *("é" * 101, "x" * 5000, "'; drop table events; --"),
)
"""Path tricks, control characters, odd Unicode, great lengths."""

NUMBERS = (0, -1, 1, 2, 2**31 - 1, 2**31, 2**63 - 1, -(2**63), 10**12, 10**18, 2**62, 200, 10**4)
TEXTS = ("1", "1/2", "0", "1/0", "1e64", "1e-64", "nan", "1e999999999", "9" * 64, "-1")


def names() -> st.SearchStrategy[str]:
    return st.one_of(st.sampled_from(NAMES), st.text(max_size=20))


def plain_values(depth: int = 2) -> st.SearchStrategy[Any]:
    odd = st.sampled_from([None, True, False, 10**300, *NUMBERS, *TEXTS])
    leaf = st.one_of(odd, st.integers(), st.floats(), names())
    if not depth:
        return leaf
    inner = plain_values(depth - 1)
    return st.one_of(
        leaf, leaf, st.lists(inner, max_size=4), st.dictionaries(st.text(max_size=5), inner, max_size=3)
    )


@st.composite
def damaged(draw: st.DrawFn, whole: st.SearchStrategy[bytes]) -> bytes:
    """The bytes, mostly with something done to them: cut, flipped, spliced, doubled, emptied."""
    data = draw(whole)
    deed = draw(st.sampled_from(["nothing", "cut", "flip", "flip", "splice", "remove", "double", "empty"]))
    if deed == "nothing" or not data:
        return data
    at = draw(st.integers(0, len(data) - 1))
    if draw(st.booleans()):
        at = len(data) - 1 - at % min(len(data), 300)  # a footer stands at the end
    match deed:
        case "cut":
            return data[:at] if draw(st.booleans()) else data[at:]
        case "flip":
            hurt = bytearray(data)
            for offset in draw(st.lists(st.integers(0, 64), min_size=1, max_size=6)):
                hurt[(at + offset) % len(hurt)] ^= 1 << draw(st.integers(0, 7))
            return bytes(hurt)
        case "splice":
            return data[:at] + draw(st.binary(max_size=20)) + data[at:]
        case "remove":
            return data[:at] + data[at + draw(st.integers(1, 40)) :]
        case "double":
            return data[:at] + data[max(0, at - 40) :]
    return b""


def _near(value: Any) -> st.SearchStrategy[Any]:
    if isinstance(value, str) and value.isascii():
        return st.sampled_from([value.upper(), value[::-1], value[:-1], f"../{value}", value * 2, "0" * 64])
    return st.sampled_from([0, 1, 2, -1, 2**31, True, "1/3", "9" * 4000, "1/0", [], {}])


def changed(draw: st.DrawFn, document: Any, near: Callable[[Any], st.SearchStrategy[Any]] = _near) -> Any:
    """A document with up to three of its entries replaced, by something near too, removed or renamed."""
    document = copy.deepcopy(document)
    for _ in range(draw(st.integers(1, 3))):
        found = list(_containers(document))
        if not found:
            break
        container = found[draw(st.integers(0, len(found) - 1))]
        key = draw(st.sampled_from(list(container) if isinstance(container, dict) else range(len(container))))
        deed = draw(st.sampled_from(["replace", "replace", "replace", "remove", "rename"]))
        if deed == "remove":
            del container[key]
        elif deed == "rename" and isinstance(container, dict):
            container[draw(names())] = container.pop(key)
        else:
            container[key] = draw(st.one_of(plain_values(), near(container[key])))
    return document


def _containers(document: Any) -> Iterator[Any]:
    if isinstance(document, (dict, list)) and document:
        yield document
        for value in document.values() if isinstance(document, dict) else document:
            yield from _containers(value)
