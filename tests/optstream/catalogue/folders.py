"""Published folders in every kind of place, looked at past the code under test."""

import shutil
from dataclasses import dataclass, replace
from datetime import date, timedelta
from itertools import count
from pathlib import Path
from typing import Any

import fsspec
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from optstream.catalogue import digest_of
from optstream.catalogue.backends import PROBE
from optstream.catalogue.metadata import MARKER
from optstream.catalogue.signing import Signer, public_pem

STREAM = "../french load"
PRIVATE = Ed25519PrivateKey.from_private_bytes(bytes([1]) * 32)
PEM = public_pem(PRIVATE.public_key())
SIGNER = Signer(PRIVATE, lambda _entries: None)
DAY = date(2016, 2, 1)
NEXT = DAY + timedelta(days=1)
KINDS = ("path", "file", "memory", "s3")
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

    def below(self, name: str) -> str | Path:
        return self.name / name if isinstance(self.name, Path) else f"{self.name}/{name}"

    def files(self) -> dict[str, bytes]:
        """Everything that is not the publisher's own."""
        found = self.filesystem.find(self.root) if self.filesystem.exists(self.root) else []
        names = {path: path.removeprefix(f"{self.root}/") for path in found}
        return {
            name: self.filesystem.cat_file(path)
            for path, name in names.items()
            if not name.startswith((".lock", ".incoming", PROBE))
        }

    def write(self, name: str, data: bytes) -> None:
        self.filesystem.makedirs(f"{self.root}/{name}".rpartition("/")[0], exist_ok=True)
        self.filesystem.pipe_file(f"{self.root}/{name}", data)

    def read(self, name: str) -> bytes:
        return self.filesystem.cat_file(f"{self.root}/{name}")

    def remove(self, name: str) -> None:
        self.filesystem.rm_file(f"{self.root}/{name}")


def make_folder(kind: str, request: pytest.FixtureRequest) -> Folder:
    if kind in ("path", "file"):
        folder = local_folder(request.getfixturevalue("tmp_path") / "published")
        return folder if kind == "path" else replace(folder, name=folder.name.as_uri())
    if kind == "memory":
        return memory_folder()
    return s3_folder(request.getfixturevalue("s3_bucket"))


def local_folder(path: Path) -> Folder:
    return Folder(path, fsspec.filesystem("file"), str(path))


def memory_folder() -> Folder:
    root = f"/{next(_NUMBERS)}/published"
    return Folder(f"memory:/{root}", fsspec.filesystem("memory"), root)


def s3_folder(bucket: str) -> Folder:
    filesystem = fsspec.filesystem("s3", use_listings_cache=False)
    return Folder(f"s3://{bucket}/published", filesystem, f"{bucket}/published")


def copied(folder: Folder, number: object) -> str | Path:
    """Copy the published folder at "before" to one named by a number; return its place."""
    if isinstance(folder.name, Path):
        (folder.name / "before").mkdir(parents=True, exist_ok=True)
        return shutil.copytree(folder.name / "before", folder.name / str(number))
    for path in folder.filesystem.find(f"{folder.root}/before"):
        copy = path.replace("/before/", f"/{number}/", 1)
        folder.filesystem.pipe_file(copy, folder.filesystem.cat_file(path))
    return folder.below(str(number))


def make_page(_place: Any, catalogue: Any) -> bytes:
    days = " ".join(str(entry.period) for entry in catalogue.entries if not entry.withdrawn)
    return f'<meta name="{MARKER}" content="{digest_of(catalogue)}">{days}'.encode()
