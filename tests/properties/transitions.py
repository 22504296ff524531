"""Transition matrices as CSV."""

from hypothesis import strategies as st

from tests.properties.damage import damaged, names

CELLS = ("0.5", "1", "0", "0.25", "1e-300", "1e999", "-0", "nan", "inf", "0x1", "1_0", "١", "1.", ".5", "+1",
         "1" * 101, "9" * 100 + "e999", '"0.5"', '"0', "", "a;b", "\0")  # fmt: skip


@st.composite
def matrices(draw: st.DrawFn) -> bytes:
    """A file of rows, legal more often than not before it is damaged."""
    n_states = draw(st.sampled_from([1, 2, 2, 3, 4, 8]))
    rows = []
    for _ in range(n_states):
        weights = draw(st.lists(st.integers(0, 8), min_size=n_states, max_size=n_states))
        total = sum(weights) or 1
        rows.append([repr(weight / total) for weight in weights])
    if draw(st.booleans()):
        name = st.one_of(st.sampled_from(["low", "high", "1", "a b"]), names())
        rows.insert(0, [draw(name) for _ in range(n_states)])
    for _ in range(draw(st.integers(0, 2))):
        row = draw(st.sampled_from(rows))
        if row:
            row[draw(st.integers(0, len(row) - 1))] = draw(st.one_of(st.sampled_from(CELLS), names()))
        if draw(st.integers(0, 4)) == 0:
            row.append(draw(st.sampled_from(CELLS)))
    end = draw(st.sampled_from(["\n", "\n", "\r\n", "\r", "\n\n"]))
    return end.join(",".join(row) for row in rows).encode("utf-8", "surrogatepass")


def files() -> st.SearchStrategy[bytes]:
    """Whole files, and hurt ones."""
    return damaged(matrices())
