"""Each channel is notified of an alarm once, and once that it is over; the event log; the last audit."""

import json
import random
from datetime import UTC, date, datetime, timedelta

from optstream.stream import Hour
from studies.audit.run import keep_audit
from tasks.monitor import alarms as monitored
from tasks.monitor.alarms import Kind
from tasks.monitor.facts import last_audit
from tasks.monitor.notify import (
    FILE,
    LOGGED,
    heard,
    line_of,
    log_transitions,
    news_for,
    read_memory,
    seen,
    write_memory,
)
from tasks.trusted.files import append_lines
from tests.tasks.monitor.conftest import FIRST
from tests.tasks.pages.snapshots import AT
from tests.tasks.pages.snapshots import alarm as an_alarm

NOW = datetime(2016, 6, 3, tzinfo=UTC)
DAYS = [FIRST + timedelta(days=number) for number in range(4)]


def alarm(day, kind=Kind.LATE, node=None, suggestion=None):
    return monitored.alarm(kind, "s", f"{day}: words", day, node, suggestion)


def test_over_random_nights_every_channel_hears_all_of_it_once():
    """What a channel was notified of, new minus over, is what lasts, whenever it was reachable at last."""
    chosen = random.Random(5)
    notified = 0
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
                notified += len(news.new)
                assert sorted(known) == sorted(one.key for one in alarms)
                assert not news_for(memory, channel)
        assert all(one.lasts for one in memory.values())
    assert notified > 1000


def test_an_old_archive_has_one_alarm_and_a_night_more_is_sent_alone(watched):
    """Also in the event log, which counts alarms as the notifications do."""
    watched.configure("[watch]", '[watch]\nlog = "trusted/events.jsonl"')
    watched.at("2016-11-29T12:00:00")
    found = watched.watch()
    (missing, late) = (one for one in found.joined if one.kind in (Kind.MISSING, Kind.LATE))
    assert (missing.day, missing.last, missing.number) == (FIRST, FIRST + timedelta(days=1), 2)
    assert (late.day, late.last, late.number) == (date(2016, 6, 3), date(2016, 11, 28), 179)
    assert late.words.startswith("179 days, 2016-06-03 to 2016-11-28; the last: 2016-11-28: the dump of ")
    memory = seen({}, found.alarms, ["a"], NOW)
    assert news_for(memory, "a").joined.new == found.joined
    assert log_transitions(watched.settings, {}, memory, NOW) is None
    lines = watched.settings.event_log_file.read_text().splitlines()
    assert len(lines) == len(found.joined)
    assert '{"key":"optstream.last","value":{"stringValue":"2016-11-28"}}' in lines[-1]
    after = seen(heard(memory, "a"), watched.at("2016-11-30T12:00:00").watch().alarms, ["a"], NOW)
    (news,) = news_for(after, "a").joined.new
    assert (news.day, news.last, news.number) == (date(2016, 11, 29), None, 1)


def test_a_suggestion_that_becomes_known_is_sent_again_once():
    unknown, known = ([alarm(FIRST, Kind.UNKNOWN_REGION, "AURA", leaf)] for leaf in (None, "84"))
    after = seen(heard(seen({}, unknown, ["a"], NOW), "a"), known, ["a"], NOW)
    assert [one.suggestion for one in news_for(after, "a").new] == ["84"]
    assert not news_for(seen(heard(after, "a"), known, ["a"], NOW), "a")


def test_what_was_sent_survives_on_disk_for_its_owner_alone(watched):
    settings = watched.settings
    file = settings.watch_folder / FILE
    hours = [alarm(Hour(FIRST, 13)), alarm(Hour(FIRST, 2, again=True))]
    several = heard(seen({}, [alarm(FIRST, node="84"), alarm(None, Kind.BLIND), *hours], ["a"], NOW), "a")
    one = seen({}, [monitored.alarm(Kind.EXPIRING, "s", "words", FIRST, "84", "11")], ["a"], NOW)
    for memory in (several, one):
        write_memory(settings, memory)
        assert read_memory(settings) == memory
    assert file.stat().st_mode & 0o777 == 0o600
    for spoilt in (b"", b"[]", b'{"format": "optstream.told/1", "alarms": [{"kind": "late"}]}', b"\xff"):
        file.write_bytes(spoilt)
        assert read_memory(settings) == {}


