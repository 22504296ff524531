"""What Prefect has of a run: parameters, tasks and artifacts."""

from datetime import date

import pytest
from prefect.client.orchestration import get_client
from prefect.client.schemas.filters import ArtifactFilter, FlowRunFilter
from prefect.client.schemas.sorting import FlowRunSort
from prefect.settings import get_current_settings

from flows.cli.output import Terminal
from flows.orchestration.release import run_days
from tasks.config import load_settings
from tests.faults.world import configured, deliver

pytestmark = pytest.mark.nightly

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
