"""A bench on SQLite and on PostgreSQL."""

import pytest

import tests.flows.conftest  # noqa: F401 - Prefect reads its settings once, when `night` imports it
from tests.faults.life import Bench, make_bench
from tests.servers import Cluster


@pytest.fixture(scope="module", params=["sqlite", pytest.param("postgresql", marks=pytest.mark.nightly)])
def bench(request: pytest.FixtureRequest) -> Bench:
    """On either database; on PostgreSQL by night, where a test does not ask for it."""
    made: Bench = request.getfixturevalue(f"{request.param}_bench")
    return made


@pytest.fixture(scope="session")
def sqlite_bench(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    return make_bench(tmp_path_factory.mktemp("sqlite"))


@pytest.fixture(scope="session")
def postgresql_bench(postgresql_cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Bench:
    return make_bench(tmp_path_factory.mktemp("postgresql"), postgresql_cluster)
