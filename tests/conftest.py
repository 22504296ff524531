"""What every test may ask for."""

import importlib.util
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.temporary_postgresql import Cluster, find_binaries, temporary_cluster


@pytest.fixture(scope="session")
def real_data() -> Path:
    """The folder of real data: OPTSTREAM_DATA, or `shared/data` beside the checkout; skips where absent."""
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
    """Where nothing is yet."""
    return postgresql_cluster.new_url()
