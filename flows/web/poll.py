"""The loop that looks at every stream and its runs, so that no request waits for a ledger; and metrics."""

import logging
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timedelta
from pathlib import Path
from threading import Event
from typing import Any
from urllib.parse import urlsplit

from prometheus_client import CollectorRegistry, Gauge, generate_latest

from flows.orchestration.environment import Api, tags_of
from optstream.errors import OptStreamError
from tasks.monitor.alarms import Kind, Severity
from tasks.monitor.days import State
from tasks.pages.snapshot import RunLink, RunStep, Snapshot, StreamRun, length_of, take_snapshot

RunsOf = Callable[[str, date | None], tuple[StreamRun, ...]]  # the last runs of a stream, or those of a day
LOG = logging.getLogger("optstream.ui")
MOST_ROUNDS_LATE = 10
IDLE = timedelta(minutes=15)


class UnknownStreamError(OptStreamError):
    """No configuration describes a stream of this name."""


@dataclass
class Looks:
    """The newest look at each stream; `seconds` between two rounds, `textfile` for the node exporter."""

    configurations: Sequence[Path]
    seconds: float
    clock: Callable[[], datetime]
    textfile: Path | None = None
    runs: RunsOf | None = None
    asked: datetime = field(init=False)  # when the last request came, or this began
    _found: dict[Path, Snapshot] = field(default_factory=dict, init=False)
    _ended: datetime | None = field(default=None, init=False)
    _unwritten: str | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        self.asked = self.clock()

    @property
    def snapshots(self) -> tuple[Snapshot, ...]:
        """The newest of each stream that was looked at."""
        return tuple(self._found.values())

    def of(self, stream: str) -> Snapshot:
        """The newest look at a stream. Raises UnknownStreamError for one that is not shown."""
        for found in self.snapshots:
            if found.stream == stream:
                return found
        raise UnknownStreamError(f"no stream {stream!r:.80} is shown here")

    def runs_on(self, found: Snapshot, day: date) -> tuple[tuple[StreamRun, ...], str]:
        """Return the runs that had a day, and why not or ""; one that did not answer lately is not asked."""
        if self.runs is None or found.runs_problem is not None:
            return (), found.runs_problem or ""
        asked = _with_runs(found, self.runs, day)
        return asked.runs or (), asked.runs_problem or ""

    @property
    def is_alive(self) -> bool:
        """Whether a round ended lately."""
        late = MOST_ROUNDS_LATE * self.seconds
        return self._ended is not None and (self.clock() - self._ended).total_seconds() < late

    @property
    def is_idle(self) -> bool:
        """Whether nobody asked for anything for `IDLE`."""
        return self.clock() - self.asked > IDLE

    def metrics(self) -> bytes:
        return metrics_text(self.snapshots, self.clock())

    def look(self) -> None:
        """Look at every stream once; then write the text file, if there is one and it can be written."""
        for file in self.configurations:
            found = take_snapshot(file, self.clock(), self._found.get(file))
            self._found[file] = found if self.runs is None else _with_runs(found, self.runs)
        self._ended = self.clock()
        if self.textfile is not None:
            self._write(self.textfile)

    def _write(self, file: Path) -> None:
        """Replace the text file in one step, read at any moment; log once why that cannot be."""
        problem, part = None, file.with_name(f".{file.name}.part")
        try:
            part.write_bytes(self.metrics())
            part.replace(file)
        except OSError as error:
            problem = error.strerror or type(error).__name__
        if problem not in (None, self._unwritten):
            LOG.warning("%s cannot be written (%s): fix its folder or disk", file, problem)
        self._unwritten = problem

    def run(self, stop: Event) -> None:
        while not stop.is_set():
            self.look()
            stop.wait(self.seconds)


def _with_runs(snapshot: Snapshot, runs: RunsOf, day: date | None = None) -> Snapshot:
    """The snapshot with the stream's runs, or those of a day, or with why they are not known."""
    try:
        return replace(snapshot, runs=runs(snapshot.stream, day), runs_problem=None)
    except Exception as error:  # noqa: BLE001 - the pages outlive the orchestrator; an address may be a secret
        problem = f"Prefect's API did not answer ({type(error).__name__})"
        return replace(snapshot, runs=(), runs_problem=problem)


