"""The measurements of the newest published day, as they are stored: noisy, and of no dump."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from functools import cached_property

from optstream.errors import LedgerError, ParameterError
from optstream.ledger import ReleaseOutline, ReleaseState
from optstream.stream import Measured
from tasks.config import Settings
from tasks.storage.private_files import read_verified


def newest_published(releases: Mapping[date, ReleaseOutline]) -> date | None:
    """The newest day whose release is published; None without one."""
    published = (day for day, one in releases.items() if one.state is ReleaseState.PUBLISHED)
    return max(published, default=None)


@dataclass(frozen=True)
class NewestRelease:
    """The newest published day. Its measurements are read when they are first asked for, and once."""

    settings: Settings
    day: date
    outline: ReleaseOutline

    @cached_property
    def measured(self) -> Measured | None:
        """Its measurements; None where they are gone or cannot be read."""
        folder = self.settings.measurements_of(self.day, self.outline.revision)
        try:
            return Measured.from_bytes(read_verified(folder, self.outline.measurements_hash))
        except (LedgerError, ParameterError, OSError):
            return None


def newest_release(settings: Settings, releases: Mapping[date, ReleaseOutline]) -> NewestRelease | None:
    """The newest published day of the ledger's releases; None without one."""
    day = newest_published(releases)
    return None if day is None else NewestRelease(settings, day, releases[day])
