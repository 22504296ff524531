"""Parquet files whose footers say something else than their pages."""

import copy

from hypothesis import strategies as st

from tests.properties import footers
from tests.properties.damage import NUMBERS, names

TEXT = st.one_of(names().map(lambda text: text.encode("utf-8", "replace")), st.binary(max_size=10))


@st.composite
def lying(draw: st.DrawFn, whole: st.SearchStrategy[bytes]) -> bytes:
    """The file with one to three numbers or texts of its footer changed, or a list of it repeated."""
    body, footer = footers.split(draw(whole))
    footer = copy.deepcopy(footer)
    for _ in range(draw(st.integers(1, 3))):
        found = [place for place in footers.places(footer) if place[2] != footers.STRUCT]
        container, key, kind = found[draw(st.integers(0, len(found) - 1))]
        if kind in footers.INTEGERS or kind == footers.BYTE:
            number = draw(st.one_of(st.integers(0, 8), st.sampled_from(NUMBERS)))
            footers.put(container, key, kind, number & 255 if kind == footers.BYTE else number)
        elif kind == footers.BINARY:
            footers.put(container, key, kind, draw(TEXT))
        elif kind == footers.LIST:
            inner, values = container[key][1] if isinstance(container, dict) else container[key]
            repeated = values * draw(st.sampled_from([0, 2, 3, 50]))
            footers.put(container, key, kind, (inner, repeated))
        elif isinstance(container, dict) and draw(st.booleans()):
            del container[key]
    return footers.join(body, footer)
