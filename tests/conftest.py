"""What every test may ask for."""

import atexit
import gc
import importlib.util
import os
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import pytest
from xdist.scheduler import LoadFileScheduling

os.environ.setdefault("POLARS_MAX_THREADS", "1")  # before polars: frames of tests are small, processes many
os.environ.pop("OPTSTREAM_LEDGER_URL", None)  # the developer's own ledger is not for tests

import flows  # noqa: F401  before numpy: one thread for linear algebra, here too
from optstream.storage import store as stores
from tests.browser import find_chromium, running_chromium
from tests.cheap_storage import (
    keep_in_memory,
    ledgers_made_once,  # noqa: F401
)
from tests.memory_store import MemoryStore
from tests.servers import S3, Cluster, find_binaries, has_s3, temporary_cluster, temporary_s3

FOLDERS = {"faults", "docs"}
"""Every test below one of these has a mark of its name."""
FIXTURES = {
    "prefect_api": "server",
    "postgresql_cluster": "server",
    "s3_server": "server",
    "chromium": "browser",
}
"""The mark of every test that asks for a fixture."""
SERVERS = {"postgresql", "s3"}
"""Parameters of fixtures that start a server."""
LONG = {"browser", "docs", "faults", "server", "slow"}
"""Marks of tests that take seconds; files that have any are begun first."""
TOGETHER = {
    "tests/faults/": "the fork server",
    "tests/flows/orchestration/": "Prefect",
    "tests/flows/web/test_prefect_runs": "Prefect",
    "tests/optstream/catalogue/backends/": "S3",
    "tests/optstream/catalogue/test_crash": "S3",
    "tests/optstream/catalogue/test_publish": "S3",
    "tests/optstream/catalogue/test_signing": "S3",
    "tests/optstream/storage/": "S3",
    "tests/tasks/ingest/test_discover": "S3",
    "tests/optstream/ledger/test_database": "PostgreSQL",
    "tests/optstream/ledger/test_hash_chain": "PostgreSQL",
    "tests/optstream/ledger/test_lifecycle": "PostgreSQL",
    "tests/tasks/release/test_draw": "PostgreSQL",
}
"""Folders and files that one process of several runs all, for they share slow fixtures."""


def pytest_configure() -> None:
    keep_in_memory()


class FilesTogether(LoadFileScheduling):
    """Gives each process a file at a time, or all that share a server."""

    def _split_scope(self, nodeid: str) -> str:
        shared = (server for folder, server in TOGETHER.items() if nodeid.startswith(folder))
        return next(shared, super()._split_scope(nodeid))


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> FilesTogether:
    return FilesTogether(config, log)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, Any, Any]:
    """Collected tests stay, with all modules: looking through it again and again finds no garbage."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        atexit.register(gc.unfreeze)  # else compiled libraries say at the end that something is left
        gc.set_threshold(20_000, 20, 20)  # hundreds of small collections a test found next to nothing
        gc.enable()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Set the marks that follow from where a test lies and from what it needs."""
    for item in items:
        marks = {FIXTURES[name] for name in getattr(item, "fixturenames", ()) if name in FIXTURES}
        parameters = getattr(item, "callspec", None)
        if parameters and not SERVERS.isdisjoint(map(str, parameters.params.values())):
            marks.add("server")
        for mark in marks | FOLDERS.intersection(item.nodeid.split("/")[1:-1]):
            item.add_marker(mark)
    # long tests come first, so that at the end no process waits for another (`--no-loadscope-reorder`)
    long = {item.path for item in items if not LONG.isdisjoint(mark.name for mark in item.iter_markers())}
    items.sort(key=lambda item: item.path not in long)


@pytest.fixture(scope="session")
def real_data() -> Path:
    """The folder of real data: OPTSTREAM_DATA, or `shared/data` next to the checkout; skips where absent."""
    given = os.environ.get("OPTSTREAM_DATA")
    folder = Path(given) if given else Path(__file__).parents[2] / "shared" / "data"
    if not folder.is_dir():
        pytest.skip("the real data are not here; set OPTSTREAM_DATA to their folder")
    return folder


@pytest.fixture(scope="session")
def postgresql_cluster() -> Iterator[Cluster]:
    """A PostgreSQL server for the length of the session; skips where no server binaries are."""
    binaries = find_binaries()
    if binaries is None or importlib.util.find_spec("psycopg") is None:
        pytest.skip("no PostgreSQL here: install its server's package, and optstream[postgresql]")
    with temporary_cluster(binaries) as cluster:
        yield cluster


@pytest.fixture
def postgresql_url(postgresql_cluster: Cluster) -> str:
    return postgresql_cluster.new_url()


@pytest.fixture(scope="session")
def s3_server() -> Iterator[S3]:
    """moto's S3 for the length of the session, and an environment that leads there; skips where it is not."""
    if not has_s3():
        pytest.skip("no moto here: install optstream[development]")
    with temporary_s3() as server, pytest.MonkeyPatch.context() as patch:
        for name, value in server.environment.items():
            patch.setenv(name, value)
        yield server


@pytest.fixture
def s3_bucket(s3_server: S3) -> str:
    return s3_server.new_bucket()


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    """A headless browser, or a skip. Of one module: its event loop runs in this thread, and no other can."""
    executable = find_chromium()
    if executable is None:
        pytest.skip("no Chromium here: install its package, or name it in OPTSTREAM_CHROMIUM")
    with running_chromium(executable) as browser:
        yield browser


stores.KINDS["memory"] = MemoryStore
