"""The application as a browser meets it: a server of the tests' own on loopback, over snapshots by hand."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Thread

import uvicorn

LOOPBACK = "127.0.0.1"


@contextmanager
def served(app) -> Iterator[str]:
    """The origin at which the application answers."""
    with socket.socket() as listening:
        listening.bind((LOOPBACK, 0))
        listening.listen()  # a browser may ask before the thread does
        config = uvicorn.Config(app, log_level="error", access_log=False, lifespan="off")
        server = uvicorn.Server(config)
        thread = Thread(target=server.run, args=([listening],))
        thread.start()
        try:
            yield f"http://{LOOPBACK}:{listening.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join(30)
