"""`serve`: what it refuses, how long an hour takes, and that it sees when something hangs."""

import os
import secrets
import signal
import socket
import sqlite3
import time
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import median

import pytest
from prefect.client.orchestration import get_client

from flows.orchestration.environment import HEARTBEAT, check_address, heartbeat_seconds, password_of
from flows.orchestration.nightly import night_document, register
from flows.orchestration.serve import (
    HANG_SECONDS,
    OF_THE_SERVER,
    Child,
    Supervisor,
    _alone,
    notify_systemd,
    pages_socket,
    pulse_of,
    systemd_address,
    worker_of,
)
from optstream.errors import ConfigurationError
from optstream.ledger import open_ledger
from optstream.stream import partition_of
from optstream.stream.period import day_of
from tasks.config import load_settings
from tasks.monitor.facts import last_ended
from tasks.operate.simulate import simulate
from tests.faults.world import configured
from tests.flows.served import CHECKOUT, ask, descendants, runs_of, serving, stream_of, until
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


@pytest.mark.parametrize(
    "address",
    [
        "http://127.0.0.1:4200",  # as `serve` says where its dashboard is
        "http://127.0.0.1:4200/",
        "prefect.example.org/api",
        "ftp://prefect.example.org/api",
        "https:///api",
        "https://prefect.example.org:port/api",
        "http://[::1/api",
        "",
    ],
)
def test_an_address_that_is_no_api_is_refused_with_an_example(address):
    with pytest.raises(ConfigurationError, match=r"PREFECT_API_URL must be .* http://127\.0\.0\.1:4200/api"):
        check_address(address)


@pytest.mark.parametrize("port", ["", ":4200", ":port"])
def test_an_address_with_a_password_is_refused_and_never_shown(port):
    with pytest.raises(ConfigurationError, match="no user and no password") as raised:
        check_address(f"https://user:hunter2@prefect.example.org{port}/api")
    assert "hunter2" not in str(raised.value)
    assert raised.value.__cause__ is None
    assert raised.value.__context__ is None


@pytest.mark.parametrize(
    "address",
    [
        "http://127.0.0.1:4200/api",
        "http://[::1]:4200/api",
        "https://prefect.example.org/inside/api",
        "https://api.prefect.cloud/api/accounts/1/workspaces/2",
    ],
)
def test_the_address_of_an_api_is_taken(address):
    check_address(address)


@pytest.mark.parametrize("given", ["29", "0", "-60", "60.5", "a minute", "\u00b3\u00b3"])
def test_heartbeats_that_prefect_refuses_are_refused_first(given):
    with pytest.raises(
        ConfigurationError, match=f"{HEARTBEAT} must be a whole number of seconds, at least 30"
    ):
        heartbeat_seconds({HEARTBEAT: given})


def test_heartbeats_are_a_minute_apart_or_as_the_operator_says():
    assert heartbeat_seconds({}) == 60
    assert heartbeat_seconds({HEARTBEAT: "30"}) == 30


def test_the_pages_take_the_usual_port_or_another_and_a_wanted_one_or_none():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(ConfigurationError, match=f"port {port} .* set another --ui-port"):
            pages_socket(port)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("flows.orchestration.serve.PAGES_PORT", port)
            with pages_socket(None) as other:
                assert other.getsockname()[1] != port
    with pages_socket(port) as first, pytest.MonkeyPatch.context() as patch:
        assert first.getsockname()[1] == port
        patch.setattr("flows.orchestration.serve.PAGES_PORT", port)
        with pages_socket(None) as second:  # of a `serve` that starts at the same time
            assert second.getsockname()[1] != port


def test_an_empty_password_file_is_no_open_server(tmp_path, monkeypatch):
    monkeypatch.delenv("PREFECT_SERVER_API_AUTH_STRING", raising=False)
    (tmp_path / "password").write_text("\n")
    made = password_of(tmp_path)
    assert len(made.removeprefix("optstream:")) >= 32
    assert password_of(tmp_path) == made
    assert (tmp_path / "password").stat().st_mode & 0o077 == 0


