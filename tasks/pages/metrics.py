"""Metrics for Prometheus, never a reading; run times depend on readings, so collectors are trusted."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from datetime import datetime

from prometheus_client import CollectorRegistry, Gauge, generate_latest

from tasks.monitor.alarms import Kind, Severity
from tasks.monitor.days import State
from tasks.pages.snapshot import Snapshot, length_of

METRICS = {  # without "optstream_"; docs/grafana.json asks for no other
    "look_success": "1 if the newest look at the stream succeeded, else 0.",
    "look_timestamp_seconds": "When the stream was last seen.",
    "night_look_ended_timestamp_seconds": "When the last look of a night ended, whatever it did.",
    "watch_ended_timestamp_seconds": "When the last watch of the stream ended.",
    "last_success_timestamp_seconds": "When a day of the stream was last published.",
    "newest_day_age_seconds": "Since the newest published day ended.",
    "days": "Days of the stream by their state.",
    "window_epsilon_granted": "What any window may lose.",
    "window_epsilon_charged": "Charged to the fullest window; +Inf where noise was compromised.",
    "window_epsilon_headroom": "Left in the fullest window; -Inf where noise was compromised.",
    "run_seconds": "Of the newest published day, from its reservation to its publication.",
    "step_seconds": "Of each step of the newest run that has ended.",
    "alarms": "Alarms and warnings by kind, without those that depend on readings.",
}
LABELS = {"days": ["state"], "step_seconds": ["step"], "alarms": ["kind", "severity"]}


def metrics_text(snapshots: Sequence[Snapshot], now: datetime) -> bytes:
    """Return the metrics of these streams in Prometheus' text format, ages counted to now."""
    registry = CollectorRegistry()
    gauges = {
        name: Gauge(f"optstream_{name}", words, ["stream", *LABELS.get(name, [])], registry=registry)
        for name, words in METRICS.items()
    }
    for snapshot in snapshots:
        for name, more, value in _samples(snapshot, now):
            gauges[name].labels(snapshot.stream, *more).set(value)
    return generate_latest(registry)


def _samples(snapshot: Snapshot, now: datetime) -> Iterator[tuple[str, tuple[str, ...], float]]:
    """Yield name, labels after the stream's, and value of each metric of one stream."""
    yield "look_success", (), float(snapshot.problem is None)
    for work, at in snapshot.ended.items():
        yield f"{'night_look' if work == 'look' else work}_ended_timestamp_seconds", (), at.timestamp()
    view, settings = snapshot.view, snapshot.settings
    if view is None or settings is None:
        return
    yield "look_timestamp_seconds", (), snapshot.at.timestamp()
    for state in State:
        yield "days", (state.value,), float(view.counts.get(state, 0))
    alarms = Counter((alarm.kind, alarm.severity) for alarm in view.joined)
    for kind in Kind:
        for severity in () if kind.depends_on_readings else Severity:
            yield "alarms", (kind.value, severity.value), float(alarms[kind, severity])
    budget = view.facts.budget
    yield "window_epsilon_granted", (), budget.in_epsilon(budget.grant)
    yield "window_epsilon_charged", (), budget.in_epsilon(budget.spent)
    yield "window_epsilon_headroom", (), budget.in_epsilon(budget.grant) - budget.in_epsilon(budget.spent)
    listed = [day.day for day in view.days if day.listed is not None]
    if listed:
        ended = settings.calendar.ends_at(max(listed))
        yield "newest_day_age_seconds", (), (now - ended).total_seconds()
    nights = [(one.published, one.took) for one in snapshot.nights.values()]
    if done := [(at, took) for at, took in nights if at is not None and took is not None]:
        at, took = max(done)
        yield "last_success_timestamp_seconds", (), at.timestamp()
        yield "run_seconds", (), took.total_seconds()
    newest = next((run for run in snapshot.runs or () if run.ends is not None and run.steps), None)
    seconds: defaultdict[str, float] = defaultdict(float)
    for step in newest.steps if newest else ():
        # of a chunk of several days a step runs more than once
        seconds[step.name] += length_of(step, now).total_seconds()
    for name, length in seconds.items():
        yield "step_seconds", (name,), length
