"""Compare the ledger with the published folder and the stored measurements. Nothing is changed."""

from collections.abc import Iterator, Mapping, Sequence
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
from tasks.operate.keys import public_keys_of, recorded_otherwise
from tasks.release.lineage import released_by_lineage
from tasks.release.outcomes import Printed, listed
from tasks.release.reserve import renumbered_releases
from tasks.release.witness import older_places
from tasks.trusted.files import NAMED, RAW, files_in, read_verified

NOT_DRAWN = (ReleaseState.RESERVED, ReleaseState.VOID)
UNPUBLISHED = (ReleaseState.RESERVED, ReleaseState.DRAWN, ReleaseState.VOID)
Key = tuple[str, int]  # period and revision
Releases = Mapping[Key, ReleaseOutline]


def _measurements(settings: Settings, releases: Releases) -> Iterator[str]:
    """Every release that was drawn has its measurements, as recorded, and no others."""
    known = set[Path]()
    for key, release in releases.items():
        place = place_of(settings, key)
        folder = settings.measurements_of(period_from(release.period), release.revision)
        known.add(folder)
        if release.state in NOT_DRAWN:
            continue
        try:
            data = read_verified(folder, release.measurements_hash)
            with suppress(ParameterError):  # of another format
                spends = Measured.from_bytes(data).spends if release.revision else ()
                if release.revision and not worst_window(spends, settings.model.window_length).epsilon:
                    yield (
                        f"{place} measured nothing and took the place of an earlier revision that did; "
                        "withdraw it, and restate the day when its windows have headroom"
                    )
        except (LedgerError, OSError) as error:
            yield f"{place}: {error}; restore the measurements from a copy: they are the release"
        for path in files_in(folder) if release.measurements_hash else ():
            own = path.name.endswith(f"-{(release.measurements_hash or '')[:NAMED]}")
            # raw state and an owner's word hold no draw, nor does space held for one that never began
            held = path.suffix == ".drawing" and not path.read_bytes().strip(b"\0")
            if not own and not held and path.suffix not in (RAW, ".intact", ".raised"):
                yield (
                    f"{path}: no measurements of {place}, which has others; destroy it, for a second draw "
                    "tells more than what was charged"
                )
    for folder in files_in(settings.measurements_folder / settings.stream.name):
        if folder not in known:
            yield f"{folder}: belongs to no release of the ledger; move it away, or bring its ledger back"


def place_of(settings: Settings, key: Key) -> str:
    """How problems name a release."""
    period, revision = key
    return f"stream {settings.stream.name!r}, {period} revision {revision}"


def _lineage(settings: Settings, ledger: Ledger, releases: Releases) -> Iterator[str]:
    """Find releases that an older copy of the lineage lacks; it may lack all (purged) and withdrawn days."""
    # the ledger first, in its own order: what it has as published, the lineage knows by now
    published = list(ledger.event_times(settings.stream.name, "published"))
    known = released_by_lineage(settings)
    last = max((place for place, one in enumerate(published) if one in known), default=len(published))
    lacking = [key for key in published[last + 1 :] if key not in releases or releases[key].withdrawn is None]
    if lacking:
        (period, revision), others = lacking[0], f", nor {len(lacking) - 1} more," * (len(lacking) > 1)
        yield (
            f"{settings.lineage_folder} does not know that {period} revision {revision} was published{others}"
            ": it is an older copy; bring the newest one back, or accept the gap: no release depends on it"
        )


class Verification(Printed):
    """The problems, one line each, and the unchecked parts."""

    format: Literal["optstream.ledger-verify/1"] = "optstream.ledger-verify/1"
    whole: bool
    problems: tuple[str, ...]
    notes: tuple[str, ...]
    n_releases: int
    n_listed: int


def verify(settings: Settings, ledger: Ledger | None) -> Verification:
    """Check ledger, catalogue and files against each other; look twice at what a run under way explains."""
    catalogue, problems, notes = _catalogue(settings)
    n_days = 0 if catalogue is None else len(catalogue.entries)
    if ledger is None:
        if n_days:
            problems.append(
                f"ledger: there is none, and {settings.published_folder} has {n_days} days: what they cost "
                "is not known; bring the ledger back before anything is released"
            )
        else:
            notes.append("there is no ledger yet: the first run makes it")
        return Verification(whole=not problems, problems=problems, notes=notes, n_releases=0, n_listed=n_days)
    own = settings.stream.name
    problems = [f"ledger: {line}" for line in ledger.verify()] + problems
    found = list(_compare(settings, ledger))
    again = set(_compare(settings, ledger)) if found else ()
    problems += [line for line in found if line in again]
    others = [name for name in ledger.streams() if name != own]
    if others:
        notes.append(
            f"these are the folders of {own}: those of {', '.join(others)} are compared with their own "
            "configurations, or the file of their population, as --config"
        )
    withdrawn = {one.period for one in ledger.outlines(own) if one.withdrawn is not None}
    if catalogue is not None:  # as after `optstream publish` of a lost folder
        withdrawn -= {entry.period.isoformat() for entry in catalogue.entries}
    if catalogue is not None and withdrawn:
        notes.append(
            f"catalogue.json has no tombstone of {listed(sorted(withdrawn), 3)}: it was rebuilt or is an "
            "older copy; readers have nothing of what was withdrawn, and only a newer copy would tell them "
            "that it was"
        )
    counts = ledger.count_by_state(own)
    if counts.get(ReleaseState.PUBLISHED) and not released_by_lineage(settings):
        notes.append(f"{settings.lineage_folder} has no event: it was not compared with what was published")
    return Verification(
        whole=not problems, problems=problems, notes=notes, n_releases=sum(counts.values()), n_listed=n_days
    )


