"""A receiver of alarms in the tests: a webhook on loopback."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any


@dataclass
class Heard:
    """The JSON bodies that were posted. status: what it answers from now on."""

    port: int
    status: int = 200
    messages: list[Any] = field(default_factory=list)


@contextmanager
def webhook() -> Iterator[Heard]:
    """It takes messages in a thread until the block ends."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            if heard.status == 200:
                heard.messages.append(json.loads(body))
            self.send_response(heard.status)
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    heard = Heard(server.server_address[1])
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield heard
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
