"""The contracts at the inner border: what was read is judged before any budget is reserved."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from pathlib import Path
from typing import Any

import polars as pl

from data_contracts import private_period, raw
from data_contracts.judge import Broken, judge
from optstream.errors import ContractError
from optstream.stream import PrivatePeriod
from tasks.config import Settings
from tasks.ingest import IngestedDay
from tasks.storage.private_files import write_private


@dataclass(frozen=True)
class Judged:
    """One day's verdict.

    error: why the day stops, None if it may be released; then `period` is there. alarms: what was clamped,
    dropped or counted as 0. They depend on readings, so they may be shown in the trusted zone only.
    results: the file that holds the whole verdict.
    """

    day: date
    period: PrivatePeriod | None
    error: ContractError | None
    alarms: tuple[str, ...] = field(repr=False)
    results: Path


def validate(settings: Settings, days: Sequence[IngestedDay], *, now: datetime) -> list[Judged]:
    """Judge a chunk of days, two validations whatever their number; write each verdict to the trusted zone.

    A day that fails is a value with its error, which names file, column, step and rule, never a reading.
    Raises ContractError only if judging itself failed.
    """
    if not days:
        return []
    rules = raw.raw_rules(metered=settings.metered)
    metrics = pl.concat([day.metrics for day in days])
    n_regions = len(settings.tree.leaves)
    broken = judge(raw.NAME, rules, metrics, n_rows=len(days) * n_regions)
    periods = private_period.private_period_metrics(
        [(day.day, day.period) for day in days], settings.tree, settings.calendar, settings.model
    )
    unfit = judge(private_period.NAME, private_period.RULES, periods, n_rows=len(days))
    judged = []
    for number, day in enumerate(days):
        rows = range(number * n_regions, (number + 1) * n_regions)
        own = [entry for entry in broken if entry.row in rows]
        judged.append(_judged(settings, day, own, [entry for entry in unfit if entry.row == number], now))
    return judged


def _judged(
    settings: Settings, day: IngestedDay, broken: Sequence[Broken], unfit: Sequence[Broken], now: datetime
) -> Judged:
    regions = settings.tree.leaves
    stops: dict[str, str] = {}
    alarms = []
    for entry in broken:
        region = regions[entry.row % len(regions)]
        message = _message(settings, day, region, entry)
        if entry.rule.alarm:
            alarms.append(message)
        else:
            # What broke first in a region explains the rest: a dump of another day misses every step.
            stops.setdefault(region, message)
    problems = list(stops.values()) or [f"the private period {entry.rule.says}" for entry in unfit]
    error = ContractError(f"{day.day}: " + "; ".join(problems)) if problems else None
    results = _write(settings, day, error, alarms, now)
    return Judged(day.day, None if error else day.period, error, tuple(alarms), results)


def _message(settings: Settings, day: IngestedDay, region: str, entry: Broken) -> str:
    """File, column, step and rule."""
    place = day.places.get((region, entry.rule.name))
    layout = settings.input_of(day.day)
    where = place.file if place and place.file else f"region={region}/date={day.day.isoformat()}"
    columns = [repr(getattr(layout, column)) for column in entry.rule.columns.split()]
    if columns:
        where += f", column{'s' * (len(columns) > 1)} {' and '.join(columns)}"
    if place and place.step is not None:
        clock = settings.calendar.local_times(day.day)[place.step].strftime("%H:%M")
        where += f", step {place.step} ({clock}) of {settings.calendar.n_steps(day.day)}"
    return f"{where}: {entry.rule.says}"


def _write(
    settings: Settings, day: IngestedDay, error: ContractError | None, alarms: Sequence[str], now: datetime
) -> Path:
    """Store the verdict with its counts, readable by the owner only, whole or not at all."""
    document: dict[str, Any] = {
        "stream": settings.stream.name,
        "day": day.day.isoformat(),
        "judged_at": now.isoformat(),
        "configuration_hash": settings.configuration_hash,
        "contracts": [raw.NAME, private_period.NAME],
        "success": error is None,
        "error": None if error is None else str(error),
        "alarms": list(alarms),
        "metrics": day.metrics.to_dicts(),
    }
    name = f"{day.day.isoformat()}-{now:%Y%m%dT%H%M%S%f}.json"
    target = settings.validation_folder / settings.stream.name / name
    write_private(target, json.dumps(document, ensure_ascii=False, indent=1).encode())
    return target