# The last runs of a stream, or those of a day, from Prefect's API.

MOST_RUNS, MOST_STEPS = 14, 200
MOST_OF_MONTH = 200  # runs that are asked for to find those of a day: what Prefect gives at once
FLOWS = ("optstream-release", "optstream-backfill", "optstream-nightly")
"""Those that release. The watch runs every hour, and would leave no room for them."""

Found = Mapping[str, Any]  # a run of a flow or a task, as the API has it


def runs_of(api: Api, stream: str, day: date | None = None) -> tuple[StreamRun, ...]:
    """Return runs of a stream, or of a day, that began, the newest first. Raises OSError or ValueError."""
    wanted: dict[str, Any] = {"tags": {"all_": list(tags_of(stream))}, "start_time": {"is_null_": False}}
    if day is not None:
        # a name has the first and the last day: of a run over three months or more its middle is not found
        wanted["name"] = {"like_": f"{day:%Y-%m}-"}
    query = {
        "flows": {"name": {"any_": FLOWS}},
        "flow_runs": wanted,
        "sort": "START_TIME_DESC",
        "limit": MOST_RUNS if day is None else MOST_OF_MONTH,
    }
    found = api.ask("flow_runs/filter", query)
    runs = [run for run in found if day is None or names_day(run["parameters"], day)][:MOST_RUNS]
    if not runs:
        return ()
    begun = {"start_time": {"is_null_": False}}
    steps = _tasks(api, begun, flow_runs={"id": {"any_": [run["id"] for run in runs]}})
    parents = _parents(api, runs)
    return tuple(_run(api, run, steps, parents) for run in runs)


def names_day(parameters: Mapping[str, Any], day: date) -> bool:
    """Whether a run with these parameters was asked for this day: by name, or between a first and a last."""
    words = day.isoformat()
    if "days" in parameters:
        return words in (parameters["days"] or ())
    return bool(str(parameters.get("first", "~")) <= words <= str(parameters.get("last", "")))


def _tasks(api: Api, wanted: Mapping[str, Any], **others: Any) -> list[Found]:
    found: list[Found] = api.ask("task_runs/filter", {"task_runs": wanted, "limit": MOST_STEPS, **others})
    return found


def _parents(api: Api, runs: Sequence[Found]) -> dict[str, RunLink]:
    """By the run that each started: Prefect has a task in the parent that stands for it."""
    stands_for = {run["parent_task_run_id"]: run["id"] for run in runs if run["parent_task_run_id"]}
    if not stands_for:
        return {}
    standing = _tasks(api, {"id": {"any_": list(stands_for)}})
    started_by = {stands_for[one["id"]]: one["flow_run_id"] for one in standing if one["flow_run_id"]}
    wanted = {"flow_runs": {"id": {"any_": list(set(started_by.values()))}}}
    known = {run["id"]: _link(api, run) for run in api.ask("flow_runs/filter", wanted)}
    return {run: known[parent] for run, parent in started_by.items() if parent in known}


def _run(api: Api, run: Found, steps: Sequence[Found], parents: Mapping[str, RunLink]) -> StreamRun:
    own = (
        # without what Prefect adds: "look up-3f2"
        RunStep(step["name"].rpartition("-")[0] or step["name"], begins, _at(step["end_time"]))
        for step in steps
        if step["flow_run_id"] == run["id"] and (begins := _at(step["start_time"])) is not None
    )
    begins, parent, state = _at(run["start_time"]), parents.get(run["id"]), run["state_name"] or ""
    assert begins is not None  # asked for
    return StreamRun(run["name"], state, begins, _at(run["end_time"]), (*own,), _link(api, run).page, parent)


def _at(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)


def _link(api: Api, run: Found) -> RunLink:
    return RunLink(run["name"], f"{_site_of(api.url)}/runs/flow-run/{run['id']}")


def _site_of(api: str) -> str:
    """Where the server's pages are; without a user and a password, which pages of ours do not show."""
    parts = urlsplit(api.rstrip("/").removesuffix("/api"))
    return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()


# Metrics for Prometheus, never a reading; run times depend on readings, so collectors are trusted.

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
