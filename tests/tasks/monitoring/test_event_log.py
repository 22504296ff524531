"""One line a transition, as OpenTelemetry has log records."""

import json
import stat
from datetime import timedelta

from tasks.monitoring import Kind, Severity
from tasks.monitoring.event_log import append_transitions, line_of, transitions
from tasks.monitoring.told import seen
from tests.tasks.ui.conftest import AT, FIRST, alarm

LATE, VOID = alarm(node="84"), alarm(Kind.VOID)


def test_an_alarm_begins_once_and_ends_once():
    """Whoever hears of it, and whether anybody does."""
    for channels in ((), ("events",)):
        memory, told = {}, []
        for alarms in ([LATE], [LATE], [LATE, VOID], [VOID], [], [], [LATE]):
            after = seen(memory, alarms, channels, AT)
            told.append([(what, one.kind) for what, one in transitions(memory, after)])
            memory = after
        assert told == [
            [("alarm", Kind.LATE)],
            [],
            [("alarm", Kind.VOID)],
            [("resolved", Kind.LATE)],
            [("resolved", Kind.VOID)],
            [],
            [("alarm", Kind.LATE)],
        ]


def record_of(what, one):
    document = json.loads(line_of(what, one, AT))
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
    warning = alarm(Kind.EXPIRING, severity=Severity.WARNING)
    assert record_of("alarm", warning)[1]["severityText"] == "WARN"
    assert record_of("resolved", LATE)[1]["severityText"] == "INFO"
    assert [one["key"] for one in record_of("alarm", alarm(day=None))[1]["attributes"]] == ["optstream.kind"]


def test_a_hostile_name_is_one_line():
    assert "\n" not in line_of("alarm", alarm(node='a\n"}{'), AT)


def test_lines_are_added_and_for_the_owner_alone(tmp_path):
    file = tmp_path / "new" / "events.jsonl"
    append_transitions(file, [], AT)
    assert not file.exists()
    append_transitions(file, [("alarm", LATE), ("alarm", VOID)], AT)
    append_transitions(file, [("resolved", LATE)], AT + timedelta(hours=1))
    assert [json.loads(line)["resourceLogs"] != [] for line in file.read_text().splitlines()] == [True] * 3
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_what_a_crash_left_of_a_line_spoils_no_other(tmp_path):
    file = tmp_path / "events.jsonl"
    file.write_bytes(b'{"resourceLogs":[{"reso')
    append_transitions(file, [("alarm", LATE)], AT)
    append_transitions(file, [("resolved", LATE)], AT)
    torn, *whole = file.read_text().splitlines()
    assert torn == '{"resourceLogs":[{"reso'
    assert [line_of("alarm", LATE, AT), line_of("resolved", LATE, AT)] == whole
