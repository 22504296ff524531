"""The runs that had a day: asked for when its page is, and not of a server that has just not answered."""

from starlette.testclient import TestClient

from flows.ui.application import application
from flows.ui.looking import Looks
from tests.failing import raising
from tests.flows.ui.conftest import AUTHORIZED, RUN, SECRET, Shown
from tests.tasks.ui.conftest import AT, FIRST


def asked_with(runs):
    return Looks([], 30, lambda: AT, runs=runs)


def test_the_runs_of_a_day_are_asked_for_by_stream_and_day(snapshot):
    asked = []
    looks = asked_with(lambda *given: asked.append(given) or (RUN,))
    assert looks.runs_on(snapshot("calm"), FIRST) == ((RUN,), "")
    assert asked == [("calm", FIRST)]


def test_a_server_that_fails_is_a_problem_in_words_and_no_address_of_it(snapshot):
    runs, problem = asked_with(raising(OSError("http://me:hush@there"))).runs_on(snapshot(), FIRST)
    assert (runs, problem) == ((), "Prefect's API did not answer (OSError)")


def test_one_that_did_not_answer_the_look_is_not_asked_again(snapshot):
    found = snapshot(runs=(), runs_problem="it did not answer")
    assert asked_with(lambda *_: 1 / 0).runs_on(found, FIRST) == ((), "it did not answer")
    assert asked_with(None).runs_on(snapshot(), FIRST) == ((), "")


def test_the_page_of_a_day_leads_to_its_run_and_to_the_run_that_started_it(snapshot):
    looks = Shown(snapshot())
    client = TestClient(
        application(looks, SECRET, lambda: AT), headers=AUTHORIZED, base_url="http://127.0.0.1"
    )
    path = f"/streams/two-regions/days/{FIRST}"
    text = client.get(path).text
    assert f'A run of it began: <a href="{RUN.page}" rel="noreferrer">{RUN.name}</a>, part of ' in text
    assert f'<a href="{RUN.parent.page}" rel="noreferrer">{RUN.parent.name}</a></li>' in text
    looks.runs = lambda *_: 1 / 0
    assert "Its runs are not known: Prefect&#39;s API did not answer (ZeroDivisionError)." in (
        client.get(path).text
    )


def test_a_command_in_a_problem_is_code_and_no_backtick(snapshot):
    looks = Shown(snapshot("blind", problem="it is an older copy: `optstream <ledger> verify`"))
    client = TestClient(
        application(looks, SECRET, lambda: AT), headers=AUTHORIZED, base_url="http://127.0.0.1"
    )
    for path in ("/", "/streams/blind"):
        assert "copy: <code>optstream &lt;ledger&gt; verify</code>" in client.get(path).text, path
