"""A FUSE file system in memory that writes every operation down: `mounted(folder, log)`."""

import contextlib
import errno
import io
import os
import pickle
import signal
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from tests.faults.disk.model import ROOT, Disk, Node, Operation
from tests.temporary_postgresql import die_with_parent

CHECKOUT = Path(__file__).parents[3]
HIDDEN = ".fuse_hidden"
"""How libfuse names a file that was removed, or replaced, while somebody had it open."""
LONGEST_SECONDS = 60


@cache
def why_not() -> str | None:
    """Why no such file system can be mounted here; None if one can."""
    if not Path("/dev/fuse").exists():
        return "there is no /dev/fuse"
    if os.geteuid() != 0:
        return "only root may mount for other users"
    with tempfile.TemporaryDirectory() as name:
        try:
            with mounted(Path(name) / "disk", Path(name) / "log"):
                return None
        except (OSError, AssertionError) as error:
            return f"the mount is refused: {error}; is libfuse3 installed?"


@contextmanager
def mounted(folder: Path, log: Path) -> Iterator[None]:
    """An empty file system at this folder while the block runs; operations in it go to the log."""
    folder.mkdir(exist_ok=True)
    log.touch()
    server = subprocess.Popen(
        [sys.executable, "-m", "tests.faults.disk.mount", str(folder), str(log)],
        cwd=CHECKOUT,
        stderr=subprocess.PIPE,
        env=os.environ | {"PYTHONPATH": str(CHECKOUT)},
    )
    try:
        deadline = time.monotonic() + LONGEST_SECONDS
        while not folder.is_mount():
            if server.poll() is not None or time.monotonic() > deadline:
                raise AssertionError(f"no file system: {server.communicate()[1]!r}")
            time.sleep(0.01)
        yield
    finally:
        # at once, even with files still open: the power is cut
        subprocess.run(["umount", "--lazy", folder], check=False, capture_output=True)
        try:
            server.wait(LONGEST_SECONDS)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()
        if server.stderr:
            server.stderr.close()


def read_log(log: Path) -> list[Operation]:
    with log.open("rb") as file:
        return list(_operations(io.BytesIO(file.read())))


def _operations(file: io.BytesIO) -> Iterator[Operation]:
    with contextlib.suppress(EOFError):
        while True:
            yield pickle.load(file)  # noqa: S301 - our own log, written a moment ago