def _catalogue(settings: Settings) -> tuple[Catalogue | None, list[str], list[str]]:
    folder = settings.published_folder
    try:
        catalogue = find_catalogue(folder)
    except PublicationError as error:
        return None, [f"{folder}: {error}"], []
    if catalogue is not None:
        return catalogue, [], []
    missing = isinstance(folder, Path) and not folder.is_dir()
    what = "is not there" if missing else "has no catalogue.json"
    return None, [], [f"{folder} {what}: the ledger could not be compared with it"]


def _compare(settings: Settings, ledger: Ledger) -> Iterator[str]:
    """The problems that a run under way may explain."""
    # the catalogue first: what it lists is in the ledger as DRAWN or further by now
    catalogue, stream = _catalogue(settings)[0], settings.stream.name
    releases: dict[Key, ReleaseOutline] = {}
    for one in ledger.outlines(stream):
        with suppress(ValueError):
            if period_from(one.period).isoformat() == one.period:
                releases[one.period, one.revision] = one
                continue
        yield f"stream {stream!r} has a release of {one.period!r}, which is no day"
    yield from renumbered_releases(settings, ledger)
    yield from _published(settings, catalogue, releases)
    if catalogue is not None:
        yield from _other_trees(settings, catalogue, releases, ledger.trees(stream))
        yield from _listed(settings, catalogue, releases, ledger.vintages(stream))
        for head in ledger.missing_heads(catalogue.ledger_heads):
            yield (
                f"{settings.published_folder}: its ledger head {head[:12]} is not in the ledger, which is an "
                "older copy or another one; bring back the ledger that the folder was written with"
            )
        found = check_files(settings.published_folder, public_keys_of(settings))
        yield from (f"{settings.published_folder}: {line}" for line in found)
    yield from older_places(settings, ledger)
    yield from _measurements(settings, releases)
    yield from _lineage(settings, ledger, releases)


def _published(settings: Settings, catalogue: Catalogue | None, releases: Releases) -> Iterator[str]:
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
    for key, release in published.items():
        entry = entries.get(release.period)
        if entry is None and release.withdrawn is not None:
            continue  # a note: readers have nothing of it, as they should
        if entry is None or entry.revision < release.revision:
            what = "nothing of that day" if entry is None else f"revision {entry.revision}"
            yield (
                f"{place_of(settings, key)} is {release.state}, and the published folder lists {what}; "
                f"`optstream publish {release.period}` puts it back, or restore the folder from a copy"
            )


def _listed(
    settings: Settings, catalogue: Catalogue, releases: Releases, vintages: Mapping[Key, Sequence[Vintage]]
) -> Iterator[str]:
    """What the catalogue lists is PUBLISHED in the ledger, with the same bytes under the same name."""
    if catalogue.stream != settings.stream.name:
        yield (
            f"{settings.published_folder} belongs to stream {catalogue.stream!r}; "
            "give each stream a published folder of its own"
        )
        return
    for entry in catalogue.entries:
        release, known = releases.get(_key(entry)), vintages.get(_key(entry), ())
        place = place_of(settings, _key(entry))
        if release is None:
            yield (
                f"{place} is listed in catalogue.json and not in the ledger, so its cost is not charged; "
                "bring back the ledger that the folder was written with"
            )
        elif (recorded := recorded_otherwise(entry, release, known)) is not None:
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
    settings: Settings, catalogue: Catalogue, releases: Releases, trees: Mapping[int, Entries]
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
        with suppress(PublicationError):  # reported below, with the file
            stated = read_statement(storage, entry).mechanism.get(TREE)
        known = trees.get(release.amendment)
        if stated is not None and known and stated != hash_at(known, release.first_step):
            yield (
                f"{place_of(settings, _key(entry))} states another hierarchy than the ledger has for that "
                "day; bring back the ledger that it was released with"
            )


def _key(entry: Entry) -> Key:
    return entry.period.isoformat(), entry.revision
