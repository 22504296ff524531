"""Alarms of one kind as one line: a hundred days without budget are one thing to do."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from math import inf

from tasks.monitoring.alarms.alarm import Alarm, Key, Severity
from tasks.monitoring.words import AlarmRun, alarm_runs, periods_in_words


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
