"""A configuration for the files of a folder: six questions, what `advise` would choose, expected errors."""

import csv
import json
import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from fractions import Fraction
from pathlib import Path
from zoneinfo import ZoneInfo

from optstream.catalogue.rows import check_value_column
from optstream.errors import ConfigurationError, ParameterError
from optstream.stream import Calendar
from tasks.config import Settings, load_settings
from tasks.config.fields import is_node_name, step_minutes
from tasks.ingest.clock import foresee, unsure_ends
from tasks.operate.survey import COMMON_ZONES, Survey, plain
from tasks.plan.advise import StreamAdvice, advise_plans, write_proposal

WIDTH = 240
"""Letters of a table in one line, at most."""
MOST_INLINE = 15
"""Leaves that the configuration itself names; more stand in a file next to it."""
HIERARCHY = "hierarchy.csv"
USUAL_EPSILON, USUAL_CLOCK = "1", "03:00"
PER_CUSTOMER = {"w": "12000", "kw": "12", "mw": "10", "gw": "0.01", "kvar": "12"}
"""Usual answers, by unit: of a home's connection, in sums of a grid of one large factory."""
POWERS = ("w", "kw", "mw", "gw", "kvar", "c")
"""Units of which a longer step has the mean, not the sum."""
QUESTIONS = {
    "step": "the length of a step, such as 30min or 1h",
    "zone": "the time zone, and whether stamps are in UTC, and the start or the end of a step",
    "alpha": "the most that one customer adds to a reading, which noise hides",
    "size": "the typical reading of a leaf, from public knowledge",
    "epsilon": "epsilon, the most that any day of a customer may lose",
    "schedule": "the clock time at which the day before is complete, and nights begin",
}
"""What `init` asks, by the key of an answer."""
MEANINGS = {"UTC": (0, True), "local": (0, False), "end": (1, True), "start": (1, False)}
"""What words after a zone say of stamps: which of `Survey.meanings`, and whether it is so."""
Ask = Callable[[str, str, str], str]
"""Gives the answer to a question: its key, its words and the usual answer."""


def usual_zone(answer: str = "") -> str:
    """Return the time zone of an answer, else that of this machine, as far as it has a name; else UTC."""
    named = answer.partition(",")[0].strip() or os.environ.get("TZ", "").lstrip(":")
    if not named:
        named = os.path.realpath("/etc/localtime").rpartition("zoneinfo/")[2]
    try:
        return Calendar(60, named).time_zone
    except ParameterError:
        return "UTC"


@dataclass(frozen=True)
class Begun:
    """A configuration as written, its advice, what its calendar will refuse, and the first whole day."""

    settings: Settings
    advice: StreamAdvice
    ahead: str | None
    first: date


def write_configuration(survey: Survey, ask: Ask, path: Path) -> Begun:
    """Ask, write the configuration of the least expected error, and a hierarchy's file where it is long.

    Raises ParameterError for an answer that is none, ConfigurationError for a file that is there.
    """
    hierarchy, draft = path.with_name(HIERARCHY), path.with_name(f".{path.name}")
    is_long = len(survey.regions) > MOST_INLINE
    if there := [one for one in (path, *[hierarchy] * is_long, draft) if one.exists()]:
        raise ConfigurationError(
            f"{there[0]} exists already; nothing was written: move it, or work elsewhere"
        )
    root = next(name for name in ("all", "total", "all leaves") if name not in survey.regions)
    if odd := [one for one in survey.regions if not is_node_name(one)]:
        raise ConfigurationError(
            f"the region {odd[0]!r:.80} is no name of a node, of letters, digits, spaces and _.,'()+- alone: "
            "rename it in the files"
        )
    text, fits, first = _configuration(survey, ask, path.parent, root)
    try:
        if is_long:
            with hierarchy.open("x", encoding="utf-8", newline="") as file:
                rows = csv.writer(file)
                rows.writerows([("node", "parent"), (root, ""), *((one, root) for one in survey.regions)])
        draft.write_text(text, encoding="utf-8")
        settings = load_settings(draft)
        (advice,) = advise_plans([settings], [None]).streams
        write_proposal(settings, advice.keys, path)
    except BaseException:
        if is_long:
            hierarchy.unlink(missing_ok=True)
        raise
    finally:
        draft.unlink(missing_ok=True)
    settings = load_settings(path)
    today = settings.local_day(datetime.now().astimezone())
    days = (foresee(settings.calendar, one, fits, ends=unsure_ends(settings, one)) for one in (first, today))
    ahead = next(filter(None, days), None)
    if (
        ahead is None
        and not survey.stamps.zoned
        and not survey.stamps.highest
        and settings.stream.time_zone in ("UTC", "Etc/UTC")
    ):
        ahead = (
            "stamps have no zone and are taken for UTC's: where they are a wall clock whose hour changes, "
            'remove what was written, and begin again with --answer "zone=Europe/Paris", or your own'
        )
    return Begun(settings, advice, ahead, first)


