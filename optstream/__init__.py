"""OptStream: private, consistent releases of sensitive time series.

`import optstream` is light: a public name loads its package when it is first used.
"""

from importlib import import_module, metadata
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from optstream.catalogue import read_published as read_published
    from optstream.measurement import EquallySpaced as EquallySpaced
    from optstream.mechanisms import OptStream as OptStream
    from optstream.noise import secure_noise as secure_noise
    from optstream.noise import simulated_noise as simulated_noise
    from optstream.privacy import PrivacyModel as PrivacyModel
    from optstream.stream import AggregationTree as AggregationTree
    from optstream.stream import Feature as Feature

_PACKAGES = {
    "AggregationTree": "optstream.stream",
    "EquallySpaced": "optstream.measurement",
    "Feature": "optstream.stream",
    "OptStream": "optstream.mechanisms",
    "PrivacyModel": "optstream.privacy",
    "read_published": "optstream.catalogue",
    "secure_noise": "optstream.noise",
    "simulated_noise": "optstream.noise",
}

__all__ = [
    "AggregationTree",
    "EquallySpaced",
    "Feature",
    "OptStream",
    "PrivacyModel",
    "__version__",
    "read_published",
    "secure_noise",
    "simulated_noise",
]


def _installed_version() -> str:
    """Return the version of the installed package."""
    try:
        return metadata.version("optstream")
    except metadata.PackageNotFoundError:
        return "0+unknown"  # a source tree on the path, never installed


def __getattr__(name: str) -> Any:
    """Return a public name, imported from its package at the first use.

    Args:
        name: One of `__all__`.

    Returns:
        What the package has under that name; for `__version__` the installed version.

    Raises:
        AttributeError: The name is not public.
    """
    if name == "__version__":
        value: Any = _installed_version()
    elif name in _PACKAGES:
        value = getattr(import_module(_PACKAGES[name]), name)
    else:
        raise AttributeError(f"module 'optstream' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """Return the names of this module, also those that are not imported yet."""
    return sorted({*globals(), *__all__})
