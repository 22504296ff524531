"""Links between the documents, and into the code, in a plain checkout, where no site is built."""

import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote

import pytest

CHECKOUT = Path(__file__).parents[2]
PAGES = [*sorted(CHECKOUT.glob("*.md")), *sorted((CHECKOUT / "docs").rglob("*.md"))]
LINK = re.compile(r"\]\(([^)\s]+)\)")
BLOCK = re.compile(r"^(```|~~~).*?^\1", re.DOTALL | re.MULTILINE)


def anchors(page: Path) -> set[str]:
    """What headings are called in addresses, and anchors that are written out."""
    text = BLOCK.sub("", page.read_text(encoding="utf-8"))
    headings = re.findall(r"^#+ +(.+?) *$", text, re.MULTILINE)
    plain = [re.sub(r"\]\([^)]*\)", "", heading) for heading in headings]
    slugs = {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in plain}
    return slugs | set(re.findall(r'(?:id|name)="([^"]+)"', text))


def lead_nowhere(page: Path) -> Iterator[str]:
    """The addresses of a page that name no host and no file, or no heading of a page."""
    for address in LINK.findall(BLOCK.sub("", page.read_text(encoding="utf-8"))):
        path, _, anchor = unquote(address).partition("#")
        if "://" in address or address.startswith("mailto:"):
            continue
        target = page.parent / path if path else page
        is_heading = anchor and target.suffix == ".md"
        if not target.exists() or (is_heading and anchor not in anchors(target)):
            yield address


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(CHECKOUT)))
def test_every_link_leads_somewhere(page: Path) -> None:
    assert list(lead_nowhere(page)) == []


def test_a_link_to_nothing_is_found(tmp_path: Path) -> None:
    page = tmp_path / "a.md"
    page.write_text("# A b\n[x](#a-b) [y](#c) [z](b.md) [w](https://example.org/b.md)\n```\n[v](c.md)\n```\n")
    assert list(lead_nowhere(page)) == ["#c", "b.md"]
