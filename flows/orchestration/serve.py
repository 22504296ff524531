"""What `optstream serve` runs, as processes: Prefect's server and worker, the pages, and watches."""

import fcntl
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from datetime import UTC, datetime, timedelta
from importlib.resources import files
from pathlib import Path
from threading import Event, Thread
from types import FrameType
from typing import Self
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo

from flows.orchestration.environment import (
    LOOPBACK,
    STATE,
    TAG,
    answers,
    connect,
    environment,
    impatient_client,
    import_prefect,
    password_of,
    reaching,
)
from flows.orchestration.listening import listen
from optstream.errors import ConfigurationError
from tasks.config import Settings
from tasks.config.schema import next_fire
from tasks.monitor.facts import LONGEST_WATCH, last_end
from tasks.operate.permissions import check_trusted
from tasks.plan.backfill import looks_of
from tasks.trusted.files import make_private_folder, private_opener, write_private

START_SECONDS = 180
"""For the server: at boot a machine is busy."""
SERVER_STOP_SECONDS, WORKER_STOP_SECONDS, PAGES_STOP_SECONDS = 15, 45, 10
OWN_PAGES = Path("ui", "v1")
"""Where in its folder the server keeps the copy of Prefect's pages that it shows."""
PAGES_PORT = 8484
"""Of the operators' pages, where nobody asks for another."""
LOOK_SECONDS = 0.5
STOPPING = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
MOST_MEMORY = 512 * 2**20
"""Bytes of server or worker, which keep some 0.1 and 0.2 MB of every look, until they begin again."""
LEAST_SECONDS = 6 * 3600.0
"""Between two such beginnings."""
LARGEST_LOG = 10 * 2**20
ENDS_WITH_SERVE = ("setpriv", "--pdeathsig", "TERM")
"""Linux then ends a child with `serve`, which may have been killed."""
OF_THE_SERVER = {
    # old runs and log lines go after 30 days, events after 7
    "PREFECT_SERVER_SERVICES_DB_VACUUM_ENABLED": "events,flow_runs",
    "PREFECT_SERVER_SERVICES_DB_VACUUM_RETENTION_PERIOD": str(30 * 86_400),
    # who holds the one place of a deployment is known after a restart, too
    "PREFECT_SERVER_CONCURRENCY_LEASE_STORAGE": "prefect.server.concurrency.lease_storage.filesystem",
    # with the 15 of the default, on a busy machine all wait for SQLite's one writer, which waits for a 16th;
    # no more than 5 stay open, for each caches up to 80 MB of the database
    "PREFECT_SERVER_DATABASE_SQLALCHEMY_POOL_SIZE": "5",
    "PREFECT_SERVER_DATABASE_SQLALCHEMY_MAX_OVERFLOW": "75",
}
OF_THE_WORKER = {
    # seconds before its time that a run's process starts: it imports, and waits for its time
    "PREFECT_WORKER_PREFETCH_SECONDS": "20",
}


class Child:
    """A module that runs as a process until the block ends, its standard error added to a log."""

    def __init__(
        self,
        name: str,
        log: Path,
        stop_seconds: float,
        added: Mapping[str, str],
        *words: str,
        inherits: Sequence[int] = (),
    ) -> None:
        self.name, self.log, self.stop_seconds = name, log, stop_seconds
        make_private_folder(log.parent)
        bound = ENDS_WITH_SERVE if shutil.which(ENDS_WITH_SERVE[0]) else ()
        with open(log, "ab", opener=private_opener) as errors:
            self.process = subprocess.Popen(
                [*bound, sys.executable, "-m", *words],
                env={**added, **os.environ},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=errors,
                umask=0o077,
                pass_fds=inherits,
                start_new_session=True,  # Ctrl-C is for `serve`, which ends the worker first
            )
        self.bound_log()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.terminate()
        try:
            self.process.wait(self.stop_seconds)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    @property
    def memory(self) -> int:
        """Bytes that it has in memory; 0 once it ended."""
        with suppress(OSError):
            pages = Path(f"/proc/{self.process.pid}/statm").read_text().split()[1]
            return int(pages) * os.sysconf("SC_PAGE_SIZE")
        return 0

    def check(self) -> None:
        """Bound the log; raise ConfigurationError if it ended."""
        self.bound_log()
        code = self.process.poll()
        if code is not None:
            raise ConfigurationError(
                f"the {self.name} ended with code {code}: see {self.log}, and start `optstream serve` again"
            )

    def bound_log(self) -> None:
        """Keep at most twice LARGEST_LOG: the child, which appends, goes on at the start of an empty file."""
        with suppress(OSError):
            if self.log.stat().st_size > LARGEST_LOG:
                try:
                    write_private(self.log.with_suffix(".log.old"), self.log.read_bytes())
                finally:
                    os.truncate(self.log, 0)