def _configuration(survey: Survey, ask: Ask, folder: Path, root: str) -> tuple[str, bool, date]:
    """Return a configuration by the answers, whether stamps fit its kind of day, and the first whole day."""

    def answer(key: str, usual: str, unit: str = "") -> str:
        return ask(key, QUESTIONS[key] + (f", in {unit}" if unit else ""), usual).strip()

    def number(key: str, usual: str, unit: str) -> Fraction:
        given = answer(key, usual, unit)
        if not re.fullmatch(r"[0-9]{1,15}(\.[0-9]{1,9})?", given) or not Fraction(given):
            raise ParameterError(
                f"the answer to {key} must be a number above 0, such as {usual}; got {given!r:.60}"
            )
        return Fraction(given)

    step = answer("step", _in_words(survey.step_minutes))
    try:
        minutes = step_minutes(step)
    except (ValueError, KeyError):
        minutes = 0
    if minutes < 1 or 1440 % minutes:
        raise ParameterError(f"the answer to step must divide a day, such as 30min or 1h; got {step!r:.60}")
    zone, in_utc, by_end, utc_days = _clock(survey, answer, minutes)
    roles = survey.roles
    is_wall = (
        not in_utc
        and not survey.stamps.highest
        and foresee(Calendar(minutes, zone), survey.first, fits=False) is not None
    )
    unit, metered = survey.unit, roles.customer is not None
    alpha = number("alpha", _usual_alpha(survey, minutes), unit)
    size = number("size", _shown(alpha * (100 if metered else 500 if not roles.counts else 10)), unit)
    epsilon = number("epsilon", USUAL_EPSILON, "")
    clock = answer("schedule", USUAL_CLOCK)
    if not re.fullmatch(r"(0[0-9]|1[01]):[0-5][0-9]", clock):
        raise ParameterError(
            f"the answer to schedule must be a clock time before 12:00 like {USUAL_CLOCK}; got {clock!r:.60}"
        )
    name = re.sub(r"[^A-Za-z0-9_.-]+", "-", plain(survey.folder.resolve().name)).strip("-_.")[:40] or "stream"
    largest, of = alpha if metered else 100 * size, unit and f", in {unit}"
    fixed = ', day = "fixed"' * is_wall  # every local day has the same slots
    inline = ", ".join(f"{_text(one)} = {_text(root)}" for one in survey.regions)
    tree = f'parents = {{ {_text(root)} = "", {inline} }}'
    lines = [
        f"# Made from the public facts of {survey.folder}; every key: docs/reference/configuration.md",
        f"stream = {{ name = {_text(name)}, step = {_text(step)}, time_zone = {_text(zone)}{fixed} }}",
        f'mechanism = {{ name = "HistoryInformed", scale = {float(size)} }}  # a typical leaf{of}',
        f"hierarchy.{tree if len(survey.regions) <= MOST_INLINE else f'file = {_text(HIERARCHY)}'}",
        "[privacy]",
        f"population = {_text(f'{name}-customers')}  # who is protected: one name for all their streams",
        f"epsilon = {_text(_shown(epsilon))}",
        f"window = {1440 // minutes}  # steps: a day",
        f"alpha = {_text(_shown(alpha))}  # the most that one customer adds{of}",
        f'bounds = ["0", {_text(_shown(largest))}]  # beyond them, as below 0, a reading is clamped',
        *["counts = true"] * roles.counts,
        *[f"resolution = {_text(_shown(alpha / 1000))}"] * (alpha < 1 and not roles.counts),
    ]
    place = survey.folder.resolve()
    below = place.is_relative_to(folder.resolve())
    timestamp = [*roles.timestamp] if len(roles.timestamp) > 1 else roles.timestamp[0]
    path = survey.path and (survey.path.replace("{date:", "{utc:") if utc_days else survey.path)
    keys = [
        f"folder = {_text(place.relative_to(folder.resolve()).as_posix() if below else str(place))}",
        *[f"path = {_text(str(path))}"] * (path is not None),
        *['schema = "metered"'] * metered,
        *[f"timestamp = {json.dumps(timestamp, ensure_ascii=False)}"] * (timestamp != "timestamp"),
        *[f"period_number = {_text(str(roles.period_number))}"] * (roles.period_number is not None),
        *['stamps = "end"'] * by_end,
        *['stamps_zone = "UTC"'] * (in_utc and (metered or not survey.stamps.zoned) and zone != "UTC"),
        *[f"stamps_format = {_text(str(survey.stamps.written))}"] * (survey.stamps.written is not None),
        f"value = {_text(roles.value)}",
        *[f"customer = {_text(str(roles.customer))}"] * (roles.customer not in (None, "customer_id")),
        *[f"region = {_text(str(roles.region))}"] * (roles.region is not None),
        *[f"revision = {_text(str(roles.revision))}"] * (roles.revision is not None),
        # files of counts may leave rows out; where a day has several, one that comes late would be zeros
        *['missing_rows = "zero"'] * (roles.counts and not metered and (survey.marked or not survey.split)),
        *['decimal = ","'] * (survey.decimal == ","),
        *[
            f"step = {_text(_in_words(survey.step_minutes))}",
            f'combine = "{"mean" if unit in POWERS else "sum"}"',
        ]
        * (minutes != survey.step_minutes),
        *['marker = ""'] * (not survey.marked),
    ]
    together = f"input = {{ {', '.join(keys)} }}"
    lines = [*lines[:4], together, *lines[4:]] if len(together) <= WIDTH else [*lines, "[input]", *keys]
    try:
        check_value_column(roles.value)
    except ParameterError:
        lines += ["[published]", f"value = {_text(f'{plain(roles.value)[:50]}_released')}"]
    first = survey.first
    is_seen = survey.is_undated or (survey.n_days > 1 and survey.day == first)
    if is_seen or utc_days:
        begins = datetime.combine(first, time())
        if is_seen:
            begins = survey.span[0] - timedelta(minutes=minutes * by_end)
        local = begins.replace(tzinfo=UTC).astimezone(ZoneInfo(zone)) if in_utc else begins
        if survey.is_undated or utc_days or local.date() > first:
            first = local.date() + timedelta(days=local.time() != time())
    if survey.is_undated or first > survey.first:
        lines += ["[watch]", f"first_day = {first}"]
    if clock != USUAL_CLOCK:
        lines += ["[schedule]", f"cron = {_text(f'{int(clock[3:])} {int(clock[:2])} * * *')}"]
    return "\n".join(lines) + "\n", in_utc != is_wall or survey.stamps.highest > 0, first


