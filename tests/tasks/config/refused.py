"""What a person is told whose configuration is refused."""

import pytest

from optstream.errors import ConfigurationError


def refused(load, *arguments, **keys):
    """The words with which `load` refuses these."""
    with pytest.raises(ConfigurationError) as caught:
        load(*arguments, **keys)
    return str(caught.value)
