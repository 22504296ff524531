"""The number of the catalogue that was signed last, kept in the trusted zone."""

from pathlib import Path

from optstream.errors import PublicationError
from tasks.config import Settings
from tasks.storage.private_files import exclusive_in, write_private


def next_number(settings: Settings, found: int) -> int:
    """A number that no catalogue of the stream had, durable before it is used: a crash leaves a gap.

    found: the number of a signed catalogue, for the case that an older trusted folder was brought back.
    Raises PublicationError where the file is not what this wrote.
    """
    path = settings.catalogue_number_file
    with exclusive_in(path.parent):
        number = max(_last(path), found) + 1
        write_private(path, f"{number}\n".encode("ascii"))
    return number


def _last(path: Path) -> int:
    try:
        text = path.read_text(encoding="ascii").strip()
    except FileNotFoundError:
        return 0
    except ValueError:
        text = ""
    if not (text.isdigit() and len(text) < 16):
        raise PublicationError(
            f"{path} must hold the number of the catalogue that was signed last; write it there: it is "
            "`sequence` of the newest catalogue.json"
        )
    return int(text)