def _clock(survey: Survey, answer: Callable[[str, str], str], minutes: int) -> tuple[str, bool, bool, bool]:
    """Return the zone, and whether stamps are instants, ends of steps, and the files' days those of UTC."""

    def words(zone: str) -> str:
        in_utc, by_end, _ = next(iter(survey.meanings(zone, minutes)), (survey.stamps.zoned, False, False))
        said = [
            zone,
            *["UTC"] * (in_utc and not survey.stamps.zoned and zone != "UTC"),
            "end" if by_end else "start",
        ]
        return ", ".join(said)

    usual = survey.zone or usual_zone()
    if not survey.meanings(usual, minutes):
        usual = next((one for one in COMMON_ZONES if survey.meanings(one, minutes)), usual)
    given = answer("zone", words(usual))
    zone, *said = [one.strip() for one in given.split(",")]
    if unknown := [one for one in said if one not in MEANINGS]:
        raise ParameterError(
            "the answer to zone must be a time zone, which UTC or local, start or end may follow, such as "
            f'"Europe/Paris, UTC, end"; got {unknown[0]!r:.60}'
        )
    try:
        Calendar(minutes, zone, "fixed")
    except ParameterError:
        raise ParameterError(
            'the answer to zone must begin with an IANA name such as "Europe/Paris", or "Etc/GMT-1" for an '
            f"hour ahead of UTC all year; got {zone!r:.60}"
        ) from None
    wanted = [MEANINGS[one] for one in said]
    meanings = survey.meanings(zone, minutes)
    fitting = [one for one in meanings if all(one[place] is is_so for place, is_so in wanted)]
    if not fitting:
        first, last = survey.span
        raise ParameterError(
            f"stamps from {first} to {last}{' UTC' * survey.stamps.zoned} of the files of {survey.day} do "
            f"not fit {given!r:.80}: correct the answer to zone, or {survey.day} in the files' names"
        )
    survey.check_starts(zone, in_utc=fitting[0][0])
    return (zone, *fitting[0])


def _usual_alpha(survey: Survey, minutes: int) -> str:
    unit, hours = survey.unit, Fraction(minutes, 60)
    of_power = PER_CUSTOMER.get(unit.removesuffix("h")) if unit.endswith("h") else None
    if of_power is not None:
        return _shown(Fraction(of_power) * hours)
    return PER_CUSTOMER.get(unit, "1")


def _in_words(minutes: int) -> str:
    return f"{minutes // 60}h" if minutes % 60 == 0 else f"{minutes}min"


def _shown(value: Fraction) -> str:
    """Return a decimal, at most nine places behind the point."""
    return f"{float(value):.9f}".rstrip("0").rstrip(".")


def _text(value: str) -> str:
    return json.dumps(value, ensure_ascii=False)
