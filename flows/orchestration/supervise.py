"""The part of `optstream serve` that lasts: it starts and supervises server, worker, pages and watches.

`serve` becomes this program once all is prepared, by `exec`: the same process without its 150 MB of imports.
"""

import fcntl
import json
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from threading import Event, Thread
from types import FrameType
from typing import NoReturn, Self
from urllib.parse import quote, urlsplit
from zoneinfo import ZoneInfo

from cronsim import CronSim

from flows.orchestration.environment import LOOPBACK, STATE, Api, ask_apart, password_of
from optstream.errors import ConfigurationError
from tasks.trusted.files import make_private_folder, private_opener, write_private

LOOK_SECONDS = 0.5
STOPPING = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
LARGEST_LOG = 10 * 2**20
ENDS_WITH_SERVE = ("setpriv", "--pdeathsig", "TERM")
"""Linux then ends a child with `serve`, which may have been killed."""


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


# Whether server and worker still work, and the watches.

HANG_SECONDS = 180.0  # without a pulse, and `serve` ends: a heartbeat is due every 30 s, a poll every 15 s
PULSE_SECONDS = 10.0  # between two looks at the pulse, and for the server to answer each
MADE_UP = timedelta(days=1)  # a watch that was missed for not longer than this is made up for
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


PLANNED = {"state": {"type": {"any_": ["SCHEDULED"]}}}
ALIVE = {"state": {"type": {"any_": ["PENDING", "RUNNING", "CANCELLING"]}}}  # filters of runs


def pulse_of(api: Api, pool: str, worker: str, deployment: str) -> Pulse:
    """The pulse of a worker by its name, and of the scheduler by a deployment that it has to plan runs of."""
    place, name = f"work_pools/{quote(pool, safe='')}", quote(deployment)

    def pulse() -> Mapping[str, object]:
        workers = api.ask(f"{place}/workers/filter", {})
        queues = api.ask(f"{place}/queues/filter", {})
        night = api.ask(f"deployments/name/{name}")
        ours = {"id": {"any_": [night["id"]]}}
        rests = night["paused"] or not any(one["active"] for one in night["schedules"])
        is_planned = rests or api.runs(deployments=ours, flow_runs=PLANNED)
        beats = [one["last_heartbeat_time"] for one in workers if one["name"] == worker]
        return {
            "heartbeat of the worker": max(filter(None, beats), default=None),
            "poll of the worker": max(filter(None, (one["last_polled"] for one in queues)), default=None),
            f"planned run of {deployment}": time.monotonic() if is_planned else None,
        }

    return pulse


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


@dataclass(frozen=True)
class Watches:
    """The watches of a stream. last: when one ended; longest: seconds."""

    config: str
    cron: str
    zone: str
    log: str
    last: str | None
    longest: float


@contextmanager
def watching(streams: Sequence[Watches]) -> Iterator[Callable[[], None]]:
    """Run `optstream watch` of each stream by its cron, a process each; give what stops them."""
    stop = Event()
    threads = [Thread(target=_watch, args=(one, stop), daemon=True) for one in streams]
    for thread in threads:
        thread.start()
    try:
        yield stop.set
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def _watch(one: Watches, stop: Event) -> None:
    now, zone = datetime.now(UTC), ZoneInfo(one.zone)
    words = ("flows.cli.main", "watch", "--config", one.config)
    seen = max(datetime.fromisoformat(one.last) if one.last else now, now - MADE_UP)
    while not stop.wait(LOOK_SECONDS):
        now = datetime.now(UTC)
        if next(CronSim(one.cron, seen.astimezone(zone))) > now:
            continue
        seen, until = now, time.monotonic() + one.longest
        with suppress(OSError), Child("watch", Path(one.log), 0, {}, *words) as child:
            while child.process.poll() is None and time.monotonic() < until:
                if stop.wait(LOOK_SECONDS):
                    break


# Server, worker and pages.

