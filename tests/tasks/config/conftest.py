"""The example configuration, changed."""

import pytest

from optstream.errors import ConfigurationError
from tasks.config import load_settings
from tasks.config.example import EXAMPLE


@pytest.fixture
def load(tmp_path):
    """Load the example after replacing texts of it."""

    def _load(*changes, folder=tmp_path):
        text = EXAMPLE
        for old, new in changes:
            assert text.count(old) == 1, old
            text = text.replace(old, new)
        file = folder / "optstream.toml"
        file.write_text(text, encoding="utf-8")
        return load_settings(file)

    return _load


@pytest.fixture
def refusal(load):
    """The lines of the error that a changed example gives."""

    def _refusal(*changes):
        with pytest.raises(ConfigurationError) as caught:
            load(*changes)
        return str(caught.value)

    return _refusal
