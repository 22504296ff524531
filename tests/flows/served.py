"""`optstream serve` as an operator starts it: a process of its own, on a stream that may stand still once."""

import base64
import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, TypeVar
from urllib.request import ProxyHandler, Request, build_opener

import psutil

from optstream.stream.period import day_of
from tasks.config import Settings
from tasks.monitor.facts import last_ended
from tests.faults.hook import ARM, armed
from tests.faults.world import LEDGER, configure, configured, deliver
from tests.servers import without_prefect

CHECKOUT = Path(__file__).parents[2]
EVERY_MINUTE = """[schedule]
cron = "* * * * *"
watch_cron = "* * * * *"
catch_up_days = 1
[watch]
late_after = "00:00"
"""
POINT = "after commit in Ledger.begin_draw, 1"
"""Charged and about to draw: who dies here has to be drawn again."""
Found = TypeVar("Found")


def stream_of(folder: Path, name: str, first_day_ago: int = 0, watched: bool = False) -> Settings:
    """A stream of two regions, looked at every minute, with dumps from so many days before yesterday on."""
    folder.mkdir()
    text = configured().replace("two-regions", name)
    first = last_ended(configure(folder, text), datetime.now(UTC)) - timedelta(days=first_day_ago)
    schedule = EVERY_MINUTE if watched else EVERY_MINUTE.replace('watch_cron = "* * * * *"\n', "")
    settings = configure(folder, f"{text}{schedule}first_day = {first}\n")
    deliver(settings, [first + timedelta(days=number) for number in range(first_day_ago + 1)])
    return settings


def stream_of_hours(
    folder: Path, n_hours: int = 1, schedule: str = "", watch: str = "", ledger: str = LEDGER
) -> tuple[Settings, list[Any]]:
    """A stream of one step an hour with dumps from the first of its last hours on; and these hours."""
    folder.mkdir()
    text = configured(ledger, mechanism="PeGaSus").replace("two-regions", folder.name)
    text = text.replace('"people"', f'"{folder.name}"').replace('step = "1h"', 'step = "1h"\nperiod = "hour"')
    settings = configure(folder, text)
    calendar, last = settings.calendar, last_ended(settings, datetime.now(UTC))
    hours = [calendar.after(last, -number) for number in range(n_hours - 1, -1, -1)]
    first = day_of(hours[0])
    text += f"[schedule]\n{schedule}catch_up_days = 2\n[watch]\n{watch}first_day = {first}\n"
    deliver(settings, [first + timedelta(days=number) for number in range((day_of(last) - first).days + 1)])
    return configure(folder, text), hours


def stand_still_once(folder: Path, word: str = "prefect.engine") -> dict[str, str]:
    """Variables by which one run of a process stops itself at POINT; who did is in the flag's new name."""
    (folder / "sitecustomize.py").write_text(ARM)
    path = {"PYTHONPATH": f"{folder}{os.pathsep}{CHECKOUT}"}
    return path | armed(folder / "still.flag", folder, "stop", POINT, word)