@contextmanager
def own_server(settings: Settings, home: Path) -> Iterator[Child]:
    """Run a Prefect server on loopback, behind a password; ConfigurationError if it does not answer."""
    make_private_folder(home)
    with _alone(home / "server.lock"):
        port, secret = _port_of(settings), password_of(home)
        url = f"http://{LOOPBACK}:{port}/api"
        os.environ.setdefault("PREFECT_HOME", str(home))
        os.environ.update(reaching(url, secret))
        os.environ.update(environment(settings.trusted_folder, os.environ))
        import_prefect(again=True)  # `backfill` has imported it
        added = OF_THE_SERVER | {
            "PREFECT_SERVER_API_AUTH_STRING": secret,
            "PREFECT_SERVER_UI_API_URL": url,
            # the pages are copied there: where the package lies may not be writable
            "PREFECT_SERVER_UI_STATIC_DIRECTORY": str((home / OWN_PAGES).parent),
        }
        words = ("flows.orchestration.listening", "server", "start", "--host", LOOPBACK, "--port", str(port))
        with Child("Prefect server", home / "server.log", SERVER_STOP_SECONDS, added, *words) as server:
            deadline = time.monotonic() + START_SECONDS
            while not answers():
                server.check()
                if time.monotonic() > deadline:
                    raise ConfigurationError(f"the Prefect server did not start: see {server.log}")
                time.sleep(LOOK_SECONDS)
            yield server


def _port_of(settings: Settings) -> int:
    """The port of the last start, or a free one."""
    wanted = 0
    with suppress(OSError, ValueError, KeyError):
        state = json.loads((settings.trusted_folder / STATE).read_text())
        wanted = urlsplit(state["api"]).port or 0
    with suppress(ConfigurationError), listen(LOOPBACK, wanted, "") as probe:
        return int(probe.getsockname()[1])
    with listen(LOOPBACK, 0, "") as probe:
        return int(probe.getsockname()[1])


@contextmanager
def found_by_runs(streams: Sequence[Settings], *, own: bool) -> Iterator[None]:
    """Have `run` and `backfill` of these streams find the server of PREFECT_API_URL (`served`)."""
    state = {"api": os.environ["PREFECT_API_URL"]}
    if own:
        state["home"] = str(streams[0].serve_folder.resolve())
    with ExitStack() as held:
        for one in streams:
            file = one.trusted_folder / STATE
            write_private(file, json.dumps(state).encode())
            fcntl.flock(held.enter_context(file.open("rb")), fcntl.LOCK_SH)
        yield


def worker_of(settings: Settings, work_pool: str, name: str) -> Child:
    """A worker of a process pool under a name; its runs are processes of this machine."""
    log = settings.serve_folder / f"worker-{settings.stream.name}.log"
    words = ["worker", "start", "--pool", work_pool, "--name", name, "--type", "process"]
    words += ["--install-policy", "never"]
    return Child("Prefect worker", log, WORKER_STOP_SECONDS, OF_THE_WORKER, "prefect", *words)


def pages_of(streams: Sequence[Settings], listening: socket.socket) -> Child:
    """`optstream ui` at a socket, which is its own from now on; its log is the first stream's."""
    log = streams[0].serve_folder / f"ui-{streams[0].stream.name}.log"
    files = [word for one in streams for word in ("--config", str(one.file))]
    words = ("flows.cli.main", "ui", *files, "--socket", str(listening.fileno()))
    name = "server of the operators' pages"
    with listening:  # the port is free when it ends
        return Child(name, log, PAGES_STOP_SECONDS, {}, *words, inherits=[listening.fileno()])


def pages_socket(wanted: int | None) -> socket.socket:
    """Listen at the wanted port, else at the usual or a free one; ConfigurationError if it is taken."""
    if wanted is None:
        with suppress(ConfigurationError):
            return listen(LOOPBACK, PAGES_PORT, "--ui-port")
    return listen(LOOPBACK, wanted or 0, "--ui-port")


@contextmanager
def _alone(lock: Path) -> Iterator[None]:
    """Hold a lock, whose file says who does: two servers of one database would run each other's services."""
    with os.fdopen(os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600), "r+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ConfigurationError(
                f"another `optstream serve` has its server here (process {file.read().strip()}), or a "
                "`backfill --workers`: end that one first, or name its address with --api or PREFECT_API_URL"
            ) from None
        file.truncate(0)
        file.write(str(os.getpid()))
        file.flush()
        yield


