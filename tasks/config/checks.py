"""What no single key can tell: whether the sections fit together."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import date, timedelta
from fractions import Fraction
from functools import lru_cache
from pathlib import Path
from typing import Any

from optstream.catalogue.backends import Location, StoreUrl
from optstream.errors import ConfigurationError, ParameterError, PublicationError
from optstream.storage.store import open_store
from optstream.stream import AggregationTree, Calendar, DatedHierarchy, Feature
from optstream.stream.changes import hierarchy_problems
from optstream.stream.private_period import LARGEST_UNITS
from tasks.config.fields import (
    absolute,
    ledger_database,
    lies_within,
    located,
    resolve_ledger_url,
    step_minutes,
)
from tasks.config.schema import (
    COVARIATES,
    ENDINGS,
    MOST_ROWS,
    SHA256,
    Budget,
    Covariates,
    Features,
    Hierarchy,
    Input,
    Mechanism,
    Privacy,
    Published,
    Release,
    Sampling,
    Stream,
    Watch,
    changes_of,
    countable_up_to,
    factor_problems,
    kinds_with,
    layout_problems,
    margin_of,
    margin_problems,
    names_in,
    schedule_problems,
)

# Whether folders and ledger are places that can be, and none that is private lies where readers look.


def zone_checks(sections: Mapping[str, Any], folder: Path, ledger_folder: Path) -> list[str]:
    """The problems with the places that these sections name; only valid ones are compared."""
    ledger, database = list[str](), None
    if "ledger" in sections:
        try:
            url = resolve_ledger_url(sections["ledger"].url.get_secret_value(), ledger_folder)
            database = ledger_database(url)
        except ConfigurationError as error:
            ledger = [str(error)]
    places = list(_places(sections, folder))
    if places:
        return [*ledger, *places]
    return [
        *ledger,
        *_zones(sections, folder, database),
        *_signing_key(sections, folder),
        *_covariates(sections, folder),
    ]


def _named(sections: Mapping[str, Any], *names: str) -> dict[str, str]:
    """The places that these sections and `trusted.witness` name, by key."""
    named = {f"{name}.folder": sections[name].folder for name in names if name in sections}
    if "trusted" in sections and sections["trusted"].witness is not None:
        named["trusted.witness"] = sections["trusted"].witness
    return named


def _signing_key(sections: Mapping[str, Any], folder: Path) -> Iterator[str]:
    """Who has it signs in the stream's name: it lies where nobody else may enter."""
    key = sections["published"].signing_key if "published" in sections else None
    if key is None or "trusted" not in sections:
        return
    try:
        within = lies_within(absolute(key, folder), located(sections["trusted"].folder, folder))
    except (OSError, ValueError, RuntimeError):
        within = False
    if not within:
        yield "published.signing_key must be the path of a file in trusted.folder, and of nobody else"


def _covariates(sections: Mapping[str, Any], folder: Path) -> Iterator[str]:
    """What a covariate tells is not charged to the ledger: it must be public.

    A link in the place of the path itself is looked at when it is read, and not here: whoever may deliver the
    file may make one, and no delivery stops a night.
    """
    zones = {
        name: located(sections[name].folder, folder) for name in ("input", "trusted") if name in sections
    }
    private = {name: zone for name, zone in zones.items() if isinstance(zone, Path)}
    for number, one in enumerate(sections["covariates"].given if "covariates" in sections else (), 1):
        place = f"{COVARIATES} {number}: path"
        for key, zone in private.items():
            try:
                place_named = _named_in(absolute(one.path, folder))
                within = any(place_named.is_relative_to(known) for known in (zone.resolve(), _named_in(zone)))
            except (OSError, ValueError, RuntimeError):
                yield f"{place} is no path: it holds a NUL, is too long, or links to itself"
                break
            if within:
                yield (
                    f"{place} must not lie in {key}.folder, which is private: what is learned from it would "
                    "leak, and no ledger would see it; name a file that is public"
                )


def _named_in(place: Path) -> Path:
    """Return a path in the folder that it lies in, whose links are followed. Raises as `Path.resolve`."""
    return place.parent.resolve() / place.name


def _places(sections: Mapping[str, Any], folder: Path) -> Iterator[str]:
    """URLs are what they can be, and the trusted zone is on this machine."""
    for key, text in _named(sections, "input", "published", "trusted").items():
        try:
            place = located(text, folder)
        except ParameterError as error:
            yield f"{key} {error}"
            continue
        if isinstance(place, StoreUrl) and key == "trusted.folder":
            yield "trusted.folder must be a path of this machine: what is drawn must be durable and private"
        elif isinstance(place, StoreUrl):
            try:
                open_store(place)
            except PublicationError as error:
                yield f"{key}: {error}"


