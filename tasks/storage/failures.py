"""Errors that nobody planned: which are failures, and what may be said of them."""

import traceback
from pathlib import Path


def is_failure(error: BaseException) -> bool:
    """Whether something failed, rather than was stopped.

    A panic of a library written in Rust is no `Exception` to Python, and each such library has its own type.
    """
    return isinstance(error, Exception) or type(error).__name__ == "PanicException"


def unexpected(error: BaseException) -> str:
    """An error that nobody planned, by type and place only: its own text could hold a raw value."""
    if isinstance(error, OSError) and error.strerror:
        # The system's own words and a path hold no reading.
        return f"{error.strerror}: {error.filename or 'a file'}; mend it and run again"
    last = traceback.extract_tb(error.__traceback__)[-1:]
    where = "".join(f" at {Path(frame.filename).name}:{frame.lineno}" for frame in last)
    return f"unexpected {type(error).__name__}{where}; its text is withheld, for it may hold readings"
