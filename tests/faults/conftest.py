"""One fork server for all tests of a process, and a bench on SQLite and on PostgreSQL."""

from collections.abc import Iterator

import pytest

from tests.faults.bench import Bench, make_bench
from tests.faults.fork_server import ForkServer, open_fork_server
from tests.temporary_postgresql import Cluster


@pytest.fixture(scope="session")
def fork_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ForkServer]:
    """What it starts is forked from a process that never runs a night itself: tests share nothing by it."""
    with open_fork_server(tmp_path_factory.mktemp("last-words")) as opened:
        yield opened


@pytest.fixture(scope="module", params=["sqlite", pytest.param("postgresql", marks=pytest.mark.nightly)])
def bench(request: pytest.FixtureRequest) -> Bench:
    """On either database; on PostgreSQL by night, where a test does not ask for it."""
    made: Bench = request.getfixturevalue(f"{request.param}_bench")
    return made


@pytest.fixture(scope="session")
def sqlite_bench(fork_server: ForkServer, tmp_path_factory: pytest.TempPathFactory) -> Bench:
    """Where the database makes no difference."""
    return make_bench(tmp_path_factory.mktemp("sqlite"), fork_server)


@pytest.fixture(scope="session")
def postgresql_bench(
    fork_server: ForkServer, postgresql_cluster: Cluster, tmp_path_factory: pytest.TempPathFactory
) -> Bench:
    """Where the fault is the server's."""
    return make_bench(tmp_path_factory.mktemp("postgresql"), fork_server, postgresql_cluster.new_url)
