"""A Prefect server of our own: on loopback, behind a password, and gone when its owner is."""

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
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO
from urllib.error import HTTPError, URLError
from urllib.request import urlopen

from flows.orchestration.environment import ALWAYS, check_address, environment
from flows.orchestration.server_memory import LOG, bound_memory
from optstream.errors import ConfigurationError
from tasks.storage.private_files import make_private_folder, private_opener

LOOPBACK = "127.0.0.1"
START_SECONDS = 60
STOP_SECONDS = 10


@dataclass(frozen=True)
class Orchestrator:
    """The server that flows talk to, and what this process owns of it: nothing, if the operator runs one."""

    url: str
    process: subprocess.Popen[bytes] | None = None
    log: Path | None = None
    starting: IO[str] | None = None
    kind: str = "temporary"

    def wait(self, seconds: float = START_SECONDS) -> None:
        """Return once the server answers; one started here has `seconds` for it, any other must do so now.

        Raises ConfigurationError if it does not, or if the one started here ended; or as `check_address`.
        """
        if self.process is None:
            check_address(self.url)
        deadline = time.monotonic() + seconds
        while not answers(f"{self.url}/health"):
            if self.process is None:
                raise ConfigurationError(
                    "no server answers at PREFECT_API_URL: start it (`prefect server start`), or unset the "
                    "variable to run with a temporary one"
                )
            if self.process.poll() is not None or time.monotonic() > deadline:
                self.stop()
                raise ConfigurationError(
                    f"Prefect's {self.kind} server did not start: see {self.log}, or set PREFECT_API_URL to "
                    "a server that runs already (`prefect server start`)"
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


def start_server(
    home: Path,
    secret: str,
    port: int | None = None,
    *,
    added: Mapping[str, str] | None = None,
    kind: str = "temporary",
    keep_open: tuple[int, ...] = (),
    bounded: bool = False,
) -> Orchestrator:
    """Start `prefect server` on loopback, for this process and those who know its secret.

    home: where its database lies. port: a free one, without. added: variables for the server alone; its pages
    are served if PREFECT_SERVER_UI_API_URL is among them. keep_open: descriptors that it holds as long as it
    lives. bounded: put a database and a log that have grown large aside first: they are the server's own.
    Raises ConfigurationError if the port is taken.
    """
    make_private_folder(home)
    home.chmod(0o700)
    starting = open(home / "starting.lock", "w", opener=private_opener)  # noqa: SIM115 - held until it answers
    fcntl.flock(starting, fcntl.LOCK_EX)  # two servers that create one database spoil it for each other
    if bounded:
        bound_memory(home)
    port, log = free_port(port), home / LOG
    os.environ["PREFECT_SERVER_API_AUTH_STRING"] = os.environ["PREFECT_API_AUTH_STRING"] = secret
    _bypass_proxies()
    command = [sys.executable, "-m", "prefect", "server", "start", "--host", LOOPBACK, "--port", str(port)]
    if "PREFECT_SERVER_UI_API_URL" not in (added or {}):
        command.append("--no-ui")
    process = spawn(command, log, os.environ | (added or {}), keep_open)
    url = os.environ["PREFECT_API_URL"] = api_url(port)
    return Orchestrator(url, process, log, starting, kind)


def spawn(
    command: Sequence[str], log: Path, environment: Mapping[str, str], keep_open: tuple[int, ...] = ()
) -> "subprocess.Popen[bytes]":
    """A child in a session of its own, which ends with this thread; what it says is added to the log."""
    with open(log, "ab", opener=private_opener) as said:
        return subprocess.Popen(
            command,
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=said,
            umask=0o077,
            start_new_session=True,  # Ctrl-C is for the owner; the child must hear its last words
            preexec_fn=partial(_end_with_parent, os.getpid()),
            pass_fds=keep_open,
        )


def api_url(port: int) -> str:
    """Where a server at this port of loopback is asked."""
    return f"http://{LOOPBACK}:{port}/api"


def _end_with_parent(parent: int) -> None:
    """Have Linux end the server when the flow's thread ends, even by SIGKILL, which runs no exit hook.

    parent: who starts it; if it died before Linux was asked, the server does not begin.
    """
    if sys.platform == "linux":
        set_parent_death_signal = 1
        ctypes.CDLL(None).prctl(set_parent_death_signal, signal.SIGTERM)
        if os.getppid() != parent:
            os._exit(1)


def _bypass_proxies() -> None:
    """Keep what is said to loopback away from the house's proxy."""
    for name in ("NO_PROXY", "no_proxy"):
        os.environ[name] = ",".join(filter(None, [os.environ.get(name), LOOPBACK]))


def free_port(wanted: int | None = None) -> int:
    """A port of loopback that nobody listens on now. Raises ConfigurationError if it must be one that is."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # one that was just let go is free
        try:
            probe.bind((LOOPBACK, wanted or 0))
        except OSError:
            raise ConfigurationError(
                f"port {wanted} of {LOOPBACK} is taken: end what listens there, or set another "
                "[schedule] port"
            ) from None
        return int(probe.getsockname()[1])


def answers(url: str) -> bool:
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


def prepare(trusted_folder: Path) -> Orchestrator:
    """Set the environment that prefect will read and, unless PREFECT_API_URL names a server, start one."""
    if "prefect" in sys.modules:
        os.environ.update(ALWAYS)
        return Orchestrator(_known_server())
    # a folder and a database that the operator chose are the operator's to clear
    bounded = not {"PREFECT_HOME", "PREFECT_API_DATABASE_CONNECTION_URL"} & set(os.environ)
    os.environ.update(environment(trusted_folder, os.environ))
    if "PREFECT_API_URL" in os.environ:
        return Orchestrator(os.environ["PREFECT_API_URL"].rstrip("/"))
    secret = f"optstream:{secrets.token_hex(16)}"
    orchestrator = start_server(Path(os.environ["PREFECT_HOME"]), secret, bounded=bounded)
    atexit.register(orchestrator.stop)
    return orchestrator


def _known_server() -> str:
    from prefect.settings import get_current_settings

    url = get_current_settings().api.url
    if url is None:
        raise RuntimeError("call prepare before anything imports prefect: it has read its settings already")
    return url.rstrip("/")