# Whether server and worker still work, and the watches.

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
        self._answered, self._problem = time.monotonic(), ""
        self._values: dict[str, tuple[object, float]] = {}
        self._stop = Event()
        self.stop = self._stop.set
        Thread(target=self._follow, daemon=True).start()

    def check(self) -> None:
        """Raise ConfigurationError if the server did not answer, or a value did not change, for too long."""
        now = time.monotonic()
        unanswered = now - self._answered
        silent, name = max(((now - at, one) for one, (_, at) in [*self._values.items()]), default=(0, ""))
        if max(unanswered, silent) <= self.hang_seconds:
            return
        what = f"did not answer for {unanswered:.0f} s{self._problem}: it hangs, or"
        if unanswered < self.hang_seconds / 2:
            what = f"saw no {name} for {silent:.0f} s: what makes them hangs, or the server or"
        raise ConfigurationError(
            f"the Prefect server {what} its database is locked; start `optstream serve` again"
        )

    def _follow(self) -> None:
        while not self._stop.wait(min(PULSE_SECONDS, self.hang_seconds / 4)):
            try:
                found = self.pulse()
            except Exception as error:  # noqa: BLE001 - whatever it is, the server did not answer
                self._problem = f" ({type(error).__name__})"
                continue
            self._answered, self._problem = time.monotonic(), ""
            for name, value in found.items():
                if name not in self._values or self._values[name][0] != value:
                    self._values[name] = value, time.monotonic()


def pulse_of(pool: str, worker: str, deployment: str) -> Pulse:
    """The pulse of a worker by its name, and of the scheduler by a deployment that it has to plan runs of."""
    from prefect.client.schemas.filters import DeploymentFilter  # prefect has read its settings now

    from flows.orchestration.nightly import PLANNED

    def pulse() -> Mapping[str, object]:
        with impatient_client(PULSE_SECONDS) as client:
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
            f"planned run of {deployment}": time.monotonic() if planned else None,
        }

    return pulse


def is_idle() -> bool:
    """Whether the server answers that no run of OptStream's is under way that was due within a day."""
    from prefect.client.schemas.filters import FlowRunFilter

    from flows.orchestration.nightly import ALIVE

    since = datetime.now(UTC) - timedelta(days=1)
    ours = {"tags": {"all_": [TAG]}, "expected_start_time": {"after_": since}}
    found = FlowRunFilter.model_validate(ALIVE | ours)
    with suppress(Exception), impatient_client(PULSE_SECONDS) as client:  # the supervisor reports the problem
        return not client.read_flow_runs(flow_run_filter=found, limit=1)
    return False


def systemd_address() -> str:
    """Take the service manager's address out of the environment: it is no child's."""
    os.environ.pop("WATCHDOG_USEC", None)
    return os.environ.pop("NOTIFY_SOCKET", "")


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
    threads = [Thread(target=_watch, args=(one, stop, longest), daemon=True) for one in streams]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def _watch(settings: Settings, stop: Event, longest: timedelta) -> None:
    now, zone = datetime.now(UTC), ZoneInfo(settings.stream.time_zone)
    log = settings.serve_folder / f"watch-{settings.stream.name}.log"
    words = ("flows.cli.main", "watch", "--config", str(settings.file))
    seen = max(last_end(settings, "watch") or now, now - MADE_UP)
    while not stop.wait(LOOK_SECONDS):
        now = datetime.now(UTC)
        if next_fire([settings.scheduling.watch_cron], seen.astimezone(zone)) > now:
            continue
        seen, until = now, time.monotonic() + longest.total_seconds()
        with suppress(OSError), Child("watch", log, 0, {}, *words) as child:  # else the next watch tells
            while child.process.poll() is None and time.monotonic() < until:
                if stop.wait(LOOK_SECONDS):
                    break


# All of it together, until a signal.


