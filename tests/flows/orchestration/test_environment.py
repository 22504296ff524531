"""Prefect as the project runs it: quiet, offline, forgetful of readings, gone afterwards."""

import os
import signal
import socket
import sqlite3
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from benchmarks.harness.prefect_server import free_port
from flows.orchestration.environment import ALWAYS, DEFAULTS, Orchestrator, environment, prepare
from optstream.errors import ConfigurationError

READING = "4711.8151"
START = """
import sys
from pathlib import Path
from flows.orchestration.environment import prepare
orchestrator = prepare(Path(sys.argv[1]))
"""
RUN = (
    START
    + f"""
from prefect import flow, task
from prefect.artifacts import create_link_artifact, create_table_artifact
from prefect.cache_policies import NO_CACHE
from prefect.settings import get_current_settings

@task(cache_policy=NO_CACHE, persist_result=False, retries=0)
def step(readings):
    return [value * 2 for value in readings]

@task(cache_policy=NO_CACHE, persist_result=False, retries=0)
def report(readings):
    create_table_artifact(key="nodes", table=[{{"node": "FR", "steps": 48}}])
    create_link_artifact(key="file", link="file:///published")
    return readings

@flow(name="toy", persist_result=False, retries=0, validate_parameters=False)
def toy(config, day):
    readings = [{READING}]
    for _ in range(200):
        readings = step(readings)
    return report(readings)

orchestrator.wait()
print(toy("optstream.toml", "2016-02-01")[0] == {READING} * 2**200)
print(orchestrator.url)
print(get_current_settings().server.analytics_enabled)
"""
)
HANG = START + "orchestrator.wait(); print(orchestrator.url, flush=True); import time; time.sleep(600)"
OFFLINE = ["unshare", "-n" if os.geteuid() == 0 else "-rn", "sh", "-c", 'ip link set lo up; exec "$@"', "sh"]


def command(code: str, trusted: Path) -> list[str]:
    return [sys.executable, "-c", code, str(trusted)]


def operator(**variables: str) -> dict[str, str]:
    """The environment of a plain shell without a terminal, and what the operator set in it."""
    return {"PATH": os.environ["PATH"], "HOME": os.environ.get("HOME", "/")} | variables


def listens(url: str) -> bool:
    where = urlsplit(url)
    with socket.socket() as probe:
        return probe.connect_ex((str(where.hostname), int(where.port or 80))) == 0


@dataclass(frozen=True)
class Ended:
    code: int
    output: list[str]
    errors: str
    home: Path

    def counts(self, table: str, column: str) -> dict[str, int]:
        with sqlite3.connect(self.home / "prefect.db") as database:
            query = f"SELECT {column}, count(*) FROM {table} GROUP BY 1"
            return dict(database.execute(query).fetchall())


@pytest.fixture(scope="module")
def offline(tmp_path_factory: pytest.TempPathFactory) -> Ended:
    """A flow of 201 tasks without network, behind a proxy that is not there, by one who wants telemetry."""
    trusted = tmp_path_factory.mktemp("run") / "trusted"
    wishes = {"PREFECT_SERVER_ANALYTICS_ENABLED": "true", "DO_NOT_TRACK": "0"}
    proxies = {"http_proxy": "http://127.0.0.1:9", "ALL_PROXY": "http://127.0.0.1:9"}
    done = subprocess.run(
        [*OFFLINE, *command(RUN, trusted)],
        env=operator(**wishes, **proxies),
        capture_output=True,
        text=True,
        check=False,
    )
    return Ended(done.returncode, done.stdout.splitlines(), done.stderr, trusted / "prefect")


def test_offline_run_says_nothing_and_gives_its_values(offline: Ended) -> None:
    assert offline.errors == ""
    assert offline.code == 0
    assert offline.output[0] == "True"


def test_telemetry_stays_off_whatever_the_operator_wishes(offline: Ended) -> None:
    assert offline.output[2] == "False"
    assert "telemetry" not in (offline.home / "server.log").read_text()


def test_every_task_run_and_artifact_is_recorded_before_the_server_stops(offline: Ended) -> None:
    assert offline.counts("task_run", "state_type") == {"COMPLETED": 201}
    assert offline.counts("artifact", "key") == {"nodes": 1, "file": 1}


