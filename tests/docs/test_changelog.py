"""CHANGELOG.md keeps the form that it names: https://keepachangelog.com/en/1.1.0/."""

import re
from datetime import date
from pathlib import Path

import pytest

CHANGELOG = Path(__file__).parents[2] / "CHANGELOG.md"
KINDS = ("Added", "Changed", "Deprecated", "Removed", "Fixed", "Security")
VERSION = re.compile(r"## \[(Unreleased|\d+\.\d+\.\d+)\](?: - (\d{4}-\d{2}-\d{2}))?( \[YANKED\])?")


def problems(text: str) -> list[str]:
    """What breaks the form."""
    found, versions, dates, kinds = [], [], [], []
    for line in text.splitlines():
        if line.startswith("## "):
            match = VERSION.fullmatch(line)
            if match is None or (match[1] == "Unreleased") == bool(match[2]):
                found.append(f"no version with its date: {line}")
                continue
            versions.append(match[1])
            dates += [date.fromisoformat(match[2])] if match[2] else []
            kinds = []
        elif line.startswith("### "):
            kind = line.removeprefix("### ")
            if kind not in KINDS or kind in kinds or not versions:
                found.append(f"no kind of change, or twice, or before any version: {line}")
            kinds.append(kind)
        elif versions and line and not line.startswith(("- ", "  ", "[")):
            found.append(f"neither an entry nor its continuation: {line}")
        elif versions and not kinds and line:
            found.append(f"an entry without its kind: {line}")
    if not text.startswith("# Changelog\n") or "keepachangelog.com" not in text:
        found.append("no head")
    if versions[:1] != ["Unreleased"] or len(set(versions)) < len(versions) or dates != sorted(dates)[::-1]:
        found.append(f"versions must begin with Unreleased, newest first, each once: {versions}")
    return found


def test_the_changelog_keeps_its_form():
    assert problems(CHANGELOG.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("### Added", "### News"),
        ("### Fixed\n", "### Fixed\n\n- One thing.\n\n### Fixed\n"),
        ("## [Unreleased]", "## Unreleased"),
        ("## [Unreleased]", "## [0.1.0]"),
        ("## [Unreleased]", "## [Unreleased]\n\n## [0.1.0] - 2026-01-01\n\n## [0.2.0] - 2026-02-01"),
        ("## [Unreleased]\n", "## [Unreleased]\n\nMany things.\n"),
        ("# Changelog", "# Changes"),
    ],
)
def test_what_breaks_the_form_is_found(old, new):
    text = CHANGELOG.read_text(encoding="utf-8")
    assert old in text
    assert problems(text.replace(old, new, 1)) != []
