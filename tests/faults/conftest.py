"""One nursery for all tests of a process, and a bench on SQLite and on PostgreSQL."""

from collections.abc import Iterator

import pytest

from tests.faults.bench import Bench, make_bench
from tests.faults.nursery import Nursery, open_nursery
from tests.temporary_postgresql import Cluster


@pytest.fixture(scope="session")
def nursery(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nursery]:
    """What it starts is forked from a process that never runs a night itself: tests share nothing by it."""
    with open_nursery(tmp_path_factory.mktemp("last-words")) as opened:
        yield opened


@pytest.fixture(scope="module", params=["sqlite", pytest.param("postgresql", marks=pytest.mark.nightly)])
def bench(request: pytest.FixtureRequest) -> Bench:
    """On either database; on PostgreSQL by night, where a test does not ask for it."""
    made: Bench = request.getfixturevalue(f"{request.param}_bench")
    return made


@pytest.fixture(scope="session")
def sqlite_bench(nursery: Nursery, tmp_path_factory: pytest.TempPathFactory) -> Bench:
    """Where the database makes no difference."""
    return make_bench(tmp_path_factory.mktemp("sqlite"), nursery)


@pytest.fixture(scope="session")
def postgresql_bench(
    nursery: Nursery, postgresql_cluster: Cluster, tmp_path_factory: pytest.TempPathFactory
) -> Bench:
    """Where the fault is the server's."""
    return make_bench(tmp_path_factory.mktemp("postgresql"), nursery, postgresql_cluster.new_url)
