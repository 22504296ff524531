"""Ways to release a stream that are worth comparing, each with the keys that make it of the configuration."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from fractions import Fraction
from functools import lru_cache
from itertools import permutations, product
from typing import Any

from optstream.errors import ConfigurationError
from optstream.mechanisms import on_tree
from optstream.stream import Lattice
from optstream.stream.public_days import PublicDays
from tasks.config import Settings
from tasks.config.schema import MECHANISMS, Budget, Features, Sampling

NUMBERS = (5, 10, 20)
"""Of samples and coefficients, as far as a window has so many steps."""
INFORMED = "HistoryInformed"
ORDINARY_DAY = date(2025, 1, 15)


@dataclass(frozen=True)
class Choice:
    """A way to release the stream. keys: what to write into the configuration; None for a key that goes."""

    label: str
    keys: Mapping[str, Mapping[str, Any]]
    settings: Settings


def changed(settings: Settings, **tables: Any) -> Settings:
    """Return the settings with other tables; nothing that was derived of the old ones goes with it."""
    fields = {name: getattr(settings, name) for name in type(settings).model_fields}
    return type(settings).model_construct(**fields | tables)


def without_delta(settings: Settings) -> Settings:
    """Return the settings under epsilon alone, which promises more than with a delta."""
    return changed(settings, privacy=settings.privacy.model_copy(update={"delta": None}))


def mechanism_choices(settings: Settings) -> Iterator[Choice]:
    """The configured mechanism, and every other under the same model, tree and level shares.

    Beside a delta also those that are priced in epsilon alone, without it, unless other streams share the
    budget and with it the currency. No delta is ever added: it is a weaker promise, for a person to make.
    """
    yield Choice("as configured", {}, settings)
    numbers = [number for number in NUMBERS if number <= settings.privacy.window]
    for name, section in MECHANISMS.items():
        own = section(name=name)
        needs_delta = own.kind.currency == "rho" and settings.privacy.delta is None
        if own.kind.also_called or needs_delta:
            continue
        features = ("features" in section.tables and bool(settings.features_.named), False)
        for number, featured in product(
            numbers if "sampling" in section.tables else (None,), dict.fromkeys(features)
        ):
            keys: dict[str, dict[str, Any]] = {"mechanism": {"name": name}}
            if number is not None:
                keys["sampling"] = {"n_samples": number}
            if "features" in section.tables and not featured:
                keys["features"] = {}
            own_tables: dict[str, Any] = {
                "mechanism": own,
                "sampling": None if number is None else Sampling(n_samples=number),
                "features_": settings.features_ if featured else Features(named={}),
            }
            samples = "" if number is None else f", {number} samples"
            label = f"{name}{samples}{', features' if featured else ''}"
            of_epsilon = settings.privacy.delta is not None and own.kind.currency == "epsilon"
            if of_epsilon and settings.stream_share == 1:
                keys["privacy"] = {"delta": None}
                own_tables["privacy"] = without_delta(settings).privacy
                label += ", epsilon alone"
            yield Choice(label, keys, changed(settings, **own_tables))


def share_choices(choice: Choice) -> Iterator[Choice]:
    """Other shares of the levels: from all for the leaves to most for the root; of a margin none, as much as
    a level beside it, and twice that.
    """
    settings = choice.settings
    tree = settings.dated_hierarchy.periods[-1][1]
    without = tree.tree if isinstance(tree, Lattice) else tree
    rows = _weights(without.n_levels, {int(without.depths[leaf]) for leaf in without.leaf_indices})
    if isinstance(tree, Lattice):
        # a margin's nodes stand one step above the cells, as those of the last level but one
        rows = [(*row, times * row[-2]) for row in rows for times in (0, 1, 2)]
    for row in dict.fromkeys(rows):
        shares = tuple(Fraction(weight, sum(row)) for weight in row)
        if shares != settings.level_shares:
            yield with_level_shares(choice, shares)


def with_level_shares(choice: Choice, shares: tuple[Fraction, ...]) -> Choice:
    """Return the choice under other shares of the levels, root first, then the margin's."""
    texts, margin = [str(share) for share in shares], choice.settings.margin
    own: dict[str, Any] = {"levels": texts}
    label = f"{choice.label}; levels {', '.join(texts)}"
    if margin is not None:
        *levels, of_margin = texts
        own = {"levels": levels, "margins": {margin.name: of_margin}}
        label = f"{choice.label}; levels {', '.join(levels)}, {margin.name} {of_margin}"
    budget = Budget.model_validate(own)
    kept = choice.settings.budget.model_copy(update={"levels": budget.levels, "margins": budget.margins})
    keys = {**choice.keys, "budget": own}
    return Choice(label, keys, changed(choice.settings, budget=kept))


def with_stream_share(settings: Settings, share: Fraction) -> Settings:
    """Return the settings of the stream with another share of the population's epsilon."""
    return changed(settings, budget=settings.budget.model_copy(update={"stream_share": share}))


def model_level_shares(settings: Settings) -> tuple[Fraction, ...]:
    """Return the shares of the oldest tree's levels, then the margin's, with the least error that the prior
    expects, from public facts; raises ParameterError where there is no public scale.
    """
    pattern = settings.mechanism.kind(
        settings.model_of(0),
        days=PublicDays(settings.calendar.slots),
        counts=settings.privacy.counts,
        # what noise is drawn: joint noise errs less at the levels that may have it
        period_lengths=settings.period_lengths,
        declared_leaves=settings.declared_leaves,
        **settings.mechanism.parameters,
    )
    oldest = settings.dated_hierarchy.periods[0][1]
    shares: tuple[Fraction, ...] = on_tree(pattern, oldest, "model").level_shares
    return shares


