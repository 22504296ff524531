"""When the last look and the last watch of a stream ended, whatever they found."""

from datetime import datetime, timedelta
from typing import Literal

from optstream.errors import OptStreamError
from tasks.config import Settings
from tasks.storage.private_files import write_private

Work = Literal["look", "watch"]
"""A look of the night, and the watch."""
LONGEST_WATCH = timedelta(minutes=30)
"""A watch that takes longer is killed, so that the next one can look."""


def note_end(settings: Settings, work: Work, now: datetime) -> None:
    """Keep that it ended now. Raises OSError where it cannot be kept."""
    write_private(settings.watch_folder / f"{work}-ended", now.isoformat().encode())


def last_end(settings: Settings, work: Work) -> datetime | None:
    """Return when the last one ended; None where none has, or where that cannot be read."""
    try:
        at = datetime.fromisoformat((settings.watch_folder / f"{work}-ended").read_text().strip())
    except (OSError, ValueError, OptStreamError):
        return None
    return at if at.tzinfo is not None else None
