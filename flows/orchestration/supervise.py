"""The part of `optstream serve` that lasts: it watches over server, worker and pages, and runs the watches.

`serve` becomes this program once all is set up, by `exec`: the same process without its 150 MB of imports.
"""

import json
import os
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property
from pathlib import Path
from threading import Event, Thread
from types import FrameType
from typing import Any, NoReturn, Self
from urllib.parse import quote
from urllib.request import HTTPSHandler, OpenerDirector, Request, build_opener
from zoneinfo import ZoneInfo

from cronsim import CronSim

from optstream.errors import ConfigurationError
from tasks.trusted.files import make_private_folder, private_opener, write_private

LOOK_SECONDS = 0.5
STOPPING = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
MOST_MEMORY = 512 * 2**20
"""Bytes of server or worker, which keep some 0.1 and 0.2 MB of every look, until they begin again."""
LEAST_SECONDS = 6 * 3600.0
"""Between two such beginnings."""
LARGEST_LOG = 10 * 2**20
ENDS_WITH_SERVE = ("setpriv", "--pdeathsig", "TERM")
"""Linux then ends a child with `serve`, which may have been killed."""


class Inherited:
    """A child process that was started before `exec`, with the methods of `Popen` that we use."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.returncode: int | None = None

    def poll(self) -> int | None:
        """Return its exit code, below 0 for a signal; None while it runs."""
        if self.returncode is None:
            with suppress(ChildProcessError):
                pid, status = os.waitpid(self.pid, os.WNOHANG)
                self.returncode = os.waitstatus_to_exitcode(status) if pid else None
        return self.returncode

    def wait(self, timeout: float = float("inf")) -> None:
        """Wait until it ended. Raises subprocess.TimeoutExpired."""
        deadline = time.monotonic() + timeout
        while self.poll() is None:
            if time.monotonic() > deadline:
                raise subprocess.TimeoutExpired(str(self.pid), timeout)
            time.sleep(0.05)

    def terminate(self) -> None:
        """Send it SIGTERM, if it runs."""
        self._send(signal.SIGTERM)

    def kill(self) -> None:
        """Send it SIGKILL, if it runs."""
        self._send(signal.SIGKILL)

    def _send(self, number: signal.Signals) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)


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
        self.process: subprocess.Popen[bytes] | Inherited
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

    @classmethod
    def inherited(cls, name: str, log: str, stop_seconds: float, pid: int) -> Self:
        """Return the child that `facts` are of, after `exec`."""
        found = cls.__new__(cls)
        found.name, found.log, found.stop_seconds = name, Path(log), stop_seconds
        found.process = Inherited(pid)
        return found

    @property
    def facts(self) -> tuple[str, str, float, int]:
        """The arguments of `inherited`."""
        return self.name, str(self.log), self.stop_seconds, self.process.pid

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


@dataclass(frozen=True)
class Api:
    """A Prefect server as Prefect's own client reaches it; certificates: "" for those of the system."""

    url: str
    headers: Mapping[str, str]
    certificates: str = ""
    verify: bool = True

    def ask(self, path: str, document: Any = None) -> Any:
        """Return the answer to a GET, or to a POST of a document. Raises OSError or ValueError."""
        data = None if document is None else json.dumps(document).encode()
        request = Request(f"{self.url}/{path}", data, {"Content-Type": "application/json", **self.headers})
        with self._opener.open(request, timeout=PULSE_SECONDS) as answer:
            return json.load(answer)

    @cached_property
    def _opener(self) -> OpenerDirector:
        if not self.url.startswith("https:"):
            return build_opener()
        context = ssl.create_default_context(cafile=self.certificates or None)
        if not self.verify:
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        return build_opener(HTTPSHandler(context=context))

    def runs(self, **wanted: Any) -> Any:
        """Return one run at most that a filter matches."""
        return self.ask("flow_runs/filter", wanted | {"limit": 1})


def pulse_of(api: Api, pool: str, worker: str, deployment: str, planned: Mapping[str, Any]) -> Pulse:
    """The pulse of a worker by its name, and of the scheduler by a deployment that it has to plan runs of."""
    place, name = f"work_pools/{quote(pool, safe='')}", quote(deployment)

    def pulse() -> Mapping[str, object]:
        workers = api.ask(f"{place}/workers/filter", {})
        queues = api.ask(f"{place}/queues/filter", {})
        night = api.ask(f"deployments/name/{name}")
        ours = {"id": {"any_": [night["id"]]}}
        rests = night["paused"] or not any(one["active"] for one in night["schedules"])
        is_planned = rests or api.runs(deployments=ours, flow_runs=planned)
        beats = [one["last_heartbeat_time"] for one in workers if one["name"] == worker]
        return {
            "heartbeat of the worker": max(filter(None, beats), default=None),
            "poll of the worker": max(filter(None, (one["last_polled"] for one in queues)), default=None),
            f"planned run of {deployment}": time.monotonic() if is_planned else None,
        }

    return pulse


