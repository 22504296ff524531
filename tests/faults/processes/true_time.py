"""A real object store for machines whose clocks are wrong: what they sign is signed anew at the true time.

A store refuses what was signed more than some minutes off its own clock, as it should; the worlds of a
campaign have clocks of their own, which are months off.
"""

import http.client
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from urllib.parse import urlsplit

from botocore.auth import S3SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from tests.temporary_s3 import Server

NOT_PASSED_ON = (
    "host",
    "authorization",
    "x-amz-date",
    "x-amz-content-sha256",
    "connection",
    "transfer-encoding",
)


class _SignsAnew(BaseHTTPRequestHandler):
    """Passes every request on, and every answer back."""

    protocol_version = "HTTP/1.1"
    store: Server

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""

    def _pass_on(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        kept = {name: text for name, text in self.headers.items() if name.lower() not in NOT_PASSED_ON}
        place, own = urlsplit(self.store.address), self.store.environment
        kept["Host"] = place.netloc
        request = AWSRequest(self.command, self.store.address + self.path, kept, body)
        known = Credentials(own["AWS_ACCESS_KEY_ID"], own["AWS_SECRET_ACCESS_KEY"])
        S3SigV4Auth(known, "s3", own["AWS_DEFAULT_REGION"]).add_auth(request)
        connection = http.client.HTTPConnection(place.netloc, timeout=60)
        try:
            connection.request(self.command, self.path, body, dict(request.headers))
            answer = connection.getresponse()
            data = answer.read()
        finally:
            connection.close()
        self.send_response(answer.status)
        for name, text in answer.getheaders():
            if name.lower() not in (*NOT_PASSED_ON, "content-length", "date", "server"):
                self.send_header(name, text)
        length = answer.getheader("Content-Length") if self.command == "HEAD" else str(len(data))
        self.send_header("Content-Length", length or "0")
        self.end_headers()
        self.wfile.write(data)

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = _pass_on  # noqa: N815 - the library's names


@contextmanager
def signed_anew(store: Server) -> Iterator[Server]:
    """Give the address at which the store takes requests whatever their time."""
    handler = type("SignsAnew", (_SignsAnew,), {"store": store})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield Server(f"http://127.0.0.1:{server.server_port}")
        finally:
            server.shutdown()
