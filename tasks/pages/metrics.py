"""Metrics for Prometheus, never a reading; run times depend on readings, so collectors are trusted."""

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime

from prometheus_client import CollectorRegistry, Gauge, generate_latest

from tasks.monitor.alarms import Kind, Severity
from tasks.monitor.days import State
from tasks.monitor.facts import Work
from tasks.pages.snapshot import Night, Snapshot, StreamRun, length_of

HELP = {
    "optstream_look_success": "1 if the newest look at the stream succeeded, else 0.",
    "optstream_look_timestamp_seconds": "When the stream was last seen.",
    "optstream_night_look_ended_timestamp_seconds": "When the last look of a night ended, whatever it did.",
    "optstream_watch_ended_timestamp_seconds": "When the last watch of the stream ended.",
    "optstream_last_success_timestamp_seconds": "When a day of the stream was last published.",
    "optstream_newest_day_age_seconds": "Since the newest published day ended.",
    "optstream_days": "Days of the stream by their state.",
    "optstream_window_epsilon_granted": "What any window may lose.",
    "optstream_window_epsilon_charged": "Charged to the fullest window; +Inf where noise was compromised.",
    "optstream_window_epsilon_headroom": "Left in the fullest window; -Inf where noise was compromised.",
    "optstream_run_seconds": "Of the newest published day, from its reservation to its publication.",
    "optstream_step_seconds": "Of each step of the newest run that has ended.",
    "optstream_alarms": "Alarms and warnings by kind, without those that depend on readings.",
}
"""Every metric, by name; docs/grafana.json asks for no other."""
METRICS: dict[Work, str] = {
    "look": "optstream_night_look_ended_timestamp_seconds",
    "watch": "optstream_watch_ended_timestamp_seconds",
}
"""Of when a piece of scheduled work ended last."""


LABELS = {
    "optstream_days": ["state"],
    "optstream_step_seconds": ["step"],
    "optstream_alarms": ["kind", "severity"],
}


def metrics_text(snapshots: Sequence[Snapshot], now: datetime) -> bytes:
    """Return the metrics of these streams in Prometheus' text format, ages counted to now."""
    registry = CollectorRegistry()
    gauges = {
        name: Gauge(name, words, ["stream", *LABELS.get(name, [])], registry=registry)
        for name, words in HELP.items()
    }
    for snapshot in snapshots:
        for name, more, value in samples(snapshot, now):
            gauges[name].labels(snapshot.stream, *more).set(value)
    return generate_latest(registry)


Sample = tuple[str, tuple[str, ...], float]


def samples(snapshot: Snapshot, now: datetime) -> Iterable[Sample]:
    """Yield name, labels beside the stream's, and value of each metric of one stream."""
    yield "optstream_look_success", (), float(snapshot.problem is None)
    for work, at in snapshot.ended.items():
        yield METRICS[work], (), at.timestamp()
    view, settings = snapshot.view, snapshot.settings
    if view is None or settings is None:
        return
    yield "optstream_look_timestamp_seconds", (), snapshot.at.timestamp()
    days = Counter(day.state for day in view.days)
    for state in State:
        yield "optstream_days", (state.value,), float(days[state])
    alarms = Counter((alarm.kind, alarm.severity) for alarm in view.alarms)
    for kind in Kind:
        if not kind.depends_on_readings:
            for severity in Severity:
                yield "optstream_alarms", (kind.value, severity.value), float(alarms[kind, severity])
    budget = view.facts.budget
    yield "optstream_window_epsilon_granted", (), budget.told(budget.grant)
    yield "optstream_window_epsilon_charged", (), budget.told(budget.spent)
    yield "optstream_window_epsilon_headroom", (), budget.told(budget.grant) - budget.told(budget.spent)
    listed = [day.day for day in view.days if day.listed is not None]
    if listed:
        ended = settings.calendar.ends_at(max(listed))
        yield "optstream_newest_day_age_seconds", (), (now - ended).total_seconds()
    yield from _of_nights(list(snapshot.nights.values()))
    yield from _of_steps(snapshot.runs or (), now)


def _of_nights(nights: Sequence[Night]) -> Iterable[Sample]:
    ended = [
        (one.published, one.took) for one in nights if one.published is not None and one.took is not None
    ]
    if ended:
        at, took = max(ended)
        yield "optstream_last_success_timestamp_seconds", (), at.timestamp()
        yield "optstream_run_seconds", (), took.total_seconds()


def _of_steps(runs: Sequence[StreamRun], now: datetime) -> Iterable[Sample]:
    """Of a chunk of several days a step runs more than once."""
    newest = next((run for run in runs if run.ends is not None and run.steps), None)
    took: dict[str, float] = {}
    for step in () if newest is None else newest.steps:
        took[step.name] = took.get(step.name, 0.0) + length_of(step, now).total_seconds()
    for name, seconds in took.items():
        yield "optstream_step_seconds", (name,), seconds
