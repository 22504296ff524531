"""A disk as operations, as a FUSE file system in memory writes them down; its remains after a power cut."""

import errno
import os
import pickle
import signal
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from tests.servers import die_with_parent

ROOT = 1


class Operation(NamedTuple):
    """One change, or one wish that changes be durable.

    kind: "make" (value: mode, owner, group), "own" (the same), "name" (`name` in the folder `node` leads to
    the node `other`), "unname", "rename" (value: the old name, in the same folder), "write" (value: bytes, at
    `other`), "size" (of `other` bytes) or "sync".
    """

    kind: str
    node: int
    name: str = ""
    other: int = 0
    value: Any = None

    @property
    def is_of_content(self) -> bool:
        return self.kind in ("write", "size")

    @property
    def is_of_names(self) -> bool:
        return self.kind in ("name", "unname", "rename")


@dataclass
class Node:
    """A folder, if it has entries, or a file."""

    mode: int
    owner: int = 0
    group: int = 0
    content: bytearray = field(default_factory=bytearray)
    entries: dict[str, int] = field(default_factory=dict)

    @property
    def is_folder(self) -> bool:
        return stat.S_ISDIR(self.mode)


class Disk:
    """Nodes by number; number 1 is the root."""

    def __init__(self, operations: Iterable[Operation] = ()) -> None:
        self.nodes = {ROOT: Node(stat.S_IFDIR | 0o755)}
        for operation in operations:
            self.apply(operation)

    def apply(self, operation: Operation) -> None:
        kind, number, name, other, value = operation
        if kind == "make":
            self.nodes[number] = Node(*value)
        elif kind == "own":
            self.nodes[number].mode, self.nodes[number].owner, self.nodes[number].group = value
        elif kind == "name":
            self.nodes[number].entries[name] = other
        elif kind == "unname":
            self.nodes[number].entries.pop(name, None)
        elif kind == "rename":
            self.nodes[number].entries.pop(value, None)
            self.nodes[number].entries[name] = other
        elif kind == "write":
            content = self.nodes[number].content
            content.extend(bytes(max(0, other - len(content))))
            content[other : other + len(value)] = value
        elif kind == "size":
            content = self.nodes[number].content
            content.extend(bytes(max(0, other - len(content))))
            del content[other:]

    def walk(self, number: int = ROOT, path: str = "") -> Iterator[tuple[str, Node]]:
        """Every path that the names lead to, folders before what is in them."""
        for name, below in sorted(self.nodes[number].entries.items()):
            node = self.nodes[below]
            yield f"{path}{name}", node
            if node.is_folder:
                yield from self.walk(below, f"{path}{name}/")

    def write_to(self, folder: Path, below: str = "") -> None:
        """Put everything into an empty folder. below: only paths that begin so."""
        for path, node in self.walk():
            if not path.startswith(below):
                continue
            place = folder / path
            if node.is_folder:
                place.mkdir(parents=True)
            else:
                place.parent.mkdir(parents=True, exist_ok=True)
                place.write_bytes(node.content)
            if os.geteuid() == 0:
                os.chown(place, node.owner, node.group)
            place.chmod(stat.S_IMODE(node.mode))


Keep = Callable[[Operation], Operation | None]
"""What becomes of an operation that was not synced: it, a part of it, or None."""


WITNESS, SHARED_MEMORY = ".noise", "-shm"
"""Ends of names: of files that are no part of what is tested, and of files not read after a cut."""


@dataclass(frozen=True)
class Rules:
    """What a disk keeps without being asked, and never.

    syncs_names: the start of paths of files whose sync makes their names durable too, as Linux' usual file
    systems have it and PostgreSQL expects; elsewhere only the sync of the folder does, as POSIX promises.
    deaf: parts of paths for which no sync does anything: a disk that lies, or a program that forgot to ask.
    """

    syncs_names: str | None = None
    deaf: tuple[str, ...] = ()


def after_cut(operations: Sequence[Operation], settled: int, at: int, keep: Keep, rules: Rules) -> Disk:
    """The disk after a power cut before operation `at`; what came before `settled` is durable."""
    paths = _paths(operations[:at])
    synced: dict[int, int] = {}
    for number in range(at - 1, settled - 1, -1):
        operation = operations[number]
        path = paths.get(operation.node, "")
        if operation.kind == "sync" and not any(part in path for part in rules.deaf):
            synced.setdefault(operation.node, number)
    disk = Disk(operations[:settled])
    for number in range(settled, at):
        operation = operations[number]
        kept: Operation | None = operation
        if operation.is_of_names or operation.is_of_content:
            path = paths.get(operation.node, "")
            if operation.is_of_names:
                path = f"{path}/{operation.name}"
            sure = synced.get(operation.node, -1) > number or path.endswith(WITNESS)
            if rules.syncs_names is not None and path.startswith(rules.syncs_names):
                sure = sure or synced.get(operation.other, -1) > number
            if path.endswith(SHARED_MEMORY):
                kept = None
            elif not sure:
                kept = keep(operation)
        if kept is not None:
            disk.apply(kept)
    return disk


def _paths(operations: Iterable[Operation]) -> dict[int, str]:
    """The path under which each node was last known."""
    paths = {ROOT: ""}
    for operation in operations:
        if operation.kind in ("name", "rename"):
            paths[operation.other] = f"{paths.get(operation.node, '')}/{operation.name}"
    return paths


CHECKOUT = Path(__file__).parents[2]
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
        [sys.executable, "-m", "tests.faults.disk", str(folder), str(log)],
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
    found = []
    with log.open("rb") as file, suppress(EOFError):
        while True:
            found.append(Operation(*pickle.load(file)))  # noqa: S301 - our own log, written a moment ago
    return found


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
            pickle.dump(tuple(self._replaced), self._log)
        self._replaced = None
        pickle.dump(tuple(done), self._log)

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
        names = [below for one in self._disk.nodes.values() for below in one.entries.values()]
        return {
            "st_ino": number,
            "st_mode": node.mode,
            "st_nlink": 2 if node.is_folder else names.count(number),
            "st_uid": node.owner,
            "st_gid": node.group,
            "st_size": len(node.content),
            "st_blocks": -(-len(node.content) // 512),
            "st_atime": accessed,
            "st_mtime": modified,
            "st_ctime": modified,
        }

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

    def open(self, path: str, flags: int = 0) -> int:
        return self._find(path)

    opendir = open

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

    fsyncdir = fsync

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
