"""Folders by their descriptors, and names in them that are durable."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC


@contextmanager
def open_folder(folder: Path) -> Iterator[int]:
    """The descriptor of a folder, closed afterwards; links on the way to it are followed."""
    descriptor = os.open(folder, FOLDER)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def sync_folder(folder: Path) -> None:
    """Make the names in a folder durable."""
    with open_folder(folder) as descriptor:
        os.fsync(descriptor)
