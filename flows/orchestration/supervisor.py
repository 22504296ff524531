"""The server and the worker that `optstream serve` keeps running, and how they end."""

import fcntl
import os
import secrets
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event

from flows.orchestration.environment import environment
from flows.orchestration.server import Orchestrator, api_url, free_port, spawn, start_server
from optstream.errors import ConfigurationError
from tasks.config import Settings
from tasks.storage.private_files import make_private_folder, write_private

MOST_DEATHS, DEATHS_WITHIN_SECONDS = 5, 300
REST_SECONDS = 5
"""Between a child's death and its next start."""
LOOK_SECONDS = 0.5
SERVER_STOP_SECONDS, WORKER_STOP_SECONDS = 15, 45
LOCK_SECONDS = 20
"""For what another `serve` left, to end."""
LARGEST_LOG = 10 * 2**20
OF_THE_SERVER = {
    # the pages are copied there: where the package lies may not be writable
    "PREFECT_SERVER_UI_STATIC_DIRECTORY": "ui",
    # old runs, events and log lines go after 90 and 7 days
    "PREFECT_SERVER_SERVICES_DB_VACUUM_ENABLED": "events,flow_runs",
    # who holds the one place of a deployment is known after a restart, too
    "PREFECT_SERVER_CONCURRENCY_LEASE_STORAGE": "prefect.server.concurrency.lease_storage.filesystem",
    # with the 15 of the default, on a busy machine all wait for SQLite's one writer, which waits for a 16th
    "PREFECT_SERVER_DATABASE_SQLALCHEMY_POOL_SIZE": "20",
    "PREFECT_SERVER_DATABASE_SQLALCHEMY_MAX_OVERFLOW": "60",
}


@dataclass
class Child:
    """A process that is to run for as long as its owner. start: makes it anew."""

    name: str
    log: Path
    start: Callable[[], "subprocess.Popen[bytes]"]
    stop_seconds: float
    process: "subprocess.Popen[bytes]"
    deaths: list[float] = field(default_factory=list)
    resting_until: float | None = None

    def tend(self, now: float, say: Callable[[str], None]) -> None:
        """Start it again if it died, after a rest. Raises ConfigurationError if it dies again and again."""
        if self.resting_until is not None:
            if now >= self.resting_until:
                self.process, self.resting_until = self.start(), None
                say(f"the {self.name} was started again")
            return
        code = self.process.poll()
        if code is None:
            return
        self.deaths = [at for at in self.deaths if at > now - DEATHS_WITHIN_SECONDS] + [now]
        if len(self.deaths) >= MOST_DEATHS:
            raise ConfigurationError(
                f"the {self.name} ended {MOST_DEATHS} times in {DEATHS_WITHIN_SECONDS // 60} minutes, the "
                f"last time with code {code}: see {self.log}"
            )
        say(f"the {self.name} ended with code {code} (see {self.log}); starting it again")
        self.resting_until = now + REST_SECONDS

    def end(self) -> None:
        """Ask it to stop, wait, and kill it if it does not."""
        if self.process.poll() is None:
            self.process.terminate()
        try:
            self.process.wait(self.stop_seconds)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def tend_until(stop: Event, children: Sequence[Child], say: Callable[[str], None]) -> None:
    """Keep the children running until it is time to stop. Raises ConfigurationError as `Child.tend`."""
    while not stop.wait(LOOK_SECONDS):
        for child in children:
            child.tend(time.monotonic(), say)


def server_for(settings: Settings, api: str | None, lock: int) -> tuple[Orchestrator, Child | None]:
    """The server to use: the one named, or one of our own, whose memory is in the trusted folder.

    Sets the environment that prefect will read on import. lock: a descriptor that a server of our own holds
    as long as it lives. Raises ConfigurationError if the configured port is taken.
    """
    home = settings.serve_folder
    make_private_folder(home)
    if api is not None:
        os.environ["PREFECT_API_URL"] = api
    os.environ.setdefault("PREFECT_HOME", str(home))
    os.environ.update(environment(settings.trusted_folder, os.environ))
    if api is not None:
        return Orchestrator(api), None
    port = free_port(settings.scheduling.port)
    secret = _password(home)
    added = {name: value for name, value in OF_THE_SERVER.items() if name not in os.environ}
    added["PREFECT_SERVER_UI_API_URL"] = api_url(port)
    if added.get("PREFECT_SERVER_UI_STATIC_DIRECTORY") == "ui":
        added["PREFECT_SERVER_UI_STATIC_DIRECTORY"] = str(home / "ui")

    def start() -> Orchestrator:
        return start_server(home, secret, port, added=added, kind="own", keep_open=(lock,))

    def again() -> "subprocess.Popen[bytes]":
        server = start()
        server.wait()
        assert server.process is not None
        return server.process

    server = start()
    assert server.process is not None
    assert server.log is not None
    return server, Child("server", server.log, again, SERVER_STOP_SECONDS, server.process)


def _password(home: Path) -> str:
    """User and password of the server, from the operator's environment or a file that stays."""
    named = os.environ.get("PREFECT_SERVER_API_AUTH_STRING")
    file = home / "password"
    if named:
        return named
    secret = file.read_text().strip() if file.exists() else ""
    if not secret:  # to Prefect an empty one is none at all
        secret = f"optstream:{secrets.token_urlsafe(24)}"
        write_private(file, f"{secret}\n".encode())
    return secret


def worker_for(settings: Settings, work_pool: str) -> Child:
    """The worker of a process pool, started; its runs are processes of this machine."""
    log = settings.serve_folder / f"worker-{settings.stream.name}.log"
    command = [sys.executable, "-m", "prefect", "worker", "start", "--pool", work_pool, "--type", "process"]

    def start() -> "subprocess.Popen[bytes]":
        if log.exists() and log.stat().st_size > LARGEST_LOG:
            log.replace(log.with_suffix(".log.old"))
        return spawn([*command, "--install-policy", "never"], log, os.environ)

    return Child("worker", log, start, WORKER_STOP_SECONDS, start())


def pages_of(url: str) -> str:
    """Where people look."""
    return url.removesuffix("/api")


@contextmanager
def alone(settings: Settings, name: str, rule: str) -> Iterator[int]:
    """Hold a lock of the stream's folder, whose file names who holds it; yield its descriptor.

    Raises ConfigurationError if another process keeps it.
    """
    make_private_folder(settings.serve_folder)
    path = settings.serve_folder / name
    with os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600), "r+") as file:
        deadline = time.monotonic() + LOCK_SECONDS
        while not _locked(file.fileno()):
            if time.monotonic() > deadline:
                raise ConfigurationError(
                    f"another `optstream serve` {rule} (process {file.read(20).strip() or 'unknown'}, which "
                    f"holds {path}); end that one first"
                )
            time.sleep(0.2)
        file.truncate(0)
        file.write(f"{os.getpid()}\n")
        file.flush()
        yield file.fileno()


def _locked(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
