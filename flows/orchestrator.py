"""How a flow meets Prefect: quiet, offline, and with the orchestrator's memory inside the trusted zone.

Call `prepare` before anything imports prefect, which reads its settings on import; import the flow while
the server starts; call `wait`, then the flow:

    orchestrator = prepare(settings.trusted_folder)
    from flows.nightly import run_days
    orchestrator.wait()

The operator's own PREFECT_… variables win, but for telemetry, which is always off.
"""

import atexit
import ctypes
import fcntl
import os
import secrets
import signal
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO
from urllib.error import HTTPError, URLError
from urllib.request import urlopen

from optstream.errors import ConfigurationError
from tasks.trusted_store import make_private_folder

LOOPBACK = "127.0.0.1"
START_SECONDS = 60
STOP_SECONDS = 10

ALWAYS = {
    "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
    "DO_NOT_TRACK": "1",
    "GX_ANALYTICS_ENABLED": "false",
    "PREFECT_RESULTS_PERSIST_BY_DEFAULT": "false",  # a result on disk would be a pickle of readings
}
DEFAULTS = {
    "PREFECT_LOGGING_LOG_PRINTS": "false",
    "PREFECT_TASKS_DEFAULT_RETRIES": "0",  # a repeat could draw noise again
    "PREFECT_FLOWS_DEFAULT_RETRIES": "0",
    # One at a time, task runs are recorded slower than they run, and a server that stops drops the rest.
    "PREFECT_SERVER_SERVICES_TASK_RUN_RECORDER_BATCH_SIZE": "5000",
    "PREFECT_SERVER_SERVICES_TASK_RUN_RECORDER_FLUSH_INTERVAL": "1",
    "PREFECT_SERVER_UI_V2_ENABLED": "false",  # the new pages fetch from third parties
    "PREFECT_SERVER_UI_SHOW_PROMOTIONAL_CONTENT": "false",
}


@dataclass(frozen=True)
class Orchestrator:
    """The server that flows talk to, and what this process owns of it: nothing, if the operator runs one."""

    url: str
    process: subprocess.Popen[bytes] | None = None
    log: Path | None = None
    starting: IO[str] | None = None

    def wait(self, seconds: float = START_SECONDS) -> None:
        """Return once the server answers; one started here has `seconds` for it, any other must do so now.

        Raises ConfigurationError if it does not, or if the one started here ended.
        """
        deadline = time.monotonic() + seconds
        while not _answers(f"{self.url}/health"):
            if self.process is None:
                raise ConfigurationError(
                    "no server answers at PREFECT_API_URL: start it (`prefect server start`), or unset the "
                    "variable to run with a temporary one"
                )
            if self.process.poll() is not None or time.monotonic() > deadline:
                self.stop()
                raise ConfigurationError(
                    f"Prefect's temporary server did not start: see {self.log}, or set PREFECT_API_URL to a "
                    "server that runs already (`prefect server start`)"
                )
            time.sleep(0.05)
        self._let_others_start()

    def stop(self) -> None:
        """End the server if this process started it, and wait until it is gone."""
        self._let_others_start()
        if self.process is None:
            return
        self.process.terminate()
        try:
            self.process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def _let_others_start(self) -> None:
        if self.starting is not None:
            self.starting.close()


def prepare(trusted_folder: Path) -> Orchestrator:
    """Set the environment that prefect will read and, unless PREFECT_API_URL names a server, start one.

    Call it from the main thread: the end of the calling thread, however it comes, is the server's end too.
    Otherwise the server stops when Python exits, after Prefect has sent its last events: this exit hook is
    registered first, so it runs last. Raises RuntimeError if prefect was imported before and knows no server.
    """
    if "prefect" in sys.modules:
        os.environ.update(ALWAYS)
        return Orchestrator(_known_server())
    os.environ.update(environment(trusted_folder, os.environ))
    if "PREFECT_API_URL" in os.environ:
        return Orchestrator(os.environ["PREFECT_API_URL"].rstrip("/"))
    orchestrator = _start(Path(os.environ["PREFECT_HOME"]))
    atexit.register(orchestrator.stop)
    return orchestrator


def environment(trusted_folder: Path, current: Mapping[str, str]) -> dict[str, str]:
    """The variables to set beside `current`, those of the operator.

    PREFECT_HOME goes into the trusted folder, for the database there holds flow parameters, log lines,
    artifacts and messages of exceptions. A database elsewhere is the operator's to choose, and to guard.
    """
    added = {name: value for name, value in DEFAULTS.items() if name not in current}
    if "PREFECT_HOME" not in current and "PREFECT_API_URL" not in current:
        added["PREFECT_HOME"] = str(trusted_folder.resolve() / "prefect")
    console = "PREFECT_LOGGING_HANDLERS_CONSOLE_LEVEL"
    if "PREFECT_LOGGING_LEVEL" not in current and console not in current:
        added[console] = "CRITICAL"  # the terminal shows what OptStream says; log lines stay in the database
    return added | ALWAYS


def _known_server() -> str:
    from prefect.settings import get_current_settings

    url = get_current_settings().api.url
    if url is None:
        raise RuntimeError("call prepare before anything imports prefect: it has read its settings already")
    return url.rstrip("/")


def _start(home: Path) -> Orchestrator:
    """Start `prefect server` on a free port of loopback, for this process and those who know its secret."""
    make_private_folder(home)
    home.chmod(0o700)
    starting = (home / "starting.lock").open("w")
    fcntl.flock(starting, fcntl.LOCK_EX)  # two servers that create one database spoil it for each other
    port, log = _free_port(), home / "server.log"
    secret = f"optstream:{secrets.token_hex(16)}"
    os.environ["PREFECT_SERVER_API_AUTH_STRING"] = os.environ["PREFECT_API_AUTH_STRING"] = secret
    _bypass_proxies()
    command = [sys.executable, "-m", "prefect", "server", "start", "--no-ui"]
    with log.open("ab") as errors:
        process = subprocess.Popen(
            [*command, "--host", LOOPBACK, "--port", str(port)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=errors,
            umask=0o077,
            start_new_session=True,  # Ctrl-C is for the flow; the server must hear its last words
            preexec_fn=_end_with_parent,
        )
    url = os.environ["PREFECT_API_URL"] = f"http://{LOOPBACK}:{port}/api"
    return Orchestrator(url, process, log, starting)


def _end_with_parent() -> None:
    """Have Linux end the server when the flow's thread ends, even by SIGKILL, which runs no exit hook."""
    if sys.platform == "linux":
        set_parent_death_signal = 1
        ctypes.CDLL(None).prctl(set_parent_death_signal, signal.SIGTERM)


def _bypass_proxies() -> None:
    """Keep what is said to loopback away from the house's proxy."""
    for name in ("NO_PROXY", "no_proxy"):
        os.environ[name] = ",".join(filter(None, [os.environ.get(name), LOOPBACK]))


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((LOOPBACK, 0))
        return int(probe.getsockname()[1])


def _answers(url: str) -> bool:
    """Whether anything replies; what it thinks of certificates and credentials, Prefect finds out."""
    try:
        with urlopen(url, timeout=5):
            return True
    except HTTPError:
        return True
    except URLError as error:
        return isinstance(error.reason, ssl.SSLError)
    except OSError:
        return False
