"""The application: routes, a password, and headers that forbid the pages everything but their own origin."""

import base64
import binascii
import secrets
from collections.abc import Callable
from datetime import datetime
from typing import Any
from urllib.parse import quote

from starlette.applications import Starlette
from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import HTTPConnection, Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, ExceptionHandler, Message, Receive, Scope, Send

from flows.ui.looking import Looks
from optstream.errors import OptStreamError
from tasks.contracts.results import folder_of
from tasks.ui.overview import Need, overview
from tasks.ui.prometheus import metrics_text
from tasks.ui.render import ASSETS, assets, page
from tasks.ui.stream_detail import MOST_ALARMS, OPEN_YEARS, stream_detail

HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
    "Cross-Origin-Resource-Policy": "same-origin",
}
DATA_DOCS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'; sandbox"
}
"""Of Great Expectations' pages, whose style stands in them: no script, and no origin of ours."""
OPEN = "/healthz"
"""The only address that asks for no password; it says "ok", or that no look ended lately."""
PROMETHEUS = "text/plain; version=0.0.4; charset=utf-8"


def application(looks: Looks, secret: str, clock: Callable[[], datetime]) -> Starlette:
    """Return the application.

    Args:
        looks: The newest look at each stream.
        secret: User and password, "user:password".
        clock: The time.

    Returns:
        An ASGI application that only reads.
    """

    def html(template: str, **values: object) -> Response:
        shown = page(template, now=clock(), refresh_seconds=int(looks.seconds), **values)
        return Response(shown, media_type="text/html")

    def streams(_: Request) -> Response:
        rows = overview(looks.snapshots, clock())
        waiting = sum(row.need is not Need.NOTHING for row in rows)
        return html("overview", rows=rows, waiting=waiting)

    def stream(request: Request) -> Response:
        found = looks.of(request.path_params["name"])
        detail = stream_detail(found, clock())
        view = found.view
        newest = view.days[-1].day if view and view.days else None
        home = f"/streams/{quote(found.stream, safe='')}"
        return html(
            "stream", detail=detail, home=home, newest=newest, most=MOST_ALARMS, open_years=OPEN_YEARS
        )

    def contracts(request: Request) -> Response:
        found, wanted = looks.of(request.path_params["name"]), request.path_params["file"]
        if found.settings is None or wanted not in {one.link for one in found.docs}:
            raise HTTPException(404)
        shown = (folder_of(found.settings) / wanted).read_bytes()
        return Response(shown, media_type="text/html", headers=DATA_DOCS)

    def metrics(_: Request) -> Response:
        return Response(metrics_text(looks.snapshots, clock()), media_type=PROMETHEUS)

    def health(_: Request) -> Response:
        if looks.is_alive:
            return PlainTextResponse("ok\n")
        return PlainTextResponse("no look at the streams ended lately\n", 503)

    def static(request: Request) -> Response:
        name = request.path_params["name"]
        if name not in ASSETS:
            return PlainTextResponse("there is no such file\n", 404)
        return Response(assets()[name], media_type=ASSETS[name])

    routes = [
        Route("/", streams),
        Route("/streams/{name}", stream),
        Route("/streams/{name}/contracts/{file}", contracts),
        Route("/metrics", metrics),
        Route(OPEN, health),
        Route("/static/{name}", static),
    ]
    refused: dict[Any, ExceptionHandler] = {OptStreamError: _not_found, OSError: _not_found}
    guard = Middleware(Guard, secret=secret)
    return Starlette(routes=routes, middleware=[guard], exception_handlers=refused)


def _not_found(_: Request, error: Exception) -> Response:
    """What is asked for is not there; OptStream's own words say why, others may name places."""
    said = str(error) if isinstance(error, OptStreamError) else "it cannot be read"
    return PlainTextResponse(f"{said}\n", 404)


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

        inside = scope["path"] == OPEN or self._knows(HTTPConnection(scope).headers.get("authorization", ""))
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
