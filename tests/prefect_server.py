"""Runs a real `prefect server` for tests and benchmarks: on loopback, with its own home, surely stopped."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.error import URLError
from urllib.request import ProxyHandler, build_opener

from flows.orchestration.environment import environment

LOOPBACK = "127.0.0.1"
START_SECONDS = 300  # two cores that also run whole suites have needed 100 s
STOP_SECONDS = 10


@contextmanager
def running_server(home: Path, port: int | None = None) -> Iterator[str]:
    """Run a server with the project's defaults, whose database is in `home`; yield its API's address."""
    port = port or free_port()
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    inherited = without_prefect()
    command = [sys.executable, "-m", "prefect", "server", "start", "--no-ui"]
    url = f"http://{LOOPBACK}:{port}/api"
    with (home / "server.log").open("ab") as log:
        server = subprocess.Popen(
            [*command, "--host", LOOPBACK, "--port", str(port)],
            env=inherited | environment(home, inherited) | {"PREFECT_HOME": str(home)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=log,
            start_new_session=True,
        )
    try:
        _wait_for(server, f"{url}/health", home)
        yield url
    finally:
        _stop(server)


def without_prefect() -> dict[str, str]:
    """This process's environment, as of a terminal that knows of no server."""
    return {name: value for name, value in os.environ.items() if not name.startswith("PREFECT_")}


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind((LOOPBACK, 0))
        return int(probe.getsockname()[1])


def _wait_for(server: subprocess.Popen[bytes], health: str, home: Path) -> None:
    deadline = time.monotonic() + START_SECONDS
    opener = build_opener(ProxyHandler({}))
    while True:
        with suppress(URLError), opener.open(health, timeout=5):
            return
        if server.poll() is not None or time.monotonic() > deadline:
            raise RuntimeError(f"the server did not start: see {home / 'server.log'}")
        time.sleep(0.05)


def _stop(server: subprocess.Popen[bytes]) -> None:
    server.terminate()
    with suppress(subprocess.TimeoutExpired):
        server.wait(STOP_SECONDS)
    with suppress(ProcessLookupError):
        os.killpg(server.pid, signal.SIGKILL)
    server.wait()
