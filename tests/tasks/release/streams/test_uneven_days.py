"""Days around changes of the clock that no configuration of today has, through the whole chain."""

from datetime import UTC, date, datetime, timedelta

import pytest

from optstream.errors import ParameterError
from tasks.config.schema import MECHANISMS
from tasks.release.stages import Status
from tests.by_night import few

ONE = timedelta(days=1)
CHANGES = [
    ("Pacific/Apia", "30min", date(2011, 12, 30)),
    ("Pacific/Apia", "1h", date(2011, 12, 30)),
    ("Pacific/Apia", "30min", date(2011, 9, 24)),
    ("Asia/Pyongyang", "1h", date(2015, 8, 14)),
    ("America/Caracas", "1h", date(2007, 12, 9)),
    ("Europe/Moscow", "1h", date(2010, 3, 28)),
    ("Australia/Lord_Howe", "30min", date(2024, 4, 7)),
]
DAILY = ("OptStream", "Fourier")
"""By day; the others, whose days are of other lengths alike, by night."""


@pytest.mark.parametrize(("zone", "step", "day"), CHANGES)
@pytest.mark.parametrize("name", few(sorted(MECHANISMS, key=lambda name: name not in DAILY), len(DAILY)))
def test_a_day_is_released_or_nothing_of_it_is_charged(installation, name, zone, step, day):
    if name != "OptStream":  # which it has
        installation.change_mechanism(name)
    installation.configure("Europe/Paris", zone)
    installation.configure('"30min"', f'"{step}"')
    installation.now = datetime(2026, 7, 1, tzinfo=UTC)
    asked = installation.settings.calendar.periods(day - ONE, day + ONE)
    whole = []
    for one in asked:
        try:
            installation.settings.calendar.n_steps(one)
        except ParameterError:
            continue
        whole.append(one)
    installation.simulate(*whole)
    done = installation.release(*whole)
    failed = [one for one, work in done.items() if work.outcome.status is not Status.PUBLISHED]
    # Fourier plans a day of 23 hours by itself: the ledger has the next one wait for a window with headroom
    assert failed == ([day + ONE] if (name, zone) == ("Fourier", "Europe/Moscow") else [])
    assert [one for one in failed if installation.ledger.latest("two-regions", str(one))] == []
