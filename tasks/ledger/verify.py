"""Compare the ledger with the published folder and the stored measurements. Nothing is changed."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Literal

from optstream.catalogue import Catalogue, Entry, check_files, find_catalogue
from optstream.catalogue.backends import open_storage
from optstream.catalogue.read import read_statement
from optstream.catalogue.statement import TREE
from optstream.errors import LedgerError, ParameterError, PublicationError
from optstream.ledger import Ledger, ReleaseOutline, ReleaseState, Vintage
from optstream.ledger.records import Entries, hash_at
from optstream.privacy import worst_window
from optstream.stream import Measured, period_from
from tasks.config import Settings
from tasks.operate.keys import public_keys_of
from tasks.release.lineage import told_releases
from tasks.release.outcomes import Printed
from tasks.release.reserve import told_of_renumbered
from tasks.release.witness import older_places
from tasks.trusted.files import NAMED, RAW, files_in, read_verified

# Compare the stored measurements with what the ledger recorded of them. Nothing is changed.

NOT_DRAWN = (ReleaseState.RESERVED, ReleaseState.VOID)
Key = tuple[str, int]
"""Period and revision."""


def compare_measurements(settings: Settings, releases: dict[Key, ReleaseOutline]) -> Iterator[str]:
    """Every release that was drawn has its measurements, as recorded, and no others."""
    known: dict[Path, ReleaseOutline] = {}
    for (period, revision), release in releases.items():
        folder = settings.measurements_of(period_from(period), revision)
        known[folder] = release
        if release.state in NOT_DRAWN:
            continue
        try:
            data = read_verified(folder, release.measurements_hash)
            if revision and _measured_nothing(data, settings.model.window_length):
                yield (
                    f"{place_of(settings, period, revision)} measured nothing and took the place of an "
                    "earlier revision that did; withdraw it, and restate the day when its windows "
                    "have headroom"
                )
        except (LedgerError, OSError) as error:
            yield (
                f"{place_of(settings, period, revision)}: {error}; restore the measurements from a copy: "
                "they are the release"
            )
        yield from (
            f"{path}: no measurements of {place_of(settings, period, revision)}, which has others; destroy "
            "it, for a second draw tells more than what was charged"
            for path in _other_draws(folder, release)
        )
    for folder in files_in(settings.measurements_folder / settings.stream.name):
        if folder not in known:
            yield f"{folder}: belongs to no release of the ledger; move it away, or bring its ledger back"


def _measured_nothing(data: bytes, window_length: int) -> bool:
    """Whether stored measurements cost no window anything; False for those of another format."""
    with suppress(ParameterError):
        return not worst_window(Measured.from_bytes(data).spends, window_length).epsilon
    return False


def _other_draws(folder: Path, release: ReleaseOutline) -> Iterable[Path]:
    """Files that hold another draw than the recorded one; raw state and an owner's word hold none."""
    if not release.measurements_hash:
        return []
    own = release.measurements_hash[:NAMED]
    return (
        path
        for path in files_in(folder)
        if path.suffix not in (RAW, ".intact", ".raised")
        and not path.name.endswith(f"-{own}")
        # space that was held for a draw that never began
        and (path.suffix != ".drawing" or path.read_bytes().strip(b"\0"))
    )


def place_of(settings: Settings, period: str, revision: int) -> str:
    """How problems name a release."""
    return f"stream {settings.stream.name!r}, {period} revision {revision}"


# Compare the lineage with what the ledger has as published. Nothing is changed.


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


UNPUBLISHED = (ReleaseState.RESERVED, ReleaseState.DRAWN, ReleaseState.VOID)


class Verification(Printed):
    """What was found wrong, a line each, and what could not be looked at."""

    format: Literal["optstream.ledger-verify/1"] = "optstream.ledger-verify/1"
    whole: bool
    problems: tuple[str, ...]
    notes: tuple[str, ...]
    n_releases: int
    n_listed: int