START_SECONDS = 180  # for the server: at boot a machine is busy
SERVER_STOP_SECONDS, WORKER_STOP_SECONDS, PAGES_STOP_SECONDS = 15, 45, 10
PREFECT = "flows.orchestration.listening"  # the module that is Prefect's own command line
OF_THE_SERVER = {
    "PREFECT_SERVER_DATABASE_MIGRATE_ON_START": "false",
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


@contextmanager
def run_server(home: Path, api: Api) -> Iterator[Child]:
    """Run a Prefect server on loopback, behind a password; ConfigurationError if it does not answer."""
    log, secret, port = home / "server.log", password_of(home), urlsplit(api.url).port
    added = OF_THE_SERVER | {
        "PREFECT_SERVER_API_AUTH_STRING": secret,
        "PREFECT_SERVER_UI_API_URL": api.url,
        # Prefect copies its pages there: where the package lies may not be writable
        "PREFECT_SERVER_UI_STATIC_DIRECTORY": str(home / "ui"),
    }
    with _alone(home / "server.lock"):
        migrate = (PREFECT, "server", "database", "upgrade", "--yes")
        # not by the server, which would keep up to 35 MB of it
        with Child("migration of Prefect's database", log, SERVER_STOP_SECONDS, added, *migrate) as child:
            if child.process.wait():
                child.check()
        words = (PREFECT, "server", "start", "--host", LOOPBACK, "--port", str(port))
        with Child("Prefect server", log, SERVER_STOP_SECONDS, added, *words) as server:
            deadline = time.monotonic() + START_SECONDS
            while not api.answers():
                server.check()
                if time.monotonic() > deadline:
                    raise ConfigurationError(f"the Prefect server did not start: see {log}")
                time.sleep(LOOK_SECONDS)
            yield server


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


@contextmanager
def found_by_runs(trusted: Sequence[Path], url: str, home: Path | None) -> Iterator[None]:
    """Have `run` and `backfill` find a server (`served`). home: of its password, if it is our own."""
    state = {"api": url} | ({} if home is None else {"home": str(home.resolve())})
    with ExitStack() as held:
        for folder in trusted:
            write_private(folder / STATE, json.dumps(state).encode())
            fcntl.flock(held.enter_context((folder / STATE).open("rb")), fcntl.LOCK_SH)
        yield


def worker_of(home: Path, stream: str, work_pool: str, name: str) -> Child:
    """A worker of a process pool under a name; its runs are processes of this machine."""
    words = ["worker", "start", "--pool", work_pool, "--name", name, "--type", "process"]
    words += ["--install-policy", "never"]
    # a run's process starts so long before its time: it imports, and waits for its time
    log, added = home / f"worker-{stream}.log", {"PREFECT_WORKER_PREFETCH_SECONDS": "20"}
    return Child("Prefect worker", log, WORKER_STOP_SECONDS, added, PREFECT, *words)


def pages_of(home: Path, stream: str, configs: Sequence[str], listening: socket.socket) -> Child:
    """`optstream ui` at a socket; it ends, with code 0, some minutes after the last request."""
    files = [word for one in configs for word in ("--config", one)]
    words = ("flows.cli.main", "ui", *files, "--socket", str(listening.fileno()))
    name, inherits = "server of the operators' pages", [listening.fileno()]
    return Child(name, home / f"ui-{stream}.log", PAGES_STOP_SECONDS, {}, *words, inherits=inherits)


def refuse_waiting(listening: socket.socket) -> None:
    """Close the waiting connections, so that only a later visit begins the pages again."""
    listening.setblocking(False)
    with suppress(OSError):
        while True:
            listening.accept()[0].close()


# From the program that prepares to this one.


@dataclass(frozen=True)
class Plan:
    """What lasts of `serve`.

    name: of the first stream, whose trusted folder has home. trusted: folders of all. is_own: whether the
    server of `api` is to be started. register: a module and words, for `ask_apart`. listening: the open
    socket of the pages.
    """

    name: str
    home: str
    trusted: Sequence[str]
    api: Api
    is_own: bool
    register: Sequence[str]
    listening: int
    watches: Sequence[Watches]


def become(plan: Plan, words: Sequence[str]) -> NoReturn:
    """Replace this program by `main` of this module; signals that are pending stay."""
    place = os.memfd_create("plan")
    os.write(place, json.dumps(asdict(plan)).encode())
    os.lseek(place, 0, os.SEEK_SET)
    for number in (place, plan.listening):
        os.set_inheritable(number, True)
    signal.pthread_sigmask(signal.SIG_BLOCK, STOPPING)
    os.execv(sys.executable, [sys.executable, "-m", "flows.orchestration.supervise", str(place), *words])


def stop_once(_signal: int, _frame: FrameType | None) -> None:
    """End `serve`, and on the way its worker and its server, once."""
    for number in STOPPING:
        signal.signal(number, signal.SIG_IGN)
    raise SystemExit(0)


def main() -> None:
    """Serve by the plan in the open file that the first word names, until a signal or an error."""
    with os.fdopen(int(sys.argv[1])) as file:
        read = json.load(file)
    read |= {"api": Api(**read["api"]), "watches": [Watches(**one) for one in read["watches"]]}
    plan = Plan(**read)
    os.set_inheritable(plan.listening, False)
    for number in STOPPING:
        signal.signal(number, stop_once)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, STOPPING)
    try:
        supervise(plan)
    except ConfigurationError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)


def supervise(plan: Plan) -> NoReturn:
    """Start and check server, worker, pages and pulse; ends by a signal or an error."""
    systemd, home, say = systemd_address(), Path(plan.home), partial(print, flush=True)
    with ExitStack() as running:
        listening = running.enter_context(socket.socket(fileno=plan.listening))
        port = listening.getsockname()[1]
        stop_watches, children = running.enter_context(watching(plan.watches)), list[Child]()
        if plan.is_own:
            children.append(running.enter_context(run_server(home, plan.api)))
        trusted = [Path(one) for one in plan.trusted]
        running.enter_context(found_by_runs(trusted, plan.api.url, home if plan.is_own else None))
        night = ask_apart(*plan.register)
        worker = f"{plan.name}-{socket.gethostname()}-{os.getpid()}"
        children.append(running.enter_context(worker_of(home, plan.name, night["pool"], worker)))
        configs = [one.config for one in plan.watches]
        say(f"operators' pages: http://{LOOPBACK}:{port}/")
        say(f"dashboard: {plan.api.url.removesuffix('/api')}")
        if plan.is_own and (home / "password").exists():
            say(f"user and password: {home / 'password'}")
        say("\n".join([*night["lines"], "Ctrl-C or SIGTERM ends it"]))
        notify_systemd(systemd, "READY=1")
        supervisor = Supervisor(pulse_of(plan.api, night["pool"], worker, night["deployment"]))
        running.callback(supervisor.stop)
        running.callback(stop_watches)
        running.push(lambda kind, *_: notify_systemd(systemd, "STOPPING=1") if kind else None)
        pages = None
        while True:
            for child in children:
                child.check()
            supervisor.check()
            notify_systemd(systemd, "WATCHDOG=1")
            if pages is not None:
                pages.bound_log()
                code = pages.process.poll()
                if code:
                    say(f"the {pages.name} ended: see {pages.log}; nights go on")
                    refuse_waiting(listening)
                if code is not None:
                    pages = None
                time.sleep(LOOK_SECONDS)
            elif select.select([listening], [], [], LOOK_SECONDS)[0]:  # somebody looks
                pages = running.enter_context(pages_of(home, plan.name, configs, listening))


if __name__ == "__main__":
    main()
