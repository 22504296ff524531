"""prefect.yaml and automations.yaml, for a Prefect of one's own, are what `optstream serve` registers."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from flows.orchestration.environment import HEARTBEAT
from flows.orchestration.nightly import (
    MISSED_HEARTBEATS,
    night_document,
    register,
    zombie_document,
)
from tasks.config import load_settings
from tasks.config.templates import EXAMPLE
from tasks.plan.backfill import looks_of

CHECKOUT = Path(__file__).parents[3]
KEPT = (
    "entrypoint",
    "description",
    "tags",
    "parameters",
    "concurrency_limit",
    "work_pool_name",
    "pull_steps",
    "path",
)


@pytest.fixture
def settings(tmp_path):
    """The example's."""
    (tmp_path / "optstream.toml").write_text(EXAMPLE)
    return load_settings(tmp_path / "optstream.toml")


def test_the_files_say_what_serve_registers(settings):
    document = yaml.safe_load((CHECKOUT / "prefect.yaml").read_text())
    assert document["pull"] == []
    assert document["deployments"] == [night_document([settings], config="{{ $OPTSTREAM_CONFIG }}")]
    automations = yaml.safe_load((CHECKOUT / "automations.yaml").read_text())["automations"]
    assert automations == [zombie_document()]


def test_silence_is_several_heartbeats_long(settings):
    for seconds in (30, 60, 300):
        document = night_document([settings], heartbeat=seconds)
        assert document["work_pool"]["job_variables"]["env"][HEARTBEAT] == str(seconds)
        assert zombie_document(seconds)["trigger"]["within"] == MISSED_HEARTBEATS * seconds
    assert MISSED_HEARTBEATS >= 2


def test_no_parameter_or_variable_is_a_secret(settings, monkeypatch):
    monkeypatch.setenv("OPTSTREAM_LEDGER_URL", "postgresql://user:secret@host/ledger")
    loaded = load_settings(settings.file)
    assert "secret" not in str(night_document([loaded]))


@pytest.mark.nightly
def test_a_server_takes_both_the_same(settings, prefect_api):
    """The file through Prefect's own command, then the same through the code, on a real server."""
    pool = "optstream-french-load"
    prefect("work-pool", "create", "--type", "process", pool, api=prefect_api, home=settings.folder)
    said = prefect("--no-prompt", "deploy", "--all", api=prefect_api, home=settings.folder)
    assert "optstream-nightly/french-load" in said
    automation = ["automation", "create", "--from-file", "automations.yaml"]
    prefect(*automation, api=prefect_api, home=settings.folder)
    by_file = known()
    register(night_document([settings]))
    assert known() == by_file
    assert len(by_file["nightly"]["schedules"]) == len(looks_of(settings))
    assert by_file["nightly"]["concurrency_limit"] == (1, "CANCEL_NEW")

    # a changed configuration replaces what was there, whole
    text = EXAMPLE.replace("# [schedule]", "[schedule]").replace(
        '# cron = "0 3 * * *"', 'cron = "*/5 2-4 * * *"'
    )
    settings.file.write_text(text)
    changed = load_settings(settings.file)
    register(night_document([changed]), 30)
    assert known()["nightly"]["schedules"] == [("*/5 2-4 * * *", "Europe/Paris", True)]
    assert known()["automations"] == [(True, 90.0)]


def prefect(*words, api, home):
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PREFECT_")}
    environment |= {
        "PREFECT_API_URL": api,
        "PREFECT_HOME": str(home / "prefect"),
        "PYTHONPATH": str(CHECKOUT),
        "OPTSTREAM_CONFIG": str(home / "optstream.toml"),
        "COLUMNS": "200",
    }
    command = [sys.executable, "-m", "prefect", *words]
    done = subprocess.run(command, cwd=CHECKOUT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def known():
    """What the server knows of the stream, without ids and times."""
    from prefect.client.orchestration import get_client

    with get_client(sync_client=True) as client:
        found = {}
        for name in ("nightly",):
            one = client.read_deployment_by_name(f"optstream-{name}/french-load")
            kept = one.model_dump(include=set(KEPT), mode="json")
            limit = one.global_concurrency_limit.limit, one.concurrency_options.collision_strategy.value
            schedules = [(each.schedule.cron, each.schedule.timezone, each.active) for each in one.schedules]
            found[name] = {
                **kept,
                "concurrency_limit": limit,
                "schedules": sorted(schedules),
                "variables": one.job_variables,
                "pull_steps": one.pull_steps or [],
            }
        ours = client.read_automations_by_name(zombie_document()["name"])
        found["automations"] = [(one.enabled, one.trigger.within.total_seconds()) for one in ours]
        return found
