"""The name of a folder or a file: a path of this machine, or the URL of an object store."""

import re
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from urllib.parse import unquote, urlsplit

from optstream.errors import ParameterError

_PROTOCOL = re.compile(r"[a-z][a-z0-9+.-]*")
_HOST = re.compile(r"[^/:]*(:[0-9]{1,5})?(/|\Z)")
SAME = {"s3a": "s3"}
"""Two words for one store: places are compared by their text."""
_LEGAL = "must be a path, or a plain URL such as s3://bucket/folder"


@dataclass(frozen=True, order=True)
class StoreUrl:
    """A folder or an object of a store, as fsspec names it: "s3://bucket/published". Made by `locate`.

    It can be extended as a path can, by `/`; it is text, and never asks the store.

    Attributes:
        text: The URL.
    """

    text: str

    @property
    def protocol(self) -> str:
        """The protocol, which comes before "://"."""
        return self.text.partition("://")[0]

    @property
    def name(self) -> str:
        """The name, which comes after the last "/"."""
        return self.text.rpartition("/")[2]

    @property
    def parent(self) -> "StoreUrl":
        """The folder above, which comes before the last "/"; below a bucket, that is."""
        return StoreUrl(self.text.rpartition("/")[0])

    def __truediv__(self, name: str) -> "StoreUrl":
        return StoreUrl(f"{self.text}/{name}")

    def __str__(self) -> str:
        return self.text

    def as_uri(self) -> str:
        """Return the URL itself.

        Returns:
            The same as `text`; paths have this method as well.
        """
        return self.text

    def is_relative_to(self, other: "StoreUrl") -> bool:
        """Return whether this is another URL, or lies below it.

        Args:
            other: The URL that may be above.

        Returns:
            True also where both are the same.
        """
        return f"{self.text}/".startswith(f"{other.text}/")

    def relative_to(self, other: "StoreUrl") -> PurePosixPath:
        """Return this URL's name below another.

        Args:
            other: The URL above.

        Returns:
            The parts that follow, as a path.

        Raises:
            ValueError: This URL does not lie below the other.
        """
        if not self.is_relative_to(other):
            raise ValueError(f"{self} does not lie below {other}")
        return PurePosixPath(self.text[len(other.text) + 1 :])


Location = Path | StoreUrl


def locate(place: Location | str) -> Location:
    """Return what a text names: a path, or the URL of an object store.

    A text with "://" is a URL; file:// is a path.

    Args:
        place: The text; anything else is returned as it is.

    Returns:
        The path, or the URL without a "/" at its end; s3a:// becomes s3://.

    Raises:
        ParameterError: It is no plain URL such as s3://bucket/folder; it has a user, a password or a query,
            which anybody who reads the configuration would have; or it has empty parts, "." or "..", which
            name nothing. Never shows the text.
    """
    if not isinstance(place, str):
        return place
    if "://" not in place:
        return Path(place)
    protocol, _, rest = place.partition("://")
    # a key may hold a "/": so whatever comes before an "@" may be one
    if any(mark in place for mark in ("@", "?", "#", "\\", "::")) or not _HOST.match(rest):
        raise ParameterError(
            f"{_LEGAL}, without user, password, query or chain (not shown: it may hold a secret); "
            "credentials come from the environment, as fsspec and the store's own tools read them "
            "(AWS_ACCESS_KEY_ID, AWS_PROFILE, …)"
        )
    if protocol == "file":
        return _local(place)
    parts = rest.rstrip("/").split("/")
    well_named = _PROTOCOL.fullmatch(protocol) and rest.isprintable()
    if not well_named or not all(parts) or {".", ".."} & set(parts):
        raise ParameterError(
            f"{_LEGAL}: its protocol in small letters, its parts neither empty nor '.' nor '..'"
        )
    return StoreUrl(f"{SAME.get(protocol, protocol)}://{'/'.join(parts)}")


def name_below(place: Location, folder: Location) -> str:
    """Return the name of a place below a folder, its parts with "/" between.

    Raises ValueError where it is elsewhere.
    """
    if isinstance(place, StoreUrl) and isinstance(folder, StoreUrl):
        return place.relative_to(folder).as_posix()
    if isinstance(place, Path) and isinstance(folder, Path):
        return place.relative_to(folder).as_posix()
    raise ValueError(f"{place} does not lie below {folder}")


def _local(url: str) -> Path:
    parsed = urlsplit(url)
    if parsed.netloc or not parsed.path.startswith("/") or "\0" in unquote(parsed.path):
        raise ParameterError(f"{_LEGAL}; a file:// URL has three slashes and an absolute path")
    return Path(unquote(parsed.path))
