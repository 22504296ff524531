"""Errors that nobody planned: which are failures, and what may be said of them."""

import ctypes
import resource
import sys
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


# No core dump of a process that holds raw readings or noise.

_SET_DUMPABLE = 4
"""PR_SET_DUMPABLE of prctl(2)."""


def forbid_core_dumps() -> None:
    """Keep this process's memory out of core dumps: by the limit, and, where Linux pipes dumps to a program
    and does not ask it, by not being dumpable.
    """
    _, hard = resource.getrlimit(resource.RLIMIT_CORE)
    resource.setrlimit(resource.RLIMIT_CORE, (0, hard))
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_SET_DUMPABLE, 0, 0, 0, 0)
