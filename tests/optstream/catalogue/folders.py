"""Published folders in every kind of place, looked at past the code under test."""

from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

import fsspec
import pytest

from optstream.catalogue.backends.object_store import PROBE

KINDS = ("path", "file", "memory", "s3")
OF_THE_PUBLISHER = (".lock", ".incoming", PROBE)
_NUMBERS = count()


@dataclass(frozen=True)
class Folder:
    """name: what is given to the code. filesystem, root: how it is looked at."""

    name: str | Path
    filesystem: Any
    root: str

    @property
    def in_store(self) -> bool:
        return str(self.name).startswith(("memory://", "s3://"))

    def files(self) -> dict[str, bytes]:
        """Everything that is not the publisher's own."""
        found = self.filesystem.find(self.root) if self.filesystem.exists(self.root) else []
        names = {path: path.removeprefix(f"{self.root}/") for path in found}
        return {
            name: self.filesystem.cat_file(path)
            for path, name in names.items()
            if not name.startswith(OF_THE_PUBLISHER)
        }

    def write(self, name: str, data: bytes) -> None:
        self.filesystem.makedirs(f"{self.root}/{name}".rpartition("/")[0], exist_ok=True)
        self.filesystem.pipe_file(f"{self.root}/{name}", data)

    def read(self, name: str) -> bytes:
        return self.filesystem.cat_file(f"{self.root}/{name}")

    def remove(self, name: str) -> None:
        self.filesystem.rm_file(f"{self.root}/{name}")


def make_folder(kind: str, request: pytest.FixtureRequest) -> Folder:
    """An empty one."""
    if kind in ("path", "file"):
        path = request.getfixturevalue("tmp_path") / "published"
        return Folder(path if kind == "path" else path.as_uri(), fsspec.filesystem("file"), str(path))
    if kind == "memory":
        return memory_folder()
    return s3_folder(request.getfixturevalue("s3_bucket"))


def memory_folder() -> Folder:
    root = f"/{next(_NUMBERS)}/published"
    return Folder(f"memory:/{root}", fsspec.filesystem("memory"), root)


def s3_folder(bucket: str) -> Folder:
    filesystem = fsspec.filesystem("s3", use_listings_cache=False)
    return Folder(f"s3://{bucket}/published", filesystem, f"{bucket}/published")
