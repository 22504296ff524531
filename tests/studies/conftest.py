"""Small streams, as the tasks' tests have them."""

from tests.tasks.conftest import load_text, small  # noqa: F401
