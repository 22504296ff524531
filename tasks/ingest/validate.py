"""The contracts at the inner border: data are judged before any budget is reserved."""

from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime

import polars as pl

from data_contracts.judge import Broken, judge
from data_contracts.metrics import FAULTY_COLUMNS
from data_contracts.suites import raw_contract
from optstream.errors import ContractError
from optstream.stream import PrivatePeriod
from tasks.config import Settings
from tasks.ingest import IngestedDay
from tasks.ingest.arrivals import likewise, parts_of, several, shown_place
from tasks.trusted.verdicts import RAW, judge_by_users, keep

Fault = tuple[str, str, str, int | None, tuple[str, ...]]


def validate(
    settings: Settings, days: Sequence[IngestedDay], *, now: datetime
) -> list[PrivatePeriod | ContractError]:
    """Judge a chunk of days, at least one: each one's period, or an error, which names file, column, step and
    rule, never a reading.
    """
    metrics = pl.concat(
        [day.metrics.select(pl.lit(day.day.isoformat()).alias("day"), pl.all()) for day in days]
    )
    raw, broken = judge(raw_contract(metered=settings.metered), metrics)
    stopped, alarms = _messages(settings, days, broken)
    for name, lines in judge_by_users(settings, RAW, metrics, now).items():
        alarms[name] += lines
    dates, unfit = [day.day for day in days], [str(day.day) for day in days if not day.fits_clock]
    keep(settings, raw, RAW, dates, now, stopped=stopped, alarms=alarms, metrics=metrics, unfit_clock=unfit)
    found = list[PrivatePeriod | ContractError]()
    for day in days:
        words = stopped.get(day.day.isoformat())
        assert words or day.period  # the raw contract stops a day that could not be read
        found.append(ContractError(words) if words or not day.period else day.period)
    return found


def _messages(
    settings: Settings, days: Sequence[IngestedDay], broken: Sequence[Broken]
) -> tuple[dict[str, str], defaultdict[str, list[str]]]:
    """Return why each day that stops does, and what else was found, by day."""
    known = {day.day.isoformat(): day for day in days}
    order = {region: number for number, region in enumerate(settings.dated_hierarchy.leaves())}
    alarms: defaultdict[str, list[str]] = defaultdict(list)
    in_order = sorted(broken, key=lambda one: order[one.region])
    # of a folder that holds all leaves, where a file was not read, nobody knows what the others lack
    unread = {one.day for one in broken if one.column == "file_fault"} if settings.input.region else set()
    first: dict[tuple[str, str], Broken] = {}
    noted: defaultdict[tuple[str, str], list[Broken]] = defaultdict(list)
    for one in in_order:
        if one.alarm:
            noted[one.day, one.column].append(one)
        elif one.day not in unread or one.column == "file_fault":
            # What broke first in a region explains the rest: a dump of another day misses every step.
            first.setdefault((one.day, one.region), one)
    alike: defaultdict[Fault, list[Broken]] = defaultdict(list)
    for one in first.values():
        alike[_fault(known[one.day], one)].append(one)
    stops: defaultdict[str, list[str]] = defaultdict(list)
    # once of a day: what one dump lacks, a whole delivery does; once a rule: of sparse meters half of the
    # leaves may lack a step
    for messages, found in ((stops, alike.values()), (alarms, noted.values())):
        for one, *others in found:
            message = _message(settings, known[one.day], one)
            messages[one.day].append(message + likewise([other.region for other in others]))
    return {day: f"{day}: " + several(found) for day, found in stops.items()}, alarms


def _fault(day: IngestedDay, broken: Broken) -> Fault:
    """Common to dumps that are broken alike: the rule, the step, and their columns."""
    is_fault = broken.column == "file_fault"
    rule = str(broken.value if is_fault else broken.column)
    place = day.places.get((broken.region, rule))
    says = "" if is_fault else str(broken.says)
    return broken.day, rule, says, place.step if place else None, place.found if place else ()


def _message(settings: Settings, day: IngestedDay, broken: Broken) -> str:
    """File, column, step and rule."""
    rule, says, about = broken.column, broken.says, broken.about
    if rule == "file_fault":
        rule = str(broken.value)
        says, about = says[rule], FAULTY_COLUMNS.get(rule, "")
    place = day.places.get((broken.region, rule))
    if place and place.original:
        return f"{place.file} is a copy of {place.original}: remove it, then run the day"
    layout = settings.input_of(day.day)
    parts = parts_of(settings, day.day)
    if place and place.file:
        where = place.file
    elif broken.region in parts:
        where = shown_place(settings, broken.region, day.day)
    else:
        where = f"{shown_place(settings, parts[0], day.day)}, region {broken.region!r}"
    of_all = settings.input.region is not None and place and place.file
    if of_all and broken.column not in ("file_fault", "unknown_region"):
        where += f", region {broken.region!r:.80}"
    about_columns = [getattr(layout, column) for column in about.split()]
    names = [[one] if isinstance(one, str) else one or () for one in about_columns]
    columns = [repr(name) for own in names for name in own]
    if columns:
        listed = " and ".join(filter(None, (", ".join(columns[:-1]), columns[-1])))
        where += f", column{'s' * (len(columns) > 1)} {listed}"
    if place and place.step is not None:
        clock = settings.calendar.local_times(day.day)[place.step].strftime("%H:%M")
        where += f", step {place.step} ({clock}) of {settings.calendar.n_steps(day.day)}"
    if place and place.found:
        rule, _, remedy = str(says).partition("; ")
        has = [f"{name!r:.80}" for name in place.found]
        lacks = "".join(f"lacks {name}, " for name in columns if name not in has)
        says = f"{rule}; it {lacks}has {', '.join(has)}; {remedy}"
    return f"{where}: {says}"
