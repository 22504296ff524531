"""How `serve` sees that what it runs still works: pulses of server and worker, and watches of its own.

Neither needs what it looks at: the pulse is read in a thread, and no Prefect server runs the watches.
"""

import os
import socket
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from threading import Event, Thread
from time import monotonic
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

from flows.orchestration.processes import LOOK_SECONDS, Child, begin
from optstream.errors import ConfigurationError
from tasks.config import Settings
from tasks.config.schema import next_fire
from tasks.monitor.records import LONGEST_WATCH, last_end

if TYPE_CHECKING:
    from prefect.client.orchestration import SyncPrefectClient

HANG_SECONDS = 180.0
"""Without a pulse, and `serve` ends: a heartbeat is due every 30 s, a poll every 15 s."""
PULSE_SECONDS = 10.0
"""Between two looks at the pulse, and for the server to answer each."""
MADE_UP = timedelta(days=1)
"""A watch that was missed for not longer than this is made up for."""
Pulse = Callable[[], Mapping[str, object]]
"""Returns values that change while server and worker work; raises where the server does not answer."""


class Supervisor:
    """Follows a pulse in a thread of its own. hang_seconds: how long a value may stay as it is."""

    def __init__(self, pulse: Pulse, hang_seconds: float = HANG_SECONDS) -> None:
        self.pulse, self.hang_seconds = pulse, hang_seconds
        self._answered = monotonic()
        self._values: dict[str, tuple[object, float]] = {}
        self._problem = ""
        self._stop = Event()
        Thread(target=self._follow, daemon=True).start()

    def check(self) -> None:
        """Raise ConfigurationError if the server did not answer, or a value did not change, for too long."""
        now = monotonic()
        silent = {name: now - since for name, (_, since) in list(self._values.items())}
        unanswered = now - self._answered
        if max(unanswered, *silent.values(), 0.0) <= self.hang_seconds:
            return
        what = f"did not answer for {unanswered:.0f} s{self._problem}: it hangs, or"
        if unanswered < self.hang_seconds / 2:
            name = max(silent, key=lambda one: silent[one])
            what = f"saw no {name} for {silent[name]:.0f} s: what makes them hangs, or the server or"
        raise ConfigurationError(
            f"the Prefect server {what} its database is locked; start `optstream serve` again"
        )

    def stop(self) -> None:
        """Look no more."""
        self._stop.set()

    def _follow(self) -> None:
        while not self._stop.wait(min(PULSE_SECONDS, self.hang_seconds / 4)):
            try:
                found = self.pulse()
            except Exception as error:  # noqa: BLE001 - whatever it is, the server did not answer
                self._problem = f" ({type(error).__name__})"
                continue
            self._answered, self._problem = monotonic(), ""
            for name, value in found.items():
                if name not in self._values or self._values[name][0] != value:
                    self._values[name] = value, monotonic()


def pulse_of(pool: str, worker: str, deployment: str) -> Pulse:
    """The pulse of a worker by its name, and of the scheduler by a deployment that it has to plan runs of, as
    the server of PREFECT_API_URL has them in its database.
    """
    from prefect.client.schemas.filters import DeploymentFilter  # prefect has read its settings now

    from flows.orchestration.deployments import PLANNED

    def pulse() -> Mapping[str, object]:
        with _impatient_client() as client:
            workers = client.read_workers_for_work_pool(pool)
            queues = client.read_work_queues(work_pool_name=pool)
            night = client.read_deployment_by_name(deployment)
            ours = DeploymentFilter.model_validate({"id": {"any_": [night.id]}})
            rests = night.paused or not any(one.active for one in night.schedules)
            planned = rests or client.read_flow_runs(deployment_filter=ours, flow_run_filter=PLANNED, limit=1)
        beats = [one.last_heartbeat_time for one in workers if one.name == worker]
        polls = [one.last_polled for one in queues if one.last_polled is not None]
        return {
            "heartbeat of the worker": max(filter(None, beats), default=None),
            "poll of the worker": max(polls, default=None),
            f"planned run of {deployment}": monotonic() if planned else None,
        }

    return pulse


@contextmanager
def _impatient_client() -> "Iterator[SyncPrefectClient]":
    from prefect.client.orchestration import get_client
    from prefect.settings import PREFECT_CLIENT_MAX_RETRIES, temporary_settings

    with (
        temporary_settings({PREFECT_CLIENT_MAX_RETRIES: 0}),
        get_client(sync_client=True, httpx_settings={"timeout": PULSE_SECONDS}) as client,
    ):
        yield client


def is_idle() -> bool:
    """Whether the server answers that no run of OptStream's is under way that was due within a day: a killed
    `optstream run` seems to run without end.
    """
    from prefect.client.schemas.filters import FlowRunFilter

    from flows.orchestration.calls import TAG
    from flows.orchestration.deployments import ALIVE

    since = datetime.now(UTC) - timedelta(days=1)
    ours = {"tags": {"all_": [TAG]}, "expected_start_time": {"after_": since}}
    found = FlowRunFilter.model_validate(ALIVE | ours)
    with suppress(Exception), _impatient_client() as client:  # the supervisor says what is wrong
        return not client.read_flow_runs(flow_run_filter=found, limit=1)
    return False


def notify_systemd(address: str, state: str) -> None:
    """Send a state, such as READY=1, to the service manager whose NOTIFY_SOCKET this is; to none without."""
    if address:
        place = f"\0{address[1:]}" if address.startswith("@") else address
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as own, suppress(OSError):
            own.sendto(state.encode(), socket.MSG_DONTWAIT, place)  # it may not read


@contextmanager
def watching(streams: Sequence[Settings], longest: timedelta = LONGEST_WATCH) -> Iterator[None]:
    """Run `optstream watch` of each stream by its cron, a process each, whatever becomes of the server."""
    stop = Event()
    thread = Thread(target=_watch, args=(streams, stop, longest), daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def _watch(streams: Sequence[Settings], stop: Event, longest: timedelta) -> None:
    now = datetime.now(UTC)
    seen = {one.file: max(last_end(one, "watch") or now, now - MADE_UP) for one in streams}
    running: dict[object, tuple[Child, float]] = {}
    while not stop.wait(LOOK_SECONDS):
        for one in streams:
            child, since = running.get(one.file, (None, 0.0))
            if child is not None:
                if child.process.poll() is None and monotonic() - since < longest.total_seconds():
                    continue
                child.end(0)
                del running[one.file]
            now = datetime.now(UTC)
            if _is_due(one, seen[one.file], now):
                seen[one.file] = now
                with suppress(OSError):  # no process can be made now: the next watch tells
                    running[one.file] = begin_watch(one), monotonic()
    for child, _ in running.values():
        child.end(0)


def _is_due(settings: Settings, seen: datetime, now: datetime) -> bool:
    """Whether the cron fired after the minute in which it was seen last, up to now."""
    at = seen.astimezone(ZoneInfo(settings.stream.time_zone))
    fire = next_fire([settings.scheduling.watch_cron], at)
    return fire is not None and fire <= now


def begin_watch(settings: Settings) -> Child:
    """Begin a watch of a stream."""
    log = settings.serve_folder / f"watch-{settings.stream.name}.log"
    return begin("watch", log, {}, "flows.cli.main", "watch", "--config", str(settings.file))


def systemd_address() -> str:
    """Take the service manager's address out of the environment: it is no child's."""
    os.environ.pop("WATCHDOG_USEC", None)
    return os.environ.pop("NOTIFY_SOCKET", "")
