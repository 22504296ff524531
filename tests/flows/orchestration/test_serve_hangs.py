"""`serve`: what it refuses, how long an hour takes, and that it sees when something hangs."""

import os
import secrets
import select
import signal
import socket
import sqlite3
import time
from contextlib import closing, nullcontext

import pytest
from prefect.client.orchestration import get_client

from flows.orchestration import serve, supervise
from flows.orchestration.environment import (
    HEARTBEAT,
    api_of_settings,
    check_address,
    import_prefect,
    password_of,
)
from flows.orchestration.nightly import night_document, register
from flows.orchestration.serve import pages_socket
from flows.orchestration.supervise import Child, Supervisor, pulse_of
from optstream.errors import ConfigurationError
from tests.faults.world import configure
from tests.flows.served import descendants, gone, serving, stream_of, until
from tests.tasks.two_regions import CONFIGURATION


def test_a_deployment_whose_runs_are_not_planned_has_no_pulse_unless_it_is_paused(
    prefect_api, tmp_path, monkeypatch
):
    monkeypatch.setenv("PREFECT_API_URL", prefect_api)
    settings = configure(tmp_path, CONFIGURATION.replace("two-regions", "unplanned"))
    never = [{"cron": "0 0 30 2 *", "timezone": "UTC"}]  # as of a scheduler that died
    register(night_document([settings], "unplanned") | {"schedules": never})
    name = "optstream-nightly/unplanned"
    pulse = pulse_of(api_of_settings(), "unplanned", "worker-1", name)
    assert pulse()[f"planned run of {name}"] is None
    with get_client(sync_client=True) as client:
        client.pause_deployment(client.read_deployment_by_name(name).id)
    assert pulse()[f"planned run of {name}"] is not None


@pytest.mark.parametrize(
    ("pulse", "seconds", "words"),
    [
        (lambda: time.sleep(3600), 0.5, "did not answer for"),
        (lambda: 1 / 0, 0.5, "did not answer for .* s \\(ZeroDivisionError\\)"),
        (lambda: {"heartbeat of the worker": 1}, 4.0, "saw no heartbeat of the worker for .* them hangs"),
    ],
    ids=["hangs", "fails", "stands still"],
)
def test_a_server_or_worker_that_hangs_is_noticed(pulse, seconds, words):
    supervisor = Supervisor(pulse, seconds)
    with pytest.raises(ConfigurationError, match=f"the Prefect server {words}"):
        until("it notices", supervisor.check, 30)
    supervisor.stop()
    assert supervise.HANG_SECONDS <= 600


def test_systemd_is_notified_by_a_datagram_and_no_child_is_led_to_it(tmp_path, monkeypatch):
    path, abstract = str(tmp_path / "notify"), f"@{secrets.token_hex(8)}"
    for address, bound in ((path, path), (abstract, f"\0{abstract[1:]}")):
        monkeypatch.setenv("NOTIFY_SOCKET", address)
        monkeypatch.setenv("WATCHDOG_USEC", "1000000")
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
            manager.bind(bound)
            taken = supervise.systemd_address()
            supervise.notify_systemd(taken, "READY=1")
            assert (taken, manager.recv(64)) == (address, b"READY=1")
            for _ in range(1_000):  # it reads no more
                supervise.notify_systemd(taken, "WATCHDOG=1")
        supervise.notify_systemd(taken, "WATCHDOG=1")  # to one that is gone
        assert {"NOTIFY_SOCKET", "WATCHDOG_USEC"} & set(os.environ) == set()
    supervise.notify_systemd("", "READY=1")


