"""Who is let in, and the headers that forbid the pages everything but their own origin."""

import base64
import binascii
import secrets

from starlette.datastructures import MutableHeaders
from starlette.requests import HTTPConnection
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
        "base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
    "Cross-Origin-Resource-Policy": "same-origin",
}
OPEN = "/healthz"
"""The only address that asks for no password; it says "ok" or what is overdue, and when to who has one."""


class Guard:
    """Lets in who knows the password, and sets the headers of every answer."""

    def __init__(self, app: ASGIApp, secret: str) -> None:
        self.app, self.secret = app, secret.encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer 401, or hand the request on."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        is_known = self._knows(HTTPConnection(scope).headers.get("authorization", ""))
        scope.setdefault("state", {})["is_known"] = is_known
        inside = scope["path"] == OPEN or is_known
        answer = self.app if inside else _refusal()
        await answer(scope, receive, with_headers)

    def _knows(self, header: str) -> bool:
        scheme, _, given = header.partition(" ")
        try:
            told = base64.b64decode(given, validate=True)
        except (binascii.Error, ValueError):
            return False
        return scheme.lower() == "basic" and secrets.compare_digest(told, self.secret)


def _refusal() -> Response:
    challenge = {"WWW-Authenticate": 'Basic realm="OptStream", charset="UTF-8"'}
    return PlainTextResponse("user and password are needed\n", 401, challenge)