def _zones(sections: Mapping[str, Any], folder: Path, database: Path | None) -> Iterator[str]:
    """Nothing private may lie where readers look."""
    if "published" not in sections:
        return
    public = located(sections["published"].folder, folder)
    named = _named(sections, "input", "trusted")
    private: dict[str, Location] = {key: located(text, folder) for key, text in named.items()}
    if (log := getattr(sections.get("watch"), "log", None)) is not None:
        private["watch.log"] = absolute(log, folder)
    if database is not None:
        private["the file of ledger.url"] = database
    for key, place in private.items():
        try:
            within = lies_within(place, public)
        except (OSError, ValueError, RuntimeError):
            yield f"{key} or published.folder is no path: it holds a NUL, is too long, or links to itself"
            continue
        if within:
            yield f"{key} must not lie in published.folder, which is the public zone"


Trees = tuple[AggregationTree, ...]
"""The tree of every day, by day; none where the hierarchy is not usable itself."""
RESERVED = ("date", "step", "timestamp", "node", "parent", "level", "revision", "vintage")


def cross_checks(sections: Mapping[str, Any], trees: Trees, folder: Path, ledger_folder: Path) -> list[str]:
    """Return the problems between keys; a check whose sections are not themselves valid is left out."""
    problems: list[str] = []
    known = {"watch": Watch(), **sections, "trees": trees}
    for check, needed, optional in CHECKS:
        if known.keys() >= set(needed):
            problems += check(*(known[name] for name in needed), *(known.get(name) for name in optional))
    return [*problems, *zone_checks(sections, folder, ledger_folder)]


def with_even_shares(budget: Budget, tree: AggregationTree) -> Budget:
    """Return the table with equal shares of what no margin has, where it says none of the levels."""
    if budget.levels:
        return budget
    n_levels = tree.tree.n_levels
    margins = budget.margins
    if tree is not tree.tree and not margins:
        margins = {tree.level_name(tree.n_levels - 1): Fraction(1, n_levels + 1)}
    share = (1 - sum(margins.values())) / Fraction(n_levels)
    return budget.model_copy(update={"levels": (share,) * n_levels, "margins": margins})


def trees_of(
    parents: Mapping[str, str | None] | None, hierarchy: Hierarchy | None
) -> tuple[Trees, list[str]]:
    """Return the tree of every time, oldest first, and what is wrong with them."""
    if parents is None or hierarchy is None:
        return (), []
    given, changes = tuple(parents.items()), changes_of(hierarchy.changes)
    margin = margin_of(hierarchy)
    problems = [f"hierarchy: {problem}" for problem in hierarchy_problems(given, changes, margin)]
    if problems:
        return (), problems
    return tuple(tree for _, tree in DatedHierarchy(given, changes, margin).periods), []


def _calendar(stream: Stream, features: Features | None) -> Iterator[str]:
    if (stream.unit == "customer") and stream.leaves_per_step != 1:
        yield f'stream.leaves_per_step must be 1 for unit "customer"; got {stream.leaves_per_step}'
    if stream.unit == "roaming" and stream.leaves_per_period is not None:
        yield (
            'stream.leaves_per_period must be left out for unit "roaming": it would limit how devices move, '
            "which that guarantee does not"
        )
    try:
        calendar = Calendar(step_minutes(stream.step), stream.time_zone, stream.day, stream.period)
        # So that no night discovers a day that is not whole steps.
        lengths = period_lengths(calendar)
    except ParameterError as error:
        yield f"stream.step, stream.time_zone: {error}"
        return
    if min(lengths) < 1:
        yield f"stream.step must give each day at least one step; got {stream.step!r}"
    for name, times in (features.named if features else {}).items():
        try:
            Feature.from_clock(times, calendar.local_times(date(2025, 1, 15)), name)
        except ParameterError as error:
            yield f"features: {error}: the parts of a feature may not overlap"


def _hours(
    stream: Stream, mechanism: Mechanism, release: Release | None, covariates: Covariates | None
) -> Iterator[str]:
    """What is made for days as a whole, beside period "hour"."""
    if stream.period == "day":
        return
    if not mechanism.kind.serves_hours:
        able = kinds_with("serves_hours")
        yield (
            f'stream.period "hour" is for mechanism.name {able}; got {mechanism.name!r}, which is made for '
            'days as a whole: take one of these, or period "day"'
        )
    if release is not None and release.revise_days:
        yield (
            'release.revise_days must be 0 or left out for stream.period "hour": each hour would estimate '
            f"all hours of these days anew; got {release.revise_days}"
        )
    if covariates is not None and covariates.given:
        yield 'covariates is for stream.period "day"; leave it out, or publish by the day'


