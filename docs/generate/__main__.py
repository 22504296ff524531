"""`python -m docs.generate`: stage every page in build/docs, then build build/site, broken links refused."""

import csv
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from docs.generate.command_pages import command_page
from docs.generate.configuration_page import configuration_page
from docs.generate.data_page import data_page
from docs.generate.papers_page import papers_page
from docs.generate.python_page import python_pages

CHECKOUT = Path(__file__).parents[2]
CONFIGURATION = "zensical.toml"
STAGED = "build/docs"
SITE = "build/site"
"""Below the folder of the configuration, as that says."""
COPIED = (".md", ".svg", ".png", ".webp", ".css", ".js", ".json", ".ipynb")
FROM_THE_TOP = {
    "CHANGELOG.md": "changelog.md",
    "SECURITY.md": "security.md",
    "prefect.yaml": "prefect.yaml",
    "automations.yaml": "automations.yaml",
}
"""Pages that the repository keeps outside docs/, files that they link to, and what the site calls them."""
NAMED = re.compile(r"(?<![\w/`\[])(?<!\]\()(?:docs/([a-z/-]+)\.md|SECURITY\.md)(?!`)")
"""A page that another names in its words: "docs/privacy.md, section 1". Code and links are left alone."""


DECISIONS = """\
# Decisions

What was chosen, and what was measured before. Each page is as it was when the choice was made.

"""
TABLE = re.compile(r"^\[[^\]\n]+\]\((tables/[\w-]+\.csv)\)$", re.MULTILINE)
"""A line that links to a table of figures, which the site shows in its place."""


def stage(into: Path) -> None:
    """Write every page and picture of the site below `into`, which is emptied first."""
    shutil.rmtree(into, ignore_errors=True)
    source = CHECKOUT / "docs"
    for file in sorted(source.rglob("*")):
        if file.is_file() and file.suffix in COPIED:
            _write(into / file.relative_to(source), file)
    for name, staged in FROM_THE_TOP.items():
        _write(into / staged, CHECKOUT / name)
    reference, decisions = into / "reference", sorted((source / "decisions").glob("[0-9]*.md"))
    pages = {
        reference / "commands.md": command_page(),
        reference / "configuration.md": configuration_page(),
        reference / "data.md": data_page(),
        into / "decisions/index.md": DECISIONS + "".join(map(_listed, decisions)),
        into / "research/papers.md": papers_page(),
        **{reference / name: page for name, page in python_pages().items()},
    }
    for path, text in pages.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def _listed(page: Path) -> str:
    heading = page.read_text(encoding="utf-8").splitlines()[0].lstrip("# ")
    return f"- [{heading}]({page.name})\n"


def _write(path: Path, file: Path) -> None:
    """Copy a file; in a page, what names another page becomes a link to where the site has it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if file.suffix != ".md":
        shutil.copyfile(file, path)
        return
    text = file.read_text(encoding="utf-8")
    if file.name in FROM_THE_TOP:
        text = text.replace("](docs/", "](")
    docs = CHECKOUT / "docs"
    up = "../" * (len(file.relative_to(docs).parts) - 1) if file.is_relative_to(docs) else ""
    for name, staged in FROM_THE_TOP.items():
        text = text.replace(f"]({up}../{name}", f"]({up}{staged}")
    text = NAMED.sub(lambda found: f"[{found[0]}]({up}{(found[1] or 'security')}.md)", text)
    text = TABLE.sub(lambda found: _table(file.parent / found[1]), text)
    path.write_text(text, encoding="utf-8")


def _table(file: Path) -> str:
    """Return a CSV file in Markdown, columns of figures on the right."""
    with file.open(encoding="utf-8", newline="") as lines:
        head, *rows = csv.reader(lines)
    figures = [all(re.match(r"[\d*–−+-]|$", cell) for cell in column) for column in zip(*rows, strict=True)]
    sides = ["---:" if right else "---" for right in figures]
    return "\n".join(f"| {' | '.join(row)} |" for row in (head, sides, *rows))


def build(folder: Path) -> int:
    """Stage and build below `folder`, which has the configuration; the builder's code, 1 on broken links."""
    stage(folder / STAGED)
    return build_staged(folder)


def build_staged(folder: Path) -> int:
    """Build the staged pages."""
    command = [sys.executable, "-m", "zensical", "build", "--strict", "--clean"]
    environment = os.environ | {"PYTHONPATH": str(CHECKOUT)}  # docstrings are read from there
    return subprocess.run(command, cwd=folder, env=environment, check=False).returncode


if __name__ == "__main__":
    code = build(CHECKOUT)
    if code == 0:
        print(f"open {CHECKOUT / SITE / 'index.html'}")
    sys.exit(code)
