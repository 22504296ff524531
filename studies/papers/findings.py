"""What was found: sentences written by hand in `page.md`, their claims checked and their figures filled in.

A finding holds or does not, in the results at hand; the page of the long run is not made with one that does
not. Other results (simulated, short) say so beside the sentence.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jinja2 import Environment, StrictUndefined

from studies.papers.claims import learned, papers
from studies.papers.means import Results, percent, short

_TEXT = Path(__file__).with_name("page.md").read_text(encoding="utf-8")
_CLAIMS = {"learned": learned, "papers": papers}
_SECTION = re.compile(r"^## (\d+)\n(.*?)(?=^## )", re.MULTILINE | re.DOTALL)
_FINDING = re.compile(r"^### (.+?) \| (.+?) \| (\w+)\.(\w+)\n(.*?)(?=^### |\Z)", re.MULTILINE | re.DOTALL)
_JINJA = Environment(
    undefined=StrictUndefined,
    autoescape=False,
    keep_trailing_newline=True,
    finalize=lambda value: short(value) if isinstance(value, float) else value,
)
_JINJA.filters["percent"] = percent


@dataclass(frozen=True)
class Finding:
    """A sentence of the page that stands while its claim does.

    experiment: whose. title: what is asked. verdict: what this finding answers. claim: checked.
    """

    experiment: int
    title: str
    verdict: str
    claim: Callable[[Results], papers.Checked]
    sentence: str


def check(results: Results, finding: Finding) -> tuple[bool | None, str]:
    """Whether it holds, and the sentence; None where the results lack what it speaks of."""
    if finding.experiment not in results.experiments():
        return None, ""
    try:
        holds, figures = finding.claim(results)
    except KeyError:
        return None, ""
    return holds, filled(finding.sentence, figures)


def filled(sentence: str, figures: dict[str, Any]) -> str:
    """The sentence with these figures: floats to three digits or so."""
    return _JINJA.from_string(sentence).render(figures)


def _in_one_line(text: str) -> str:
    return " ".join(text.split())


OPENING = _TEXT[: _SECTION.search(_TEXT).start()]  # type: ignore[union-attr]
READING = _TEXT[[match.end() for match in _SECTION.finditer(_TEXT)][-1] :]
NOTES = {int(number): _in_one_line(body.partition("###")[0]) for number, body in _SECTION.findall(_TEXT)}
"""What each experiment is, beyond its title."""
FINDINGS = tuple(
    Finding(int(number), title, verdict, getattr(_CLAIMS[module], name), _in_one_line(sentence))
    for number, body in _SECTION.findall(_TEXT)
    for title, verdict, module, name, sentence in _FINDING.findall(body)
)
