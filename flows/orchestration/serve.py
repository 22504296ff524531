"""`optstream serve`: what it checks and prepares."""

import json
import os
import signal
import socket
import sys
from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, NoReturn
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo

from flows.orchestration.environment import (
    HEARTBEAT_SECONDS,
    LOOPBACK,
    STATE,
    api_of_settings,
    connect,
    environment,
    import_prefect,
    password_of,
    print_answer,
    reaching,
)
from flows.orchestration.listening import listen
from flows.orchestration.supervise import (
    STOPPING,
    Plan,
    Watches,
    become,
    stop_once,
)
from optstream.errors import ConfigurationError
from tasks.config import Settings, load_settings
from tasks.config.schema import next_fire
from tasks.monitor.facts import LONGEST_WATCH, last_end
from tasks.operate.permissions import check_trusted
from tasks.plan.backfill import looks_of
from tasks.trusted.files import make_private_folder

PAGES_PORT = 8484  # of the operators' pages, where nobody asks for another


def _port_of(settings: Settings) -> int:
    """The port of the last start, or a free one."""
    wanted = 0
    with suppress(OSError, ValueError, KeyError):
        state = json.loads((settings.trusted_folder / STATE).read_text())
        wanted = urlsplit(state["api"]).port or 0
    with suppress(ConfigurationError), listen(LOOPBACK, wanted, "") as probe:
        return int(probe.getsockname()[1])
    with listen(LOOPBACK, 0, "") as probe:
        return int(probe.getsockname()[1])


def pages_socket(wanted: int | None) -> socket.socket:
    """Listen at the wanted port, else at the usual or a free one; ConfigurationError if it is taken."""
    if wanted is None:
        with suppress(ConfigurationError):
            return listen(LOOPBACK, PAGES_PORT, "--ui-port")
    return listen(LOOPBACK, wanted or 0, "--ui-port")


def serve_streams(
    streams: Sequence[Settings], api: str | None, work_pool: str | None, ui_port: int | None
) -> NoReturn:
    """Run server, worker, pages and watches of these streams until a signal; then SystemExit."""
    for one in streams:
        check_trusted(one)
        looks_of(one)
    settings = streams[0]  # whose trusted folder has the server's own files
    home = settings.serve_folder
    for number in STOPPING:
        signal.signal(number, stop_once)
    api = api or os.environ.get("PREFECT_API_URL")
    with pages_socket(ui_port) as listening:
        make_private_folder(home)
        if api:
            os.environ["PREFECT_API_URL"] = api
            os.environ.setdefault("PREFECT_HOME", str(home))
            connect(settings.trusted_folder)
        else:
            os.environ.setdefault("PREFECT_HOME", str(home))
            os.environ.update(reaching(f"http://{LOOPBACK}:{_port_of(settings)}/api", password_of(home)))
            os.environ.update(environment(settings.trusted_folder, os.environ))
            import_prefect()
        files = [str(one.file) for one in streams]
        plan = Plan(
            name=settings.stream.name,
            home=str(home),
            trusted=[str(one.trusted_folder) for one in streams],
            api=api_of_settings(),
            is_own=not api,
            register=("flows.orchestration.serve", json.dumps([files, work_pool, not api])),
            listening=listening.fileno(),
            watches=[watches_of(one) for one in streams],
        )
        become(plan, ["serve", *(word for file in files for word in ("--config", file))])


def watches_of(settings: Settings, longest: timedelta = LONGEST_WATCH) -> Watches:
    """The watches of a stream, as `watching` runs them."""
    log, last = settings.serve_folder / f"watch-{settings.stream.name}.log", last_end(settings, "watch")
    return Watches(
        config=str(settings.file),
        cron=settings.scheduling.watch_cron,
        zone=settings.stream.time_zone,
        log=str(log),
        last=None if last is None else last.isoformat(),
        longest=longest.total_seconds(),
    )


def register(configs: Sequence[str], work_pool: str | None, is_own: bool) -> dict[str, Any]:
    """Put the night on the server; return its pool, its deployment, and lines about what is next."""
    from prefect.settings import get_current_settings

    from flows.orchestration import nightly  # prefect has read its settings now

    streams = [load_settings(Path(one)) for one in configs]
    heartbeat = get_current_settings().flows.heartbeat_frequency or HEARTBEAT_SECONDS
    night = nightly.night_document(streams, work_pool, heartbeat)
    pool, deployment = night["work_pool"]["name"], nightly.register(night, heartbeat)
    if is_own:  # no run of that server can be alive
        nightly.close_runs([night["name"], *(one.stream.name for one in streams)])
    zones = [one.stream.time_zone for one in streams]
    clocks = [datetime.now(ZoneInfo(zone)) for zone in zones]
    night_begins = min(next_fire(looks_of(one), now) for one, now in zip(streams, clocks, strict=True))
    planned = [(deployment, night_begins.astimezone(ZoneInfo(zones[0])), zones[0])]
    for one, now, zone in zip(streams, clocks, zones, strict=True):
        watch = next_fire([one.scheduling.watch_cron], now)
        planned.append((f"watch of {one.stream.name}", watch, zone))
    lines = [f"{what}: next at {fire:%Y-%m-%d %H:%M} ({zone})" for what, fire, zone in planned]
    seconds = nightly.MISSED_HEARTBEATS * heartbeat
    lines.append(f"work pool {pool}; a run that is silent for {seconds} s is taken for dead, marked Crashed")
    lines += [
        f"no [watch] in {one.file.name} of {one.stream.name}: alarms are Prefect's events alone"
        for one in streams
        if one.watch is None
    ]
    return {"pool": pool, "deployment": deployment, "lines": lines}


if __name__ == "__main__":
    print_answer(lambda: register(*json.loads(sys.argv[1])))