def until(what: str, look: Callable[[], Found | None], seconds: float) -> Found:
    """What the look finds, as soon as it does."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        found = look()
        if found:
            return found
        time.sleep(0.1)
    raise AssertionError(f"{what}: not in {seconds} s")


@dataclass
class Served:
    """One `optstream serve`, what it said, and what its ledger has."""

    settings: Settings
    process: "subprocess.Popen[bytes]"
    output: Path

    @property
    def password(self) -> str:
        return (self.settings.serve_folder / "password").read_text().strip()

    def says(self, start: str, seconds: float = 300) -> str:
        """The rest of the line that begins so, once it is there."""

        def look() -> str | None:
            if self.process.poll() is not None and start not in self.output.read_text():
                raise AssertionError(f"it ended: {self.output.read_text()}")
            lines = self.output.read_text().splitlines()
            return next((line for line in lines if line.startswith(start)), None)

        return until(f"it says {start!r}", look, seconds).removeprefix(start)

    def children(self) -> dict[str, int]:
        children = [one.as_dict(["pid", "cmdline"]) for one in psutil.Process(self.process.pid).children()]
        return {
            name: one["pid"]
            for one in children
            for name in ("server", "worker")
            if name in (one["cmdline"] or ())  # none of one that ended
        }

    def asked(self, query: str, day: object) -> list[Any]:
        url = f"file:{self.settings.trusted_folder}/ledger.sqlite?mode=ro"
        with suppress(sqlite3.OperationalError), closing(sqlite3.connect(url, uri=True)) as ledger:
            return ledger.execute(query, (str(day),)).fetchall()
        return []

    def state_of(self, day: object) -> tuple[str, int] | None:
        return next(iter(self.asked("SELECT state, redraws FROM releases WHERE period = ?", day)), None)

    def events_of(self, day: object) -> list[str]:
        return [
            kind for (kind,) in self.asked("SELECT kind FROM events WHERE period = ? ORDER BY number", day)
        ]


PROGRAM = ("-m", "flows.cli.main")


def optstream(
    *words: str, cwd: Path = CHECKOUT, program: tuple[str, str] = PROGRAM, **variables: str
) -> "subprocess.CompletedProcess[str]":
    environment = without_prefect() | {"PYTHONPATH": str(CHECKOUT)} | variables
    command = [sys.executable, *program, *words]
    return subprocess.run(
        command, cwd=cwd, env=environment, capture_output=True, text=True, check=False, timeout=300
    )


@contextmanager
def serving(
    settings: Settings, *words: str, program: tuple[str, str] = PROGRAM, **variables: str
) -> Iterator[Served]:
    """Run it; on leaving it is stopped as an operator would, or killed."""
    command = [sys.executable, *program, "serve", "-c", str(settings.file), *words]
    output = settings.folder / "output.txt"
    environment = without_prefect() | {"PYTHONPATH": str(CHECKOUT), "PYTHONUNBUFFERED": "1"} | variables
    with output.open("wb") as said:
        process = subprocess.Popen(
            command,
            env=environment,
            cwd=CHECKOUT,
            stdout=said,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        yield Served(settings, process, output)
    finally:
        if process.poll() is None:
            process.terminate()
        try:
            process.wait(90)
        except subprocess.TimeoutExpired:
            kill_all([process.pid, *descendants(process.pid)])
            process.wait()


def fetch(url: str, password: str, document: Any = None) -> str:
    """What a server answers to a user: by GET, or by POST to a document."""
    user = base64.b64encode(password.encode()).decode()
    headers = {"content-type": "application/json", "authorization": f"Basic {user}"}
    request = Request(url, None if document is None else json.dumps(document).encode(), headers)
    with build_opener(ProxyHandler({})).open(request, timeout=90) as answer:
        return str(answer.read().decode())


def ask(url: str, password: str, path: str, document: Any) -> Any:
    return json.loads(fetch(f"{url}/api/{path}", password, document))


def runs_of(url: str, password: str, flow: str, stream: str) -> list[dict[str, Any]]:
    query = {
        "flows": {"name": {"any_": [flow]}},
        "deployments": {"name": {"any_": [stream]}},
        "sort": "EXPECTED_START_TIME_ASC",
    }
    found: list[dict[str, Any]] = ask(url, password, "flow_runs/filter", query)
    return found


def events_of(url: str, password: str, names: list[str]) -> list[dict[str, Any]]:
    since = (datetime.now(UTC) - timedelta(hours=1)).isoformat()
    query = {"filter": {"event": {"name": names}, "occurred": {"since": since}}, "limit": 50}
    found: list[dict[str, Any]] = ask(url, password, "events/filter", query)["events"]
    return found


def descendants(process: int) -> list[int]:
    return [one.pid for one in psutil.Process(process).children(recursive=True)]


def kill_all(processes: list[int]) -> None:
    for process in processes:
        with suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)


def gone(processes: list[int]) -> bool:
    """Whether none of them runs any more; who waits to be reaped does not run."""
    states = set()
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            states.add(psutil.Process(process).status())
    return states <= {psutil.STATUS_ZOMBIE}
