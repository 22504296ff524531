"""docs/papers.md: current, and every statement of the papers has a state, code and tests that are there."""

import re

import pytest

from docs.generate.papers_page import DOCS, PAGE, STATES, papers, papers_page

CHECKOUT = DOCS.parent
PAPERS = {paper["key"]: paper for paper in papers()}
ENTRIES = [(key, entry) for key, paper in PAPERS.items() for entry in paper["entry"]]
NUMBERED = {
    "optstream": {
        "Theorem": 13, "Definition": 3, "Lemma": 1, "Algorithm": 4, "Figure": 12, "Table": 2, "Example": 5,
    },
    "fast": {"Theorem": 2, "Definition": 5, "Algorithm": 7, "Figure": 18, "Table": 1},
    "leakage": {
        "Theorem": 11, "Definition": 9, "Algorithm": 8, "Figure": 9, "Table": 2, "Example": 5, "Corollary": 3,
    },
    "pegasus": {"Algorithm": 2, "Figure": 1},
}  # fmt: skip
"""How many of each the texts number, from 1; PeGaSus' excerpt begins at Definition 2.6."""


def test_the_page_is_current():
    assert PAGE.read_text(encoding="utf-8") == papers_page(), "python -m docs.generate.papers_page"


@pytest.mark.parametrize("key", NUMBERED)
def test_every_numbered_statement_has_its_row(key):
    places = " ; ".join(entry["at"] for entry in PAPERS[key]["entry"])
    for kind, last in NUMBERED[key].items():
        named = re.findall(rf"{kind}s? (\d+)(?:(?: to |–)(\d+)|(?: and |, )(\d+))?", places)
        found = {
            number
            for first, until, also in named
            for number in [*range(int(first), int(until or first) + 1), *([int(also)] if also else [])]
        }
        assert found >= set(range(1, last + 1)), f"{key}: {kind} {sorted(set(range(1, last + 1)) - found)}"


def test_every_entry_has_what_its_state_asks():
    for key, entry in ENTRIES:
        told = f"{key}, {entry['at']}"
        assert set(entry) <= {"at", "what", "state", "code", "tests", "found", "differs", "why"}, told
        assert entry["state"] in STATES, told
        assert entry["what"], told
        if entry["state"] == "left out":
            assert entry.get("why"), told
        else:
            assert entry.get("code"), told
            assert "why" not in entry, told
        assert entry["state"] != "built" or entry.get("tests"), told
        assert entry["state"] != "measured" or re.search(r"\d", entry.get("found", "")), told


def test_what_is_named_is_there():
    known = {}
    for key, entry in ENTRIES:
        for path in entry.get("code", ()):
            assert (CHECKOUT / path).exists(), f"{key}, {entry['at']}: {path}"
        for test in entry.get("tests", ()):
            path, name = test.split("::")
            if path not in known:
                text = (CHECKOUT / path).read_text(encoding="utf-8")
                known[path] = set(re.findall(r"^ *def (test_\w+)", text, re.M))
            assert name in known[path], f"{key}, {entry['at']}: {test}"
