"""Prefect's own pages of a run in a real browser; `OPTSTREAM_PICTURES=FOLDER` keeps what it showed."""

import os
from datetime import date
from pathlib import Path

import pytest
from prefect.client.orchestration import get_client
from prefect.client.schemas.filters import ArtifactFilter, FlowRunFilter
from prefect.client.schemas.sorting import FlowRunSort
from prefect.settings import get_current_settings

from flows.cli.output import Terminal
from flows.orchestration.release import run_days
from tasks.config import load_settings
from tasks.pages.public import day_in_markdown
from tests.browser import visit
from tests.faults.world import configured, deliver
from tests.flows.conftest import API_URL

pytestmark = pytest.mark.nightly

SITE = API_URL.removesuffix("/api")
DAY = date(2016, 5, 30)
STEPS = "look up", "discover dumps", "ingest", "validate", "reserve", "draw", "estimate", "stage", "publish"


@pytest.fixture(scope="module")
def shown(prefect_api, tmp_path_factory):
    """The settings of a stream with a run of one day, that run, its tasks, and its artifacts by key."""
    here = tmp_path_factory.mktemp("shown")
    here.joinpath("optstream.toml").write_text(configured())
    settings = load_settings(here / "optstream.toml")
    deliver(settings, [DAY])
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PREFECT_API_URL", prefect_api)
        run_days(settings, [DAY], Terminal(as_json=True))
        with get_client(sync_client=True) as client:
            named = FlowRunFilter.model_validate({"name": {"any_": [f"two-regions {DAY}"]}})
            (run,) = client.read_flow_runs(flow_run_filter=named, sort=FlowRunSort.START_TIME_DESC, limit=1)
            own = {"any_": [run.id]}
            tasks = client.read_task_runs(flow_run_filter=FlowRunFilter.model_validate({"id": own}))
            wanted = ArtifactFilter.model_validate({"flow_run_id": own})
            artifacts = {one.key: one for one in client.read_artifacts(artifact_filter=wanted)}
    return settings, run, tasks, artifacts


def test_of_a_night_paths_and_days_are_stored_and_no_result(shown):
    _, run, tasks, _ = shown
    assert set(run.parameters) == {"config", "days", "restate", "lease_minutes", "report", "revise"}
    found = {one.name.rpartition("-")[0]: one.state.type.value for one in tasks}
    assert found == dict.fromkeys(STEPS, "COMPLETED")
    assert not (get_current_settings().home / "storage").exists()


def test_the_pictures_of_a_release(chromium, shown):
    *_, artifacts = shown
    path = f"/artifacts/artifact/{artifacts['optstream-release'].id}"
    with visit(chromium, allowed=(f"{SITE}/", "data:")) as seen:
        seen.page.goto(f"{SITE}{path}")
        seen.page.get_by_text("SHA-256 of the rows").first.wait_for(timeout=30_000)
        seen.page.wait_for_load_state("networkidle")
        text = seen.page.inner_text("body")
        (width,) = [image.evaluate("e => e.naturalWidth") for image in seen.page.locator("img").all()]
        assert width, "the curve is broken"
        if kept := os.environ.get("OPTSTREAM_PICTURES"):
            seen.page.screenshot(path=Path(kept) / "prefect-release.png")
    assert seen.refused == []
    assert all(url.startswith((f"{SITE}/", "data:")) for url in seen.requests)
    file = f"data/date={DAY}/release-"
    for words in ("Load of FR: from", "Lineage: Dumps", "epsilon of this release", file):
        assert words in text, words


def test_artifacts_hold_published_values_only(shown):
    """Every figure of the picture is of the published file: made again from that folder, it is the same."""
    settings, _, _, artifacts = shown
    assert artifacts["optstream-release"].data == day_in_markdown(settings.published_folder, DAY)
    assert set(artifacts) == {f"optstream-{key}" for key in ("days", "budget", "release")}
