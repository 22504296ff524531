"""`optstream doctor` as its user meets it, and the check that a run begins with."""

import json

import pytest

from flows.orchestration.release import release_days
from optstream.errors import ConfigurationError
from tests.flows.command import invoke


@pytest.fixture
def here(here, monkeypatch):
    for name in ("PREFECT_API_URL", "DO_NOT_TRACK", "GX_ANALYTICS_ENABLED"):
        monkeypatch.delenv(name, raising=False)
    return here


def test_a_stream_that_has_not_begun_is_sound(here):
    result = invoke("doctor")
    assert result.exit_code == 0
    assert "there is no ledger yet" in result.output
    document = json.loads(invoke("doctor", "--json").output)
    assert (document["format"], document["sound"]) == ("optstream.doctor/1", True)
    assert sorted(path.name for path in here.iterdir()) == ["optstream.toml"]


def test_what_is_wrong_has_place_rule_and_remedy_and_exit_code_1(here, monkeypatch):
    (here / "trusted").mkdir(mode=0o755)
    monkeypatch.setenv("PREFECT_SERVER_ANALYTICS_ENABLED", "true")
    result = invoke("doctor", "--json")
    assert result.exit_code == 1
    document = json.loads(result.output)
    assert not document["sound"]
    assert [(found["severity"], found["place"]) for found in document["findings"][:2]] == [
        ("wrong", str(here / "trusted")),
        ("wrong", "PREFECT_SERVER_ANALYTICS_ENABLED"),
    ]
    assert document["findings"][0]["remedy"] == f"chmod 700 {here / 'trusted'}"
    for_people = invoke("doctor")
    assert for_people.exit_code == 1
    assert f"chmod 700 {here / 'trusted'}" in for_people.output


def test_a_configuration_that_does_not_load_is_a_finding(here):
    text = (here / "optstream.toml").read_text()
    (here / "optstream.toml").write_text(text.replace('folder = "trusted"', 'folder = "published/trusted"'))
    result = invoke("doctor", "--json")
    assert result.exit_code == 1
    (finding,) = json.loads(result.output)["findings"]
    assert "must not lie in published.folder" in finding["rule"]


def test_an_open_trusted_folder_stops_the_command_before_anything_starts(here):
    (here / "trusted").mkdir(mode=0o750)
    with pytest.raises(ConfigurationError) as raised:
        invoke("run", "--date", "2016-02-01")
    assert f"chmod 700 {here / 'trusted'}" in str(raised.value)
    assert list((here / "trusted").iterdir()) == []


def test_an_open_trusted_folder_stops_the_flow_too_as_a_schedule_starts_it(here):
    (here / "trusted").mkdir(mode=0o701)
    with pytest.raises(ConfigurationError, match="nothing was read or drawn"):
        release_days.fn(str(here / "optstream.toml"), ["2016-02-01"])
    assert list((here / "trusted").iterdir()) == []
