"""The table [schedule]: a stream may go without it, its keys are checked, and no release depends on it."""

from datetime import datetime
from zoneinfo import ZoneInfo

import pytest

from tasks.config.schema import next_fire
from tests.tasks.config.refused import refused
from tests.tasks.two_regions import CONFIGURATION


@pytest.fixture
def load(load_text):
    """Load a configuration with these lines at its end."""
    return lambda lines="": load_text(f"{CONFIGURATION}\n{lines}\n")


@pytest.mark.parametrize(
    "cron",
    [
        "0 3 * *",
        "0 3 * * * *",
        "0  3 * * *",
        "60 3 * * *",
        "0 24 * * *",
        "0 3 0 * *",
        "0 3 * 13 *",
        "0 3 * * 8",
        "0 3 * * mon",
        "@daily",
        "5/10 3 * * *",
        "*/0 3 * * *",
        "9-3 3 * * *",
        "0,, 3 * * *",
        "0 3 31 2 *",
        "",
    ],
)
def test_other_crons_are_refused(load, cron):
    told = refused(load, f'[schedule]\ncron = "{cron}"')
    assert "schedule.cron must be five fields of numbers" in told


def test_a_cron_fires_next_when_cron_says_by_the_clock_of_its_zone():
    zone = ZoneInfo("Europe/Paris")
    for cron, after, fires in (
        ("5 * * * *", "2026-03-01T00:05", "2026-03-01T01:05"),
        ("*/20 3-9/3 * * *", "2026-03-01T03:41", "2026-03-01T06:00"),
        ("0 0 31 12 *", "2026-03-01T00:00", "2026-12-31T00:00"),
        ("1 1 * * 7", "2026-03-01T01:01", "2026-03-08T01:01"),
        ("1 1 5 * 1", "2026-03-03T00:00", "2026-03-05T01:01"),
        ("30 2 * * *", "2026-03-28T02:30", "2026-03-29T03:00"),  # the 29th has no half past two
        ("1 1 29 2 *", "2026-03-01T00:00", "2028-02-29T01:01"),
    ):
        found = next_fire([cron], datetime.fromisoformat(after).replace(tzinfo=zone))
        assert f"{found:%Y-%m-%dT%H:%M}" == fires, cron


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ("look_every_minutes = 10", "schedule.look_every_minutes must be left out: a night looks each half"),
        ("catch_up_days = 0", "schedule.catch_up_days must be a number of days, an integer in [1, 366]"),
        ("port = 4200", "schedule.port must be left out: `optstream serve` takes a free port"),
        ('crons = "0 3 * * *"', "schedule.crons is not a known key; did you mean cron?"),
        ('cron = "0 12 * * *"', "schedule.cron must begin before watch.late_after, 12:00, until which"),
    ],
)
def test_wrong_keys_are_named_with_their_legal_range(load, lines, message):
    assert message in refused(load, f"[schedule]\n{lines}")
