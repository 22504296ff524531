"""Temporary files in memory: releases sync so often that a disk is what tests would wait for."""

import os
import shutil
import tempfile
from pathlib import Path

from psutil import virtual_memory

MEMORY, LEAST_FREE = Path("/dev/shm"), 6 * 2**30
"""Linux keeps what lies there in memory; with fewer bytes free, there or of all memory, it is left alone."""


def keep_in_memory() -> None:
    """Put temporary files of this process and its children into memory, unless TMPDIR says where."""
    if MEMORY.is_dir() and min(shutil.disk_usage(MEMORY).free, virtual_memory().available) > LEAST_FREE:
        os.environ.setdefault("TMPDIR", str(MEMORY))
        tempfile.tempdir = None
