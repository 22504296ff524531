"""Kills a process of a Dask cluster in the middle of its work."""

import os
import signal


def killed_once(work, mark, item):
    """The work; whoever is first is killed in the middle of it."""
    done = work(item)
    try:
        os.close(os.open(mark, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return done
    os.kill(os.getpid(), signal.SIGKILL)
