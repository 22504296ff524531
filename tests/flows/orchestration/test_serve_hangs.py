"""`serve` sees that its server, its worker or the server's database hangs, and systemd hears that it sees."""

import os
import secrets
import signal
import socket
import sqlite3
import time
from contextlib import closing

import pytest
from prefect.client.orchestration import get_client

from flows.orchestration.nightly import night_document, register
from flows.orchestration.serve import (
    HANG_SECONDS,
    Child,
    Supervisor,
    notify_systemd,
    pulse_of,
    systemd_address,
    worker_of,
)
from optstream.errors import ConfigurationError
from tasks.config import load_settings
from tests.flows.served import CHECKOUT, descendants, serving, stream_of, until
from tests.tasks.two_regions import CONFIGURATION

DEPLOYMENT = "optstream-nightly/supervised"
HANGS = 20.0
"""Seconds, in place of minutes."""


@pytest.fixture
def worker(prefect_api, tmp_path, monkeypatch):
    """A worker of a pool of its own at the tests' server, its pool and its name."""
    (tmp_path / "optstream.toml").write_text(CONFIGURATION.replace("two-regions", "supervised"))
    settings = load_settings(tmp_path / "optstream.toml")
    pool, name = f"supervised-{secrets.token_hex(4)}", "worker-1"
    register(night_document([settings], pool))
    monkeypatch.setenv("PREFECT_API_URL", prefect_api)
    monkeypatch.setenv("PREFECT_WORKER_HEARTBEAT_SECONDS", "1")
    monkeypatch.setenv("PREFECT_WORKER_QUERY_SECONDS", "1")
    monkeypatch.setenv("PYTHONPATH", str(CHECKOUT))
    with worker_of(settings, pool, name) as child:
        pulse = pulse_of(pool, name, DEPLOYMENT)
        until("it has a pulse", lambda: None not in pulse().values(), 120)
        yield child, pulse


def ends_with(supervisor, seconds):
    """What it says once it ends."""

    def look():
        try:
            supervisor.check()
        except ConfigurationError as error:
            return str(error)
        return None

    return until("it notices", look, seconds)


@pytest.mark.slow
def test_a_worker_that_is_stopped_is_noticed_and_one_that_works_is_not(worker):
    child, pulse = worker
    supervisor = Supervisor(pulse, HANGS)
    until("it looked some times", lambda: supervisor._values, 60)
    supervisor.check()
    os.killpg(child.process.pid, signal.SIGSTOP)
    try:
        said = ends_with(supervisor, 6 * HANGS)
    finally:
        os.killpg(child.process.pid, signal.SIGCONT)
    assert "of the worker for" in said
    assert "what makes them hangs" in said


def test_a_deployment_whose_runs_are_not_planned_has_no_pulse_unless_it_is_paused(
    prefect_api, tmp_path, monkeypatch
):
    monkeypatch.setenv("PREFECT_API_URL", prefect_api)
    (tmp_path / "optstream.toml").write_text(CONFIGURATION.replace("two-regions", "unplanned"))
    settings = load_settings(tmp_path / "optstream.toml")
    night = night_document([settings], "unplanned")
    never = [{"cron": "0 0 30 2 *", "timezone": "UTC"}]  # as of a scheduler that died
    register(night | {"schedules": never})
    name = "optstream-nightly/unplanned"
    pulse = pulse_of("unplanned", "worker-1", name)
    assert pulse()[f"planned run of {name}"] is None
    with get_client(sync_client=True) as client:
        client.pause_deployment(client.read_deployment_by_name(name).id)
    assert pulse()[f"planned run of {name}"] is not None


@pytest.mark.parametrize("pulse", [lambda: time.sleep(3600), lambda: 1 / 0], ids=["hangs", "fails"])
def test_a_server_that_does_not_answer_is_noticed_whatever_became_of_the_question(pulse):
    supervisor = Supervisor(pulse, 0.5)
    said = ends_with(supervisor, 30)
    supervisor.stop()
    assert "the Prefect server did not answer for" in said
    assert HANG_SECONDS <= 600


def test_systemd_is_told_by_a_datagram_and_no_child_is_led_to_it(tmp_path, monkeypatch):
    for address, bound in (
        (str(tmp_path / "notify"), str(tmp_path / "notify")),
        (f"@{secrets.token_hex(8)}", None),
    ):
        monkeypatch.setenv("NOTIFY_SOCKET", address)
        monkeypatch.setenv("WATCHDOG_USEC", "1000000")
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
            manager.bind(bound or f"\0{address[1:]}")
            taken = systemd_address()
            notify_systemd(taken, "READY=1")
            assert (taken, manager.recv(64)) == (address, b"READY=1")
            for _ in range(1_000):  # it reads no more
                notify_systemd(taken, "WATCHDOG=1")
        notify_systemd(taken, "WATCHDOG=1")  # to one that is gone
        assert {"NOTIFY_SOCKET", "WATCHDOG_USEC"} & set(os.environ) == set()
    notify_systemd("", "READY=1")


def test_a_log_is_bounded_while_its_child_writes(tmp_path, monkeypatch):
    monkeypatch.setattr("flows.orchestration.serve.LARGEST_LOG", 10_000)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "writes.py").write_text(
        "import sys, time\nwhile True:\n    sys.stderr.write('x' * 99 + chr(10)); time.sleep(0.0005)\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    log, sizes = tmp_path / "child.log", []
    with Child("child", log, 5, {}, "writes") as child:
        for _ in range(20):
            time.sleep(0.1)
            child.check()
            sizes.append(log.stat().st_size)
    old = log.with_suffix(".log.old")
    assert max(sizes) < 100_000
    assert old.stat().st_size < 100_000
    assert {one.stat().st_mode & 0o077 for one in (log, old)} == {0}
    assert set(log.read_bytes()) <= set(b"x\n"), "no hole"


@pytest.mark.nightly
@pytest.mark.parametrize("what", ["server", "worker", "database"])
def test_serve_ends_with_a_reason_while_its_watch_goes_on(tmp_path, what):
    settings = stream_of(tmp_path / "here", "hangs", watched=True)
    manager = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    with manager, serving(settings, NOTIFY_SOCKET=str(tmp_path / "notify")) as served:
        manager.bind(str(tmp_path / "notify"))
        manager.settimeout(300)
        served.says("Ctrl-C")
        until("systemd hears it", lambda: manager.recv(64) == b"WATCHDOG=1", 60)
        mark = settings.watch_folder / "watch-ended"
        until("a watch ended", mark.exists, 150)
        before = mark.read_text()
        family = descendants(served.process.pid)
        with closing(sqlite3.connect(settings.serve_folder / "prefect.db", isolation_level=None)) as database:
            if what == "database":
                database.execute("BEGIN IMMEDIATE")
            else:
                os.kill(served.children()[what], signal.SIGSTOP)
            assert served.process.wait(HANG_SECONDS + 240) == 2
        assert family
        assert mark.read_text() > before, "no watch ended meanwhile"
    said = served.output.read_text().splitlines()[-1]
    assert said.startswith("error: the Prefect server ")
    assert "start `optstream serve` again" in said
