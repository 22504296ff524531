"""How our servers listen: an address that can be had, and connections that are bounded before the first
request too, which uvicorn does not limit. As a program it is Prefect's own command line, whose server is
so bounded, without Dask, which only a run needs (20 MB).
"""

import asyncio
import errno
import itertools
import os
import resource
import socket
import sys
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from optstream.errors import ConfigurationError

HEAD_SECONDS = 10.0
"""Time for the head of a request to arrive, counted from the connection or the response before it."""
REQUEST_SECONDS = 300.0  # time to answer a request: the slowest page takes some seconds
MOST_WAITING = 500  # connections without a request under way; of more the oldest is closed
MOST_SILENT_SOCKETS = 20
"""WebSockets whose client has not even said its password yet. Prefect handles 100 requests at once."""
MOST_FILES = 65_536


class BoundedProtocol(H11Protocol):
    """HTTP/1.1 with a limit of time for each head and each response, and of connections that wait."""

    # of the process, the oldest first
    _waiting: ClassVar[dict["BoundedProtocol", None]] = {}
    _silent: ClassVar[dict["BoundedProtocol", None]] = {}
    _timer: asyncio.TimerHandle | None = None
    _stalled: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Take a connection; close the oldest of those that wait if there are too many."""
        super().connection_made(transport)
        self._wait_for_head()

    def data_received(self, data: bytes) -> None:
        """Take bytes of a request; a whole head ends the waiting."""
        super().data_received(data)
        if self._is_under_way():
            self._work()

    def handle_websocket_upgrade(self, event: Any) -> None:
        """Leave the connection to another protocol, and wait for the first thing that the client says."""
        super().handle_websocket_upgrade(event)
        self._wait(self._silent, MOST_SILENT_SOCKETS)
        other: Any = self.transport.get_protocol()
        receive = other.data_received

        def first(data: bytes) -> None:
            self._forget()
            other.data_received = receive
            receive(data)

        other.data_received = first

    def pause_writing(self) -> None:
        """A client that takes nothing for long is gone."""
        super().pause_writing()
        self._stalled = self.loop.call_later(HEAD_SECONDS, self._abort)

    def resume_writing(self) -> None:
        super().resume_writing()
        if self._stalled is not None:
            self._stalled.cancel()

    def on_response_complete(self) -> None:
        """Wait for the next head, unless that has come already."""
        super().on_response_complete()
        if self._is_under_way():
            self._work()
        elif not self.transport.is_closing():
            self._wait_for_head()

    def connection_lost(self, exc: Exception | None) -> None:
        self._forget()
        if self._stalled is not None:
            self._stalled.cancel()
        super().connection_lost(exc)

    def _is_under_way(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def _wait_for_head(self) -> None:
        self._wait(self._waiting, min(MOST_WAITING, resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 4))

    def _wait(self, group: dict["BoundedProtocol", None], most: int) -> None:
        self._forget()
        group[self] = None
        self._timer = self.loop.call_later(HEAD_SECONDS, self._abort)
        if len(group) > most:
            next(iter(group))._abort()

    def _work(self) -> None:
        if self in self._waiting:
            self._forget()
            self._timer = self.loop.call_later(REQUEST_SECONDS, self._abort)

    def _forget(self) -> None:
        self._waiting.pop(self, None)
        self._silent.pop(self, None)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _abort(self) -> None:
        self._forget()
        self.transport.abort()


BOUNDED: dict[str, Any] = {"http": BoundedProtocol, "backlog": 32}
"""Options of uvicorn. The backlog is how many connections are accepted in a row: Python 3.11 logs each that
it cannot accept for want of a file descriptor.
"""


def raise_open_files() -> None:
    """Raise this process's soft limit of open files, often 1,024, towards the hard one."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MOST_FILES if hard == resource.RLIM_INFINITY else min(hard, MOST_FILES)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def listen(host: str, port: int, key: str) -> socket.socket:
    """Return a socket that listens, port 0 for a free one; ConfigurationError where the address is taken."""
    try:
        family, _, _, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        return socket.create_server(address[:2], family=family, backlog=2048)
    except (OSError, UnicodeError) as error:
        number = getattr(error, "errno", None) or 0
        own = "give --host a name or an address of this machine, such as 127.0.0.1"
        remedy = {
            errno.EADDRINUSE: f"end it, or set another {key}",
            errno.EACCES: f"set {key} to 1024 or more",
            errno.EPERM: f"set {key} to 1024 or more",
        }.get(number, own)
        named = getattr(error, "strerror", None) or "no name of a host"  # socket.gaierror has numbers below 0
        reason = os.strerror(number) if number > 0 else named
        if number == errno.EADDRINUSE:
            reason = f"in use by {_listener(port) or 'a process of another user'}"
        raise ConfigurationError(
            f"port {port} of {host:.80} cannot be listened at ({reason}): {remedy}"
        ) from None


def _listener(port: int) -> str:
    """Return number and command of the process that listens at a port; "" where this user cannot see it.

    Options are left out: they may hold secrets.
    """
    import psutil  # only where it is needed

    with suppress(psutil.Error, OSError):
        for one in psutil.net_connections("tcp"):
            if one.status == psutil.CONN_LISTEN and one.laddr.port == port and one.pid:
                words = psutil.Process(one.pid).cmdline()
                named = itertools.takewhile(lambda word: word == "-m" or not word.startswith("-"), words)
                return f"process {one.pid} ({' '.join(Path(word).name for word in named):.80})"
    return ""


if __name__ == "__main__":
    if sys.argv[1:2] == ["server"]:
        raise_open_files()
    sys.modules["prefect_dask"] = None  # type: ignore[assignment]  # counts as one that cannot be imported
    from prefect.cli import app

    # Prefect has no options for these, and calls it by this name
    uvicorn.run = partial(uvicorn.run, **BOUNDED)
    app()
