"""How flows and steps are called: as runs and tasks of Prefect or plainly, with a configuration read once."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from functools import wraps
from pathlib import Path
from time import sleep
from typing import Any, Protocol, TypeVar

from prefect import Task
from prefect.cache_policies import NO_CACHE
from prefect.context import FlowRunContext
from prefect.runtime import flow_run
from prefect.settings import PREFECT_API_URL, PREFECT_FLOWS_HEARTBEAT_FREQUENCY, temporary_settings

from optstream.errors import LedgerUnavailableError, OptStreamError
from tasks.config import Settings, load_settings
from tasks.release.run import Run
from tasks.release.stages import Ended, Stage, Status

PAUSES, STEP_PAUSES = (2.0, 10.0), (2.0, 2.0)
"""Seconds before work is repeated that the ledger's database refused, and a step that is safe to repeat."""
FLOW: dict[str, Any] = {"persist_result": False, "retries": 0, "validate_parameters": False}
"""Of every flow: no result on disk, and no repeat, which could draw noise again."""
STEP: dict[str, Any] = {"retries": 0, "cache_policy": NO_CACHE, "persist_result": False}
"""Of every task, which may take and give raw values: no result on disk, no hash of an input, no repeat."""
Value = TypeVar("Value")
At = TypeVar("At", bound=Stage)
Next = TypeVar("Next", bound=Stage)


class Watcher(Protocol):
    """Whoever is shown how far a run is, such as a terminal."""

    def step(self, label: str) -> AbstractContextManager[None]:
        """Show that a step is under way until the block ends."""


WATCHER: ContextVar[Watcher | None] = ContextVar("watcher", default=None)
_LOADED: ContextVar[Settings | None] = ContextVar("settings", default=None)
_ONE_RUN: ContextVar[bool] = ContextVar("no runs and tasks below the run under way", default=False)


def in_prefect() -> bool:
    """Whether this is called in a flow run that is to have tasks, artifacts and log lines of its own."""
    return FlowRunContext.get() is not None and not _ONE_RUN.get()


def with_prefect() -> bool:
    """Whether flows are to be runs on a server: one is configured."""
    return bool(PREFECT_API_URL.value()) and not _ONE_RUN.get()


@contextmanager
def bound(variable: ContextVar[Value], value: Value) -> Iterator[None]:
    """Have a variable this value in the block."""
    token = variable.set(value)
    try:
        yield
    finally:
        variable.reset(token)


@contextmanager
def configured(config: str, settings: Settings | None = None) -> Iterator[Settings]:
    """Yield the configuration of a file, read once, also to flows that are called inside. settings: of a
    caller that has read it. Raises ConfigurationError as `load_settings`.
    """
    known = settings or _LOADED.get()
    if known is None or known.file != Path(config).absolute():
        known = load_settings(Path(config))
    with bound(_LOADED, known):
        yield known


def in_one_run() -> AbstractContextManager[None]:
    """Have what is called in the block make no runs and no tasks: Prefect is asked several times for each,
    which takes longer than an hour's release.
    """
    return bound(_ONE_RUN, True)


def no_heartbeat() -> AbstractContextManager[Any]:
    """Send no heartbeats, for flows that somebody watches: their thread holds up the end of a short one."""
    return temporary_settings({PREFECT_FLOWS_HEARTBEAT_FREQUENCY: None})


def persevering(work: Callable[[], Value]) -> Value:
    """Do what is safe to repeat, some times more where the ledger's database does not answer."""
    for pause in PAUSES:
        try:
            return work()
        except LedgerUnavailableError:
            sleep(pause)
    return work()


def taken(step: Task[[Run, Sequence[At]], list[Next]], run: Run, days: Sequence[At]) -> list[Next]:
    """Take days one step on: as a task of the flow run, or plainly outside of one. No task for no day."""
    n_days = sum(not isinstance(day, Ended) for day in days)
    if not n_days:
        return step.fn(run, days)
    watcher = WATCHER.get()
    label = f"{step.name}, {n_days} {run.settings.stream.period}{'' if n_days == 1 else 's'}"
    with watcher.step(label) if watcher else nullcontext():
        return step(run, days) if in_prefect() else step.fn(run, days)


def repeated(step: Callable[[Run, Sequence[At]], list[Next]]) -> Callable[[Run, Sequence[At]], list[Next]]:
    """Return a step that is done again where a day failed: days end as values, so Prefect sees no failure."""

    @wraps(step)
    def attempt(run: Run, days: Sequence[At]) -> list[Next]:
        for pause in STEP_PAUSES:
            done = step(run, days)
            pairs = zip(days, done, strict=True)
            if not any(_is_failed(now) and not isinstance(day, Ended) for day, now in pairs):
                return done
            sleep(pause)
        return step(run, days)

    return attempt


def _is_failed(day: Stage) -> bool:
    return isinstance(day, Ended) and day.outcome.status is Status.FAILED


# What runs are called on the orchestrator's pages: stream and days, so that a list of runs can be read.

TAG = "optstream"


def tags_of(stream: str) -> tuple[str, ...]:
    """The tags of a stream's runs: to list those of one stream, or all of OptStream's."""
    return (TAG, f"stream:{stream}")


def release_name() -> str:
    """ "french-load 2016-02-01", or with the first and the last of several days."""
    parameters = flow_run.parameters
    return f"{_stream(parameters)} {span_of(parameters.get('days') or [])}".strip()


def backfill_name() -> str:
    """ "french-load backfill 2016-02-01 to 2016-03-31"."""
    parameters = flow_run.parameters
    return f"{_stream(parameters)} backfill {span_of([parameters['first'], parameters['last']])}"


def night_name() -> str:
    """ "french-load night": which days it takes up, it sees for itself; its subflows are called by them."""
    return f"{_stream(flow_run.parameters)} night"


def nights_name() -> str:
    """ "electricity, gas night": of several streams; each has a run of its own below it."""
    streams = ", ".join(map(stream_of, flow_run.parameters["configs"]))
    return f"{streams} night"


def span_of(days: list[str]) -> str:
    """One day, or the first and the last."""
    if not days:
        return ""
    first, last = min(days), max(days)
    return first if first == last else f"{first} to {last}"


def _stream(parameters: dict[str, Any]) -> str:
    """The stream's name, by the run's tag, else by the configuration; if that fails, the run says why."""
    prefix = "stream:"
    for tag in flow_run.tags:
        if tag.startswith(prefix):
            return str(tag.removeprefix(prefix))
    return stream_of(parameters["config"])


def stream_of(config: str) -> str:
    """The stream's name, by its configuration; "optstream" if that cannot be read."""
    try:
        return load_settings(Path(config)).stream.name
    except OptStreamError:
        return "optstream"
