"""One nursery a file, on SQLite and on PostgreSQL."""

from collections.abc import Iterator

import pytest

from tests.faults.bench import Bench, open_bench
from tests.temporary_postgresql import Cluster


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def bench(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    """On either database."""
    new_url = None
    if request.param == "postgresql":
        new_url = request.getfixturevalue("postgresql_cluster").new_url
    with open_bench(tmp_path_factory.mktemp(request.param), new_url) as opened:
        yield opened


@pytest.fixture(scope="module")
def sqlite_bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    """Where the database makes no difference."""
    with open_bench(tmp_path_factory.mktemp("sqlite")) as opened:
        yield opened


@pytest.fixture(scope="module")
def postgresql_bench(
    postgresql_cluster: Cluster, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Bench]:
    """Where the fault is the server's."""
    with open_bench(tmp_path_factory.mktemp("postgresql"), postgresql_cluster.new_url) as opened:
        yield opened
