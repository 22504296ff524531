"""Compare the lineage with what the ledger has as published. Nothing is changed."""

from collections.abc import Iterator, Mapping

from optstream.ledger import Ledger, ReleaseOutline
from tasks.config import Settings
from tasks.ledger.verify_measurements import Key
from tasks.release.records.lineage_file import told_releases


def compare_lineage(
    settings: Settings, ledger: Ledger, releases: Mapping[Key, ReleaseOutline]
) -> Iterator[str]:
    """Every release that was published after some that the lineage knows is known to it, too.

    An event is written before the ledger has the release as published, and `optstream purge` takes the oldest
    first: so one that lacks the newest is an older copy. One without any may have been purged as a whole. A
    day that was withdrawn before its run could write the event has none.
    """
    # the ledger first, in its own order: what it has as published, the lineage knows by now
    published = list(ledger.event_times(settings.stream.name, "published"))
    told = told_releases(settings)
    last = max(
        (number for number, release in enumerate(published) if release in told), default=len(published)
    )
    withdrawn = {key for key, release in releases.items() if release.withdrawn is not None}
    lacking = [release for release in published[last + 1 :] if release not in withdrawn]
    if lacking:
        (period, revision), others = lacking[0], len(lacking) - 1
        yield (
            f"{settings.lineage_folder} does not know that {period} revision {revision} was published"
            + (f", nor {others} more," if others else "")
            + ": it is an older copy; bring the newest one back, or accept the gap: no release depends on it"
        )
