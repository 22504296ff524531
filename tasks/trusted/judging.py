"""Judging by users' suites, which stop no day, and keeping the results of every suite."""

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import date, datetime
from pathlib import Path
from typing import Any

import polars as pl
from great_expectations.core import ExpectationSuiteValidationResult

from data_contracts.judge import page_of
from data_contracts.user_suites import judge_user_suite, unjudged, user_suites
from optstream.stream import period_from
from tasks.config import Settings
from tasks.trusted.files import write_private
from tasks.trusted.verdicts import USER, folder_of, name_of


def keep(
    settings: Settings,
    result: ExpectationSuiteValidationResult,
    suite: str,
    days: Sequence[date],
    now: datetime,
    *,
    stopped: Mapping[str, str] | None = None,
    alarms: Mapping[str, Sequence[str]] | None = None,
    metrics: pl.DataFrame | None = None,
    unfit_clock: Sequence[str] = (),
) -> Path:
    """Write a result and its page, readable by the owner only; return the result's file."""
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
    }
    lines = [f"Stream {settings.stream.name}, days {first} to {last}, suite {suite}."]
    lines += [*(stopped or {}).values(), *(line for own in by_day.values() for line in own)]
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
    folder, alarms = settings.contracts_folder, defaultdict[str, list[str]](list)
    suites = [] if folder is None else user_suites(folder / frame)
    for (day, suite), own in (
        ((str(day), suite), own)
        for (day,), own in metrics.partition_by("day", as_dict=True).items()
        for suite in suites
    ):
        words = (
            f"{day}: the suite {frame}/{suite.name} of [contracts] folder {{}}. The day is not stopped: "
            "users' suites raise alarms only"
        )
        result, problem = judge_user_suite(suite, own)
        named = (f"{USER}{frame}-{suite.name}", [period_from(day)], now)
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
