"""Files of the published folder, which anyone may have written: plain files of bounded size, or nothing."""

from pathlib import Path

from optstream.errors import PublicationError

LARGEST_RELEASE = 2**32
"""Bytes of one release's Parquet file."""


def read_bounded(path: Path, name: str, largest: int) -> bytes:
    """The bytes of a file; `name` is what errors call it.

    Raises FileNotFoundError where it is absent, and PublicationError, naming the rule, unless it is a plain
    file (a pipe would wait for ever) of at most `largest` bytes that can be read.
    """
    try:
        if path.exists() and not path.is_file():
            raise PublicationError(f"{name} is not a plain file; put back what OptStream wrote")
        with path.open("rb") as file:
            data = file.read(largest + 1)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise FileNotFoundError(name) from error
    except OSError as error:
        raise PublicationError(f"{name} cannot be read ({error.strerror}); check its permissions") from error
    if len(data) > largest:
        raise PublicationError(f"{name} is larger than {largest} bytes; it was not written by this OptStream")
    return data
