"""docs/evaluation.md as it is committed: whole, every finding holds, and its own tables say the same."""

import re
from pathlib import Path

import pytest

from studies.papers.page import UNMET

PAGE = Path(__file__).parents[2] / "docs/evaluation.md"
TEXT = PAGE.read_text(encoding="utf-8")


def section(number: int) -> str:
    return re.split(r"^## ", TEXT, flags=re.M)[number + 1]


def rows_of(number: int) -> dict[tuple[str, str], list[str]]:
    """A section's table rows by their first two cells."""
    lines = [line for line in section(number).splitlines() if line.startswith("| ")]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return {(row[0], row[1]): row for row in cells}


def number(text: str) -> float:
    return float(text.replace(",", "").split("±")[0])


def test_every_finding_holds():
    assert UNMET not in TEXT
    assert "not so in these results" not in TEXT


@pytest.mark.parametrize(("epsilon", "ahead"), [("1", False), ("0.1", True), ("0.01", True)])
def test_the_months_say_what_the_first_finding_says(epsilon, ahead):
    ours = rows_of(1)[f"{epsilon}, OptStream ES", "strict"]
    laplace = rows_of(1)[f"{epsilon}, Laplace", "strict"]
    for month in (3, 4, 5):
        assert (number(ours[month]) < number(laplace[month])) is ahead


def test_sampling_alone_is_ahead_where_the_fourth_section_says_so():
    rows = rows_of(4)
    for epsilon, ahead in (("1", False), ("0.1", True), ("0.01", True)):
        points = number(rows[f"{epsilon}, OptStream ES, no optimisation", "strict"][6])
        assert (points < number(rows[f"{epsilon}, OptStream ES", "strict"][6])) is ahead