def verify(settings: Settings, ledger: Ledger | None) -> Verification:
    """Check the ledger against itself, then ledger, catalogue and files against each other.

    ledger: of `find_ledger`. What only a run that is under way explains is looked at twice, and told if it
    is still there. Works as far as it can without ledger, catalogue or folder, and says what is missing.
    Raises LedgerError if the database refuses.
    """
    catalogue, problems, notes = _catalogue(settings)
    if ledger is None:
        if catalogue is not None and catalogue.entries:
            problems.append(
                f"ledger: there is none, and {settings.published_folder} has {len(catalogue.entries)} days: "
                "what they cost is not known; bring the ledger back before anything is released"
            )
        else:
            notes.append("there is no ledger yet: the first run makes it")
        return _verification(problems, notes, 0, catalogue)
    own = settings.stream.name
    problems = [f"ledger: {line}" for line in ledger.verify()] + problems
    found = list(compare(settings, ledger))
    if found:
        again = set(compare(settings, ledger))
        problems += [line for line in found if line in again]
    others = [name for name in ledger.streams() if name != own]
    if others:
        notes.append(
            f"these are the folders of {own}: those of {', '.join(others)} are compared with their own "
            "configurations, or the file of their population, as --config"
        )
    notes += _without_tombstone(catalogue, ledger.outlines(own))
    counts = ledger.count_by_state(own)
    if counts.get(ReleaseState.PUBLISHED) and not told_releases(settings):
        notes.append(f"{settings.lineage_folder} has no event: it was not compared with what was published")
    return _verification(problems, notes, sum(counts.values()), catalogue)


def _verification(
    problems: Sequence[str], notes: Sequence[str], n_releases: int, catalogue: Catalogue | None
) -> Verification:
    return Verification(
        whole=not problems,
        problems=tuple(problems),
        notes=tuple(notes),
        n_releases=n_releases,
        n_listed=0 if catalogue is None else len(catalogue.entries),
    )


def _catalogue(settings: Settings) -> tuple[Catalogue | None, list[str], list[str]]:
    folder = settings.published_folder
    try:
        catalogue = find_catalogue(folder)
    except PublicationError as error:
        return None, [f"{folder}: {error}"], []
    if catalogue is None:
        missing = isinstance(folder, Path) and not folder.is_dir()
        what = "is not there" if missing else "has no catalogue.json"
        return None, [], [f"{folder} {what}: the ledger could not be compared with it"]
    return catalogue, [], []


def compare(settings: Settings, ledger: Ledger) -> Iterator[str]:
    """The lines of `verify` that a run under way may explain."""
    # the catalogue first: what it lists is in the ledger as DRAWN or further by now
    catalogue = _catalogue(settings)[0]
    releases: dict[Key, ReleaseOutline] = {}
    for one in ledger.outlines(settings.stream.name):
        if _is_day(one.period):
            releases[one.period, one.revision] = one
        else:
            yield f"stream {settings.stream.name!r} has a release of {one.period!r}, which is no day"
    yield from told_of_renumbered(settings, ledger)
    yield from _published(settings, catalogue, releases)
    if catalogue is not None:
        yield from _other_trees(settings, catalogue, releases, ledger.trees(settings.stream.name))
        yield from _listed(settings, catalogue, releases, ledger.vintages(settings.stream.name))
        for head in ledger.missing_heads(catalogue.ledger_heads):
            yield (
                f"{settings.published_folder}: its ledger head {head[:12]} is not in the ledger, which is an "
                "older copy or another one; bring back the ledger that the folder was written with"
            )
        found = check_files(settings.published_folder, public_keys_of(settings))
        yield from (f"{settings.published_folder}: {line}" for line in found)
    yield from older_places(settings, ledger)
    yield from compare_measurements(settings, releases)
    yield from compare_lineage(settings, ledger, releases)


def _published(
    settings: Settings, catalogue: Catalogue | None, releases: dict[Key, ReleaseOutline]
) -> Iterator[str]:
    """What the ledger calls PUBLISHED is listed, or something later of its day is."""
    published = {key: release for key, release in releases.items() if release.state not in UNPUBLISHED}
    if catalogue is None:
        if published:
            yield (
                f"{settings.published_folder} has no catalogue, and the ledger has {len(published)} releases "
                "that were published in it; restore the folder from a copy, or `optstream publish --from DAY "
                "--to DAY` puts the days back"
            )
        return
    entries = {entry.period.isoformat(): entry for entry in catalogue.entries}
    for (period, revision), release in published.items():
        entry = entries.get(period)
        if entry is None and release.withdrawn is not None:
            continue  # a note: readers have nothing of it, as they should
        if entry is None or entry.revision < revision:
            what = "nothing of that day" if entry is None else f"revision {entry.revision}"
            yield (
                f"{place_of(settings, period, revision)} is {release.state}, and the published folder lists "
                f"{what}; `optstream publish {period}` puts it back, or restore the folder from a copy"
            )


