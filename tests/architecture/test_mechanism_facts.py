"""A mechanism's facts stand in its class: no other code asks for its name or class."""

import ast
from pathlib import Path

import pytest

from optstream import mechanisms
from optstream.mechanisms.base import Mechanism

ROOT = Path(__file__).parents[2]
KINDS = {name for name in mechanisms.__all__ if issubclass(getattr(mechanisms, name), Mechanism)} - {
    "Hierarchical"
}  # every mechanism on a tree but OptStream's is one
ELSEWHERE = ("optstream", "tasks", "flows", "data_contracts")


def asked_by_name(source: str) -> list[int]:
    """The lines that compare with a mechanism's name, or ask whether something is of a mechanism's class."""
    if not any(name in source for name in KINDS):
        return []
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Compare):
            asked = [one for part in (node.left, *node.comparators) for one in ast.walk(part)]
        elif isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("isinstance", "issubclass"):
            asked = [one for part in node.args[1:] for one in ast.walk(part)]
        else:
            continue
        words = {getattr(one, "value", None) for one in asked if isinstance(one, ast.Constant)}
        words |= {one.id for one in asked if isinstance(one, ast.Name)}
        words |= {one.attr for one in asked if isinstance(one, ast.Attribute)}
        if words & KINDS:
            found.append(node.lineno)
    return found


def test_nothing_asks_which_mechanism_it_is():
    own = (ROOT / "optstream" / "mechanisms", ROOT / "optstream" / "audit")
    found = [
        f"{file.relative_to(ROOT)}:{line}"
        for package in ELSEWHERE
        for file in (ROOT / package).rglob("*.py")
        if not any(file.is_relative_to(folder) for folder in own)
        for line in asked_by_name(file.read_text())
    ]
    assert found == [], "say it by a ClassVar of optstream/mechanisms"


@pytest.mark.parametrize(
    "line",
    [
        'mechanism["name"] == "Fourier"',
        'name in ("Laplace", "Fast")',
        "isinstance(mechanism, HistoryInformedTree)",
        "issubclass(kind, (A, mechanisms.OptStream))",
    ],
)
def test_it_would_be_seen(line):
    assert asked_by_name(line) == [1]
