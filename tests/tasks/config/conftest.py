"""The example configuration, changed."""

from functools import partial

import pytest

from tasks.config.templates import EXAMPLE
from tests.tasks.config.refused import refused


@pytest.fixture
def load(load_text):
    """Load the example after replacing texts of it."""
    return partial(load_text, EXAMPLE)


@pytest.fixture
def refusal(load):
    """The lines of the error that a changed example gives."""
    return partial(refused, load)
