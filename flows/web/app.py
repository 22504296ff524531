"""The operators' web application: routes, password and headers; `tasks.pages` makes the pages."""

import base64
import binascii
import secrets
from collections.abc import Callable
from datetime import date, datetime
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

from flows.web.poll import Looks, UnknownStreamError
from optstream.errors import OptStreamError
from optstream.stream import day_of, period_from
from tasks.config import Settings
from tasks.pages.day import DayFacts, day_page, read_day
from tasks.pages.metrics import metrics_text
from tasks.pages.node import MOST_DAYS, MOST_FOUND, Span, find_nodes, node_page
from tasks.pages.render import asset, page
from tasks.pages.snapshot import Snapshot, overdue
from tasks.pages.stream import Need, overview, stream_page

# Who is let in, and the headers that forbid the pages everything but their own origin.

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
            secret = base64.b64decode(given, validate=True)
        except (binascii.Error, ValueError):
            return False
        return scheme.lower() == "basic" and secrets.compare_digest(secret, self.secret)


def _refusal() -> Response:
    challenge = {"WWW-Authenticate": 'Basic realm="OptStream", charset="UTF-8"'}
    return PlainTextResponse("user and password are needed\n", 401, challenge)


DATA_DOCS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'; sandbox"
}
"""Of Great Expectations' pages, whose style stands in them: no script, and no origin of ours."""
PROMETHEUS = "text/plain; version=0.0.4; charset=utf-8"
FEW_STREAMS = 6
"""Whose series are large on the overview; of more, one screen has all."""


def application(looks: Looks, secret: str, clock: Callable[[], datetime]) -> Starlette:
    """Return an ASGI application that only reads; secret: "user:password"."""

    def html(template: str, *, refreshes: bool = True, **values: Any) -> Response:
        seconds = int(looks.seconds) if refreshes else 0
        shown = page(template, now=clock(), refresh_seconds=seconds, **values)
        return Response(shown, media_type="text/html")

    def streams(_: Request) -> Response:
        rows = overview(looks.snapshots, clock())
        waiting = sum(row.need is not Need.NOTHING for row in rows)
        return html("overview", rows=rows, waiting=waiting, large=len(rows) <= FEW_STREAMS)

    def stream(request: Request) -> Response:
        found, all_days = looks.of(request.path_params["name"]), "all" in request.query_params
        home, shown = _home(found.stream), stream_page(found, clock(), all_days=all_days)
        return html("stream", home=home, links=None, contracts=f"{home}/contracts/", **shown)

    def day(request: Request) -> Response:
        found, wanted = looks.of(request.path_params["name"]), _day(request.path_params["day"])
        wanted = _shown_for(found, wanted)
        known = found.view is not None and wanted in {one.day for one in found.view.days}
        facts = read_day(found.settings, wanted) if found.settings and known else DayFacts()
        runs, problem = looks.runs_on(found, wanted) if known else ((), "")
        shown = day_page(found, facts, wanted, runs)
        if shown is None:
            raise HTTPException(404)
        return html("day", home=_home(found.stream), runs_problem=problem, **shown)

    def nodes(request: Request) -> Response:
        found, asked = looks.of(request.path_params["name"]), request.query_params.get("find", "")[:100]
        if found.settings is None:
            raise HTTPException(404)
        hits = find_nodes(found.settings, asked)
        values = {"asked": asked, "hits": hits, "name": found.stream, "home": _home(found.stream)}
        return html("nodes", refreshes=False, most=MOST_FOUND, **values)

    def node(request: Request) -> Response:
        (settings, node, span), stream = _node_asked(looks, request), request.path_params["name"]
        address = f"{_home(stream)}/nodes/{quote(node, safe='')}"
        shown = node_page(settings, node, span)
        return html("node", refreshes=False, name=stream, home=_home(stream), address=address, **shown)

    def contracts(request: Request) -> Response:
        found, wanted = looks.of(request.path_params["name"]), request.path_params["file"]
        file = next((one.path for one in found.docs if one.path.name == wanted), None)
        if file is None:
            raise HTTPException(404)
        return Response(file.read_bytes(), media_type="text/html", headers=DATA_DOCS)

    def metrics(_: Request) -> Response:
        return Response(metrics_text(looks.snapshots, clock()), media_type=PROMETHEUS)

    def health(request: Request) -> Response:
        late = {found.stream: overdue(found, clock()) for found in looks.snapshots}
        works = sorted({work for some in late.values() for work in some})
        said = [] if looks.is_alive else ["the streams were not looked at lately"]
        said += [f"no {work} ended when it should have, by [schedule]" for work in works]
        lines = said or ["ok"]
        if request.state.is_known:  # when a look ended depends on what was read and drawn
            lines += [
                f"{found.stream}: last {work} ended {at.isoformat(timespec='seconds')}"
                + (", overdue" if work in late[found.stream] else "")
                for found in looks.snapshots
                for work, at in found.ended.items()
            ]
        return PlainTextResponse("\n".join(lines) + "\n", 503 if said else 200)

    def static(request: Request) -> Response:
        try:
            media_type, data = asset(request.path_params["name"])
        except KeyError:
            return PlainTextResponse("there is no such file\n", 404)
        return Response(data, media_type=media_type)

    routes = [
        Route("/", streams),
        Route("/streams/{name}", stream),
        Route("/streams/{name}/days/{day}", day),
        Route("/streams/{name}/nodes", nodes),
        Route("/streams/{name}/nodes/{node}", node),
        Route("/streams/{name}/contracts/{file}", contracts),
        Route("/metrics", metrics),
        Route(OPEN, health),
        Route("/static/{name}", static),
    ]
    refused: dict[Any, ExceptionHandler] = {
        UnknownStreamError: _not_found,
        OptStreamError: _not_now,
        OSError: _not_now,
    }
    guard = Middleware(Guard, secret=secret)
    return Starlette(routes=routes, middleware=[guard], exception_handlers=refused)


def _home(stream: str) -> str:
    return f"/streams/{quote(stream, safe='')}"


def _day(text: str) -> date:
    try:
        found = period_from(text)
    except ValueError:
        raise HTTPException(404) from None
    if not 1970 <= found.year <= 2199:
        raise HTTPException(404)
    return found


def _shown_for(found: Snapshot, wanted: date) -> date:
    """The period whose page is shown: itself; of a day of hours the first that is not done, else the last."""
    own = [] if found.view is None else [one for one in found.view.days if day_of(one.day) == wanted]
    return next((one.day for one in own if not one.state.is_done), own[-1].day if own else wanted)


def _node_asked(looks: Looks, request: Request) -> tuple[Settings, str, Span]:
    """The stream, the node and the days that an address names; the newest published day without any."""
    found, name = looks.of(request.path_params["name"]), request.path_params["node"]
    view, settings = found.view, found.settings
    if view is None or settings is None or name not in settings.dated_hierarchy.nodes():
        raise HTTPException(404)
    listed = [one.day for one in view.days if one.listed is not None]
    newest = listed[-1] if listed else found.at.date()
    asked = request.query_params
    span = Span(*(day_of(_day(asked[key]) if key in asked else newest) for key in ("from", "to")))
    if not 1 <= span.n_days <= MOST_DAYS:
        raise HTTPException(404)
    return settings, name, span


def _not_found(_: Request, error: Exception) -> Response:
    return PlainTextResponse(f"{error}\n", 404)


def _not_now(_: Request, error: Exception) -> Response:
    """It cannot be read; OptStream's own words say why, others may name places."""
    said = str(error) if isinstance(error, OptStreamError) else "it cannot be read now"
    return PlainTextResponse(f"{said}\n", 503)
