"""Prefect's runs as the application shows them."""

from datetime import UTC, date, datetime

from prefect import flow, tags, task

from flows.orchestration.environment import api_of_settings, tags_of
from flows.web.poll import _site_of, runs_of
from tasks.pages.snapshot import RunLink
from tests.flows.served import until

DAY, OTHER = date(2016, 6, 1), date(2016, 6, 2)


@task(name="look up", persist_result=False)
def look_up():
    return 1


@flow(name="optstream-release", flow_run_name="nights {days[0]}", persist_result=False)
def release(days: list[str]):
    return look_up()


@flow(name="optstream-nightly", flow_run_name="nights night", persist_result=False)
def night(day: str):
    return release([day])


@flow(name="optstream-watch", flow_run_name="nights watch", persist_result=False)
def watch():
    return 1


def test_runs_of_a_stream_with_their_steps_parents_and_days_and_no_other_s(prefect_api):
    began = datetime.now(UTC)
    with tags(*tags_of("nights")):
        night(str(DAY))
        watch()
    api = api_of_settings()
    # the server records steps from events, some time later

    def recorded():
        found = runs_of(api, "nights")
        return found if found[0].steps and found[0].parent else None

    released, parent = until("the step and the parent are recorded", recorded, 60)
    assert (released.name, released.state) == (f"nights {DAY}", "Completed")
    assert released.ends is not None
    assert began <= parent.begins <= released.begins <= released.ends
    assert [step.name for step in released.steps] == ["look up"]
    assert released.page.startswith(prefect_api.removesuffix("/api") + "/runs/flow-run/")
    assert (parent.name, parent.parent) == ("nights night", None)
    assert released.parent == RunLink(parent.name, parent.page)
    assert [run.page for run in runs_of(api, "nights", DAY)] == [released.page]
    assert runs_of(api, "nights", OTHER) == ()
    assert runs_of(api, "others") == ()


def test_a_link_to_the_server_shows_no_password():
    assert _site_of("https://me:hush@prefect.example:4200/x/api/") == "https://prefect.example:4200/x"
    assert _site_of("http://127.0.0.1:4200/api") == "http://127.0.0.1:4200"
    assert _site_of("") == ""
