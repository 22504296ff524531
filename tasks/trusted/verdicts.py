"""Files of validation results: one, and its page, a suite and chunk of days; read without the library."""

import json
import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

from optstream.stream import period_from
from tasks.config import Settings

PERIOD = "[0-9]{4}-[0-9]{2}-[0-9]{2}(?:T[0-9]{2}B?)?"
# also what a crash left half-written next to it, and what earlier versions wrote
_NAME = re.compile(
    rf"\.?(?P<first>{PERIOD})(?:_(?P<last>{PERIOD}))?"
    r"-(?P<at>[0-9]{8}T[0-9]{12})(?:-(?P<suite>[^/]+?))?\.(?:json|html)(?:\..*)?"
)
RAW, PRIVATE_PERIOD, RELEASE = "raw", "private_period", "release"
"""The built-in suites, and the frames that they judge."""
USER = "user-"
"""What the names of users' suites begin with: user-raw-night."""


@dataclass(frozen=True)
class ResultFile:
    """A file of validation results, or its page. suite: empty for one of an earlier version."""

    path: Path
    first: date
    last: date
    at: datetime
    suite: str


def name_of(first: date, last: date, at: datetime, suite: str) -> str:
    """Return the name, without its ending, of the results of a suite on the days from first to last."""
    return f"{first}_{last}-{at.astimezone(UTC):%Y%m%dT%H%M%S%f}-{suite}"


def folder_of(settings: Settings) -> Path:
    """Return the folder of the stream's results."""
    return settings.validation_folder / settings.stream.name


def result_files(settings: Settings, ending: str = "") -> list[ResultFile]:
    """Return results, pages and leftovers of crashes, the newest first; none without a folder.

    ending: whole files of this ending alone.
    """
    found = []
    with suppress(OSError):
        for path in folder_of(settings).iterdir():
            named = _NAME.fullmatch(path.name)
            with suppress(ValueError):
                if named and (not ending or (path.suffix == ending and not path.name.startswith("."))):
                    first, last = (period_from(named[key] or named["first"]) for key in ("first", "last"))
                    at = datetime.strptime(named["at"], "%Y%m%dT%H%M%S%f").replace(tzinfo=UTC)
                    found.append(ResultFile(path, first, last, at, named["suite"] or ""))
    return sorted(found, key=lambda one: (one.at, one.path.name), reverse=True)


def newest_results(settings: Settings, days: set[date]) -> Iterator[tuple[date, str, dict[str, Any]]]:
    """Yield the newest results of each of these days and each suite, if readable: day, suite, document."""
    seen: set[tuple[date, str]] = set()
    rising = sorted(days)
    for file in result_files(settings, ".json"):
        own = rising[bisect_left(rising, file.first) : bisect_right(rising, file.last)]
        wanted = {(day, file.suite) for day in own} - seen
        if not wanted:
            continue
        seen |= wanted
        with suppress(OSError, ValueError):
            document = json.loads(file.path.read_bytes())
            if isinstance(document, dict):
                for day, suite in sorted(wanted):
                    yield day, suite, document
