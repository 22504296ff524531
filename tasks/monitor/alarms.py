"""Which of the facts a person should act on."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from math import inf

from optstream.ledger import ReleaseState
from tasks.config import Settings
from tasks.ingest import Arrival
from tasks.monitor.days import (
    Alarm,
    AlarmRun,
    DayState,
    Key,
    Kind,
    Severity,
    State,
    alarm_runs,
    periods_in_words,
)
from tasks.monitor.facts import Facts, days_left, late_from, max_runtime, nearest, renamed, shown

Say = Callable[[Kind, str], Alarm]
"""Makes an alarm of one day from what happened, and which rule is broken."""
EXPIRY_WARNING = timedelta(days=7)
MOST_NAMED = 12
SUSPECT_SHARE = 1 / 20
"""Of a region's readings, replaced: more than this is an alarm."""
DEPENDS = (
    "This depends on readings: keep it in the trusted zone. A withdrawal or restatement that is decided by "
    "it depends on readings too, and is outside the privacy guarantee"
)


def alarms_of(settings: Settings, facts: Facts, days: Sequence[DayState], now: datetime) -> tuple[Alarm, ...]:
    """Every alarm, by day; those that are about no day come first. Accepted days raise none."""
    found = [*_of_stream(settings, facts, now)]
    for day in days:
        if not day.accepted:
            found += _of_day(settings, facts, day, now)
    found += _of_budget(settings, facts, days)
    return tuple(sorted(found, key=lambda alarm: alarm.day or date.min))


def _of_stream(settings: Settings, facts: Facts, now: datetime) -> Iterator[Alarm]:
    stream = settings.stream.name
    if facts.catalogue_error is not None:
        yield Alarm(
            Kind.UNLISTED,
            stream,
            "the catalogue of the published folder cannot be read: readers see nothing; `optstream ledger "
            "verify` says more, restore it from a copy",
        )
    if facts.page_behind:
        yield Alarm(
            Kind.LOST,
            stream,
            "the page of the data users is missing, or not of the days that are published: the run that "
            "wrote it last says why it could not; `optstream report` writes it again",
        )
    if not facts.is_own_ledger:
        yield Alarm(
            Kind.LEDGER,
            stream,
            "the published folder was written with another ledger than the configured one, or a newer copy: "
            "bring that one back; no day is released before",
        )
    if facts.live and facts.first is None and settings.watching.first_day is None:
        yield Alarm(
            Kind.NOT_BEGUN,
            stream,
            "the stream is watched and nothing was ever released: run it once (`optstream run`), or say from "
            "which day on with [watch] first_day",
        )
    if facts.clock_ahead is not None:
        yield Alarm(Kind.CLOCK, stream, facts.clock_ahead, severity=Severity.WARNING)
    if facts.audit is not None and facts.audit.same and not facts.audit.passed:
        yield Alarm(
            Kind.AUDIT,
            stream,
            f"the audit of {facts.audit.at:%Y-%m-%d} measured more epsilon than the mechanism claims: "
            "release nothing before it is understood; its record is in trusted/audit",
        )


