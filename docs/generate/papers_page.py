"""The page of the papers, made from docs/papers/*.toml.

A file is a paper: `title`, `text` (the part at hand), `order`, and an `[[entry]]` for each statement:

    at      where in the text: number, section, equation
    what    in our own words
    state   "built", "measured" or "left out"
    code    paths; a folder is one too
    tests   path::function
    found   what came out
    differs where code and text do not agree; of parts left out, the reason (`why`)
"""

import tomllib
from collections import Counter
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parents[1]
STATES = ("built", "measured", "left out")
HEAD = """\
# The papers, statement by statement

Look up every algorithm, definition, theorem, experiment, figure, data set and stated finding of the papers:
where it is here, what came out, what differs. *Built* (unless another state is named): code and a test, named
by file and function. *Measured*: run here on data. *Left out*: with the reason.
"""
Paper = dict[str, Any]


def papers(folder: Path = DOCS / "papers") -> list[Paper]:
    """Return the papers as their files have them, in their order."""
    found = [tomllib.loads(file.read_text(encoding="utf-8")) for file in folder.glob("*.toml")]
    return sorted(found, key=lambda paper: paper["order"])


def papers_page() -> str:
    """Return the page: counts, then a table for each paper."""
    every = papers()
    lines = [HEAD, "| paper | " + " | ".join(STATES) + " |", "| --- |" + " ---: |" * len(STATES)]
    for paper in every:
        counts = Counter(entry["state"] for entry in paper["entry"])
        lines += [f"| {paper['title']} | " + " | ".join(str(counts[state]) for state in STATES) + " |"]
    for paper in every:
        lines += ["", f"## {paper['title']}", "", paper["text"], ""]
        lines += ["| in the text | where | found, and what differs |", "| --- " * 3 + "|"]
        lines += [_row(entry) for entry in paper["entry"]]
    return "\n".join([*lines, ""])


def _row(entry: dict[str, Any]) -> str:
    where = [f"`{path}`" for path in entry.get("code", ())]
    where += [f"`{test.rsplit('/', 1)[-1]}`" for test in entry.get("tests", ())]
    remarks = [entry[key] for key in ("found", "differs", "why") if key in entry]
    state = [] if entry["state"] == "built" else [f"*{entry['state']}*"]
    text = f"**{entry['at']}**: {entry['what']}"
    cells = (text, ", ".join(state + where), " ".join(remarks))
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