def without_margin(settings: Settings) -> Settings:
    """Return the settings of the hierarchy alone, whose leaves are then no cells."""
    if settings.margin is None:
        return settings
    hierarchy = settings.hierarchy.model_copy(update={"margins": {}})
    # the cells' level is gone
    levels = settings.level_shares[:-2]
    budget = settings.budget.model_copy(update={"margins": {}, "levels": levels})
    return changed(settings, hierarchy=hierarchy, budget=budget)


def ordinary_day(settings: Settings) -> date:
    """Return a day, or hour, of the newest hierarchy and of ordinary length, by which plans are compared."""
    newest = settings.dated_hierarchy.periods[-1][0] or ORDINARY_DAY
    return settings.calendar.periods_of(max(newest, ORDINARY_DAY))[0]


def with_scale(choice: Choice, scale: float) -> Choice:
    """Return the choice, told the size of a typical leaf where its mechanism has a parameter for it."""
    mechanism = choice.settings.mechanism
    if getattr(mechanism, "scale", scale) is not None:
        return choice
    keys = {**choice.keys, "mechanism": {**choice.keys.get("mechanism", {}), "scale": scale}}
    told = mechanism.model_copy(update={"scale": scale})
    return replace(choice, keys=keys, settings=changed(choice.settings, mechanism=told))


def with_laplace_noise(choice: Choice) -> Choice | None:
    """Return the choice with Laplace noise alone; None where its noise is said, or can be no other."""
    mechanism = choice.settings.mechanism
    if getattr(mechanism, "noise", "") is not None:
        return None
    keys = {**choice.keys, "mechanism": {**choice.keys.get("mechanism", {}), "noise": "laplace"}}
    laplace = mechanism.model_copy(update={"noise": "laplace"})
    return Choice(f"{choice.label}, Laplace noise", keys, changed(choice.settings, mechanism=laplace))


def _weights(n_levels: int, with_leaves: set[int]) -> list[tuple[int, ...]]:
    """Weights that grow or fall from level to level; a level above the leaves may be derived."""
    rows: list[list[int]] = [[1] * n_levels]
    rows += [[ratio ** (n_levels - 1 - level) for level in range(n_levels)] for ratio in (2, 3)]
    rows += [[ratio**level for level in range(n_levels)] for ratio in (2, 3)]
    rows.append([int(level in with_leaves) for level in range(n_levels)])
    return [*map(tuple, rows)]


# Shares of one population's epsilon over its streams, with the least expected error; public facts alone.

ErrorOf = Callable[[Fraction], float]
"""A stream's expected error, relative to its size, with so much of epsilon; up to a factor."""
AGREED = ("population", "epsilon", "delta", "window")


def choose_stream_shares(errors: Sequence[ErrorOf], total: Fraction) -> tuple[Fraction, ...]:
    """Return one share of epsilon for each stream, which add up to `total`, none less than `LEAST` of it; a
    function of public facts, hence free.

    The measure is the geometric mean over streams of their errors, as that of levels is: a factor in one
    stream's error, such as its unit, changes no share. Equal shares are kept where others gain less than a
    prior can tell.
    """
    # it loads scipy, which a help text need not wait for
    from optstream.mechanisms.history_informed_tree import BETTER, LEAST, MOVES, WORTH_IT

    known = [lru_cache(maxsize=None)(one) for one in errors]

    def error(shares: tuple[Fraction, ...]) -> float:
        return math.exp(
            sum(math.log(one(share)) for one, share in zip(known, shares, strict=True)) / len(known)
        )

    equal = (total / len(errors),) * len(errors)
    best, least = equal, error(equal)
    for move in MOVES:
        while True:
            found = min(
                ((error(one), one) for one in _moved(best, move * total, LEAST * total)),
                default=(least, best),
            )
            if not found[0] < least * (1.0 - BETTER):
                break
            least, best = found
    return best if least < error(equal) * (1.0 - WORTH_IT) else equal


def total_of(streams: Sequence[Settings]) -> Fraction:
    """Return what streams of one population have of its epsilon together: what they plan with, at most all.
    Raises ConfigurationError as `check_population`.
    """
    check_population(streams)
    return min(sum((one.stream_share for one in streams), Fraction(0)), Fraction(1))


def check_population(streams: Sequence[Settings]) -> None:
    """Raise ConfigurationError where streams are not of one population, or one of them is there twice."""
    first, *others = streams
    for other in others:
        differing = [key for key in AGREED if getattr(other.privacy, key) != getattr(first.privacy, key)]
        if differing:
            raise ConfigurationError(
                f"{other.file} and {first.file} must have the same {', '.join(differing)}: "
                "only streams of one population share an epsilon; advise on others one by one"
            )
    names = [one.stream.name for one in streams]
    if len(set(names)) < len(names):
        raise ConfigurationError(f"the configurations must be of different streams; got {', '.join(names)}")


def _moved(shares: tuple[Fraction, ...], move: Fraction, least: Fraction) -> list[tuple[Fraction, ...]]:
    found = []
    for giver, taker in permutations(range(len(shares)), 2):
        if shares[giver] - move >= least:
            moved = list(shares)
            moved[giver] -= move
            moved[taker] += move
            found.append(tuple(moved))
    return found
