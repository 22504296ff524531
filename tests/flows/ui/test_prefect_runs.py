"""Runs and their steps, from a real Prefect server."""

from datetime import UTC, datetime

from prefect import flow, tags, task

from flows.orchestration.run_names import tags_of
from flows.ui.prefect_runs import _site_of, runs_of
from tests.flows.served import until


@task(name="look up", persist_result=False)
def look_up():
    return 1


@flow(name="a-night", flow_run_name="nights 2016-06-01", persist_result=False)
def night():
    return look_up()


def test_a_link_to_the_server_shows_no_password():
    assert _site_of("https://me:hush@prefect.example:4200/x/api/") == "https://prefect.example:4200/x"
    assert _site_of("http://127.0.0.1:4200/api") == "http://127.0.0.1:4200"
    assert _site_of("") == ""


def test_runs_of_a_stream_with_their_steps_and_no_other_s(prefect_api):
    began = datetime.now(UTC)
    with tags(*tags_of("nights")):
        night()
    # the server records steps from events, some time later
    run = until(
        "the step is recorded", lambda: next((one for one in runs_of("nights") if one.steps), None), 60
    )
    assert len(runs_of("nights")) == 1
    assert (run.name, run.state) == ("nights 2016-06-01", "Completed")
    assert run.ends is not None
    assert began <= run.begins <= run.ends
    assert [step.name for step in run.steps] == ["look up"]
    assert run.page.startswith(prefect_api.removesuffix("/api") + "/runs/flow-run/")
    assert runs_of("others") == ()
