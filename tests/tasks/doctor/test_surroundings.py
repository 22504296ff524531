"""What the doctor says of variables and of the Prefect server that they name."""

import socket

import pytest

from tasks.operate.doctor import listens_beyond_loopback

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