def _mechanism(mechanism: Mechanism, privacy: Privacy) -> Iterator[str]:
    if mechanism.kind.currency == "epsilon" and privacy.delta is not None:
        yield (
            f"privacy.delta is for mechanism.name {names_in('rho')}, of Gaussian noise; that of "
            f"{mechanism.name!r} has its price in epsilon alone: leave delta out, or take another mechanism"
        )
    if mechanism.kind.currency == "rho" and privacy.delta is None:
        yield (
            f'privacy.delta must be given for mechanism.name "{mechanism.name}", whose noise has no price in '
            'epsilon alone: a decimal string in [1e-15, 1/1000], such as "1e-6"'
        )


def _joint_noise(mechanism: Mechanism, stream: Stream, trees: Trees) -> Iterator[str]:
    if getattr(mechanism, "noise", None) != "joint" or stream.leaves_per_period is not None:
        return
    if any(len(tree.leaves) > 1 for tree in trees):
        yield (
            'mechanism.noise "joint" at levels of several nodes is for customers whose readings of a day lie '
            'in one leaf: say so with stream.leaves_per_period = 1, which stream.unit "customer" and '
            'input.schema "aggregated" allow, or leave noise out for joint noise at levels of one node'
        )


def _covariates_fit(covariates: Covariates, mechanism: Mechanism, trees: Trees) -> Iterator[str]:
    if covariates.given and not mechanism.kind.takes_covariates:
        able = kinds_with("takes_covariates")
        yield f"{COVARIATES} is for mechanism.name {able}; got {mechanism.name!r}: leave it out"
    n_nodes = max((len(tree.nodes) for tree in trees), default=0)
    if n_nodes * len(covariates.given) > MOST_ROWS:
        yield (
            f"{COVARIATES} may have at most {MOST_ROWS:,} series of nodes together, for estimates "
            f"hold all in memory; got {len(covariates.given)} for each of {n_nodes:,} nodes: leave "
            "some out"
        )
    names = [one.name for one in covariates.given]
    for number, one in enumerate(covariates.given, 1):
        place = f"{COVARIATES} {number}:"
        if one.name in names[: number - 1]:
            yield f"{place} name must not be that of another covariate; got {one.name!r}"
        if one.path.endswith(ENDINGS) and one.sha256 is None:
            yield f"{place} sha256 is missing; it must be, {SHA256}: nothing else vouches for the file"
        if not one.path.endswith(ENDINGS) and one.sha256 is not None:
            yield f"{place} sha256 is for a .parquet or .csv file; got the path {one.path!r:.80}"
        if not trees:
            continue
        tree = max(trees, key=lambda one: len(one.nodes))
        unknown = [node for node in one.nodes if all(node not in tree.nodes for tree in trees)]
        if unknown:
            known = f"such as {tree.leaves[0]!r:.80}"
            yield f"{place} nodes must be of the hierarchy, {known}; got {unknown[0]!r:.80}"


def _revisions(mechanism: Mechanism, release: Release) -> Iterator[str]:
    if release.revise_days and not mechanism.kind.revises:
        able = kinds_with("revises")
        yield (
            f"release.revise_days must be 0 or left out for mechanism.name {mechanism.name!r}, whose "
            f"estimates learn nothing from later days: it is for {able}; got {release.revise_days}"
        )


def _sampling(privacy: Privacy, sampling: Sampling, mechanism: Mechanism | None) -> Iterator[str]:
    if sampling.n_samples > privacy.window:
        yield f"sampling.n_samples must be an integer in [2, {privacy.window}]; got {sampling.n_samples}"
    if sampling.threshold is not None and getattr(mechanism, "noise", None) == "joint":
        yield (
            'mechanism.noise "joint" is for equally spaced points: with sampling.threshold an outcome '
            "decides how many a day has; leave one of them out"
        )


