"""The example configuration, changed, and the message for a refused one."""

import tomllib
from functools import partial

import pytest
import tomlkit

from optstream.errors import ConfigurationError
from tasks.config.templates import EXAMPLE


def refused(load, *arguments, **keys):
    with pytest.raises(ConfigurationError) as caught:
        load(*arguments, **keys)
    return str(caught.value)


def laid_over(text, piece):
    """The configuration with the keys of another in place of its own, table by table."""

    def laid(below, above):
        for key, value in above.items():
            both = isinstance(below.get(key), dict) and isinstance(value, dict)
            below[key] = laid(below[key], value) if both else value
        return below

    return tomlkit.dumps(laid(tomllib.loads(text), tomllib.loads(piece)))


@pytest.fixture
def load(load_text):
    return partial(load_text, EXAMPLE)


@pytest.fixture
def refusal(load):
    return partial(refused, load)
