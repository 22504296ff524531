"""The operators' web application: routes, password and headers; `tasks.pages` makes the pages."""

import base64
import binascii
import secrets
from collections.abc import Callable
from datetime import date, datetime
from typing import Any
from urllib.parse import quote

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.base import BaseHTTPMiddleware, DispatchFunction, RequestResponseEndpoint
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from flows.web.poll import Looks, UnknownStreamError
from optstream.errors import OptStreamError
from optstream.stream import day_of, period_from
from tasks.pages.day import day_page, read_day
from tasks.pages.node import MOST_DAYS, MOST_FOUND, Span, find_nodes, node_page
from tasks.pages.render import asset, page
from tasks.pages.snapshot import overdue
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
"""The only address that asks for no password: "ok" or the overdue works, and with a password their times."""


def _guard(secret: str, looks: Looks) -> DispatchFunction:
    """Let in who knows the password, note the time, and set the headers of every answer."""

    def knows(header: str) -> bool:
        scheme, _, given = header.partition(" ")
        try:
            known = base64.b64decode(given, validate=True)
        except (binascii.Error, ValueError):
            return False
        return scheme.lower() == "basic" and secrets.compare_digest(known, secret.encode())

    async def dispatch(request: Request, go_on: RequestResponseEndpoint) -> Response:
        looks.asked = looks.clock()
        request.state.is_known = knows(request.headers.get("authorization", ""))
        if request.url.path == OPEN or request.state.is_known:
            answer = await go_on(request)
        else:
            challenge = {"WWW-Authenticate": 'Basic realm="OptStream", charset="UTF-8"'}
            answer = PlainTextResponse("user and password are needed\n", 401, challenge)
        for name, value in HEADERS.items():
            answer.headers.setdefault(name, value)
        return answer

    return dispatch


DATA_DOCS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'; sandbox"
}
"""Of Great Expectations' pages, whose style stands in them: no script, and no origin of ours."""
PROMETHEUS = "text/plain; version=0.0.4; charset=utf-8"
FEW_STREAMS = 6  # whose series are large on the overview; of more, one screen has all


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
        own = (
            []
            if found.view is None
            else [one for one in found.view.days if wanted in {one.day, day_of(one.day)}]
        )
        if found.settings is None or not own:
            raise HTTPException(404)
        # of a day of hours the first that is not done, else the last
        wanted = next((one.day for one in own if not one.state.is_done), own[-1].day)
        runs, problem = looks.runs_on(found, wanted)
        shown = day_page(found, read_day(found.settings, wanted), wanted, runs)
        return html("day", home=_home(found.stream), runs_problem=problem, **shown)

    def nodes(request: Request) -> Response:
        found, asked = looks.of(request.path_params["name"]), request.query_params.get("find", "")[:100]
        if found.settings is None:
            raise HTTPException(404)
        hits = find_nodes(found.settings, asked)
        values = {"asked": asked, "hits": hits, "name": found.stream, "home": _home(found.stream)}
        return html("nodes", refreshes=False, most=MOST_FOUND, **values)

    def node(request: Request) -> Response:
        found, name = looks.of(request.path_params["name"]), request.path_params["node"]
        view, settings = found.view, found.settings
        if view is None or settings is None or name not in settings.dated_hierarchy.nodes():
            raise HTTPException(404)
        newest = max((one.day for one in view.days if one.listed is not None), default=found.at.date())
        asked, home = request.query_params, _home(found.stream)
        span = Span(*(day_of(_day(asked[key]) if key in asked else newest) for key in ("from", "to")))
        if not 1 <= span.n_days <= MOST_DAYS:
            raise HTTPException(404)
        shown = node_page(settings, name, span)
        address = f"{home}/nodes/{quote(name, safe='')}"
        return html("node", refreshes=False, name=found.stream, home=home, address=address, **shown)

    def contracts(request: Request) -> Response:
        found, wanted = looks.of(request.path_params["name"]), request.path_params["file"]
        file = next((one.path for one in found.docs if one.path.name == wanted), None)
        if file is None:
            raise HTTPException(404)
        return Response(file.read_bytes(), media_type="text/html", headers=DATA_DOCS)

    def metrics(_: Request) -> Response:
        return Response(looks.metrics(), media_type=PROMETHEUS)

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
    guard = Middleware(BaseHTTPMiddleware, dispatch=_guard(secret, looks))
    return Starlette(
        routes=routes, middleware=[guard], exception_handlers={OptStreamError: _refused, OSError: _refused}
    )


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


def _refused(_: Request, error: Exception) -> Response:
    """It cannot be read; OptStream's own words say why, others may name places."""
    said = str(error) if isinstance(error, OptStreamError) else "it cannot be read now"
    return PlainTextResponse(f"{said}\n", 404 if isinstance(error, UnknownStreamError) else 503)
