"""One file as RTE hands it out: a zip with one text in it, or that text; read whole, never beyond a bound."""

import io
import lzma
import struct
import zipfile
import zlib
from dataclasses import dataclass, field
from pathlib import Path

import polars as pl

from optstream.errors import DumpError
from tasks.sample_data.rte.table import parse

LARGEST_BYTES = 32 * 2**20
"""Of the file and of the text: a region's year is 3 MiB."""
ZIP = b"PK\x03\x04"
BROKEN_ZIP = (
    zipfile.BadZipFile, zlib.error, lzma.LZMAError, struct.error, EOFError, OSError, ValueError, LookupError,
    RuntimeError,
)  # fmt: skip
"""What zipfile raises for an archive that is damaged, encrypted or packed in a way that it does not know."""


@dataclass(frozen=True)
class RegionLoad:
    """One file of RTE's as read. region: INSEE's code. rows: as `table.parse` returns them."""

    file: str
    region: str
    rows: pl.DataFrame = field(repr=False)


def read_load(path: Path) -> RegionLoad:
    """Read one file of RTE's: a zip with one text in it, or that text; at most 32 MiB. Raises DumpError, with
    the file and, of a text, the line, where it cannot be read, or is not as RTE's.
    """
    try:
        with path.open("rb") as file:
            content = file.read(LARGEST_BYTES + 1)
    except OSError as error:
        raise DumpError(f"{path} cannot be read: {error.strerror or 'it is no file'}") from None
    try:
        region, rows = parse(text_of(content))
    except DumpError as error:
        raise DumpError(f"{path}: {error}") from None
    return RegionLoad(path.name, region, rows)


def text_of(content: bytes) -> bytes:
    """The text itself, unpacked in memory if it is zipped; what the archive calls it is never used as a path.

    Raises DumpError for an archive that is damaged or holds anything but one text, and for too many bytes.
    """
    if content.startswith(ZIP) and len(content) <= LARGEST_BYTES:
        try:
            content = _unzipped(content)
        except BROKEN_ZIP:
            raise DumpError("the archive is damaged or encrypted; fetch it from RTE again") from None
    if len(content) > LARGEST_BYTES:
        raise DumpError(
            f"more than {LARGEST_BYTES // 2**20} MiB, where a region's year has 3; is it the file that was "
            "meant?"
        )
    return content


def _unzipped(content: bytes) -> bytes:
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = [member for member in archive.infolist() if not member.filename.endswith("/")]
        if len(members) != 1:
            raise DumpError(
                f"the archive must hold one text, as RTE's do; it holds {len(members)} files: unpack it and "
                "import the regions' texts"
            )
        with archive.open(members[0]) as text:
            # What the archive says of its size is not believed: reading stops here.
            return text.read(LARGEST_BYTES + 1)