def _of_day(settings: Settings, facts: Facts, day: DayState, now: datetime) -> Iterator[Alarm]:
    def say(kind: Kind, words: str) -> Alarm:
        return Alarm(kind, settings.stream.name, f"{day.day}: {words}", day.day)

    release, arrival = facts.releases.get(day.day), facts.arrivals.get(day.day)
    match day.state:
        case State.LATE:
            yield _late(settings, day, say)
        case State.MISSING:
            yield say(
                Kind.MISSING,
                "its dump is complete and no run released it: `optstream run --date "
                f"{day.day}`, or `optstream backfill`; see whether the schedule is on",
            )
        case State.VOID:
            yield say(
                Kind.VOID,
                "void, and stays charged: a person decides; `optstream run --restate` measures it anew if a "
                "share was kept back, or accept it with [watch] accepted_gaps",
            )
        case State.FAILED if arrival is not None and arrival.unknown_regions:
            yield from _unknown_regions(settings, arrival, say)
        case State.FAILED if release is not None:
            yield say(
                Kind.FAILED,
                f"{str(release.state).lower()}, and its run died or failed: the next run continues; if it "
                "fails again, the orchestrator's page of the run says where",
            )
        case State.FAILED:
            yield _broken(settings, arrival, day, say)
    yield from _stuck(settings, facts, day, say, now)
    yield from _suspect(settings, facts, day, say)
    for said in facts.user_suites.get(day.day, ()):
        yield replace(say(Kind.USER_SUITE, ""), words=f"{said}. {DEPENDS}", severity=Severity.WARNING)
    if day.day in facts.lost:
        yield say(
            Kind.LOST,
            f"its published file {facts.lost[day.day]}: `optstream publish {day.day}` writes the same bytes "
            "again, for free",
        )
    if day.state in (State.PUBLISHED, State.RESTATED, State.LOST):
        yield from _of_release(settings, facts, day, say)
    # a day whose restatement is void is rightly listed with the revision before
    is_void = day.state is State.VOID and release is not None and release.revision == day.listed
    if is_void or (day.state is State.WITHDRAWN and day.listed is not None):
        yield say(
            Kind.WITHDRAWN,
            "it was taken back, and readers have it all the same: that did not come to its end, or "
            "an older published folder was brought back; "
            f"`optstream withdraw --date {day.day} --reason WHY` completes it",
        )
    yield from _of_raw(day, say, now)


def _stuck(settings: Settings, facts: Facts, day: DayState, say: Say, now: datetime) -> Iterator[Alarm]:
    """A run that lives and does not end; a drawn day's time counts from the hour until which it is held."""
    hold = facts.holds.get(day.day)
    if day.state is not State.RUNNING or hold is None:
        return
    begun, hour = hold.since, settings.publish_from(day.day)
    if hour is not None and facts.releases[day.day].state is ReleaseState.DRAWN:
        begun = max(begun, hour)
    if now - begun > max_runtime(settings):
        yield say(
            Kind.STUCK,
            f"under way since {begun.astimezone(UTC):%Y-%m-%d %H:%M} UTC, longer than [watch] max_runtime: "
            "look at its run; if it hangs, end it, the next run continues after its lease",
        )


def _late(settings: Settings, day: DayState, say: Say) -> Alarm:
    """What is not there, by node."""
    nodes = day.waiting_for
    node = nodes[0] if len(nodes) == 1 else None
    more = "" if len(nodes) <= MOST_NAMED else f" and {len(nodes) - MOST_NAMED} more"
    named = _named(settings, nodes)
    clock = f"{late_from(settings, day.day):%Y-%m-%d %H:%M}"
    words = (
        f"the dump of {named}{more} was not complete by {clock} "
        f"({settings.stream.time_zone}): ask whoever delivers it; the "
        f"{settings.stream.period} is released once it is there"
    )
    return replace(say(Kind.LATE, words), node=node)


def _unknown_regions(settings: Settings, arrival: Arrival, say: Say) -> Iterator[Alarm]:
    """A region that no leaf is called: the day cannot be released, and may be a leaf by another name."""
    meant = renamed(arrival.unknown_regions, arrival.absent)
    for name in arrival.unknown_regions:
        node, leaf = shown(name), meant[name]
        folder = f"region={node}"
        if settings.input.region is not None:
            leaf = None
            words = (
                f"{folder} is there beside the folder of all regions: remove it, or take input.region out; "
                "nothing of the day is released before"
            )
        elif leaf is not None:
            words = (
                f"{folder} is there, which no leaf is called, and region={leaf}{_known_as(settings, leaf)} "
                f'is not: if it was renamed, add renamed = {{ {leaf} = "{node}" }} to [[hierarchy.changes]] '
                f"from its first day on, or deliver it as region={leaf}; nothing of the day is released "
                "before"
            )
        else:
            leaf = None if arrival.absent else nearest(name, settings.tree_of(arrival.day).leaves)
            like = "" if leaf is None else f" (the nearest is {settings.called(leaf)})"
            words = (
                f"{folder} is there, and no leaf of the hierarchy is called so{like}: remove its dump of the "
                "day, or add it to [[hierarchy.changes]] from its first day on; nothing of the day is "
                "released before"
            )
        yield replace(say(Kind.UNKNOWN_REGION, words), node=node, suggestion=leaf)


