"""The folder in which the commands are called."""

from tests.flows.cli.conftest import here  # noqa: F401
