"""Receivers of alarms in the tests: a webhook and a mail server on loopback, with times of arrival."""

import json
import socketserver
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, HTTPServer

LOOPBACK = "127.0.0.1"


@dataclass
class Heard:
    """What arrived, and when by the monotonic clock. status: what a webhook answers from now on."""

    port: int = 0
    status: int = 200
    messages: list = field(default_factory=list)
    at: list = field(default_factory=list)

    def take(self, message):
        self.messages.append(message)
        self.at.append(time.monotonic())


@contextmanager
def _serving(server: socketserver.BaseServer, heard: Heard) -> Iterator[Heard]:
    heard.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield heard
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@contextmanager
def webhook() -> Iterator[Heard]:
    """Messages are the JSON bodies that were posted."""
    heard = Heard()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["content-length"]))
            if heard.status == 200:
                heard.take(json.loads(body))
            self.send_response(heard.status)
            self.end_headers()

        def log_message(self, *_):
            pass

    with _serving(HTTPServer((LOOPBACK, 0), Handler), heard) as serving:
        yield serving


@contextmanager
def mail_server() -> Iterator[Heard]:
    """Messages are mails as text. Just enough of SMTP for one client at a time."""
    heard = Heard()

    class Handler(socketserver.StreamRequestHandler):
        def handle(self):
            self.wfile.write(b"220 loopback\r\n")
            while line := self.rfile.readline():
                word = line.split()[0].upper() if line.split() else b""
                if word == b"DATA":
                    self.wfile.write(b"354 go on\r\n")
                    lines = iter(self.rfile.readline, b".\r\n")
                    heard.take(b"".join(lines).decode())
                elif word == b"QUIT":
                    self.wfile.write(b"221 bye\r\n")
                    return
                self.wfile.write(b"250 ok\r\n")

    with _serving(socketserver.TCPServer((LOOPBACK, 0), Handler), heard) as serving:
        yield serving
