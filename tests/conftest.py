"""What every test may ask for."""

import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def real_data() -> Path:
    """The folder of real data: OPTSTREAM_DATA, or `shared/data` beside the checkout; skips where absent."""
    given = os.environ.get("OPTSTREAM_DATA")
    folder = Path(given) if given else Path(__file__).parents[2] / "shared" / "data"
    if not folder.is_dir():
        pytest.skip("the real data are not here; set OPTSTREAM_DATA to their folder")
    return folder