def serve_streams(
    streams: Sequence[Settings],
    api: str | None,
    work_pool: str | None,
    ui_port: int | None,
    say: Callable[[str], None],
) -> None:
    """Run server, worker, pages and watches of these streams until a signal; then SystemExit."""
    before, systemd = dict(os.environ), systemd_address()
    for one in streams:
        check_trusted(one)
        looks_of(one)
    settings = streams[0]  # whose trusted folder has the server's own files
    home = settings.serve_folder
    for number in STOPPING:
        signal.signal(number, _stop)
    api = api or os.environ.get("PREFECT_API_URL")
    with ExitStack() as running:
        listening = running.enter_context(pages_socket(ui_port))
        port = listening.getsockname()[1]
        make_private_folder(home)
        running.enter_context(watching(streams))
        children: list[Child] = []
        if api:
            os.environ["PREFECT_API_URL"] = api
            os.environ.setdefault("PREFECT_HOME", str(home))
            connect(settings.trusted_folder)
        else:
            children.append(running.enter_context(own_server(settings, home)))
            add_log_in(home / OWN_PAGES)
        running.enter_context(found_by_runs(streams, own=not api))
        from flows.orchestration import nightly  # prefect has read its settings now

        heartbeat = nightly.heartbeat_seconds()
        night = nightly.night_document(streams, work_pool, heartbeat)
        pool, deployment = night["work_pool"]["name"], nightly.register(night, heartbeat)
        if not api:  # so no run of this server is alive
            nightly.close_runs([night["name"], *(one.stream.name for one in streams)])
        worker = f"{settings.stream.name}-{socket.gethostname()}-{os.getpid()}"
        children.append(running.enter_context(worker_of(settings, pool, worker)))
        supervisor = Supervisor(pulse_of(pool, worker, deployment))
        running.callback(supervisor.stop)
        pages: Child | None = running.enter_context(pages_of(streams, listening))
        say(f"operators' pages: http://{LOOPBACK}:{port}/")
        say(f"dashboard: {os.environ['PREFECT_API_URL'].rstrip('/').removesuffix('/api')}")
        if not api and (home / "password").exists():
            say(f"user and password: {home / 'password'}")
        fires = [(_next(looks_of(one), one), one.stream.time_zone) for one in streams]
        planned = [(deployment, min(fire for fire, _ in fires), fires[0][1])]
        for one in streams:
            watches = _next([one.scheduling.watch_cron], one)
            planned.append((f"watch of {one.stream.name}", watches, one.stream.time_zone))
        for what, fire, zone in planned:
            say(f"{what}: next at {fire.astimezone(ZoneInfo(zone)):%Y-%m-%d %H:%M} ({zone})")
        seconds = nightly.MISSED_HEARTBEATS * heartbeat
        say(f"work pool {pool}; a run that is silent for {seconds} s is taken for dead, marked Crashed")
        for one in streams:
            if one.watch is None:
                say(f"no [watch] in {one.file.name} of {one.stream.name}: alarms are Prefect's events alone")
        say("Ctrl-C or SIGTERM ends it")
        notify_systemd(systemd, "READY=1")
        running.push(lambda kind, *_: notify_systemd(systemd, "STOPPING=1") if kind else None)
        started = time.monotonic()
        while not (
            time.monotonic() - started > LEAST_SECONDS
            and any(child.memory > MOST_MEMORY for child in children)
            and is_idle()
        ):
            for child in children:
                child.check()
            supervisor.check()
            if pages:
                pages.bound_log()
                if pages.process.poll() is not None:
                    say(f"the {pages.name} ended: see {pages.log}; nights go on")
                    pages = None
            notify_systemd(systemd, "WATCHDOG=1")
            time.sleep(LOOK_SECONDS)
        say("server or worker has grown: they begin again, while no run is under way")
    os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], before)


def _stop(_signal: int, _frame: FrameType | None) -> None:
    """End `serve`, and on the way its worker and its server, once."""
    for number in STOPPING:
        signal.signal(number, signal.SIG_IGN)
    raise SystemExit(0)


def _next(crons: Sequence[str], settings: Settings) -> datetime:
    return next_fire(crons, datetime.now(ZoneInfo(settings.stream.time_zone)))


# A page to log in before Prefect's own, which show an error for each request that is refused before.

LOG_IN = ("log-in.html", "log-in.js", "log-in-first.js")
LOADS = re.compile(r'<script type="module" crossorigin src="(/assets/[^"]+)"></script>')
"""How the first page of Prefect's loads its script, if it lies at the root of the server."""


def add_log_in(pages: Path) -> bool:
    """Put the log-in page among Prefect's pages; call after each start, return whether it is there."""
    first = pages / "index.html"
    text = first.read_text(encoding="utf-8") if first.is_file() else ""
    if not LOADS.search(text) and "log-in-first.js" not in text:
        return False
    for name in LOG_IN:
        (pages / name).write_bytes((files("flows.web") / "log_in" / name).read_bytes())
    part = first.with_suffix(".part")
    part.write_text(
        LOADS.sub(r'<script src="/log-in-first.js" data-loads="\1"></script>', text), encoding="utf-8"
    )
    part.replace(first)  # in one step: the server shows the page already
    return True
