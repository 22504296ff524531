"""No core dump of a process that holds raw readings or noise."""

import ctypes
import resource
import sys

_SET_DUMPABLE = 4
"""PR_SET_DUMPABLE of prctl(2)."""


def forbid_core_dumps() -> None:
    """Keep this process's memory out of core dumps from now on, whatever ends it.

    The limit alone is not enough: Linux does not ask it where dumps are piped to a program. There the process
    is also marked as not dumpable, so no other process of the same user can attach to it either. A program
    that it starts is not bound by that, only by the limit.
    """
    _, hard = resource.getrlimit(resource.RLIMIT_CORE)
    resource.setrlimit(resource.RLIMIT_CORE, (0, hard))
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_SET_DUMPABLE, 0, 0, 0, 0)
