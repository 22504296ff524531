"""What the doctor says of variables and of the Prefect server that they name."""

import socket

import pytest

from optstream.errors import LedgerError
from tasks.operate.doctor import listens_beyond_loopback
from tests.failing import raising

API = "PREFECT_API_URL"
QUIET = {"server": {"analytics_enabled": False}}


@pytest.mark.parametrize(
    ("variables", "severity", "place"),
    [
        ({"PREFECT_SERVER_ANALYTICS_ENABLED": "true"}, "wrong", "PREFECT_SERVER_ANALYTICS_ENABLED"),
        ({"GX_ANALYTICS_ENABLED": "True"}, "wrong", "GX_ANALYTICS_ENABLED"),
        ({"PREFECT_SERVER_ANALYTICS_ENABLED": "t"}, "wrong", "PREFECT_SERVER_ANALYTICS_ENABLED"),
        ({"PREFECT_RESULTS_PERSIST_BY_DEFAULT": "y"}, "warning", "PREFECT_RESULTS_PERSIST_BY_DEFAULT"),
        ({"DO_NOT_TRACK": "0"}, "wrong", "DO_NOT_TRACK"),
        ({"DO_NOT_TRACK": "f"}, "wrong", "DO_NOT_TRACK"),
        ({"PREFECT_RESULTS_PERSIST_BY_DEFAULT": "1"}, "warning", "PREFECT_RESULTS_PERSIST_BY_DEFAULT"),
        ({"PREFECT_SERVER_API_HOST": "0.0.0.0"}, "wrong", "PREFECT_SERVER_API_HOST"),
        ({"PREFECT_SERVER_API_HOST": "::"}, "wrong", "PREFECT_SERVER_API_HOST"),
        ({API: "https://api.prefect.cloud/api/accounts/1"}, "wrong", API),
        ({API: "https://API.Prefect.Cloud./api/accounts/1"}, "wrong", API),
        ({API: "http://prefect.example/api"}, "wrong", API),
        ({"OPTSTREAM_LEDGER_URL": "sqlite:///trusted/ledger.sqlite"}, "note", "OPTSTREAM_LEDGER_URL"),
    ],
)
def test_variables_that_open_something_are_named(
    open_installation, around, monkeypatch, variables, severity, place
):
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    ((told, found, words),) = around(open_installation, variables)
    assert (told, found) == (severity, place)
    assert words


def test_a_server_that_answers_anybody_is_wrong_on_the_network_and_noted_on_loopback(
    open_installation, around
):
    far = around(open_installation, {API: "https://prefect.example/api"}, lambda url: QUIET)
    assert [entry[:2] for entry in far] == [("wrong", API)]
    assert "answers anybody on the network" in far[0][2]
    near = around(open_installation, {API: "http://127.0.0.1:1/api"}, lambda url: QUIET)
    assert [entry[0] for entry in near] == ["note"]


def test_prefect_s_own_folder_open_to_others_is_wrong(open_installation, around):
    home = open_installation.folder / "prefect home"
    home.mkdir(mode=0o755)
    ((severity, place, words),) = around(open_installation, {"PREFECT_HOME": str(home)})
    assert (severity, place) == ("wrong", str(home))
    assert f"chmod 700 '{home}'" in words
    home.chmod(0o700)
    assert around(open_installation, {"PREFECT_HOME": str(home)}) == []


@pytest.mark.parametrize(
    ("family", "address", "wide"),
    [
        (socket.AF_INET, "127.0.0.1", False),
        (socket.AF_INET, "0.0.0.0", True),
        (socket.AF_INET6, "::1", False),
        (socket.AF_INET6, "::", True),
    ],
)
def test_the_kernel_knows_who_listens_beyond_loopback(family, address, wide):
    with socket.socket(family) as listener:
        try:
            listener.bind((address, 0))
        except OSError:
            assert family == socket.AF_INET6  # a machine without it has no such server either
            return
        listener.listen()
        assert listens_beyond_loopback(listener.getsockname()[1]) is wide


@pytest.mark.parametrize(
    "variables",
    [
        {"PREFECT_SERVER_ANALYTICS_ENABLED": "false", "GX_ANALYTICS_ENABLED": "0", "DO_NOT_TRACK": "1"},
        {"PREFECT_SERVER_API_HOST": "127.0.0.1"},
        {"PREFECT_SERVER_API_HOST": "0.0.0.0", "PREFECT_SERVER_API_AUTH_STRING": "a:b"},
        {API: "https://prefect.example/api"},
        {API: "http://127.0.0.1:4200/api"},
    ],
)
def test_sound_variables_are_not(open_installation, around, variables):
    assert around(open_installation, variables) == []


def test_a_server_s_telemetry_is_asked_for(open_installation, around):
    found = around(
        open_installation,
        {API: "http://127.0.0.1:1/api"},
        lambda url: {"server": {"analytics_enabled": True}},
    )
    assert ("wrong", API) in [entry[:2] for entry in found]
    assert "sends telemetry" in found[0][2]


def test_a_distant_ledger_without_encryption_is_told(open_installation, around, monkeypatch):
    def first(url):
        open_installation.configure(*url)
        found = around(open_installation)
        return [place for _, place, words in found if "encrypted" in words]

    (open_installation.folder / "optstream.toml").chmod(0o600)
    monkeypatch.setattr("tasks.operate.doctor.find_ledger", raising(LedgerError("does not answer")))
    assert first(("sqlite:///trusted/ledger.sqlite", "postgresql://db.example/ledger")) == ["ledger.url"]
    assert first(("db.example/ledger", "db.example/ledger?sslmode=verify-full")) == []
    assert first(("db.example/ledger?sslmode=verify-full", "localhost/ledger")) == []
