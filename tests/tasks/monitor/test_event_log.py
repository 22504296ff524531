"""One line a transition, as OpenTelemetry has log records."""

import json
from datetime import date

from tasks.monitor.alarms import Kind
from tasks.monitor.notify import LOGGED, append_lines, line_of, log_transitions
from tests.tasks.pages.snapshots import AT, FIRST, alarm

LATE, VOID = alarm(node="84"), alarm(Kind.VOID)


def record_of(what, one):
    return parts_of(line_of(what, one, AT))


def parts_of(line):
    document = json.loads(line)
    (resource,) = document["resourceLogs"]
    (scope,) = resource["scopeLogs"]
    (record,) = scope["logRecords"]
    return resource["resource"], record


def test_a_line_is_a_log_record_of_opentelemetry():
    resource, record = record_of("alarm", LATE)
    assert resource["attributes"][1] == {"key": "optstream.stream", "value": {"stringValue": "two-regions"}}
    assert record["timeUnixNano"] == f"{int(AT.timestamp())}000000000"
    assert (record["severityNumber"], record["severityText"]) == (17, "ERROR")
    assert record["eventName"] == "optstream.alarm.late"
    assert record["body"] == {"stringValue": LATE.words}
    attributes = {one["key"]: one["value"]["stringValue"] for one in record["attributes"]}
    assert attributes == {"optstream.kind": "late", "optstream.day": str(FIRST), "optstream.node": "84"}
    warning = alarm(Kind.EXPIRING)
    assert record_of("alarm", warning)[1]["severityText"] == "WARN"
    assert record_of("resolved", LATE)[1]["severityText"] == "INFO"
    assert [one["key"] for one in record_of("alarm", alarm(day=None))[1]["attributes"]] == ["optstream.kind"]


def test_what_a_crash_left_of_a_line_spoils_no_other(tmp_path):
    file = tmp_path / "events.jsonl"
    file.write_bytes(b'{"resourceLogs":[{"reso')
    append_lines(file, [line_of("alarm", LATE, AT)])
    append_lines(file, [line_of("resolved", LATE, AT)])
    torn, *whole = file.read_text().splitlines()
    assert torn == '{"resourceLogs":[{"reso'
    assert [line_of("alarm", LATE, AT), line_of("resolved", LATE, AT)] == whole


def names(file):
    return [parts_of(line)[1]["eventName"] for line in file.read_text().splitlines()]


def test_each_event_of_the_ledger_is_logged_once_from_the_first_look_on(installation):
    """Also where the same look is repeated, and where the ledger is one from a backup."""
    installation.configure("[published]", '[watch]\nlog = "trusted/events.jsonl"\n[published]')
    settings = installation.settings

    def look():
        assert log_transitions(installation.settings, {}, {}, AT) is None

    look()  # there is no ledger yet
    installation.release(date(2016, 6, 1))
    copy = installation.copy_ledger()
    look()
    first = names(settings.event_log_file)
    assert [one.rpartition(".")[2] for one in first][-5:] == [
        "reserved", "draw-begun", "drawn", "staged", "published",
    ]  # fmt: skip
    look()
    assert names(settings.event_log_file) == first
    installation.bring_back(copy)
    (settings.watch_folder / LOGGED).write_text("1000")
    look()
    assert names(settings.event_log_file) == first
    n_events = len(installation.ledger.events_of("two-regions"))
    assert (settings.watch_folder / LOGGED).read_text() == str(n_events)
    (settings.watch_folder / LOGGED).write_text(str(n_events - 1))
    look()
    assert names(settings.event_log_file) == [*first, first[-1]]
