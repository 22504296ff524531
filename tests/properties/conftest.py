"""The world into which hostile input is put, made once a file."""

import pytest

from tests.properties.world import World


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("OPTSTREAM_LEDGER_URL", raising=False)
        # Rust would look up the names of its frames at each panic of a library, which takes seconds.
        patch.setenv("RUST_BACKTRACE", "0")
        world = World(tmp_path_factory.mktemp("world"))
        yield world