def _named(settings: Settings, nodes: Sequence[str]) -> str:
    """The first nodes, as a person knows them."""
    return ", ".join(map(settings.called, nodes[:MOST_NAMED]))


def _known_as(settings: Settings, leaf: str) -> str:
    """A leaf's name behind its folder, where it has one."""
    named = settings.called(leaf).removesuffix(f" ({leaf})")
    return "" if named == leaf else f" ({named})"


def _broken(settings: Settings, arrival: Arrival | None, day: DayState, say: Say) -> Alarm:
    """A dump that is there and cannot be taken; its verdict's text stays in the trusted zone."""
    if arrival is not None and arrival.broken:
        nodes = list(arrival.broken)
        words = f"the files of {_named(settings, nodes)} are not as they should be: {day.note}"
        return replace(say(Kind.FAILED, words), node=nodes[0] if len(nodes) == 1 else None)
    return say(
        Kind.FAILED,
        "its dump breaks its contract: the newest verdict in trusted/validation says which file and rule; "
        f"have it delivered anew, then `optstream run --date {day.day}`",
    )


def _suspect(settings: Settings, facts: Facts, day: DayState, say: Say) -> Iterator[Alarm]:
    """A region of which more readings than usual were replaced: a unit, a sign or a meter, perhaps."""
    found = {}
    for region, one in facts.suspect.get(day.day, {}).items():
        told = [f"{100 * share:.0f} % {what}" for what, share in one.shares if share > SUSPECT_SHARE]
        if told:
            found[region] = f"of the readings of {settings.called(region)}, {', '.join(told)}"
    ask = f"ask the supplier about unit, sign and meters. {DEPENDS}"
    for region in [*found][:MOST_NAMED]:
        yield replace(say(Kind.SUSPECT, f"{found[region]}: {ask}"), node=region)
    if len(found) > MOST_NAMED:
        yield say(Kind.SUSPECT, f"and so of {len(found) - MOST_NAMED:,} regions more: {ask}")


def _of_release(settings: Settings, facts: Facts, day: DayState, say: Say) -> Iterator[Alarm]:
    release = facts.releases[day.day]
    if facts.catalogue_error is None and day.listed != release.revision:
        yield say(
            Kind.UNLISTED,
            "the ledger has it as published and the published folder does not list it: "
            f"`optstream publish {day.day}` puts it back, or restore the folder from a copy",
        )
    if day.day == facts.newest_unlike:
        words = (
            "its noisy measurements contradict the stream's habits by more than noise can: it was estimated "
            "as a first day is, with wider bands; if readings are broken, restate it once they are mended"
        )
        yield replace(say(Kind.UNLIKE, words), severity=Severity.WARNING)
    for one in facts.far:
        if one.day == day.day:
            words = (
                f"the published mean of {settings.called(one.region)} is {one.words} the median of the "
                f"{settings.stream.period}s before: ask its supplier about unit and sign; said by "
                "published figures alone"
            )
            yield replace(say(Kind.FAR, words), node=one.region, severity=Severity.WARNING)
    for said in facts.without.get(day.day, ()):
        words = (
            f"{said}; its estimate went without: have it delivered before the next night; later estimates of "
            "the day use what came since"
        )
        yield replace(say(Kind.COVARIATE, words), severity=Severity.WARNING)
    if release.compromised is not None:
        yield say(
            Kind.COMPROMISED,
            "others know its noise: `optstream withdraw` it, and release nothing in windows that see it",
        )


