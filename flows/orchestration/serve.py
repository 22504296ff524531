"""What `optstream serve` runs, as processes: Prefect's server and worker, the pages, and watches."""

import fcntl
import json
import os
import re
import signal
import socket
import sys
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from datetime import datetime, timedelta
from importlib.resources import files
from pathlib import Path
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo

from flows.orchestration.environment import (
    LOOPBACK,
    STATE,
    TAG,
    answers,
    api_of_settings,
    connect,
    environment,
    import_prefect,
    password_of,
    reaching,
)
from flows.orchestration.listening import listen
from flows.orchestration.supervise import (
    LEAST_SECONDS,
    LOOK_SECONDS,
    MOST_MEMORY,
    STOPPING,
    Child,
    Plan,
    Watches,
    become,
    notify_systemd,
    stop_once,
    systemd_address,
    watching,
)
from optstream.errors import ConfigurationError
from tasks.config import Settings
from tasks.config.schema import next_fire
from tasks.monitor.facts import LONGEST_WATCH, last_end
from tasks.operate.permissions import check_trusted
from tasks.plan.backfill import looks_of
from tasks.trusted.files import make_private_folder, write_private

START_SECONDS = 180
"""For the server: at boot a machine is busy."""
SERVER_STOP_SECONDS, WORKER_STOP_SECONDS, PAGES_STOP_SECONDS = 15, 45, 10
OWN_PAGES = Path("ui", "v1")
"""Where in its folder the server keeps the copy of Prefect's pages that it shows."""
PAGES_PORT = 8484
"""Of the operators' pages, where nobody asks for another."""
UPGRADE = ("server", "database", "upgrade", "--yes")
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
OF_THE_WORKER = {
    # seconds before its time that a run's process starts: it imports, and waits for its time
    "PREFECT_WORKER_PREFETCH_SECONDS": "20",
}


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
        log, migrate = home / "server.log", ("flows.orchestration.prefect_command", *UPGRADE)
        # not by the server, which would keep up to 35 MB of it
        with Child("migration of Prefect's database", log, SERVER_STOP_SECONDS, added, *migrate) as child:
            while child.process.poll() is None:
                time.sleep(LOOK_SECONDS / 5)
            if child.process.returncode:
                child.check()
        words = ("flows.orchestration.listening", "server", "start", "--host", LOOPBACK, "--port", str(port))
        with Child("Prefect server", log, SERVER_STOP_SECONDS, added, *words) as server:
            deadline = time.monotonic() + START_SECONDS
            while not answers():
                server.check()
                if time.monotonic() > deadline:
                    raise ConfigurationError(f"the Prefect server did not start: see {log}")
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
    program = ("flows.orchestration.prefect_command", *words)
    return Child("Prefect worker", log, WORKER_STOP_SECONDS, OF_THE_WORKER, *program)


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
        signal.signal(number, stop_once)
    api = api or os.environ.get("PREFECT_API_URL")
    with ExitStack() as running:
        listening = running.enter_context(pages_socket(ui_port))
        port = listening.getsockname()[1]
        make_private_folder(home)
        meanwhile = running.enter_context(ExitStack())
        meanwhile.enter_context(watching([watches_of(one) for one in streams]))
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
        pages = running.enter_context(pages_of(streams, listening))
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
        locked = [home / "server.lock", *(one.trusted_folder / STATE for one in streams)]
        plan = Plan(
            api=api_of_settings(),
            pulse=(pool, worker, deployment, nightly.PLANNED.model_dump(mode="json", exclude_unset=True)),
            alive=nightly.ALIVE | {"tags": {"all_": [TAG]}},
            children=[child.facts for child in children],
            pages=pages.facts,
            watches=[watches_of(one) for one in streams],
            systemd=systemd,
            begin=sys.orig_argv[1:],
            before=before,
            files=_open_files({one.resolve() for one in locked}),
            most_memory=MOST_MEMORY,
            least_seconds=LEAST_SECONDS,
        )
        meanwhile.close()  # the next program has its own
        become(plan, ["serve", *(word for one in streams for word in ("--config", str(one.file)))])


def watches_of(settings: Settings, longest: timedelta = LONGEST_WATCH) -> Watches:
    """The watches of a stream, as `watching` runs them."""
    log, last = settings.serve_folder / f"watch-{settings.stream.name}.log", last_end(settings, "watch")
    return Watches(
        config=str(settings.file),
        cron=settings.scheduling.watch_cron,
        zone=settings.stream.time_zone,
        log=str(log),
        last=None if last is None else last.isoformat(),
        longest=longest.total_seconds(),
    )


def _open_files(paths: Collection[Path]) -> list[int]:
    found = []
    for link in Path("/proc/self/fd").iterdir():
        with suppress(OSError):
            found += [int(link.name)] if link.readlink() in paths else []
    return found


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
