"""A page to log in before Prefect's own, which show an error for each request that is refused before."""

import re
from importlib.resources import files
from pathlib import Path

FILES = ("log-in.html", "log-in.js", "log-in-first.js")
LOADS = re.compile(r'<script type="module" crossorigin src="(/assets/[^"]+)"></script>')
"""How the first page of Prefect's loads its script, if it lies at the root of the server."""


def add_log_in(pages: Path) -> bool:
    """Put the log-in page among Prefect's pages, after each start of the server, which makes the folder anew;
    return whether it is there: pages that are not as expected stay as they are.
    """
    first = pages / "index.html"
    text = first.read_text(encoding="utf-8") if first.is_file() else ""
    if not LOADS.search(text) and "log-in-first.js" not in text:
        return False
    for name in FILES:
        (pages / name).write_bytes((files("flows.web") / "log_in" / name).read_bytes())
    part = first.with_suffix(".part")
    part.write_text(
        LOADS.sub(r'<script src="/log-in-first.js" data-loads="\1"></script>', text), encoding="utf-8"
    )
    part.replace(first)  # in one step: the server shows the page already
    return True
