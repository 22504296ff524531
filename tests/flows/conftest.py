"""Prefect for the tests of flows: one real server a session, started by the first test that asks for it."""

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from flows.orchestration.environment import environment
from tests.cheap_days import short_spans, verdicts_once, whole_spans  # noqa: F401
from tests.servers import LOOPBACK, free_port, running_server

PORT = free_port()
API_URL = f"http://{LOOPBACK}:{PORT}/api"


def _import_prefect() -> None:
    """Import Prefect here, before any test does, for it reads its settings once; leave no variable behind."""
    before = dict(os.environ)
    for name in [name for name in before if name.startswith("PREFECT_")]:
        del os.environ[name]
    home = tempfile.mkdtemp(prefix="optstream-prefect-")
    own = {"PREFECT_API_URL": API_URL, "PREFECT_HOME": home, "PREFECT_LOGGING_TO_API_ENABLED": "false"}
    os.environ.update(environment(Path(home), own) | own)
    try:
        from prefect.logging.configuration import setup_logging

        setup_logging()
    finally:
        os.environ.clear()
        os.environ.update(before)
        Path(home).rmdir()


_import_prefect()


@pytest.fixture(scope="package")
def prefect_api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The API of a server that runs as long as the tests of this folder; flows in this process talk to it."""
    from prefect.events.worker import EventsWorker
    from prefect.settings import PREFECT_FLOWS_HEARTBEAT_FREQUENCY, temporary_settings

    home = tmp_path_factory.mktemp("prefect") / "home"
    # The thread that sends heartbeats holds up the end of each flow by most of a second.
    with running_server(home, PORT) as url, temporary_settings({PREFECT_FLOWS_HEARTBEAT_FREQUENCY: None}):
        yield url
        EventsWorker.drain_all()