def test_no_reading_is_stored(offline: Ended) -> None:
    files = [path for path in offline.home.rglob("*") if path.is_file()]
    assert {path.name for path in files} >= {"prefect.db", "server.log"}
    assert not [path for path in files if READING.encode() in path.read_bytes()]
    assert not (offline.home / "storage").exists()


def test_the_orchestrator_s_memory_is_its_owner_s_alone(offline: Ended) -> None:
    assert offline.home.stat().st_mode & 0o777 == 0o700
    assert offline.home.parent.stat().st_mode & 0o777 == 0o700
    files = {path.name: path.stat().st_mode & 0o077 for path in offline.home.rglob("*") if path.is_file()}
    assert set(files) >= {"prefect.db", "server.log", "starting.lock"}
    assert not any(files.values()), files


def test_a_killed_flow_leaves_no_server(tmp_path: Path) -> None:
    with subprocess.Popen(command(HANG, tmp_path), env=operator(), stdout=subprocess.PIPE, text=True) as flow:
        assert flow.stdout
        url = flow.stdout.readline().strip()
        assert listens(url)
        flow.send_signal(signal.SIGKILL)
    deadline = time.monotonic() + 30
    while listens(url) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not listens(url)


def test_two_first_runs_at_once_both_start(tmp_path: Path) -> None:
    start = command(START + "orchestrator.wait()", tmp_path)
    both = [subprocess.Popen(start, env=operator(), stderr=subprocess.PIPE, text=True) for _ in range(2)]
    assert [process.communicate()[1] for process in both] == ["", ""]


def test_a_server_that_cannot_start_is_an_error_that_names_its_log(tmp_path: Path) -> None:
    nowhere = f"sqlite+aiosqlite:///{tmp_path}/nowhere/prefect.db"
    done = subprocess.run(
        command(START + "orchestrator.wait()", tmp_path),
        env=operator(PREFECT_SERVER_DATABASE_CONNECTION_URL=nowhere),
        capture_output=True,
        text=True,
        check=False,
    )
    log = tmp_path / "prefect" / "server.log"
    assert f"ConfigurationError: Prefect's temporary server did not start: see {log}" in done.stderr
    assert log.stat().st_size > 0


def test_preparing_too_late_is_refused(tmp_path: Path) -> None:
    done = subprocess.run(
        command("import prefect" + START, tmp_path),
        env=operator(PREFECT_HOME=str(tmp_path)),
        capture_output=True,
        text=True,
        check=False,
    )
    assert "RuntimeError: call prepare before anything imports prefect" in done.stderr


def test_an_operator_s_server_is_used_and_none_started(prefect_api: str, tmp_path: Path) -> None:
    orchestrator = prepare(tmp_path)
    assert orchestrator == Orchestrator(prefect_api)
    orchestrator.wait()
    orchestrator.stop()
    assert listens(prefect_api)
    assert not list(tmp_path.iterdir())


def test_an_operator_s_server_that_is_down_is_an_error() -> None:
    with pytest.raises(ConfigurationError, match="no server answers at PREFECT_API_URL"):
        Orchestrator(f"http://127.0.0.1:{free_port()}/api").wait()


def test_the_operator_s_own_variables_win_but_telemetry() -> None:
    own = dict.fromkeys([*DEFAULTS, "PREFECT_HOME", "PREFECT_LOGGING_HANDLERS_CONSOLE_LEVEL"], "own")
    assert environment(Path("trusted"), own | dict.fromkeys(ALWAYS, "true")) == ALWAYS


def test_the_database_lies_in_the_trusted_folder_unless_the_operator_runs_the_server() -> None:
    assert environment(Path("/trusted"), {})["PREFECT_HOME"] == "/trusted/prefect"
    assert "PREFECT_HOME" not in environment(Path("/trusted"), {"PREFECT_API_URL": "http://127.0.0.1:1/api"})


def test_a_logging_level_asked_for_reaches_the_terminal() -> None:
    console = "PREFECT_LOGGING_HANDLERS_CONSOLE_LEVEL"
    assert environment(Path("trusted"), {})[console] == "CRITICAL"
    assert console not in environment(Path("trusted"), {"PREFECT_LOGGING_LEVEL": "INFO"})
