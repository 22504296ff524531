"""Snapshots by hand: views of days and alarms of any kind, without ledger, server or files."""

from datetime import UTC, date, datetime, timedelta
from fractions import Fraction
from pathlib import Path

import pytest

from tasks.config import load_settings
from tasks.monitor import alarms as monitored
from tasks.monitor.alarms import Kind
from tasks.monitor.days import DayState, State
from tasks.monitor.facts import Facts, Surprises
from tasks.monitor.view import StreamView
from tasks.pages.snapshot import Night, Snapshot
from tasks.release.outcomes import Budget
from tests.tasks.two_regions import CONFIGURATION

FIRST = date(2016, 6, 1)
NO_SURPRISES = Surprises()
AT = datetime(2016, 9, 1, 6, tzinfo=UTC)
WATCH = '\n[watch]\nfirst_day = 2016-06-01\n[schedule]\ncron = "30 3 * * *"\n'


def alarm(kind=Kind.LATE, day=FIRST, node=None, **changes):
    return monitored.alarm(kind, "two-regions", f"{day}: what is wrong and what to do", day, node, **changes)


@pytest.fixture(scope="session")
def settings(tmp_path_factory):
    file = tmp_path_factory.mktemp("ui") / "optstream.toml"
    file.write_text(CONFIGURATION.replace('restatement_share = "0"', 'restatement_share = "1/10"') + WATCH)
    return load_settings(file)


@pytest.fixture
def snapshot(settings):
    """`snapshot(states=…, alarms=…, spent=…, …)`: a stream whose days are in these states."""

    def make(
        name="two-regions",
        states=(State.PUBLISHED,) * 70,
        alarms=(),
        spent=Fraction(1, 2),
        surprises=NO_SURPRISES,
        **changes,
    ):
        days = tuple(
            DayState(
                day=FIRST + timedelta(days=number),
                state=state,
                listed=0 if state is State.PUBLISHED else None,
            )
            for number, state in enumerate(states)
        )
        facts = Facts(
            live=True, first=FIRST, last=days[-1].day, releases={}, holds={}, catalogue=None,
            catalogue_error=None, is_own_ledger=True, arrivals={}, refused=frozenset(),
            budget=Budget(model=settings.model, spent=spent), page=None, audit=None, surprises=surprises,
        )  # fmt: skip
        view = StreamView(name, AT, facts, days, tuple(alarms))
        reserved = datetime(2016, 6, 2, 3, tzinfo=UTC)
        nights = {
            day.day: Night(reserved + timedelta(days=number), reserved + timedelta(days=number, minutes=5))
            for number, day in enumerate(days)
            if day.state is State.PUBLISHED
        }
        return Snapshot(
            Path(f"{name}.toml"),
            name,
            AT,
            settings,
            view,
            **{"nights": nights, "ended": {"look": AT, "watch": AT}, **changes},
        )

    return make
