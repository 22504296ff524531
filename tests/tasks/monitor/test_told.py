"""Each channel hears of an alarm once, and once that it is over: by brute force over random nights."""

import random
from datetime import UTC, date, datetime, timedelta

from optstream.stream import Hour
from studies.audit.run import keep_audit
from tasks.monitor import alarms as monitored
from tasks.monitor.alarms import Kind
from tasks.monitor.facts import last_audit
from tasks.monitor.notify import FILE, heard, news_for, read_told, seen, write_told
from tests.tasks.monitor.conftest import FIRST

NOW = datetime(2016, 6, 3, tzinfo=UTC)
DAYS = [date(2016, 6, 1) + timedelta(days=number) for number in range(4)]


def alarm(day, kind=Kind.LATE, node=None, suggestion=None):
    return monitored.alarm(kind, "s", f"{day}: words", day, node, suggestion)


def test_over_random_nights_every_channel_hears_all_of_it_once():
    """What a channel was told, new minus over, is what lasts, whenever it was reachable at last."""
    chosen = random.Random(5)
    told_at_all = 0
    for _ in range(300):
        memory, knows = {}, {"a": [], "b": []}
        for night in range(8):
            alarms = [alarm(day) for day in DAYS if chosen.random() < 0.5]
            memory = seen(memory, alarms, knows, NOW + timedelta(hours=night))
            for channel, known in knows.items():
                if night < 7 and chosen.random() < 0.4:
                    continue  # it does not answer tonight
                news = news_for(memory, channel)
                for one in news.new:
                    assert one.key not in known
                    known.append(one.key)
                for one in news.over:
                    known.remove(one.key)
                memory = heard(memory, channel)
                told_at_all += len(news.new)
                assert sorted(known) == sorted(one.key for one in alarms)
                assert not news_for(memory, channel)
        assert all(told.lasts for told in memory.values())
    assert told_at_all > 1000


def test_a_suggestion_that_becomes_known_is_told_again():
    before = seen({}, [alarm(DAYS[0], Kind.UNKNOWN_REGION, "AURA")], ["a"], NOW)
    before = heard(before, "a")
    after = seen(before, [alarm(DAYS[0], Kind.UNKNOWN_REGION, "AURA", "84")], ["a"], NOW)
    assert [one.suggestion for one in news_for(after, "a").new] == ["84"]
    assert not news_for(
        seen(heard(after, "a"), [alarm(DAYS[0], Kind.UNKNOWN_REGION, "AURA", "84")], ["a"], NOW), "a"
    )


def test_what_was_told_survives_on_disk_for_its_owner_alone(watched):
    settings = watched.settings
    hours = [alarm(Hour(DAYS[0], 13)), alarm(Hour(DAYS[0], 2, again=True))]
    memory = seen({}, [alarm(DAYS[0], node="84"), alarm(None, Kind.BLIND), *hours], ["a"], NOW)
    memory = heard(memory, "a")
    write_told(settings, memory)
    assert read_told(settings) == memory
    assert (settings.watch_folder / FILE).stat().st_mode & 0o777 == 0o600
    for spoilt in (b"", b"[]", b'{"format": "optstream.told/1", "alarms": [{"kind": "late"}]}', b"\xff"):
        (settings.watch_folder / FILE).write_bytes(spoilt)
        assert read_told(settings) == {}


STORED = """\
{
 "format": "optstream.told/1",
 "alarms": [
  {
   "kind": "expiring",
   "severity": "warning",
   "stream": "s",
   "day": "2016-06-01",
   "node": "84",
   "suggestion": "11",
   "words": "words",
   "since": "2016-06-03T00:00:00+00:00",
   "lasts": true,
   "heard": []
  }
 ]
}"""
"""As it was on 2026-11-22."""


def test_what_was_told_is_stored_as_ever(watched):
    full = monitored.alarm(Kind.EXPIRING, "s", "words", DAYS[0], "84", "11")
    memory = seen({}, [full], ["a"], NOW)
    write_told(watched.settings, memory)
    assert (watched.settings.watch_folder / FILE).read_text() == STORED
    assert read_told(watched.settings) == memory


EARLIER, LATER = datetime(2016, 5, 1, tzinfo=UTC), datetime(2016, 5, 2, tzinfo=UTC)


def test_the_newest_counts_whichever_was_kept_last(watched):
    assert last_audit(watched.settings) is None
    path = keep_audit(watched.settings, {"passed": True}, LATER)
    keep_audit(watched.settings, {"passed": False}, EARLIER)
    record = last_audit(watched.settings)
    assert (record.at, record.passed, record.same) == (LATER, True, True)
    assert path.stat().st_mode & 0o777 == 0o600
    path.write_text("{")
    assert last_audit(watched.settings).at == EARLIER


def test_one_that_failed_is_an_alarm_until_the_configuration_is_another(watched):
    watched.released(FIRST)
    watched.at("2016-06-02T12:00:00")
    keep_audit(watched.settings, {"passed": False}, LATER)
    assert watched.alarms() == [("audit", None, None)]
    watched.configure("n_samples = 10", "n_samples = 8")
    # points elsewhere: the windows over midnight would hold more of them, and the next day must wait
    assert watched.alarms() == [("budget", 2, None)]
    assert not last_audit(watched.settings).same