def _without_tombstone(catalogue: Catalogue | None, releases: Iterable[ReleaseOutline]) -> Iterator[str]:
    """Withdrawn days of which the catalogue says nothing, as after `optstream publish` of a lost folder."""
    if catalogue is None:
        return
    known = {entry.period.isoformat() for entry in catalogue.entries}
    bare = sorted({one.period for one in releases if one.withdrawn is not None} - known)
    if bare:
        yield (
            f"catalogue.json has no tombstone of {', '.join(bare[:3])}{' and others' * (len(bare) > 3)}: it "
            "was made anew or is an older copy; readers have nothing of what was withdrawn, and only a newer "
            "copy would tell them that it was"
        )


def _listed(
    settings: Settings,
    catalogue: Catalogue,
    releases: dict[Key, ReleaseOutline],
    vintages: Mapping[Key, Sequence[Vintage]],
) -> Iterator[str]:
    """What the catalogue lists is PUBLISHED in the ledger, with the same bytes under the same name."""
    if catalogue.stream != settings.stream.name:
        yield (
            f"{settings.published_folder} belongs to stream {catalogue.stream!r}; "
            "give each stream a published folder of its own"
        )
        return
    for entry in catalogue.entries:
        release = releases.get((entry.period.isoformat(), entry.revision))
        place = place_of(settings, entry.period.isoformat(), entry.revision)
        if release is None:
            yield (
                f"{place} is listed in catalogue.json and not in the ledger, so its cost is not charged; "
                "bring back the ledger that the folder was written with"
            )
        elif (
            recorded := recorded_otherwise(entry, release, known := vintages.get(_key(entry), ()))
        ) is not None:
            yield (
                f"{place} was recorded as {recorded}, and catalogue.json lists "
                f"{entry.file.rpartition('/')[2]}; restore catalogue.json from a copy"
            )
        elif any(one.published and one.number > entry.vintage for one in known):
            yield (
                f"{place} has a newer vintage in the ledger than catalogue.json lists; restore "
                "catalogue.json and data/ from a copy"
            )
        elif any(not one.published and one.number == entry.vintage for one in known) and not entry.withdrawn:
            yield f"{place}, vintage {entry.vintage}, is listed and not recorded; the next run records it"
        elif release.state in UNPUBLISHED and not entry.withdrawn:
            remedy = "restore catalogue.json from a copy"
            if release.state is ReleaseState.DRAWN:
                remedy = f"`optstream run --date {entry.period}` records it"
            elif release.compromised is not None:
                remedy = f"`optstream withdraw --date {entry.period} --reason WHY` takes it out"
            yield f"{place} is listed in catalogue.json, and {release.state} in the ledger; {remedy}"
        elif release.state not in UNPUBLISHED and entry.withdrawn != (release.withdrawn is not None):
            yield (
                f"{place} was withdrawn according to {'catalogue.json' if entry.withdrawn else 'the ledger'} "
                f"alone; `optstream withdraw --date {entry.period} --reason WHY` completes it"
            )


def _other_trees(
    settings: Settings,
    catalogue: Catalogue,
    releases: Mapping[Key, ReleaseOutline],
    trees: Mapping[int, Entries],
) -> Iterator[str]:
    """Releases whose statement has another tree than the ledger has for their day."""
    if all(len(one) == 1 for one in trees.values()):
        return  # no list of trees: every day has the one that the terms are of
    storage = open_storage(settings.published_folder)
    for entry in catalogue.entries:
        release = releases.get(_key(entry))
        if release is None or entry.withdrawn:
            continue
        stated = None
        with suppress(PublicationError):  # told below, with the file
            stated = read_statement(storage, entry).mechanism.get(TREE)
        known = trees.get(release.amendment)
        if stated is not None and known and stated != hash_at(known, release.first_step):
            yield (
                f"{place_of(settings, *_key(entry))} states another hierarchy than the ledger has for that "
                "day; bring back the ledger that it was released with"
            )


def _key(entry: Entry) -> Key:
    return entry.period.isoformat(), entry.revision


def recorded_otherwise(entry: Entry, release: ReleaseOutline, known: Sequence[Vintage]) -> str | None:
    """What the ledger has in the place of the bytes that are listed; None if it has these very bytes."""
    named = {0: (release.staged_hash, release.published_name)}
    named |= {one.number: (one.staged_hash, one.published_name) for one in known}
    recorded = named.get(entry.vintage, (None, "no such vintage"))
    return None if recorded == (entry.file_hash, entry.file.rpartition("/")[2]) else str(recorded[1])


def _is_day(period: str) -> bool:
    try:
        return period_from(period).isoformat() == period
    except ValueError:
        return False
