"""`optstream serve` and a real server: nights run by cron, a killed one goes on, alarms come by schedule."""

import os
import signal
from contextlib import suppress
from datetime import timedelta
from pathlib import Path

import pytest

from tests.browser import visit
from tests.flows.served import (
    descendants,
    events_of,
    fetch,
    gone,
    kill_all,
    optstream,
    runs_of,
    serving,
    stand_still_once,
    stream_of,
    until,
)

pytestmark = pytest.mark.nightly
HEARTBEAT = {"PREFECT_FLOWS_HEARTBEAT_FREQUENCY": "30"}
SILENT_SECONDS = 3 * 30
SLACK_SECONDS = 60
"""What a busy machine may add: a bound on counts of heartbeats and minutes, not on speed."""


@pytest.fixture(scope="module")
def nights(tmp_path_factory):
    """The stream that goes well but for two older days: one skipped, one with a renamed region."""
    settings = stream_of(tmp_path_factory.mktemp("nights") / "here", "nights", first_day_ago=2, watched=True)
    last = settings.watching.first_day + timedelta(days=2)
    dumps = Path(str(settings.input_folder))
    (dumps / "region=FR-AURA").mkdir()
    renamed = f"date={last - timedelta(days=1)}"
    (dumps / "region=84" / renamed).rename(dumps / "region=FR-AURA" / renamed)
    with serving(settings, **HEARTBEAT) as served:
        yield served


@pytest.fixture(scope="module")
def api(nights):
    return nights.says("dashboard: ")


@pytest.fixture(scope="module")
def killed(nights, api, tmp_path_factory):
    settings = stream_of(tmp_path_factory.mktemp("killed") / "here", "killed")
    variables = HEARTBEAT | stand_still_once(settings.folder) | {"PREFECT_API_AUTH_STRING": nights.password}
    with serving(settings, "--api", f"{api}/api", **variables) as served:
        yield served


@pytest.fixture(scope="module")
def again(killed, nights, api):
    """That stream once more, as a service manager starts what ended with an error."""
    variables = HEARTBEAT | {"PREFECT_API_AUTH_STRING": nights.password}
    with serving(killed.settings, "--api", f"{api}/api", **variables) as served:
        yield served


def test_a_cron_makes_a_run_that_publishes_the_day(nights, api):
    day = nights.settings.watching.first_day + timedelta(days=2)
    nights.says("watch of nights: next at ")

    def done():
        ended = runs_of(api, nights.password, "optstream-nightly", "nights")
        return next((run for run in ended if run["state_type"] == "COMPLETED"), None)

    run = until("a scheduled run is completed", done, 300)
    assert run["auto_scheduled"]
    assert run["name"] == "nights night", "no random name"
    assert run["state"]["message"] == f"{day} published"
    assert nights.state_of(day) == ("PUBLISHED", 0)


def test_a_second_serve_is_refused_and_says_who_runs(nights, api):
    done = optstream("serve", "-c", str(nights.settings.file))
    assert done.returncode == 2
    assert f"another `optstream serve` has its server here (process {nights.process.pid})" in done.stderr


def test_the_operators_pages_are_next_to_prefect(nights, api):
    address = nights.says("operators' pages: ")

    def shown():
        with suppress(OSError):
            return fetch(f"{address}streams/nights", nights.password)

    text = until("the stream's page is there", shown, 300)
    assert f"/streams/nights/days/{nights.settings.watching.first_day}" in text
    assert "no Prefect server is named" not in text


def test_prefect_s_own_pages_ask_for_the_password(chromium, nights, api):
    with visit(chromium, allowed=(f"{api}/", "data:")) as seen:
        seen.page.goto(f"{api}/flows")
        seen.page.get_by_placeholder("admin:pass").fill(nights.password)
        seen.page.get_by_role("button", name="Login").click()
        seen.page.get_by_text("optstream-nightly").first.wait_for()
        assert seen.refused == []