def is_idle(api: Api, alive: Mapping[str, Any]) -> bool:
    """Whether the server answers that no run of this filter is under way that was due within a day."""
    since = datetime.now(UTC) - timedelta(days=1)
    with suppress(OSError, ValueError):  # the supervisor reports the problem
        return not api.runs(flow_runs={**alive, "expected_start_time": {"after_": since.isoformat()}})
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
def watching(streams: Sequence[Watches]) -> Iterator[None]:
    """Run `optstream watch` of each stream by its cron, a process each, whatever becomes of the server."""
    stop = Event()
    threads = [Thread(target=_watch, args=(one, stop), daemon=True) for one in streams]
    for thread in threads:
        thread.start()
    try:
        yield
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


# From the program that sets up to this one, and back.


@dataclass(frozen=True)
class Plan:
    """What lasts of `serve`.

    children: `Child.facts` of server and worker. pulse: arguments of `pulse_of`. begin: the command to begin
    again, in the environment `before`. files: kept open, for their locks.
    """

    api: Api
    pulse: tuple[str, str, str, Mapping[str, Any]]
    alive: Mapping[str, Any]
    children: Sequence[tuple[str, str, float, int]]
    pages: tuple[str, str, float, int]
    watches: Sequence[Watches]
    systemd: str
    begin: Sequence[str]
    before: Mapping[str, str]
    files: Sequence[int]
    most_memory: int
    least_seconds: float


def become(plan: Plan, words: Sequence[str]) -> NoReturn:
    """Replace this program by `main` of this module; children, locks and signals that are pending stay."""
    place = os.memfd_create("plan")
    os.write(place, json.dumps(asdict(plan)).encode())
    os.lseek(place, 0, os.SEEK_SET)
    for number in (place, *plan.files):
        os.set_inheritable(number, True)
    sys.stdout.flush()
    signal.pthread_sigmask(signal.SIG_BLOCK, STOPPING)
    os.execv(sys.executable, [sys.executable, "-m", "flows.orchestration.supervise", str(place), *words])


def stop_once(_signal: int, _frame: FrameType | None) -> None:
    """End `serve`, and on the way its worker and its server, once."""
    for number in STOPPING:
        signal.signal(number, signal.SIG_IGN)
    raise SystemExit(0)


def main() -> None:
    """Supervise by the plan in the open file that the first word names, until a signal or an error."""
    for number in STOPPING:
        signal.signal(number, stop_once)
    with os.fdopen(int(sys.argv[1])) as file:
        read = json.load(file)
    read |= {"api": Api(**read["api"]), "watches": [Watches(**one) for one in read["watches"]]}
    plan = Plan(**read)
    for place in plan.files:
        os.set_inheritable(place, False)
    try:
        supervise(plan)
    except ConfigurationError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)


def supervise(plan: Plan) -> NoReturn:
    """Check server, worker, pages and pulse; ends by a signal or an error, or begins the command again."""
    with ExitStack() as running:
        children = [Child.inherited(*one) for one in plan.children]
        pages = Child.inherited(*plan.pages)
        for child in [*children, pages]:
            running.enter_context(child)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, STOPPING)
        running.enter_context(watching(plan.watches))
        supervisor = Supervisor(pulse_of(plan.api, *plan.pulse))
        running.callback(supervisor.stop)
        running.push(lambda kind, *_: notify_systemd(plan.systemd, "STOPPING=1") if kind else None)
        started, pages_live = time.monotonic(), True
        while not (
            time.monotonic() - started > plan.least_seconds
            and any(child.memory > plan.most_memory for child in children)
            and is_idle(plan.api, plan.alive)
        ):
            for child in children:
                child.check()
            supervisor.check()
            pages.bound_log()
            if pages_live and pages.process.poll() is not None:
                print(f"the {pages.name} ended: see {pages.log}; nights go on", flush=True)
                pages_live = False
            notify_systemd(plan.systemd, "WATCHDOG=1")
            time.sleep(LOOK_SECONDS)
        print("server or worker has grown: they begin again, while no run is under way", flush=True)
    os.execve(sys.executable, [sys.executable, *plan.begin], dict(plan.before))


if __name__ == "__main__":
    main()
