"""docs/report.md: its figures are the shipped ones, its pictures are there, its names are the code's."""

import re
from pathlib import Path

from tasks.config import load_settings
from tasks.config.example import EXAMPLE
from tasks.reports.coverage import measured_coverage
from tasks.reports.drawing.figures import Z
from tasks.reports.facts import RECENT_DAYS
from tasks.reports.public import MOST_NODES, MOST_POINTS

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "report.md").read_text(encoding="utf-8")
MOST_BYTES = 600_000
"""Of all pictures together: each is downloaded by whoever takes the project."""


def test_the_coverage_is_the_shipped_measurement():
    for row in measured_coverage().rows:
        both = (*row.held, *row.held_by_noise_alone)
        figures = " | ".join(f"{100 * held:.0f} %" for held in both)
        assert f"| {row.epsilon} | {figures} |" in PAGE


def test_the_numbers_are_the_codes():
    assert f"the last {RECENT_DAYS} days" in PAGE
    assert f"{Z} standard deviations" in PAGE
    assert f"at most {MOST_NODES}" in PAGE
    assert f"{MOST_POINTS:,} points" in PAGE


def test_the_pictures_are_there_and_small():
    named = re.findall(r"\]\((pictures/[^)]+)\)", PAGE)
    assert len(named) >= 5
    assert [name for name in named if not (DOCS / name).is_file()] == []
    assert sum(path.stat().st_size for path in (DOCS / "pictures/report").iterdir()) < MOST_BYTES


def test_the_places_are_the_codes(tmp_path):
    (tmp_path / "optstream.toml").write_text(EXAMPLE, encoding="utf-8")
    settings = load_settings(tmp_path / "optstream.toml")
    place = settings.report_file.relative_to(tmp_path).as_posix().replace(settings.stream.name, "<stream>")
    assert f"`{place}`" in PAGE
    assert f"`{place.replace('report.html', 'summaries.parquet')}`" in PAGE


def test_no_page_promises_more_than_noise():
    assert not re.search(r"error[ -]?bands?|error bars?|confidence", PAGE, re.IGNORECASE)
