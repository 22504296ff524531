"""The version of the installed package."""

from importlib import metadata


def _installed() -> str:
    """Return the version; one that says so for a source tree on the path, never installed."""
    try:
        return metadata.version("optstream")
    except metadata.PackageNotFoundError:
        return "0+unknown"


__version__ = _installed()
