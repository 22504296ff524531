"""The example configuration, changed, and what a person is told whose configuration is refused."""

from functools import partial

import pytest

from optstream.errors import ConfigurationError
from tasks.config.templates import EXAMPLE


def refused(load, *arguments, **keys):
    """The words with which `load` refuses these."""
    with pytest.raises(ConfigurationError) as caught:
        load(*arguments, **keys)
    return str(caught.value)


@pytest.fixture
def load(load_text):
    """Load the example after replacing texts of it."""
    return partial(load_text, EXAMPLE)


@pytest.fixture
def refusal(load):
    """The lines of the error that a changed example gives."""
    return partial(refused, load)
