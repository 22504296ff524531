"""A figure becomes a table of its points, and a picture with every line's name."""

import csv

import pytest

from studies.leakage.paper.figure import Figure, Point, write_figure
from tests.studies.leakage.paper.points import value_of

FIGURE = Figure(
    1, "two lines", "step", "leakage",
    (Point("(a)", "", "one", 1, 0.5), Point("(a)", "", "one", 2, 0.25), Point("(b)", "", "two", 1, 1 / 3)),
)  # fmt: skip


@pytest.mark.slow
def test_numbers_and_picture(tmp_path):
    numbers, picture = write_figure(FIGURE, tmp_path)
    with numbers.open(encoding="utf-8", newline="") as file:
        assert list(csv.reader(file)) == [
            ["column", "row", "series", "x", "y"],
            ["(a)", "", "one", "1", "0.5"],
            ["(a)", "", "one", "2", "0.25"],
            ["(b)", "", "two", "1", "0.333333333"],
        ]
    drawn = picture.read_text(encoding="utf-8")
    assert all(name in drawn for name in ("one", "two", "(a)", "(b)", "leakage"))
    assert numbers.name == "figure-1.csv"


def test_a_value_is_of_one_point():
    assert value_of(FIGURE, "one", 2) == 0.25
    with pytest.raises(ValueError, match="unpack"):
        value_of(FIGURE, "one", 3)
