"""What is seen of a stream by the hour: status, documents, the live application, and the data users' page."""

import json
import re
from datetime import UTC, date, datetime

import pytest
from starlette.testclient import TestClient

from flows.web.app import application
from flows.web.poll import Looks
from optstream.stream import Hour
from tasks.monitor.view import status_document, watch
from tasks.pages.snapshot import take_snapshot
from tasks.release.publish import close_over
from tests.flows.web.conftest import AUTHORIZED, SECRET
from tests.tasks.test_schemas import validator

LATE_HOURS = "4 hours, 2016-06-02T01 to 2016-06-02T04"
DAY, NEXT = date(2016, 6, 1), date(2016, 6, 2)


@pytest.fixture
def watched(day_of_hours):
    """A closed day, one hour of the next, and four that are late."""
    path = day_of_hours.folder / "optstream.toml"
    path.write_text(path.read_text() + '[watch]\nlate_after = "00:30"\n')
    day_of_hours.now = datetime(2016, 6, 2, 4, tzinfo=UTC)  # 06:00 in Paris
    close_over(day_of_hours.run())
    return day_of_hours


def test_the_documents_of_hours_are_what_their_schemas_say(watched):
    view = watch(watched.settings, watched.ledger, watched.now, live=True)
    document = status_document(watched.settings, view)
    assert not list(validator("optstream.status/3").iter_errors(document))
    assert document["days"][0]["date"] == "2016-06-01T00"
    catalogue = json.loads((watched.folder / "published/catalogue.json").read_text())
    assert not list(validator("optstream.catalogue/1").iter_errors(catalogue))
    for data in watched.files("published/manifests").values():
        assert not list(validator("optstream.manifest/1").iter_errors(json.loads(data)))
    catalogue["periods"]["2016-06-01T24:00"] = catalogue["periods"]["2016-06-01T23"]
    assert list(validator("optstream.catalogue/1").iter_errors(catalogue))


def test_the_application_has_a_page_for_the_stream_each_hour_and_each_node(watched):
    file = watched.folder / "optstream.toml"
    looks = Looks([file], 30, lambda: watched.now)
    looks._found = {file: take_snapshot(file, watched.now)}
    client = TestClient(application(looks, SECRET, looks.clock))
    home = "/streams/two-regions"

    def page(path):
        found = client.get(path, headers=AUTHORIZED)
        return found.status_code, found.text

    status, text = page(home)
    assert (status, text.count(LATE_HOURS)) == (200, 2)
    assert re.search(rf'id="d-{NEXT}"[^>]* tabindex="0"', text)
    assert "Next run" in page("/")[1]
    status, text = page(f"{home}/days/2016-06-01T05")
    assert (status, "2016-06-01T04" in text, "2016-06-01T06" in text) == (200, True, True)
    assert ("Hour before" in text, "Day before" in text) == (True, False)
    assert page(f"{home}/days/{NEXT}")[1] == page(f"{home}/days/{Hour(NEXT, 1)}")[1]
    assert page(f"{home}/days/2016-06-05")[0] == page(f"{home}/days/2016-06-01T24")[0] == 404
    assert page(f"{home}/nodes/84?from={DAY}&to={DAY}")[0] == 200
    curve = re.search(r'application/json">(.*)</script>', page(f"{home}/nodes/84?from={DAY}&to={DAY}")[1])
    assert len(json.loads(curve[1])["spans"][0]["at"]) == 48
