"""The real flow beside one server: delivered twice, stopped politely, killed, and its server restarted."""

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults.flow.flow_kills import ended, kill_flows, start_flow, wait_until_ready, wait_until_stopped
from tests.faults.judge import Judge
from tests.faults.world import DAYS
from tests.prefect_server import free_port, running_server

pytestmark = pytest.mark.nightly


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The server's memory, which outlives it."""
    return tmp_path_factory.mktemp("prefect") / "home"


@pytest.fixture(scope="module")
def api(home: Path) -> Iterator[str]:
    """A server for all flows here."""
    with running_server(home) as url:
        yield url


def finished(judge, api, hours):
    """What the judge says once another flow has run."""
    return judge.at_the_end([DAYS[0]], ended(start_flow(judge.world, api, hours=hours)))


def test_the_same_scheduled_run_delivered_twice(sqlite_bench, api):
    world = sqlite_bench.world()
    judge = Judge(world)
    flow_run = start_flow(world, api, schedule=True).communicate()[0].split()[-1]
    both = [start_flow(world, api, flow_run=flow_run) for _ in range(2)]
    for process in both:
        ended(process)
    assert judge.look() == []
    assert finished(judge, api, hours=1) == []
    assert judge.voids() == 0


def test_kills_of_the_real_flow(sqlite_bench, api):
    tally = kill_flows(sqlite_bench, 1, 20160601, api)
    assert tally.broken == []
    assert tally.tried == 1


def test_a_polite_stop_of_the_real_flow(sqlite_bench, api):
    world = sqlite_bench.world()
    judge = Judge(world)
    process = start_flow(world, api)
    wait_until_ready(process)
    process.terminate()
    ended(process)
    assert judge.look() == []
    assert finished(judge, api, hours=1) == []
    assert judge.voids() == 0


def test_the_server_restarted_in_the_middle(sqlite_bench, tmp_path):
    """The flow may fail, since Prefect cannot be told; the day is safe, and the next run completes it."""
    world = sqlite_bench.world()
    judge, port = Judge(world), free_port()
    with running_server(tmp_path / "home", port) as url:
        process = start_flow(world, url, stop_at="after commit in Ledger.begin_draw, 1")
        wait_until_ready(process)
        wait_until_stopped(process)
    process.send_signal(signal.SIGCONT)
    with running_server(tmp_path / "home", port) as url:
        ended(process)
        assert judge.look() == []
        assert finished(judge, url, hours=1) == []
    assert judge.voids() == 0
