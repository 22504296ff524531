"""What the published folder's clock shows: functions of what is published, never when it was published.

How long a draw takes depends on what is drawn, so no time of a run may reach a reader. Copies of the folder
(a web server, rsync, an archive) carry modification times along. On the machine itself the time of a change
of an inode stays, which no program can set.
"""

import os
from collections.abc import Iterable
from contextlib import suppress
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

from optstream.catalogue.index import Catalogue, Entry
from optstream.catalogue.layout import CATALOGUE, DATA, MANIFESTS


def release_time(period: date) -> datetime:
    """The midnight, UTC, that ends the period's date: the modification time of its files."""
    return datetime.combine(period + timedelta(days=1), datetime.min.time(), UTC)


def catalogue_time(catalogue: Catalogue) -> datetime:
    """The newest period's time, and a second for each publication that the entries tell of.

    It rises with every change, for caches that go by it.
    """
    newest = max(entry.period for entry in catalogue.entries)
    changes = sum(1 + entry.revision + entry.vintage + entry.withdrawn for entry in catalogue.entries)
    return release_time(newest) + timedelta(seconds=changes)


def settle_times(root: Path, catalogue: Catalogue, touched: Iterable[Entry]) -> None:
    """Give what a publication touched those times. The caller holds the publishers' lock.

    Files and folders of another owner keep their own: the system lets nobody else set them.
    """
    listed = catalogue_time(catalogue)
    places: dict[str, datetime] = {}
    for entry in touched:
        places |= dict.fromkeys((entry.file, entry.manifest), release_time(entry.period))
        places[str(Path(entry.file).parent)] = listed
    places |= dict.fromkeys((CATALOGUE, DATA, MANIFESTS, "."), listed)
    for name, time in places.items():
        # a withdrawn day has no files
        with suppress(PermissionError, FileNotFoundError):
            os.utime(root / name, (time.timestamp(), time.timestamp()))
