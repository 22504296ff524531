"""Real mounts, where the user who runs the tests may make them."""

import os
import subprocess
import tempfile
from functools import cache
from pathlib import Path


def mounted(*words: str | Path) -> None:
    """`mount` with these words. Raises CalledProcessError."""
    subprocess.run(["mount", *words], check=True, capture_output=True)


@cache
def why_not() -> str | None:
    """Why no mount can be made here; None if one can."""
    if os.geteuid() != 0:
        return "only root may mount"
    with tempfile.TemporaryDirectory() as folder:
        try:
            mounted("-t", "tmpfs", "tmpfs", folder)
        except (OSError, subprocess.CalledProcessError) as error:
            return f"mount is refused ({type(error).__name__})"
        subprocess.run(["umount", folder], check=True)
    return None