def test_a_log_is_bounded_while_its_child_writes(tmp_path, monkeypatch):
    monkeypatch.setattr(supervise, "LARGEST_LOG", 10_000)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "writes.py").write_text(
        "import sys, time\nwhile True:\n    sys.stderr.write('x' * 99 + chr(10)); time.sleep(0.0005)\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    log, old, sizes = tmp_path / "child.log", tmp_path / "child.log.old", []
    with Child("child", log, 5, {}, "writes") as child:
        while len(sizes) < 20 or not old.exists():
            assert len(sizes) < 600
            time.sleep(0.1)
            child.check()
            sizes.append(log.stat().st_size)
    assert max(*sizes, old.stat().st_size) < 100_000
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
        until("systemd is notified", lambda: manager.recv(64) == b"WATCHDOG=1", 60)
        mark = settings.watch_folder / "watch-ended"
        until("a watch ended", mark.exists, 150)
        before = mark.read_text()
        assert descendants(served.process.pid)
        with closing(sqlite3.connect(settings.serve_folder / "prefect.db", isolation_level=None)) as database:
            if what == "database":
                database.execute("BEGIN IMMEDIATE")
            else:
                os.kill(served.children()[what], signal.SIGSTOP)
            assert served.process.wait(supervise.HANG_SECONDS + 240) == 2
        assert mark.read_text() > before, "no watch ended meanwhile"
    said = served.output.read_text().splitlines()[-1]
    assert said.startswith("error: the Prefect server ")
    assert "start `optstream serve` again" in said


@pytest.mark.parametrize(
    ("number", "code"),
    [(signal.SIGKILL, -signal.SIGKILL), pytest.param(signal.SIGTERM, 0, marks=pytest.mark.nightly)],
)
@pytest.mark.slow
def test_a_serve_that_ends_while_it_starts_leaves_no_server(tmp_path, number, code):
    settings = stream_of(tmp_path / "here", "early")
    with serving(settings) as served:
        lock = settings.serve_folder / "server.lock"
        until("it holds its lock", lambda: lock.exists() and lock.read_text(), 120)
        server = until("its server starts", lambda: served.children().get("server"), 120)
        served.process.send_signal(number)
        assert served.process.wait(60) == code
        until("its server is gone", lambda: gone([server]), 60)
    assert "dashboard" not in served.output.read_text()


NO_API = r"PREFECT_API_URL must be .* http://127\.0\.0\.1:4200/api"
NO_PASSWORD = "no user and no password"


@pytest.mark.parametrize(
    ("address", "refusal"),
    [
        *((f"http://127.0.0.1:4200{end}", NO_API) for end in ("", "/")),  # as `serve` names its dashboard
        ("prefect.example.org/api", NO_API),
        ("ftp://prefect.example.org/api", NO_API),
        ("https:///api", NO_API),
        ("https://prefect.example.org:port/api", NO_API),
        ("http://[::1/api", NO_API),
        ("", NO_API),
        *((f"https://user:hunter2@prefect.org{end}/api", NO_PASSWORD) for end in ("", ":4200", ":port")),
        ("http://127.0.0.1:4200/api", None),
        ("http://[::1]:4200/api", None),
        ("https://prefect.example.org/inside/api", None),
        ("https://api.prefect.cloud/api/accounts/1/workspaces/2", None),
    ],
)
def test_an_address_is_that_of_an_api_without_a_password_which_is_never_shown(address, refusal):
    with pytest.raises(ConfigurationError, match=refusal) if refusal else nullcontext() as raised:
        check_address(address)
    if refusal:
        assert "hunter2" not in str(raised.value)
        assert raised.value.__cause__ is raised.value.__context__ is None


@pytest.mark.parametrize("given", ["29", "0", "-60", "60.5", "a minute", "\u00b3\u00b3"])
def test_heartbeats_that_prefect_cannot_use_are_refused_by_name(given, monkeypatch):
    monkeypatch.setenv(HEARTBEAT, given)
    with pytest.raises(ConfigurationError, match=f"cannot use a setting: {HEARTBEAT}: Input should be"):
        import_prefect(again=True)


def test_the_pages_take_the_usual_port_or_another_and_a_wanted_one_or_none(monkeypatch):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        monkeypatch.setattr(serve, "PAGES_PORT", port)
        with pytest.raises(ConfigurationError, match=f"port {port} .* set another --ui-port"):
            pages_socket(port)
        with pages_socket(None) as other:
            assert other.getsockname()[1] != port
    with pages_socket(port) as first, pages_socket(None) as second:  # of a `serve` that starts at once
        assert first.getsockname()[1] == port != second.getsockname()[1]


def test_an_empty_password_file_is_no_open_server(tmp_path, monkeypatch):
    monkeypatch.delenv("PREFECT_SERVER_API_AUTH_STRING", raising=False)
    (tmp_path / "password").write_text("\n")
    made = password_of(tmp_path)
    assert len(made.removeprefix("optstream:")) >= 32
    assert password_of(tmp_path) == made
    assert (tmp_path / "password").stat().st_mode & 0o077 == 0


def test_the_servers_memory_is_vacuumed(monkeypatch):
    from prefect.settings import Settings

    for name, value in supervise.OF_THE_SERVER.items():
        monkeypatch.setenv(name, value)
    server = Settings().server
    assert server.services.db_vacuum.enabled == {"events", "flow_runs"}
    assert server.services.db_vacuum.retention_period.days == 30
    assert server.events.retention_period.days == 7


def test_a_second_server_of_a_folder_is_refused_until_the_first_is_gone(tmp_path):
    lock, alone = tmp_path / "server.lock", supervise._alone
    with alone(lock), pytest.raises(ConfigurationError, match=f"process {os.getpid()}\\)"), alone(lock):
        pass
    with alone(lock):
        assert lock.stat().st_mode & 0o077 == 0


def test_who_waits_for_pages_that_ended_is_let_go_and_a_later_visit_begins_them_again():
    with socket.create_server(("127.0.0.1", 0)) as listening:
        with socket.create_connection(listening.getsockname()) as waiting:
            select.select([listening], [], [], 10)
            supervise.refuse_waiting(listening)
            assert waiting.recv(1) == b""
        assert select.select([listening], [], [], 0)[0] == []
        with socket.create_connection(listening.getsockname()):
            assert select.select([listening], [], [], 10)[0] == [listening]