class Recording:
    """The requests of FUSE, by mfusepy's names. A file handle is the number of a node."""

    use_ns = True

    def __init__(self, log: Path) -> None:
        self._log = log.open("ab", buffering=0)
        self._disk = Disk()
        self._next = ROOT
        self._times: dict[int, tuple[int, int]] = {}
        self._replaced: Operation | None = None

    def _do(self, *operation: Any) -> int:
        done = Operation(*operation)
        if done.kind != "sync" and done.kind != "own" and not done.is_of_names:
            self._times[done.node] = (time.time_ns(), time.time_ns())
        self._disk.apply(done)
        self._note(done)
        return 0

    def _note(self, done: Operation) -> None:
        if self._replaced is not None and done[:3] != ("rename", *self._replaced[1:3]):
            pickle.dump(self._replaced, self._log)
        self._replaced = None
        pickle.dump(done, self._log)

    def _find(self, path: str) -> int:
        number = ROOT
        for name in path.split("/"):
            if name:
                found = self._disk.nodes[number].entries.get(name)
                if found is None:
                    raise OSError(errno.ENOENT, path)
                number = found
        return number

    def _place(self, path: str) -> tuple[int, str]:
        folder, _, name = path.rpartition("/")
        return self._find(folder), name

    def _node(self, path: str) -> Node:
        return self._disk.nodes[self._find(path)]

    def _make(self, path: str, mode: int) -> int:
        from mfusepy import fuse_get_context

        owner, group, _ = fuse_get_context()
        folder, name = self._place(path)
        self._next += 1
        number = self._next
        self._do("make", number, "", 0, (mode, owner, group))
        self._do("name", folder, name, number)
        return number

    def getattr(self, path: str, fh: int | None = None) -> dict[str, Any]:
        number = self._find(path)
        node = self._disk.nodes[number]
        accessed, modified = self._times.get(number, (0, 0))
        links = 2 if node.is_folder else self._links(number)
        return {
            "st_ino": number,
            "st_mode": node.mode,
            "st_nlink": links,
            "st_uid": node.owner,
            "st_gid": node.group,
            "st_size": len(node.content),
            "st_blocks": -(-len(node.content) // 512),
            "st_atime": accessed,
            "st_mtime": modified,
            "st_ctime": modified,
        }

    def _links(self, number: int) -> int:
        nodes = self._disk.nodes.values()
        return sum(below == number for node in nodes for below in node.entries.values())

    def readdir(self, path: str, fh: int) -> list[tuple[str, dict[str, int], int]]:
        entries = {".": fh, "..": ROOT, **self._disk.nodes[fh].entries}
        shown = [(name, number) for name, number in entries.items() if not name.startswith(HIDDEN)]
        nodes = self._disk.nodes
        return [(name, {"st_ino": number, "st_mode": nodes[number].mode}, 0) for name, number in shown]

    def create(self, path: str, mode: int, flags: int) -> int:
        return self._make(path, stat.S_IFREG | stat.S_IMODE(mode))

    def mkdir(self, path: str, mode: int) -> int:
        self._make(path, stat.S_IFDIR | stat.S_IMODE(mode))
        return 0

    def open(self, path: str, flags: int) -> int:
        return self._find(path)

    def opendir(self, path: str) -> int:
        return self._find(path)

    def read(self, path: str, size: int, offset: int, fh: int) -> bytes:
        return bytes(self._disk.nodes[fh].content[offset : offset + size])

    def write(self, path: str, data: bytes, offset: int, fh: int) -> int:
        self._do("write", fh, "", offset, data)
        return len(data)

    def truncate(self, path: str, length: int, fh: int | None = None) -> int:
        return self._do("size", self._find(path), "", length)

    def fallocate(self, path: str, mode: int, offset: int, size: int, fh: int) -> int:
        if mode:
            raise OSError(errno.EOPNOTSUPP, path)
        return self._do("size", fh, "", max(offset + size, len(self._disk.nodes[fh].content)))

    def fsync(self, path: str, datasync: int, fh: int) -> int:
        return self._do("sync", fh)

    def fsyncdir(self, path: str, datasync: int, fh: int) -> int:
        return self._do("sync", fh)

    def link(self, target: str, source: str) -> int:
        folder, name = self._place(target)
        return self._do("name", folder, name, self._find(source))

    def unlink(self, path: str) -> int:
        folder, name = self._place(path)
        if name.startswith(HIDDEN):
            self._disk.apply(Operation("unname", folder, name))
            return 0
        return self._do("unname", folder, name)

    def rmdir(self, path: str) -> int:
        if any(not name.startswith(HIDDEN) for name in self._node(path).entries):
            raise OSError(errno.ENOTEMPTY, path)
        return self._do("unname", *self._place(path))

    def rename(self, old: str, new: str) -> int:
        moved = self._find(old)
        (source, was), (target, name) = self._place(old), self._place(new)
        if name.startswith(HIDDEN):
            # removed, unless what takes its place in one step comes next
            self._disk.apply(Operation("rename", source, name, moved, was))
            self._replaced = Operation("unname", source, was)
            return 0
        if source == target:
            return self._do("rename", target, name, moved, was)
        self._do("name", target, name, moved)
        return self._do("unname", source, was)

    def chmod(self, path: str, mode: int) -> int:
        node = self._node(path)
        kind = stat.S_IFMT(node.mode)
        return self._do("own", self._find(path), "", 0, (kind | stat.S_IMODE(mode), node.owner, node.group))

    def chown(self, path: str, owner: int, group: int) -> int:
        node = self._node(path)
        owners = (node.owner if owner == -1 else owner, node.group if group == -1 else group)
        return self._do("own", self._find(path), "", 0, (node.mode, *owners))

    def utimens(self, path: str, times: tuple[int, int] | None = None) -> int:
        self._times[self._find(path)] = times or (time.time_ns(), time.time_ns())
        return 0

    def statfs(self, path: str) -> dict[str, int]:
        return {"f_bsize": 4096, "f_frsize": 4096, "f_blocks": 2**20, "f_bavail": 2**20, "f_bfree": 2**20}


if __name__ == "__main__":
    from mfusepy import FUSE

    die_with_parent(signal.SIGTERM)  # on which it unmounts
    FUSE(
        Recording(Path(sys.argv[2])),
        sys.argv[1],
        foreground=True,
        nothreads=True,
        allow_other=True,
        default_permissions=True,
        use_ino=True,
        fsname="recording",
    )
