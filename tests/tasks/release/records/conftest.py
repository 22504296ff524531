"""A configuration of a text."""

import pytest

from tasks.config import load_settings


@pytest.fixture
def load_text(tmp_path):
    """Load the configuration of a text."""

    def load(text):
        (tmp_path / "optstream.toml").write_text(text)
        return load_settings(tmp_path / "optstream.toml")

    return load
