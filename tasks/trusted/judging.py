"""Judging by users' suites, which stop no day, and keeping the results of every suite."""

import json
from collections.abc import Mapping, Sequence
from datetime import date, datetime
from pathlib import Path
from typing import Any

import polars as pl
from great_expectations.core import ExpectationSuiteValidationResult

from data_contracts.data_docs import page_of
from data_contracts.user_suites import UserSuite, judge_user_suite, unjudged, user_suites
from optstream.stream import period_from
from tasks.config import Settings
from tasks.trusted.files import write_private
from tasks.trusted.verdicts import USER, folder_of, name_of

Said = Mapping[str, Sequence[str]]
"""Messages, by day."""


def keep(
    settings: Settings,
    result: ExpectationSuiteValidationResult,
    suite: str,
    days: Sequence[date],
    now: datetime,
    *,
    stopped: Mapping[str, str] | None = None,
    alarms: Said | None = None,
    metrics: pl.DataFrame | None = None,
    unfit_clock: Sequence[str] = (),
) -> Path:
    """Write a result and its page, readable by the owner only; return the result's file."""
    first, last = min(days), max(days)
    # not the library's own: a plain hash of the frame is in it
    meta: dict[str, Any] = {
        "great_expectations_version": result.meta.get("great_expectations_version"),
        "run_id": {"run_name": f"{first} to {last}", "run_time": now.isoformat()},
        "stream": settings.stream.name,
        "configuration_hash": settings.configuration_hash,
        "stopped": dict(stopped or {}),
        "alarms": {day: list(lines) for day, lines in (alarms or {}).items() if lines},
        "unfit_clock": list(unfit_clock),
    }
    kept: Any = result
    kept.meta = meta
    lines = [f"Stream {settings.stream.name}, days {first} to {last}, suite {suite}."]
    lines += [
        *meta["stopped"].values(),
        *(line for own in meta["alarms"].values() for line in own),
    ]
    place = folder_of(settings) / name_of(first, last, now, suite)
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
    folder = settings.contracts_folder
    alarms: dict[str, list[str]] = {}
    if folder is None:
        return alarms
    suites = user_suites(folder / frame)
    for (day,), own in metrics.partition_by("day", as_dict=True).items():
        for suite in suites:
            said = _judged(settings, frame, suite, str(day), own, now)
            if said:
                alarms.setdefault(str(day), []).append(said)
    return alarms


def _judged(
    settings: Settings, frame: str, suite: UserSuite, day: str, metrics: pl.DataFrame, now: datetime
) -> str | None:
    result, problem = judge_user_suite(suite, metrics)
    if problem is not None:
        problem = _told(day, frame, suite, problem)
    said: dict[str, Any] = {} if problem is None else {"alarms": {day: [problem]}}
    of = (f"{USER}{frame}-{suite.name}", [period_from(day)], now)
    try:
        keep(settings, result, *of, **said)
    except OSError:
        raise  # the folder's fault, as for every other result
    except Exception as error:  # noqa: BLE001 maybe because of a reading: it must not stop the day
        problem = problem or _told(day, frame, suite, f"cannot be shown: {type(error).__name__}")
        keep(settings, unjudged(suite), *of, alarms={day: [problem]})
    return problem


def _told(day: str, frame: str, suite: UserSuite, problem: str) -> str:
    return (
        f"{day}: the suite {frame}/{suite.name} of [contracts] folder {problem}. The day is not stopped: "
        "users' suites raise alarms only"
    )