def _of_raw(day: DayState, say: Say, now: datetime) -> Iterator[Alarm]:
    if day.raw_expires is None or day.raw_expires - now > EXPIRY_WARNING:
        return
    left = days_left(day.raw_expires, now)
    if left < 0:
        words = (
            "not released, and [input] raw_retention_days is over: if its dump is gone, accept the gap with "
            "[watch] accepted_gaps"
        )
        yield say(Kind.EXPIRED, words)
        return
    words = f"not released, and its raw readings are deleted in {left} days: keep them until it is"
    yield replace(say(Kind.EXPIRING, words), severity=Severity.WARNING)


def _of_budget(settings: Settings, facts: Facts, days: Sequence[DayState]) -> Iterator[Alarm]:
    """Known noise of the budget that readers do not know of; days that the ledger would refuse."""
    for other in sorted({name for name, _ in facts.unsaid_noise}):
        lost = [period for name, period in facts.unsaid_noise if name == other]
        more = f" and {len(lost) - 5} more" if len(lost) > 5 else ""
        yield Alarm(
            Kind.COMPROMISED,
            settings.stream.name,
            f"others know the noise of {other} of {', '.join(lost[:5])}{more}: windows of the privacy budget "
            "that see one are lost, and readers do not know: run `optstream report`",
            node=other,
        )
    if facts.page is None or facts.last is None:
        return
    unreleased = {one.day for one in days if one.revision is None and not one.accepted}
    wanted = unreleased | {settings.calendar.after(facts.last)}
    for one in facts.page.days:
        if one.may is False and one.day in wanted:
            yield Alarm(
                Kind.BUDGET,
                settings.stream.name,
                f"{one.day}: a run would be refused: the windows over it have "
                f"{max(0.0, float(one.left)):.3g} of {facts.budget.in_words} left; "
                "`optstream ledger show` says what was spent",
                one.day,
            )


# Alarms of one kind as one line: a hundred days without budget are one thing to do.


@dataclass(frozen=True)
class AlarmGroup:
    """All alarms of one kind and severity, the newest day first.

    since: when the watch first saw the oldest of them; None where it has seen none.
    """

    kind: str
    is_warning: bool
    alarms: tuple[Alarm, ...]
    since: datetime | None

    @property
    def when(self) -> str:
        """The days that they are of, or nodes without a day."""
        days = sorted({alarm.day for alarm in self.alarms if alarm.day is not None})
        if not days:
            return ""
        return str(days[0]) if len(days) == 1 else periods_in_words(len(days), days[0], days[-1])

    @property
    def runs(self) -> tuple[AlarmRun, ...]:
        """The same, those in a row that say the same together; the newest first."""
        return alarm_runs(reversed(self.alarms), same_words=True)[::-1]


def alarm_groups(alarms: Sequence[Alarm], since: Mapping[Key, datetime]) -> tuple[AlarmGroup, ...]:
    """Return a group for each kind and severity: those that cost a day first, then the oldest first.

    since: when each alarm was first seen, of those that were.
    """
    found: dict[tuple[bool, str], list[Alarm]] = {}
    for alarm in alarms:
        found.setdefault((alarm.severity is Severity.WARNING, alarm.kind.value), []).append(alarm)
    groups = [
        AlarmGroup(
            kind,
            warning,
            tuple(reversed(own)),
            min((since[a.key] for a in own if a.key in since), default=None),
        )
        for (warning, kind), own in found.items()
    ]
    return tuple(sorted(groups, key=_order))


def _order(group: AlarmGroup) -> tuple[bool, float, str]:
    return group.is_warning, inf if group.since is None else group.since.timestamp(), group.kind
