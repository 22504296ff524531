"""When a cron of [schedule] fires next."""

from datetime import datetime
from zoneinfo import ZoneInfo

from tasks.config.schema import next_fire


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
