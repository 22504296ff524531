"""Which of the facts a person should act on: alarms, and how many alike ones become a line."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from difflib import SequenceMatcher
from enum import StrEnum
from math import inf
from typing import Any

from pydantic import ConfigDict, Field

from optstream.catalogue.documents import OrAbsent, Part, Period, Text, absent
from optstream.ledger import ReleaseState
from tasks.config import Settings
from tasks.ingest.arrivals import Arrival, leaves_of
from tasks.monitor.days import DayState, State, day_or_hour, printable, stretches
from tasks.monitor.facts import (
    LOUD,
    MOST_SHOWN,
    SHOWS_BOUNDS,
    Facts,
    days_left,
    late_from,
    max_runtime,
    remedy_of,
)
from tasks.release.outcomes import listed

Key = tuple[str, str, str]  # kind, day and node: what makes two alarms the same one
EXPIRY_WARNING = timedelta(days=7)
SUSPECT_SHARE = 1 / 20  # of a region's readings, replaced: more than this is an alarm
DEPENDS = (
    "This depends on readings: keep it in the trusted zone. A withdrawal or restatement that is decided by "
    "it depends on readings too, and is outside the privacy guarantee"
)


class Severity(StrEnum):
    """Whether a day is lost if nobody acts, or will be."""

    ALARM = "alarm"
    WARNING = "warning"


ALARM, WARNING = Severity


class Kind(StrEnum):
    """What happened: word, severity, and when it is raised. depends_on_readings: it is shown in the trusted
    zone alone, and sent to no channel."""

    severity: Severity
    meaning: str
    depends_on_readings: bool

    LATE = "late", ALARM, "a dump is absent or incomplete at `late_after`; names the nodes"
    UNKNOWN_REGION = "unknown-region", ALARM, "a dump lies under a name that no leaf has; suggests a leaf"
    MISSING = "missing", ALARM, "at `late_after` the dump is complete, and no run processed it"
    FAILED = "failed", ALARM, "a dump breaks its contract or cannot be read, or a run died or failed"
    STUCK = "stuck", ALARM, "a run has been processing a day for longer than `max_runtime`"
    VOID = "void", ALARM, "a draw is unusable, until the day is restated"
    UNLISTED = "unlisted", ALARM, "the ledger has a day as published, and readers cannot find it"
    LOST = "lost", ALARM, "a listed file is missing, or not as long as it was"
    WITHDRAWN = "withdrawn", ALARM, "a day was withdrawn, and readers still find it"
    COMPROMISED = "compromised", ALARM, "others know a day's noise, and it is not withdrawn; or a stream's"
    EXPIRING = "expiring", WARNING, "the raw readings of an unreleased day are deleted within 7 days"
    EXPIRED = "expired", ALARM, "the raw readings of an unreleased day were deleted"
    BUDGET = "budget", ALARM, "the next day, or one that is due, would be refused: its windows are full"
    LEDGER = "ledger", ALARM, "the published folder was written with another ledger than the configured one"
    AUDIT = "audit", ALARM, "the last `python -m studies audit --config` of this configuration failed"
    UNLIKE = "unlike-history", WARNING, "the newest published day was unlike all others; its bands are wide"
    OFF = "off-prior", WARNING, "a level's noisy measurements miss predictions twice as far as expected"
    FAR = "far-from-history", WARNING, "a published mean is far from the median of the 28 days before"
    SUSPECT = "suspect-readings", ALARM, "over a twentieth of a region's readings were replaced", True
    USER_SUITE = "user-suite", WARNING, "a suite of yours does not hold for one of the last 28 days", True
    COVARIATE = "covariate-missing", WARNING, "the newest published day went without a public covariate"
    CLOCK = "clock-ahead", WARNING, "a day of the next two years will be refused for its change of the clock"
    NOT_BEGUN = "not-begun", ALARM, "the stream is watched, and nothing was ever released"
    BLIND = "blind", ALARM, "the watch itself cannot look; what lasted before is taken to last"

    def __new__(cls, word: str, *row: Any) -> "Kind":
        kind = str.__new__(cls, word)
        kind._value_ = word
        kind.severity, kind.meaning, *depends = row
        kind.depends_on_readings = bool(depends)
        return kind


class Alarm(Part):
    """An alarm or a warning. It holds no reading, no count of rows and no secret. words: which rule is
    broken, and the remedy. day, node: None where it is about none. day: the first of several in a row."""

    model_config = ConfigDict(frozen=True, use_enum_values=False)

    kind: Kind
    severity: Severity
    stream: str
    day: Period | None
    node: str | None
    suggestion: str | None = Field(description="the node that was probably meant")
    words: Text
    last: OrAbsent[Period] = absent("the last of several periods in a row, which have one alarm")
    number: int = absent("of these periods", 1, json_schema_extra={"minimum": 2})

    @property
    def key(self) -> Key:
        return (self.kind.value, "" if self.day is None else self.day.isoformat(), self.node or "")


def alarm(
    kind: Kind,
    stream: str,
    words: str,
    day: date | None = None,
    node: str | None = None,
    suggestion: str | None = None,
) -> Alarm:
    return Alarm(
        kind=kind, severity=kind.severity, stream=stream, day=day, node=node, suggestion=suggestion,
        words=words,
    )  # fmt: skip


Said = tuple[Kind, str] | tuple[Kind, str, str | None] | tuple[Kind, str, str | None, str | None]
"""Of one day: what happened, which rule is broken, and perhaps the node and the one that was meant."""


def alarms_of(settings: Settings, facts: Facts, days: Sequence[DayState], now: datetime) -> tuple[Alarm, ...]:
    """Every alarm, by day, first those without a day. Accepted days raise none."""
    stream = settings.stream.name
    found = [
        alarm(kind, stream, words, None, *node) for kind, words, *node in _stream_alarms(settings, facts)
    ]
    for day in days:
        if not day.accepted:
            for kind, words, *about in _day_alarms(settings, facts, day, now):
                found.append(alarm(kind, stream, f"{day.day}: {words}", day.day, *about))
            for said in facts.user_suites.get(day.day, ()):
                found.append(alarm(Kind.USER_SUITE, stream, f"{said}. {DEPENDS}", day.day))
    if facts.page is not None and facts.last is not None:
        unreleased = {one.day for one in days if one.revision is None and not one.accepted}
        wanted = unreleased | {settings.calendar.after(facts.last)}
        for left in facts.page.days:
            if left.may is False and left.day in wanted:
                words = (
                    f"{left.day}: a run would be refused: the windows over it have "
                    f"{max(0.0, float(left.left)):.3g} of {facts.budget.in_words} left; `optstream ledger "
                    "show` says what was spent"
                )
                found.append(alarm(Kind.BUDGET, stream, words, left.day))
    return tuple(sorted(found, key=lambda one: (one.day is not None, one.day)))


def _stream_alarms(settings: Settings, facts: Facts) -> Iterator[Said]:
    if facts.catalogue_error is not None:
        yield (
            Kind.UNLISTED,
            "the catalogue of the published folder cannot be read: readers see nothing; `optstream ledger "
            "verify` says more, restore it from a copy",
        )
    if facts.page_behind:
        yield (
            Kind.LOST,
            "the page of the data users is missing, or not of the days that are published: the run that "
            "wrote it last says why it could not; `optstream report` writes it again",
        )
    if not facts.is_own_ledger:
        yield (
            Kind.LEDGER,
            "the published folder was written with another ledger than the configured one, or a newer copy: "
            "bring that one back; no day is released before",
        )
    if facts.live and facts.first is None and settings.watching.first_day is None:
        yield (
            Kind.NOT_BEGUN,
            "the stream is watched and nothing was ever released: run it once (`optstream run`), or say from "
            "which day on with [watch] first_day",
        )
    if facts.clock_ahead is not None:
        yield Kind.CLOCK, facts.clock_ahead
    if facts.audit is not None and facts.audit.same and not facts.audit.passed:
        yield (
            Kind.AUDIT,
            f"the audit of {facts.audit.at:%Y-%m-%d} measured more epsilon than the mechanism claims: "
            "release nothing before it is understood; its record is in trusted/audit",
        )
    for other in sorted({name for name, _ in facts.unsaid_noise}):
        lost = [period for name, period in facts.unsaid_noise if name == other]
        words = (
            f"others know the noise of {other} of {listed(lost, 5)}: windows of the privacy budget that see "
            "one are lost, and readers do not know: run `optstream report`"
        )
        yield Kind.COMPROMISED, words, other


def _day_alarms(settings: Settings, facts: Facts, day: DayState, now: datetime) -> Iterator[Said]:
    release, arrival = facts.releases.get(day.day), facts.arrivals.get(day.day)
    match day.state:
        case State.LATE:
            nodes = day.waiting_for
            words = (
                f"the dump of {_named(settings, nodes)} was not complete by "
                f"{late_from(settings, day.day):%Y-%m-%d %H:%M} ({settings.stream.time_zone}): ask its "
                f"supplier; the {settings.stream.period} is released once it is there"
            )
            yield Kind.LATE, words, nodes[0] if len(nodes) == 1 else None
        case State.MISSING:
            yield (
                Kind.MISSING,
                f"its dump is complete and no run released it: `optstream run --date {day.day}`, or "
                "`optstream backfill`; see whether the schedule is on",
            )
        case State.VOID:
            yield (
                Kind.VOID,
                "void: its budget is spent, and an operator decides; `optstream run --restate` measures it "
                "again if a share was kept back, or accept it with [watch] accepted_gaps",
            )
        case State.FAILED if arrival is not None and arrival.unknown_regions:
            yield from _unknown_regions(settings, arrival)
        case State.FAILED if release is not None:
            yield (
                Kind.FAILED,
                f"{str(release.state).lower()}, and its run died or failed: the next run continues; if it "
                "fails again, the orchestrator's page of the run says where",
            )
        case State.FAILED if arrival is not None and arrival.broken:
            nodes = leaves_of(settings, day.day, (*arrival.broken,))
            words = f"the files of {_named(settings, nodes)} are not as they should be: {day.note}"
            yield Kind.FAILED, words, nodes[0] if len(nodes) == 1 else None
        case State.FAILED:
            yield (
                Kind.FAILED,
                "its dump breaks its contract: the newest verdict in trusted/validation says which file and "
                f"rule; have it delivered again, then `optstream run --date {day.day}`",
            )
        case State.RUNNING:
            begun, hour = facts.holds.get(day.day, now), settings.publish_from(day.day)
            if hour is not None and release is not None and release.state is ReleaseState.DRAWN:
                begun = max(begun, hour)  # until when a drawn day is held
            if now - begun > max_runtime(settings):
                yield (
                    Kind.STUCK,
                    f"under way since {begun.astimezone(UTC):%Y-%m-%d %H:%M} UTC, longer than [watch] "
                    "max_runtime: look at its run; if it hangs, end it, the next run continues after its "
                    "lease",
                )
        case State.PUBLISHED | State.RESTATED | State.LOST:
            yield from _release_alarms(settings, facts, day)
    yield from _suspect(settings, facts, day)
    if day.day in facts.lost:
        yield (
            Kind.LOST,
            f"its published file {facts.lost[day.day]}: `optstream publish {day.day}` writes the same bytes "
            "again, for free",
        )
    # a day whose restatement is void is rightly listed with the revision before
    is_void = day.state is State.VOID and release is not None and release.revision == day.listed
    if is_void or (day.state is State.WITHDRAWN and day.listed is not None):
        yield (
            Kind.WITHDRAWN,
            "it was withdrawn, and readers still have it: the withdrawal did not end, or an older published "
            f"folder was brought back; `optstream withdraw --date {day.day} --reason WHY` completes it",
        )
    if day.raw_expires is not None and day.raw_expires - now <= EXPIRY_WARNING:
        left = days_left(day.raw_expires, now)
        if left < 0:
            yield (
                Kind.EXPIRED,
                "not released, and [input] raw_retention_days is over: if its dump is gone, accept the gap "
                "with [watch] accepted_gaps",
            )
        else:
            words = f"not released, and its raw readings are deleted in {left} days: keep them until it is"
            yield Kind.EXPIRING, words


def _named(settings: Settings, nodes: Sequence[str]) -> str:
    return listed([settings.called(node) for node in nodes], MOST_SHOWN)


def _release_alarms(settings: Settings, facts: Facts, day: DayState) -> Iterator[Said]:
    release = facts.releases[day.day]
    last = facts.catalogue.listed[-1].period if facts.catalogue and facts.catalogue.listed else None
    if facts.catalogue_error is None and day.listed != release.revision:
        yield (
            Kind.UNLISTED,
            "the ledger has it as published and the published folder does not list it: "
            f"`optstream publish {day.day}` puts it back, or restore the folder from a copy",
        )
    if day.day == facts.newest and day.day in facts.unlike:
        yield (
            Kind.UNLIKE,
            "its noisy measurements contradict the stream's habits by more than noise can: it was estimated "
            "as a first day is, with wider bands; if readings are broken, restate it once they are corrected",
        )
    for level in facts.off if day.day == facts.newest else ():
        yield (
            Kind.OFF,
            f"{level}: noisy measurements miss what the learned habits predict twice as far as these expect; "
            "bands there are wider. If it lasts for weeks, measure more often: `optstream advise`",
        )
    for one in facts.surprises.far:
        if one.day == day.day == last:
            words = (
                f"the published mean of {settings.called(one.region)} is {one.words} the median of the "
                f"{settings.stream.period}s before: ask its supplier about unit and sign; said by "
                "published figures alone"
            )
            yield Kind.FAR, words, one.region
    for said in facts.without if day.day == facts.newest else ():
        yield (
            Kind.COVARIATE,
            f"{said}; its estimate went without: have it delivered before the next night; later estimates of "
            "the day use what came since",
        )
    if release.compromised is not None:
        words = "others know its noise: `optstream withdraw` it, and release nothing in windows that see it"
        yield Kind.COMPROMISED, words


def _suspect(settings: Settings, facts: Facts, day: DayState) -> Iterator[Said]:
    """A region where more readings than usual were replaced: perhaps a unit, a sign or a meter."""
    found = {}
    for region, one in facts.suspect.get(day.day, {}).items():
        found_in = one._asdict().items()
        shares = [f"{100 * share:.0f} % {what}" for what, share in found_in if share > SUSPECT_SHARE]
        if shares:
            whole = SHOWS_BOUNDS if one.clamped >= LOUD else ""
            found[region] = f"of the readings of {settings.called(region)}, {', '.join(shares)}{whole}"
    release = facts.releases.get(day.day)
    remedy = "" if release is None else f" If it is wrong, {remedy_of(settings, release.revision)}."
    ask = f"ask the supplier about unit, sign, meters and regions.{remedy} {DEPENDS}"
    for region in [*found][:MOST_SHOWN]:
        yield Kind.SUSPECT, f"{found[region]}: {ask}", region
    if len(found) > MOST_SHOWN:
        yield Kind.SUSPECT, f"and so of {len(found) - MOST_SHOWN:,} regions more: {ask}"


# Regions that no leaf is called: the day cannot be released, and may be a leaf by another name.

ALIKE = 0.5  # names less alike than this (difflib's ratio) are not suggested
MOST_UNKNOWN, MOST_VANISHED = 50, 2000
"""Beyond these no nearest name is looked for: the time grows with their product."""


def _unknown_regions(settings: Settings, arrival: Arrival) -> Iterator[Said]:
    meant = renamed(arrival.unknown_regions, arrival.absent)
    for name in arrival.unknown_regions:
        node, leaf = printable(name), meant[name]
        if settings.input.region is not None:
            leaf = None
            words = "lies next to the folder of all regions: remove it, or take input.region out"
        elif leaf is not None:
            words = (
                f"is there, which no leaf is called, and region={leaf}"
                f"{'' if (said := settings.name_of(leaf)) in (None, leaf) else f' ({said})'} is not: if it "
                f'was renamed, add renamed = {{ {leaf} = "{node}" }} to [[hierarchy.changes]] '
                f"from its first day on, or deliver it as region={leaf}"
            )
        else:
            leaf = None if arrival.absent else nearest(name, settings.tree_of(arrival.day).leaves)
            like = "" if leaf is None else f" (the nearest is {settings.called(leaf)})"
            words = (
                f"is there, and no leaf of the hierarchy is called so{like}: remove its dump of the day, or "
                "add it to [[hierarchy.changes]] from its first day on"
            )
        words = f"region={node} {words}; nothing of the day is released before"
        yield Kind.UNKNOWN_REGION, words, node, leaf


def renamed(unknown: Sequence[str], vanished: Sequence[str]) -> dict[str, str | None]:
    """Return for each unknown region the vanished leaf that is most alike, each once, or None."""
    found: dict[str, str | None] = dict.fromkeys(unknown)
    if len(unknown) <= MOST_UNKNOWN and len(vanished) <= MOST_VANISHED:
        scored = [(likeness(one, leaf), one, leaf) for one in unknown for leaf in vanished]
        for score, one, leaf in sorted(scored, key=lambda entry: -entry[0]):
            if score >= ALIKE and found[one] is None and leaf not in found.values():
                found[one] = leaf
    unpaired = [one for one in unknown if found[one] is None]
    left = [leaf for leaf in vanished if leaf not in set(found.values())]
    if len(unpaired) == len(left) == 1:
        found[unpaired[0]] = left[0]
    return found


def nearest(name: str, leaves: Sequence[str]) -> str | None:
    """The leaf that is called most alike, or None if none is alike enough."""
    if len(leaves) > MOST_VANISHED:
        return None
    leaf = max(leaves, key=lambda one: likeness(name, one))
    return leaf if likeness(name, leaf) >= ALIKE else None


def likeness(one: str, other: str) -> float:
    return SequenceMatcher(None, one.casefold(), other.casefold()).ratio()


# Alarms in lines for people: periods in a row that are alike are one line, a kind's alarms one group.

MOST_LINES = 40
_DATED = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}(T[0-9]{2}B?|/hour=[0-9]{2}B?| [0-9]{2}:[0-9]{2})?")


def but_for_dates(text: str) -> str:
    """Return a text without dates, hours of dates and the clock times behind them, to compare periods by."""
    return _DATED.sub("", text)


def join_alike(alarms: Iterable[Alarm]) -> tuple[Alarm, ...]:
    """Join the alarms of one kind and node about periods in a row: an old archive has one, not thousands."""
    joined = []
    for run in stretches(alarms, lambda one: (one.kind, one.node)):
        first, last, words = run[0].day, run[-1], f"{when(run)}; the last: {run[-1].words}"
        changes = {"day": first, "last": last.day, "number": len(run), "words": words}
        joined.append(last.model_copy(update=changes if len(run) > 1 else {}))
    return tuple(joined)


def when(alarms: Iterable[Alarm]) -> str:
    """Return "3 days, 2016-06-01 to 2016-06-04", a single day, or "" without a day."""
    days = sorted({one.day for one in alarms if one.day is not None})
    if len(days) > 1:
        return f"{len(days)} {day_or_hour(days[0])}s, {days[0]} to {days[-1]}"
    return "".join(map(str, days))


def lines_of(alarms: Iterable[Alarm], prefix: str = "") -> list[str]:
    """A line for each alarm, in their order; of very many only the last are shown."""
    lines = [f"{prefix}{one.severity}: {one.kind}: {one.words}" for one in alarms]
    cut = len(lines) - MOST_LINES
    return lines if cut <= 0 else [f"{cut} earlier ones: see `optstream status --json`", *lines[cut:]]


@dataclass(frozen=True)
class AlarmGroup:
    """All alarms of one kind, the newest day first. since: when the watch first saw the oldest of them."""

    kind: Kind
    alarms: tuple[Alarm, ...]
    since: datetime | None

    @property
    def is_warning(self) -> bool:
        return self.kind.severity is Severity.WARNING

    @property
    def runs(self) -> list[list[Alarm]]:
        """The same, those in a row that say the same together; the newest first."""
        runs = stretches(reversed(self.alarms), lambda one: (one.node, but_for_dates(one.words)))
        return runs[::-1]


def alarm_groups(alarms: Sequence[Alarm], since: Mapping[Key, datetime]) -> list[AlarmGroup]:
    """Return a group for each kind: those that cost a day first, then the oldest first."""
    groups = []
    for kind in dict.fromkeys(one.kind for one in alarms):
        own = [one for one in reversed(alarms) if one.kind is kind]
        first = min((since[one.key] for one in own if one.key in since), default=None)
        groups.append(AlarmGroup(kind, tuple(own), first))
    return sorted(
        groups,
        key=lambda one: (one.is_warning, inf if one.since is None else one.since.timestamp(), one.kind),
    )
