"""The contents of a disk, as operations; and its remains after a power cut."""

import os
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

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
