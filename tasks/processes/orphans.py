"""Processes that end when the one that started them is gone, however it ended: SIGKILL runs no exit hook.

Each waits for the closing of a pipe or socket whose other end its starter alone holds. Linux's own signal for
this (PR_SET_PDEATHSIG) follows the thread that started a process, and pools start theirs in threads that end
sooner; and it misses a starter that died before it was asked for, which a closed pipe does not.
"""

import os
import select
import signal
import threading
import time
from collections.abc import Callable
from multiprocessing import parent_process

GRACE_SECONDS = 10.0
"""After a polite stop, which a draw holds back (`tasks.storage.private_files.deferred_stop`)."""


def end_with_peer(descriptor: int) -> None:
    """End this process as soon as the other end of a socket is closed, also while it is busy.

    Of a reader of dumps: what it holds is raw, and nobody waits for it any more.
    """

    def wait() -> None:
        poll = select.poll()
        poll.register(descriptor, select.POLLRDHUP)
        poll.poll()
        os._exit(1)

    _in_background(wait)


def end_with_parent() -> None:
    """End this process, one of a pool's, when its parent is gone: politely, and then at once.

    Whatever it was doing is taken up by the next run, as after any crash.
    """
    parent = parent_process()
    if parent is None:
        return

    def wait() -> None:
        parent.join()
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(GRACE_SECONDS)
        os._exit(1)

    _in_background(wait)


def _in_background(wait: Callable[[], None]) -> None:
    threading.Thread(target=wait, name="ends with its starter", daemon=True).start()