def test_a_renamed_region_and_a_skipped_day_are_alarms_of_the_scheduled_watch(nights, api):
    skipped = nights.settings.watching.first_day
    renamed = skipped + timedelta(days=1)
    wanted = {
        "optstream.alarm.unknown-region": {"day": str(renamed), "node": "FR-AURA", "suggestion": "84"},
        "optstream.alarm.missing": {"day": str(skipped), "node": None, "suggestion": None},
    }

    def sent_alarms():
        found = {}
        for event in events_of(api, nights.password, list(wanted)):
            if wanted[event["event"]].items() <= event["payload"].items():
                found[event["event"]] = event["occurred"]
        return found if len(found) == len(wanted) else None

    found = until("both alarms are sent", sent_alarms, 120)
    assert set(found) == set(wanted)
    assert runs_of(api, nights.password, "optstream-watch", "nights") == []
    assert nights.state_of(skipped) is None


def test_a_run_whose_worker_is_killed_is_marked_and_its_day_drawn_once_later(nights, killed, api, request):
    day = killed.settings.watching.first_day
    folder = killed.settings.folder
    (stopped,) = until("a run stands still", lambda: list(folder.glob("still.[0-9]*")), 300)
    assert killed.state_of(day) == ("RESERVED", 0)
    worker = killed.children()["worker"]
    dying = [worker, *descendants(worker)]
    assert int(stopped.suffix[1:]) in dying
    kill_all(dying)
    assert killed.process.wait(60) == 2
    log = killed.settings.serve_folder / "worker-killed.log"
    assert f"error: the Prefect worker ended with code -9: see {log}" in killed.output.read_text()

    def marked():
        runs = runs_of(api, nights.password, "optstream-nightly", "killed")
        return next((run for run in runs if run["state_type"] == "CRASHED"), None)

    run = until("the run is marked", marked, SILENT_SECONDS + SLACK_SECONDS)
    assert run["state"]["message"] == "its heartbeats stopped: its process is taken for dead"
    assert killed.state_of(day) == ("RESERVED", 0)

    killed = request.getfixturevalue("again")
    until("the day is published", lambda: killed.state_of(day) == ("PUBLISHED", 1), 300)
    assert killed.events_of(day).count("drawn") == 1
    verified = optstream("ledger", "verify", "-c", str(killed.settings.file))
    assert verified.returncode == 0, verified.stdout + verified.stderr


def test_no_run_that_ended_well_was_taken_for_dead(nights, killed, api):
    """The control: by now most runs of the nights have been over for longer than the silence allowed."""
    runs = runs_of(api, nights.password, "optstream-nightly", "nights")
    over = [run for run in runs if run["end_time"] and run["state_type"] != "SCHEDULED"]
    assert len(over) >= 2
    fired = events_of(api, nights.password, ["prefect.automation.triggered"])
    dead = {event["payload"]["triggering_labels"]["prefect.resource.id"] for event in fired}
    assert not dead & {f"prefect.flow-run.{run['id']}" for run in over}
    assert dead


def test_a_polite_stop_ends_the_worker_and_leaves_the_server(nights, again):
    again.says("Ctrl-C or SIGTERM ends it")
    family = [again.process.pid, *descendants(again.process.pid)]
    again.process.send_signal(signal.SIGTERM)
    assert again.process.wait(90) == 0
    assert gone(family)
    assert nights.process.poll() is None


def test_it_ends_with_its_server_and_the_server_s_files_are_its_owner_s_alone(nights):
    home = nights.settings.serve_folder
    files = [path for path in home.iterdir() if path.is_file()]
    assert {path.name for path in files} >= {"prefect.db", "server.log", "password", "server.lock"}
    assert [path.name for path in files if path.stat().st_mode & 0o077] == []
    family = descendants(nights.process.pid)
    os.kill(nights.children()["server"], signal.SIGKILL)
    assert nights.process.wait(90) == 2
    assert f"error: the Prefect server ended with code -9: see {home}/server.log" in nights.output.read_text()
    assert gone(family)
