"""The most memory that a call held, as Python and numpy count it."""

import tracemalloc
from collections.abc import Callable


def most_bytes(call: Callable[[], object]) -> int:
    """Return the most bytes that the call held at once."""
    tracemalloc.start()
    try:
        call()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
