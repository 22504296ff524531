"""docs/evaluation.md lists the findings that the studies check, and its tables agree."""

import re
from pathlib import Path

import pytest

from studies.evaluation.findings import FINDINGS

TEXT = (Path(__file__).parents[2] / "docs/evaluation.md").read_text(encoding="utf-8")


def rows_of(number: int) -> dict[str, list[float]]:
    """The figures of a section's first table, by mechanism."""
    section = re.split(rf"^## {number}\. .*$", TEXT, flags=re.M)[1]
    table = re.search(r"(?:^\|.*\n)+", section, re.M)
    assert table is not None
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in table[0].splitlines()[2:]]
    return {row[0]: [float(cell.replace(",", "")) for cell in row[1:]] for row in cells}


def test_the_page_lists_the_findings_that_are_checked():
    listed = re.findall(r"^\| (\d+) \| (.*?) \| (.*?) \|$", TEXT, re.M)
    assert {(str(number), asked, found) for number, asked, found, _ in FINDINGS} <= set(listed)


@pytest.mark.parametrize(("section", "ours"), [(1, "OptStream ES"), (4, "OptStream ES, no optimisation")])
def test_tables_say_what_the_findings_say(section, ours):
    rows = rows_of(section)
    laplace = rows["Laplace"]
    assert [one < other for one, other in zip(rows[ours], laplace, strict=True)] == [False, False, True, True]
