"""The list of decisions, from their own headings."""

from pathlib import Path

HEAD = """\
# Decisions

What was chosen, and what was measured before. Each page is as it was when the choice was made.
"""


def decision_page(folder: Path) -> str:
    """Markdown: a line for each page, by number."""
    lines = []
    for page in sorted(folder.glob("[0-9]*.md")):
        heading = page.read_text(encoding="utf-8").splitlines()[0].lstrip("# ")
        lines.append(f"- [{heading}]({page.name})")
    return "\n".join([HEAD, *lines, ""])