def test_the_servers_memory_is_vacuumed(monkeypatch):
    """By Prefect's own reading of the variables."""
    from prefect.settings import Settings

    for name, value in OF_THE_SERVER.items():
        monkeypatch.setenv(name, value)
    server = Settings().server
    assert server.services.db_vacuum.enabled == {"events", "flow_runs"}
    assert server.services.db_vacuum.retention_period.days == 30
    assert server.events.retention_period.days == 7


def test_a_second_server_of_a_folder_is_refused_until_the_first_is_gone(tmp_path):
    lock = tmp_path / "server.lock"
    with _alone(lock), pytest.raises(ConfigurationError, match=f"process {os.getpid()}\\)"), _alone(lock):
        pass
    with _alone(lock):
        assert lock.stat().st_mode & 0o077 == 0


HOURS = 5
"""That are timed."""


@pytest.fixture(scope="module")
def stream(tmp_path_factory):
    """A stream of one step an hour, looked at every minute, and its last hours without dumps."""
    folder = tmp_path_factory.mktemp("hours") / "here"
    folder.mkdir()
    text = configured(mechanism="PeGaSus")
    text = text.replace("two-regions", "hours").replace('step = "1h"', 'step = "1h"\nperiod = "hour"')
    file = folder / "optstream.toml"
    file.write_text(text)
    calendar = load_settings(file).calendar
    last = last_ended(load_settings(file), datetime.now(UTC))
    later = [calendar.after(last, -number) for number in range(HOURS - 1, -1, -1)]
    day = day_of(later[0])
    file.write_text(
        f'{text}[schedule]\ncron = "* * * * *"\nwatch_cron = "59 23 31 12 *"\ncatch_up_days = 2\n'
        f'[watch]\nlate_after = "00:00"\nfirst_day = {day}\n'
    )
    settings = load_settings(file)
    days = [day, day + timedelta(days=1)]
    simulate(settings.input_folder, leaves=("84", "11"), calendar=calendar, days=days, seed=1)
    for hour in later:
        for region in ("84", "11"):
            dump = place(settings, hour, region)
            dump.rename(dump.with_name(f"_{dump.name}"))
    return settings, later


def place(settings, hour, region):
    return Path(str(settings.input_folder)) / f"region={region}" / partition_of(hour)


def release_dumps(settings, hour):
    """Give an hour its dumps."""
    for region in ("84", "11"):
        dump = place(settings, hour, region)
        dump.with_name(f"_{dump.name}").rename(dump)


@pytest.mark.nightly
def test_hours_are_published_by_looks_that_are_one_run_each(stream):
    settings, timed = stream
    with serving(settings) as served:
        url = served.says("dashboard: ")
        served.says("Ctrl-C")
        until("the ledger is there", (settings.trusted_folder / "ledger.sqlite").exists, 300)
        before = settings.calendar.after(timed[0], -1)
        until("the hours before", lambda: (served.state_of(before) or [""])[0] == "PUBLISHED", 400)
        seconds = [time_of(served, url, hour) for hour in timed]
        print(f"median {median(seconds):.2f} s of {HOURS} after the time of the look")
        assert ask(url, served.password, "task_runs/filter", {}) == []
        assert runs_of(url, served.password, "optstream-release", "hours") == []


def time_of(served, url, hour):
    """Seconds from the time of the look that published the hour to the hour's row in the ledger."""
    release_dumps(served.settings, hour)
    until(f"{hour} is published", lambda: (served.state_of(hour) or [""])[0] == "PUBLISHED", 400)
    ledger = open_ledger(served.settings.ledger_url)
    at = ledger.event_times("hours", "published")[str(hour), 0]
    ledger.close()
    runs = runs_of(url, served.password, "optstream-nightly", "hours")
    due = [datetime.fromisoformat(run["expected_start_time"]) for run in runs if run["start_time"]]
    return (at - max(one for one in due if one < at)).total_seconds()