def _bounds(stream: Stream, privacy: Privacy, trees: Trees) -> Iterator[str]:
    low, high = privacy.bounds
    if low >= high:
        yield f"privacy.bounds must have the lower first, the upper greater; got [{low}, {high}]"
    largest = max(abs(low), abs(high)) / privacy.resolution
    if not countable_up_to(max(abs(low), abs(high)), privacy.resolution):
        yield "privacy.bounds must be below 2^50 units of privacy.resolution; choose a coarser resolution"
    if privacy.counts and privacy.resolution != 1:
        yield (
            'privacy.resolution must be "1" where privacy.counts is true, for counts are whole numbers; '
            f"got {privacy.resolution}"
        )
    if privacy.counts and privacy.lower_bound < 0:
        yield (
            "privacy.lower_bound must be at least 0 where privacy.counts is true, for no count is less; "
            f"got {privacy.lower_bound}"
        )
    if privacy.lower_bound >= high:
        got = privacy.lower_bound
        yield f"privacy.lower_bound must be below the upper of privacy.bounds, {high}; got {got}"
    # Two hours more than a day, for the day on which the clock goes back.
    cells = max((len(tree.leaves) for tree in trees), default=1) * (26 * 60 // step_minutes(stream.step))
    if largest * cells >= LARGEST_UNITS * 2**12:
        yield "privacy.bounds are too large for the sums of a day to stay exact; choose a coarser resolution"


def _budget(budget: Budget, trees: Trees) -> Iterator[str]:
    levels = budget.levels
    if (whole := sum((*levels, *budget.margins.values()))) > 1:
        of_levels = "levels and budget.margins" if budget.margins else "levels"
        yield f"budget.{of_levels} must add up to at most 1; got {whole}"
    if budget.restatement_share == 1:
        yield "budget.restatement_share must be less than 1: first releases need a share too; got 1"
    if not trees:
        return
    tree = trees[0].tree
    if len(levels) != tree.n_levels:
        below = ", the cells' among them, and a margin's in budget.margins" if tree is not trees[0] else ""
        yield f"budget.levels must have a share for each of {tree.n_levels} levels{below}; got {len(levels)}"
        return
    with_leaves = {int(tree.depths[index]) for tree in trees for index in tree.leaf_indices}
    for level in sorted(with_leaves):
        if levels[level] == 0:
            yield (
                f"budget.levels[{level}] must be greater than 0, for leaves stand on level {level}: "
                "only a level above the leaves can be derived; got 0"
            )


def _input(source: Input, published: Published, stream: Stream | None) -> Iterator[str]:
    if source.schema_ == "metered" and stream is not None and stream.unit == "roaming":
        yield (
            'input.schema must be "aggregated" for stream.unit "roaming": '
            "of a metered customer in two leaves only one counts"
        )
    if source.schema_ == "metered" and stream is not None and stream.leaves_per_period is not None:
        yield (
            'stream.leaves_per_period must be left out for input.schema "metered": rows may come and go in '
            "any leaf, and the guarantee covers that"
        )
    if source.schema_ == "metered" and source.supplier_rounding:
        yield (
            'input.supplier_rounding must be left out for input.schema "metered", whose rows nobody summed: '
            f"alpha is of each row; got {source.supplier_rounding}"
        )
    yield from layout_problems(source)
    if published.value in RESERVED:
        yield f"published.value must not be one of {', '.join(RESERVED)}; got {published.value!r}"


CHECKS: tuple[tuple[Callable[..., Iterable[str]], Sequence[str], Sequence[str]], ...] = (
    (_calendar, ["stream"], ["features"]),
    (_mechanism, ["mechanism", "privacy"], []),
    (_joint_noise, ["mechanism", "stream", "trees"], []),
    (_revisions, ["mechanism", "release"], []),
    (_sampling, ["privacy", "sampling"], ["mechanism"]),
    (_bounds, ["stream", "privacy", "trees"], []),
    (_budget, ["budget", "trees"], []),
    (margin_problems, ["hierarchy"], ["budget", "input", "mechanism", "privacy"]),
    (factor_problems, ["input", "privacy"], []),
    (_input, ["input", "published"], ["stream"]),
    (_covariates_fit, ["covariates", "mechanism", "trees"], []),
    (schedule_problems, ["schedule", "watch", "stream"], []),
    (_hours, ["stream", "mechanism"], ["release", "covariates"]),
)
"""Each with the sections that it needs, and those in whose place it takes None where they are not valid."""


@lru_cache(maxsize=64)
def period_lengths(calendar: Calendar) -> frozenset[int]:
    """Steps of every kind of period that the zone has, from two whole years.

    Raises ParameterError where the clock moves by less than a step, or by part of an hour that is a period.
    """
    first = date(2025, 1, 1)
    days = [first + timedelta(days=number) for number in range(730)]
    if calendar.period == "hour":
        for day in days:
            if calendar.n_steps(day) != calendar.slots:  # only a day whose clock changes can have part of one
                calendar.periods_of(day)
        return frozenset({calendar.usual_steps})
    return frozenset(map(calendar.n_steps, days))
