"""A small stream of two regions, watched from its first day on, by its own clock."""

from datetime import UTC, date, datetime

import pytest

from tasks.ledger import find_ledger
from tasks.monitor.view import watch
from tests.tasks.two_regions import CONFIGURATION, Installation

FIRST = date(2016, 6, 1)
WATCH = """
[watch]
first_day = 2016-06-01
late_after = "06:00"
max_runtime = "1h"
"""


class Watched(Installation):
    """A stream, and what the watch says of it at its clock's time."""

    def watch(self, *, live=True):
        ledger = find_ledger(self.settings)
        try:
            return watch(self.settings, ledger, self.now, live=live)
        finally:
            if ledger:
                ledger.close()

    def of_kind(self, kind):
        return [alarm for alarm in self.watch(live=False).alarms if alarm.kind == kind]

    def at(self, text):
        self.now = datetime.fromisoformat(text).replace(tzinfo=UTC)
        return self

    def states(self):
        return {day.day.day: day.state.value for day in self.watch().days}

    def assert_shows(self, states, alarms):
        """Of each day of the month its state, and what is alarmed."""
        assert self.states() == states
        assert self.alarms() == alarms

    def alarms(self):
        return [(alarm.kind.value, alarm.day and alarm.day.day, alarm.node) for alarm in self.watch().alarms]


@pytest.fixture
def watched(tmp_path):
    """At noon of 2016-06-03, two days of dumps, nothing released."""
    (tmp_path / "optstream.toml").write_text(CONFIGURATION + WATCH)
    installation = Watched(tmp_path, datetime(2016, 6, 3, 12, tzinfo=UTC))
    installation.simulate(FIRST, date(2016, 6, 2))
    return installation
