"""What may happen at a point: it is written down, or the process dies, stands still or is refused."""

import errno
import hashlib
import os
import signal
from collections.abc import Callable
from pathlib import Path

Act = Callable[[str], None]
SIGNALS = {"kill": signal.SIGKILL, "stop": signal.SIGSTOP}
"""Death as nothing else dies; and to stand still until somebody says go on (SIGCONT)."""
REFUSALS = {"full": errno.ENOSPC, "read-only": errno.EROFS, "broken": errno.EIO}


def recorder(points: list[str], moments: list[str], folder: Path) -> Act:
    """Take down the names, and the moments at which something durable differs from the point before."""
    last: list[str] = []

    def act(name: str) -> None:
        now = _fingerprint(folder)
        if last != [now] or name.startswith("after commit"):
            moments.append(name)
        last[:] = [now]
        points.append(name)

    return act


def _fingerprint(folder: Path) -> str:
    """Every name below the folder with its bytes, but for SQLite's shared memory."""
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        digest.update(f"{path}\n".encode())
        if path.is_file() and not path.name.endswith("-shm"):
            digest.update(path.read_bytes())
    return digest.hexdigest()


def happening(what: str, point: str) -> Act:
    """A signal to this process, or a refusal of the system, at this point."""

    def act(name: str) -> None:
        if name == point and what in SIGNALS:
            os.kill(os.getpid(), SIGNALS[what])
        elif name == point:
            raise OSError(REFUSALS[what], os.strerror(REFUSALS[what]))

    return act
