"""Prefect's own pages of a run in a real browser; `OPTSTREAM_PICTURES=FOLDER` keeps what it showed."""

import os
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from prefect.client.orchestration import get_client
from prefect.client.schemas.filters import (
    ArtifactFilter,
    ArtifactFilterFlowRunId,
    ArtifactFilterKey,
    FlowRunFilter,
    FlowRunFilterId,
    FlowRunFilterName,
)
from prefect.client.schemas.sorting import FlowRunSort
from prefect.settings import get_current_settings

from flows.cli.output import Terminal
from flows.orchestration.backfill import run_backfill
from flows.orchestration.release import run_days
from tasks.config import load_settings
from tests.browser import Visit, visit
from tests.faults.world import configured, deliver
from tests.flows.conftest import API_URL

pytestmark = pytest.mark.nightly

SITE = API_URL.removesuffix("/api")
DAYS = [date(2016, 5, 30), date(2016, 5, 31), date(2016, 6, 1)]
STEPS = "look up", "discover dumps", "ingest", "validate", "reserve", "draw", "estimate", "stage", "publish"


@pytest.fixture(scope="module")
def shown(prefect_api, tmp_path_factory) -> dict[str, Any]:
    """The runs of a night and a backfill, newest first, and the settings."""
    here = tmp_path_factory.mktemp("shown")
    here.joinpath("optstream.toml").write_text(configured())
    settings = load_settings(here / "optstream.toml")
    deliver(settings, DAYS)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PREFECT_API_URL", prefect_api)
        run_days(settings, DAYS[:1], Terminal(as_json=True))
        run_backfill(settings, DAYS[1], DAYS[2])
        with get_client(sync_client=True) as client:
            named = FlowRunFilter(name=FlowRunFilterName(like_=settings.stream.name))
            runs = client.read_flow_runs(flow_run_filter=named, sort=FlowRunSort.START_TIME_DESC, limit=5)
    by_name = {run.name: run for run in reversed(runs)}
    return {"settings": settings, "runs": by_name}


def artifact_of(run: Any, key: str) -> str:
    """The path of the page of a run's artifact."""
    return f"/artifacts/artifact/{_artifact(run, key).id}"


def _artifact(run: Any, key: str) -> Any:
    wanted = ArtifactFilter(
        key=ArtifactFilterKey(any_=[key]), flow_run_id=ArtifactFilterFlowRunId(any_=[run.id])
    )
    with get_client(sync_client=True) as client:
        (found,) = client.read_artifacts(artifact_filter=wanted)
    return found


def open_and_read(browser: Any, path: str, until: str, name: str) -> tuple[str, Visit]:
    """The text of a page once it shows what is waited for."""
    with visit(browser, allowed=(f"{SITE}/", "data:")) as seen:
        seen.page.goto(f"{SITE}{path}")
        seen.page.get_by_text(until).first.wait_for(timeout=30_000)
        seen.page.wait_for_load_state("networkidle")
        text = seen.page.inner_text("body")
        images = [image.evaluate("e => e.naturalWidth") for image in seen.page.locator("img").all()]
        assert all(images), "a picture is broken"
        seen.images = len(images)
        kept = os.environ.get("OPTSTREAM_PICTURES")
        if kept:
            seen.page.screenshot(path=Path(kept) / f"prefect-{name}.png")
    assert seen.refused == []
    assert all(url.startswith((f"{SITE}/", "data:")) for url in seen.requests)
    return text, seen


def test_of_a_night_paths_and_days_are_stored_and_no_result(shown):
    run = shown["runs"]["two-regions 2016-05-30"]
    assert set(run.parameters) == {"config", "days", "restate", "lease_minutes", "report", "revise"}
    with get_client(sync_client=True) as client:
        found = client.read_task_runs(flow_run_filter=FlowRunFilter(id=FlowRunFilterId(any_=[run.id])))
    assert {one.name.rpartition("-")[0]: one.state.type.value for one in found} == dict.fromkeys(
        STEPS, "COMPLETED"
    )
    assert not (get_current_settings().home / "storage").exists()


def test_the_pictures_of_a_release(chromium, shown):
    run = shown["runs"]["two-regions 2016-05-30"]
    path = artifact_of(run, "optstream-release")
    text, seen = open_and_read(chromium, path, "SHA-256 of the rows", "release")
    assert seen.images == 1, "the curve"
    for said in (
        "Load of FR: from",
        "Lineage: Dumps",
        "epsilon of this release",
        "data/date=2016-05-30/release-",
    ):
        assert said in text, said


def test_artifacts_hold_published_values_only(shown):
    """Every figure of the picture is of the published file: made again from that folder, it is the same."""
    from tasks.pages.public import day_in_markdown

    run = shown["runs"]["two-regions 2016-05-30"]
    wanted = ArtifactFilter(flow_run_id=ArtifactFilterFlowRunId(any_=[run.id]))
    with get_client(sync_client=True) as client:
        found = {artifact.key: artifact for artifact in client.read_artifacts(artifact_filter=wanted)}
    folder = shown["settings"].published_folder
    assert found["optstream-release"].data == day_in_markdown(folder, DAYS[0])
    assert set(found) == {f"optstream-{key}" for key in ("days", "budget", "release")}