LATE = an_alarm(node="84")


def parts_of(line):
    document = json.loads(line)
    (resource,) = document["resourceLogs"]
    (scope,) = resource["scopeLogs"]
    (record,) = scope["logRecords"]
    return resource["resource"], record


def test_a_line_is_a_log_record_of_opentelemetry():
    resource, record = parts_of(line_of("alarm", LATE, AT))
    assert resource["attributes"][1] == {"key": "optstream.stream", "value": {"stringValue": "two-regions"}}
    assert record["timeUnixNano"] == f"{int(AT.timestamp())}000000000"
    assert (record["severityNumber"], record["severityText"]) == (17, "ERROR")
    assert record["eventName"] == "optstream.alarm.late"
    assert record["body"] == {"stringValue": LATE.words}
    attributes = {one["key"]: one["value"]["stringValue"] for one in record["attributes"]}
    assert attributes == {"optstream.kind": "late", "optstream.day": str(FIRST), "optstream.node": "84"}
    _, warning = parts_of(line_of("alarm", an_alarm(Kind.EXPIRING, None), AT))
    assert warning["severityText"] == "WARN"
    assert [one["key"] for one in warning["attributes"]] == ["optstream.kind"]
    assert parts_of(line_of("resolved", LATE, AT))[1]["severityText"] == "INFO"


def test_what_a_crash_left_of_a_line_spoils_no_other(tmp_path):
    file, lines = tmp_path / "events.jsonl", [line_of(what, LATE, AT) for what in ("alarm", "resolved")]
    file.write_bytes(b'{"resourceLogs":[{"reso')
    for line in lines:
        append_lines(file, [line])
    assert file.read_text().splitlines() == ['{"resourceLogs":[{"reso', *lines]


def test_each_event_of_the_ledger_is_logged_once_from_the_first_look_on(installation):
    """Also where the same look is repeated, and where the ledger is one from a backup."""
    installation.configure("[published]", '[watch]\nlog = "trusted/events.jsonl"\n[published]')
    settings = installation.settings
    logged = settings.watch_folder / LOGGED

    def look():
        assert log_transitions(settings, {}, {}, AT) is None
        if settings.event_log_file.exists():
            lines = settings.event_log_file.read_text().splitlines()
            return [parts_of(line)[1]["eventName"] for line in lines]
        return []

    assert look() == []  # there is no ledger yet
    installation.release(date(2016, 6, 1))
    copy, first = installation.copy_ledger(), look()
    kinds = ["reserved", "draw-begun", "drawn", "staged", "published"]
    assert [one.rpartition(".")[2] for one in first][-5:] == kinds
    assert look() == first
    installation.bring_back(copy)
    logged.write_text("1000")
    assert look() == first
    n_events = len(installation.ledger.events_of("two-regions"))
    assert logged.read_text() == str(n_events)
    logged.write_text(str(n_events - 1))
    assert look() == [*first, first[-1]]


EARLIER, LATER = datetime(2016, 5, 1, tzinfo=UTC), datetime(2016, 5, 2, tzinfo=UTC)


def test_the_newest_audit_counts_whichever_was_kept_last(watched):
    assert last_audit(watched.settings) is None
    path = keep_audit(watched.settings, {"passed": True}, LATER)
    keep_audit(watched.settings, {"passed": False}, EARLIER)
    assert last_audit(watched.settings) == (LATER, True, True)
    assert path.stat().st_mode & 0o777 == 0o600
    path.write_text("{")
    assert last_audit(watched.settings).at == EARLIER


def test_an_audit_that_failed_is_an_alarm_until_the_configuration_is_another(watched):
    watched.released(FIRST)
    watched.at("2016-06-02T12:00:00")
    keep_audit(watched.settings, {"passed": False}, LATER)
    assert watched.alarms() == [("audit", None, None)]
    watched.configure("n_samples = 10", "n_samples = 8")
    # points elsewhere: the windows over midnight would hold more of them, and the next day must wait
    assert watched.alarms() == [("budget", 2, None)]
    assert not last_audit(watched.settings).same
