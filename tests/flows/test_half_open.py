"""Connections without a password that never become a request: many of them stop no server."""

import os
import resource
import socket
import subprocess
import sys
from base64 import b64encode
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from urllib.error import URLError
from urllib.request import ProxyHandler, Request, build_opener

import pytest

from flows.orchestration import listening
from optstream.errors import ConfigurationError
from tests.by_night import few
from tests.flows.served import CHECKOUT, until
from tests.servers import free_port, without_prefect
from tests.tasks.two_regions import CONFIGURATION

pytestmark = pytest.mark.server

MANY = 160
FEW_FILES = 128
"""Of open files: fewer than there are connections, as the 1,024 of a service are for 2,000."""
REFUSED = b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n"
HALF_OPEN = {
    "nothing is sent": [b""],
    "a head that does not end": [b"GET / HTTP/1.1\r\nHost: x\r\nX-A: 1\r\n"],
    "a head after a refused request": [REFUSED, b"GET / HTTP/1.1\r\nHost: x\r\n"],
    "a body that does not come": [
        b"POST /api/flows/filter HTTP/1.1\r\nHost: x\r\nContent-Length: 900\r\n\r\n{"
    ],
    "a socket that says nothing": [
        b"GET /api/events/in HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n"
        b"Sec-WebSocket-Protocol: prefect\r\n\r\n"
    ],
    "half a chunk": [b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n9\r\n1"],
}


@contextmanager
def running(folder, *words, may_raise=False, **variables):
    """A server with few open files; its port and its log. may_raise: whether the limit is a soft one."""
    folder.mkdir()
    (folder / "optstream.toml").write_text(CONFIGURATION)
    port, log = free_port(), folder / "log"
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1] if may_raise else FEW_FILES
    own = {"PYTHONPATH": str(CHECKOUT), "PREFECT_SERVER_API_AUTH_STRING": "me:secret"}
    with log.open("wb") as said:
        process = subprocess.Popen(
            [sys.executable, *words, "--port", str(port)],
            cwd=folder,
            env=without_prefect() | own | variables,
            stdout=said,
            stderr=said,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (FEW_FILES, hard)),
        )
    try:
        yield port, log
    finally:
        process.terminate()
        process.wait(60)


def answers(port, path):
    headers = {"Authorization": f"Basic {b64encode(b'me:secret').decode()}"}
    request = Request(f"http://127.0.0.1:{port}{path}", headers=headers)
    try:
        with build_opener(ProxyHandler({})).open(request, timeout=listening.HEAD_SECONDS / 2) as answer:
            return answer.status == 200
    except (URLError, OSError):
        return False


HASTY = (
    "from flows.orchestration import listening; listening.HEAD_SECONDS = 3; "
    "from flows.cli.main import main; main()"
)
PREFECT = ("-m", "flows.orchestration.listening", "server", "start", "--host", "127.0.0.1")
SERVERS = {"pages": (("-c", HASTY, "ui"), "/healthz"), "prefect": (PREFECT, "/api/health")}


@pytest.mark.parametrize("name", few(SERVERS, 1))
def test_many_half_open_requests_stop_no_server_and_fill_no_log(tmp_path, name):
    home, (words, path) = tmp_path / name, SERVERS[name]
    variables = {"PREFECT_HOME": str(home), "PREFECT_SERVER_ANALYTICS_ENABLED": "false"}
    with running(home, *words, may_raise=name == "pages", **variables) as (port, log), ExitStack() as stack:
        until("it answers", lambda: answers(port, path), 120)
        before, kinds = log.stat().st_size, {}
        listening.raise_open_files()  # of this process
        with ThreadPoolExecutor(8) as crowd:
            for kind, parts in HALF_OPEN.items():
                made = crowd.map(partial(half_open, port, parts), range(MANY))
                kinds[kind] = [stack.enter_context(connection) for connection in made]
                assert answers(port, path), kind
        for kind, connections in kinds.items():
            until(f"{kind}: they are closed", lambda of=connections: all(map(closed, of)), 60)
        assert log.stat().st_size - before < 100_000


def connected(port):
    """A connection, or None soon where the server is behind: the kernel's own next try is seconds away."""
    with suppress(TimeoutError):
        return socket.create_connection(("127.0.0.1", port), 0.05)


def half_open(port, parts, _number):
    connection = until("it connects", lambda: connected(port), 10)
    for part in parts:
        with suppress(OSError):  # it was closed
            connection.sendall(part)
    return connection


def closed(connection):
    """Whether the other side has closed it; takes what it said before."""
    connection.setblocking(False)
    try:
        while connection.recv(65_536):
            pass
    except BlockingIOError:
        return False
    except OSError:
        return True
    return True


def test_an_address_that_cannot_be_had_is_refused_with_a_remedy():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        for host, wanted, words in (
            ("127.0.0.1", port, rf"port {port} of 127.0.0.1 .*in use by process {os.getpid()} \(.*python"),
            ("0.0.0.0", port, "end it, or set another --port"),
            ("localhost", port, "in use"),
            ("192.0.2.1", 0, "Cannot assign .* an address of this machine"),
            ("no-such-host.invalid", 0, "not known.*give --host"),
            ("a" * 70 + ".b", 0, "no name of a host|not known"),
        ):
            with pytest.raises(ConfigurationError, match=words) as raised:
                listening.listen(host, wanted, "--port")
            assert raised.value.__cause__ is None


def test_a_port_for_privileged_processes_is_refused_with_a_remedy(tmp_path):
    """By a process without privileges; where all ports are free for all (as in some containers) it has it."""
    script = (
        "from flows.orchestration.listening import listen\n"
        "from optstream.errors import ConfigurationError\n"
        "try:\n    listen('127.0.0.1', 81, '--port')\nexcept ConfigurationError as error:\n    print(error)\n"
    )
    none = [f"--{kind}=-net_bind_service" for kind in ("bounding-set", "inh-caps")]
    done = subprocess.run(
        ["setpriv", *none, sys.executable, "-c", script],
        cwd=CHECKOUT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "(Permission denied): set --port to 1024 or more" in done.stdout, done.stderr
