"""Clock times of [watch], [schedule] and of a stream by the hour: what they mean in the stream's own zone."""

from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

from optstream.stream import Hour
from tasks.config.schema import next_fire
from tasks.monitor.facts import last_ended, late_from, max_runtime, raw_expires
from tests.tasks.two_regions import CONFIGURATION, released_by

HOUR = Hour(date(2016, 6, 1), 13)


def test_deadlines_are_of_the_stream_s_own_clock_also_when_it_changes(load_text):
    watch = '[watch]\nlate_after = "02:30"\nmax_runtime = "90min"\n'
    settings = load_text(CONFIGURATION + watch, ("[input]\n", "[input]\nraw_retention_days = 3\n"))
    assert late_from(settings, date(2016, 6, 1)).astimezone(UTC) == datetime(2016, 6, 2, 0, 30, tzinfo=UTC)
    # the day after is the one that has no half past two
    assert late_from(settings, date(2016, 3, 26)).astimezone(UTC) == datetime(2016, 3, 27, 1, 30, tzinfo=UTC)
    assert max_runtime(settings) == timedelta(minutes=90)
    ends = datetime(2016, 6, 4, 22, tzinfo=UTC)
    assert raw_expires(settings, date(2016, 6, 1)) == ends
    assert last_ended(settings, datetime(2016, 6, 1, 21, 59, tzinfo=UTC)) == date(2016, 5, 31)
    assert last_ended(settings, datetime(2016, 6, 1, 22, 0, tzinfo=UTC)) == date(2016, 6, 1)


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


def test_hours_have_their_steps_and_clocks(load_text):
    text = released_by("PeGaSus").replace("[mechanism]", 'period = "hour"\n[mechanism]')
    settings = load_text(
        text, ("[published]", '[watch]\nlate_after = "00:20"\n[published]\nnot_before = "01:00"')
    )
    assert settings.calendar.period == "hour"
    assert settings.period_lengths == (2,)
    assert settings.publish_from(HOUR) == datetime(2016, 6, 1, 13, tzinfo=UTC)  # 14:00 in Paris, and an hour
    assert settings.clock_after(HOUR, settings.watching.late_after) == datetime(
        2016, 6, 1, 12, 20, tzinfo=UTC
    )
    assert settings.local_period(datetime(2016, 6, 1, 11, 59, tzinfo=UTC)) == HOUR
    assert settings.scheduling.cron == "5 * * * *"
    scheduled = load_text(text, ("[published]", "[schedule]\ncatch_up_days = 3\n[published]"))
    assert scheduled.scheduling.cron == "5 * * * *"
