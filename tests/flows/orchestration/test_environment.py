"""Prefect as the project runs it: quiet, forgetful, one thread, and flows that can be sent."""

import socket
from datetime import date
from pathlib import Path
from threading import Thread

import cloudpickle
import pytest
from prefect.client.orchestration import get_client
from prefect.client.schemas.filters import FlowRunFilter
from prefect.settings import PREFECT_API_URL, temporary_settings

from flows.orchestration.backfill import backfill
from flows.orchestration.environment import Api, connect, environment, served, tags_of
from flows.orchestration.nightly import nightly, nights
from flows.orchestration.release import release_days
from flows.orchestration.supervise import found_by_runs
from optstream.errors import ConfigurationError
from tasks.operate.doctor import ask_server
from tasks.trusted.files import make_private_folder
from tests.by_night import few
from tests.faults.world import configure, configured, deliver
from tests.flows.served import optstream
from tests.servers import free_port
from tests.tasks.two_regions import Installation

UNASKED = """
import sys
from pathlib import Path
from flows.orchestration.environment import connect
print(connect(Path(sys.argv[1])))
from prefect import flow
try:
    flow(print)("ran")
except ValueError as error:
    print(error)
"""


@pytest.mark.slow
def test_no_server_is_started_that_nobody_asked_for(tmp_path: Path) -> None:
    make_private_folder(tmp_path / "trusted")
    with found_by_runs([tmp_path / "trusted"], "http://127.0.0.1:9/api", None):  # of one that is gone
        done = optstream(str(tmp_path / "trusted"), program=("-c", UNASKED))
    server, refusal = done.stdout.splitlines()
    assert server == "None"
    assert "No Prefect API URL" in refusal
    assert (tmp_path / "trusted").stat().st_mode & 0o777 == 0o700
    assert not list(tmp_path.rglob("*.db"))


def test_the_project_s_own_server_sends_no_telemetry_and_says_so(prefect_api, monkeypatch):
    monkeypatch.setattr("tasks.operate.doctor.SECONDS", 60)
    assert ask_server(prefect_api)["server"]["analytics_enabled"] is False


@pytest.mark.slow
def test_an_operator_s_server_that_is_down_is_an_error(tmp_path: Path) -> None:
    down = {PREFECT_API_URL: f"http://127.0.0.1:{free_port()}/api"}
    with (
        temporary_settings(down),
        pytest.raises(ConfigurationError, match="no server answers at PREFECT_API_URL"),
    ):
        connect(tmp_path)


@pytest.mark.parametrize(
    ("said", "replies"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n\xff\xfe", True),
        (b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 4\r\n\r\ntrue", False),
        (b"no HTTP\r\n", False),
        (b"", False),
    ],
)
def test_a_server_replies_that_lets_this_process_in_whatever_it_says(said, replies):
    def answer():
        with server.accept()[0] as connection:
            connection.recv(65_536)
            connection.sendall(said)

    with socket.create_server(("127.0.0.1", 0)) as server:
        Thread(target=answer, daemon=True).start()
        assert Api(f"http://127.0.0.1:{server.getsockname()[1]}/api", {}).answers() is replies


def test_the_database_lies_in_the_trusted_folder_unless_the_operator_runs_the_server() -> None:
    assert environment(Path("/trusted"), {})["PREFECT_HOME"] == "/trusted/prefect"
    assert "PREFECT_HOME" not in environment(Path("/trusted"), {"PREFECT_API_URL": "http://127.0.0.1:1/api"})


@pytest.mark.parametrize("flow", [backfill, nightly, nights, release_days], ids=lambda flow: flow.name)
def test_a_flow_can_be_sent(flow):
    """What its body names must be found by its module there, or be pickled with it: no context variable."""
    assert cloudpickle.loads(cloudpickle.dumps(flow)).name == flow.name


DAYS = [date(2016, 5, 30), date(2016, 5, 31)]


@pytest.mark.slow
@pytest.mark.parametrize("n_commands", few([1, 2], 1))
def test_run_and_backfill_find_the_server_while_it_is_served(prefect_api, tmp_path, monkeypatch, n_commands):
    settings = configure(tmp_path, configured().replace("two-regions", "found"))
    deliver(settings, DAYS)
    monkeypatch.setenv("PREFECT_API_URL", prefect_api)
    commands = [("run", "--date", str(DAYS[0])), ("backfill", "--from", str(DAYS[1]), "--to", str(DAYS[1]))]
    Installation(tmp_path).release(DAYS[0])  # so that by day the process that runs has no dump to judge
    with found_by_runs([settings.trusted_folder], prefect_api, None):
        for words in commands[:n_commands]:
            done = optstream(*words, "--config", str(settings.file))
            assert done.returncode == 0, done.stderr
        assert served(settings.trusted_folder)["PREFECT_API_URL"] == prefect_api
    assert served(settings.trusted_folder) == {}, "of one that ended, or was killed"
    with get_client(sync_client=True) as client:
        named = FlowRunFilter.model_validate({"tags": {"all_": list(tags_of("found"))}})
        names = {run.name for run in client.read_flow_runs(flow_run_filter=named)}
    made = ["found 2016-05-30", "found backfill 2016-05-31", "found 2016-05-31"]
    assert names == {*made[: 2 * n_commands - 1]}
