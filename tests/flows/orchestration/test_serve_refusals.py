"""What `optstream serve` refuses before it starts anything, and what its own server is started with."""

import os
import socket

import pytest

from flows.orchestration.environment import HEARTBEAT, check_address, heartbeat_seconds, password_of
from flows.orchestration.serve import OF_THE_SERVER, _alone, pages_socket
from optstream.errors import ConfigurationError


@pytest.mark.parametrize(
    "address",
    [
        "http://127.0.0.1:4200",  # as `serve` says where its dashboard is
        "http://127.0.0.1:4200/",
        "prefect.example.org/api",
        "ftp://prefect.example.org/api",
        "https:///api",
        "https://prefect.example.org:port/api",
        "http://[::1/api",
        "",
    ],
)
def test_an_address_that_is_no_api_is_refused_with_an_example(address):
    with pytest.raises(ConfigurationError, match=r"PREFECT_API_URL must be .* http://127\.0\.0\.1:4200/api"):
        check_address(address)


@pytest.mark.parametrize("port", ["", ":4200", ":port"])
def test_an_address_with_a_password_is_refused_and_never_shown(port):
    with pytest.raises(ConfigurationError, match="no user and no password") as raised:
        check_address(f"https://user:hunter2@prefect.example.org{port}/api")
    assert "hunter2" not in str(raised.value)
    assert raised.value.__cause__ is None
    assert raised.value.__context__ is None


@pytest.mark.parametrize(
    "address",
    [
        "http://127.0.0.1:4200/api",
        "http://[::1]:4200/api",
        "https://prefect.example.org/inside/api",
        "https://api.prefect.cloud/api/accounts/1/workspaces/2",
    ],
)
def test_the_address_of_an_api_is_taken(address):
    check_address(address)


@pytest.mark.parametrize("given", ["29", "0", "-60", "60.5", "a minute", "\u00b3\u00b3"])
def test_heartbeats_that_prefect_refuses_are_refused_first(given):
    with pytest.raises(
        ConfigurationError, match=f"{HEARTBEAT} must be a whole number of seconds, at least 30"
    ):
        heartbeat_seconds({HEARTBEAT: given})


def test_heartbeats_are_a_minute_apart_or_as_the_operator_says():
    assert heartbeat_seconds({}) == 60
    assert heartbeat_seconds({HEARTBEAT: "30"}) == 30


def test_the_pages_take_the_usual_port_or_another_and_a_wanted_one_or_none():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(ConfigurationError, match=f"port {port} .* set another --ui-port"):
            pages_socket(port)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("flows.orchestration.serve.PAGES_PORT", port)
            with pages_socket(None) as other:
                assert other.getsockname()[1] != port
    with pages_socket(port) as first, pytest.MonkeyPatch.context() as patch:
        assert first.getsockname()[1] == port
        patch.setattr("flows.orchestration.serve.PAGES_PORT", port)
        with pages_socket(None) as second:  # of a `serve` that starts at the same time
            assert second.getsockname()[1] != port


def test_an_empty_password_file_is_no_open_server(tmp_path, monkeypatch):
    monkeypatch.delenv("PREFECT_SERVER_API_AUTH_STRING", raising=False)
    (tmp_path / "password").write_text("\n")
    made = password_of(tmp_path)
    assert len(made.removeprefix("optstream:")) >= 32
    assert password_of(tmp_path) == made
    assert (tmp_path / "password").stat().st_mode & 0o077 == 0


def test_the_servers_memory_is_vacuumed(monkeypatch):
    """By Prefect's own reading of the variables."""
    from prefect.settings import Settings

    for name, value in OF_THE_SERVER.items():
        monkeypatch.setenv(name, value)
    server = Settings().server
    assert server.services.db_vacuum.enabled == {"events", "flow_runs"}
    assert server.services.db_vacuum.retention_period.days == 30
    assert server.events.retention_period.days == 7


def test_a_second_server_of_a_folder_is_refused_until_the_first_is_gone(tmp_path):
    lock = tmp_path / "server.lock"
    with _alone(lock), pytest.raises(ConfigurationError, match=f"process {os.getpid()}\\)"), _alone(lock):
        pass
    with _alone(lock):
        assert lock.stat().st_mode & 0o077 == 0
