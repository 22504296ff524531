"""`python -m docs.generate.vendored`: fetch and check the vendored scripts of the operators' pages.

The packed release comes from the package's own registry, by its ordinary client, npm. Its integrity is pinned
here; a file that differs from its hash is not written.
"""

import base64
import hashlib
import io
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

INTO = Path(__file__).parents[2] / "tasks/pages/static/vendored"
PACKAGE = "uplot@1.6.32"
INTEGRITY = "KIMVnG68zvu5XXUbC4LQEPnhwOxBuLyW1AHtpm6IKTXImkbLgkMy+jabjLgSLMasNuGGzQm/ep3tOkyTxpiQIw=="
"""SHA-512 of the packed release."""
FILES = {
    "package/dist/uPlot.iife.min.js": (
        "uPlot.iife.min.js",
        "19c8d4c6ad88929a79f4ae49d6f7161566dfd0ba3d15cc495e974f787eb78f1f",
    ),
    "package/dist/uPlot.min.css": (
        "uPlot.min.css",
        "df630c6a8d6f8eeaff264b50f73ce5b114f646ffd9a0bb74f049b0a00135fa04",
    ),
    "package/LICENSE": (
        "uPlot-LICENSE.txt",
        "8f989229699b4fe2f1a0432d0e9edc338a8a911e250e2d1b01ecd770a5f5b1bd",
    ),
}
"""The vendored files: their new names, and their SHA-256."""


def main() -> int:
    """Fetch, check and write; return the exit code."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["npm", "pack", PACKAGE], cwd=folder, check=True, stdout=subprocess.DEVNULL)
        (packed,) = Path(folder).glob("*.tgz")
        found = checked(packed.read_bytes())
    INTO.mkdir(exist_ok=True)
    for name, data in found.items():
        (INTO / name).write_bytes(data)
        print(f"{INTO / name}  {len(data)} bytes")
    return 0


def checked(packed: bytes, integrity: str = INTEGRITY) -> dict[str, bytes]:
    """Return the files of a packed release by their new names. Raises ValueError where a hash differs."""
    if base64.b64encode(hashlib.sha512(packed).digest()).decode() != integrity:
        raise ValueError(f"{PACKAGE}: not the release that is pinned here")
    found = {}
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        for member, (name, digest) in FILES.items():
            file = archive.extractfile(member)
            data = b"" if file is None else file.read()
            if hashlib.sha256(data).hexdigest() != digest:
                raise ValueError(f"{member} of {PACKAGE}: not the file that is pinned here")
            found[name] = data
    return found


if __name__ == "__main__":
    sys.exit(main())
