"""Files of validation results: one, and its page, a suite and chunk of days; read without the library."""

import json
import re
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, date, datetime
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from optstream.stream import period_from
from tasks.config import Settings
from tasks.trusted.files import write_private

if TYPE_CHECKING:
    from great_expectations.core import ExpectationSuiteValidationResult

PERIOD = "[0-9]{4}-[0-9]{2}-[0-9]{2}(?:T[0-9]{2}B?)?"
# also what a crash left half-written next to it, and what earlier versions wrote
_NAME = re.compile(
    rf"\.?(?P<first>{PERIOD})(?:_(?P<last>{PERIOD}))?"
    r"-(?P<at>[0-9]{8}T[0-9]{12})(?:-(?P<suite>[^/]+?))?\.(?:json|html)(?:\..*)?"
)
RAW, RELEASE = "raw", "release"
"""The built-in suites, and the frames that they judge."""
GIVEN_UP = "private_period"
"""The folder of suites that version 0.2 judged by figures that always hold."""
USER = "user-"  # what the names of users' suites begin with: user-raw-night


@dataclass(frozen=True)
class ResultFile:
    """A file of validation results, or its page. suite: empty for one of an earlier version."""

    path: Path
    first: date
    last: date
    at: datetime
    suite: str


def folder_of(settings: Settings) -> Path:
    return settings.validation_folder / settings.stream.name


def result_files(settings: Settings, ending: str = "") -> list[ResultFile]:
    """Return results, pages and leftovers, the newest first; with an ending only whole files that have it."""
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


def keep(
    settings: Settings,
    result: "ExpectationSuiteValidationResult",
    suite: str,
    days: Sequence[date],
    now: datetime,
    *,
    stopped: Mapping[str, str] | None = None,
    alarms: Mapping[str, Sequence[str]] | None = None,
    metrics: pl.DataFrame | None = None,
    unfit_clock: Sequence[str] = (),
    self_checks: Mapping[str, Any] | None = None,
) -> Path:
    """Write a result and its page, readable by the owner only; return the result's file."""
    from data_contracts.judge import page_of

    first, last = min(days), max(days)
    by_day = {day: list(lines) for day, lines in (alarms or {}).items() if lines}
    # not the library's own: a plain hash of the frame is in it
    kept: Any = result
    kept.meta = {
        "great_expectations_version": result.meta.get("great_expectations_version"),
        "run_id": {"run_name": f"{first} to {last}", "run_time": now.isoformat()},
        "stream": settings.stream.name,
        "configuration_hash": settings.configuration_hash,
        "stopped": dict(stopped or {}),
        "alarms": by_day,
        "unfit_clock": list(unfit_clock),
        "self_checks": dict(self_checks or {}),
    }
    lines = [f"Stream {settings.stream.name}, days {first} to {last}, suite {suite}."]
    lines += [*(stopped or {}).values(), *(line for own in by_day.values() for line in own)]
    place = folder_of(settings) / f"{first}_{last}-{now.astimezone(UTC):%Y%m%dT%H%M%S%f}-{suite}"
    target = place.with_name(f"{place.name}.json")
    write_private(place.with_name(f"{place.name}.html"), page_of(result, lines))
    document = kept.to_json_dict()
    document["meta"]["metrics"] = {} if metrics is None else metrics.to_dict(as_series=False)
    write_private(target, json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode())
    return target


def judge_by_users(
    settings: Settings, frame: str, metrics: pl.DataFrame, now: datetime
) -> dict[str, list[str]]:
    """Judge each day by the users' suites on this frame; return the alarms, by day, which stop nothing."""
    from data_contracts.suites import judge_user_suite, unjudged, user_suites

    folder, alarms = settings.contracts_folder, defaultdict[str, list[str]](list)
    frames = (RAW, GIVEN_UP) if frame == RAW else (frame,)
    suites = [] if folder is None else [(of, one) for of in frames for one in user_suites(folder / of)]
    by_day = [(str(day), own) for (day,), own in metrics.partition_by("day", as_dict=True).items()]
    for (day, own), (of, suite) in product(by_day, suites):
        words = (
            f"{day}: the suite {of}/{suite.name} of [contracts] folder {{}}. The day is not stopped: "
            "users' suites raise alarms only"
        )
        result, problem = judge_user_suite(suite, own)
        if of == GIVEN_UP:
            result, problem = unjudged(suite), "judges nothing any more: remove it"
        named = (f"{USER}{of}-{suite.name}", [period_from(day)], now)
        try:
            keep(settings, result, *named, alarms={day: [words.format(problem)] if problem else []})
        except OSError:
            raise  # the folder's fault, as for every other result
        except Exception as error:  # noqa: BLE001 maybe because of a reading: it must not stop the day
            problem = problem or f"cannot be shown: {type(error).__name__}"
            keep(settings, unjudged(suite), *named, alarms={day: [words.format(problem)]})
        if problem:
            alarms[day].append(words.format(problem))
    return alarms
