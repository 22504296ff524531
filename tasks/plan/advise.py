"""The proposals of `optstream advise`: a plan for each stream, and the shares of one population's streams."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import date
from fractions import Fraction
from functools import cached_property, lru_cache, partial
from itertools import permutations, product
from pathlib import Path
from typing import Any, Literal

import numpy as np
import tomlkit
from numpy.typing import NDArray
from pydantic import BaseModel, Field, InstanceOf

from optstream.errors import ConfigurationError, ParameterError
from optstream.history.blocks import Blocks
from optstream.history.prior import TemporalPrior
from optstream.mechanisms import on_tree
from optstream.mechanisms.blocks import BETTER, LEAST, MOVES, WORTH_IT, leaves_by_level, misses_unmeasured
from optstream.privacy import OrderSpend
from optstream.stream import AggregationTree, Lattice
from optstream.stream.public_days import PublicDays
from tasks.config import Settings, load_settings
from tasks.config.schema import MECHANISMS, OWN_TABLES, Budget, HistoryInformed, Sampling
from tasks.plan.dry_run import Expected, check_population, is_useless, squared_errors, warnings_of
from tasks.release.mechanism import learned_by, mechanism_for
from tasks.release.outcomes import Exact, Printed

# Ways to release a stream that are worth comparing, each with its keys of the configuration.

NUMBERS = (5, 10, 20)  # of samples and coefficients, as far as a window has so many steps
ORDINARY_DAY = date(2025, 1, 15)


@dataclass(frozen=True)
class Choice:
    """A way to release the stream. keys: entries of the configuration; None for a key to remove."""

    label: str
    keys: Mapping[str, Mapping[str, Any]]
    settings: Settings


def changed(settings: Settings, **tables: Any) -> Settings:
    """Return the settings with other tables, or keys of a table, without values cached of the old ones."""
    fields = {name: getattr(settings, name) for name in type(settings).model_fields}
    for name, own in tables.items():
        is_part = isinstance(own, dict) and isinstance(fields[name], BaseModel)
        fields[name] = fields[name].model_copy(update=own) if is_part else own
    return type(settings).model_construct(**fields)


def mechanism_choices(settings: Settings) -> Iterator[Choice]:
    """Return every mechanism under the configured tree; no delta is ever added, a weaker promise."""
    numbers = [number for number in NUMBERS if number <= settings.privacy.window]
    delta = settings.privacy.delta
    for name, section in MECHANISMS.items():
        own = section(name=name)
        has_features, currency = "features" in section.tables, own.kind.currency
        if own.kind.also_called or (currency == "rho" and delta is None):
            continue
        features = dict.fromkeys((has_features and bool(settings.features_), False))
        for number, featured in product(numbers if "sampling" in section.tables else (None,), features):
            label, keys = name, dict[str, dict[str, Any]](mechanism={"name": name})
            tables: dict[str, Any] = {"mechanism": own, "sampling": None}
            if number is not None:
                label += f", {number} samples"
                keys["sampling"] = {"n_samples": number}
                tables["sampling"] = Sampling(n_samples=number)
            if featured:
                label += ", features"
            else:
                tables["features_"] = {}
                keys |= {"features": {}} if has_features else {}
            if currency == "epsilon" and delta is not None and settings.budget.stream_share == 1:
                label += ", epsilon alone"
                keys["privacy"] = tables["privacy"] = {"delta": None}
            yield Choice(label, keys, changed(settings, **tables))


def share_choices(choice: Choice) -> Iterator[Choice]:
    """Return other shares of the levels: the model's, then from all for the leaves to most for the root."""
    settings = choice.settings
    if settings.mechanism.kind.chooses_shares:
        yield with_level_shares(choice, model_level_shares(settings))
    tree = settings.dated_hierarchy.periods[-1][1]
    without = tree.tree if isinstance(tree, Lattice) else tree
    with_leaves = {int(without.depths[leaf]) for leaf in without.leaf_indices}
    levels = range(without.n_levels)
    rows = [(1,) * len(levels)]
    rows += [tuple(ratio**level for level in reversed(levels)) for ratio in (2, 3)]
    rows += [tuple(ratio**level for level in levels) for ratio in (2, 3)]
    rows += [tuple(int(level in with_leaves) for level in levels)]  # those above are derived
    if isinstance(tree, Lattice):
        # a margin's nodes stand one step above the cells, as those of the last level but one
        rows = [(*row, times * row[-2]) for row in rows for times in (0, 1, 2)]
    for row in dict.fromkeys(rows):
        shares = tuple(Fraction(weight, sum(row)) for weight in row)
        if shares != settings.level_shares:
            yield with_level_shares(choice, shares)


def with_level_shares(choice: Choice, shares: tuple[Fraction, ...]) -> Choice:
    """Return the choice under other shares of the levels, root first, then the margin's."""
    levels, margin = [str(share) for share in shares], choice.settings.margin
    own: dict[str, Any] = {"levels": levels}
    label = f"{choice.label}; levels {', '.join(levels)}"
    if margin is not None:
        own["margins"] = {margin.name: levels.pop()}
        label = f"{choice.label}; levels {', '.join(levels)}, {margin.name} {shares[-1]}"
    budget = Budget.model_validate(own)
    kept = changed(choice.settings, budget={"levels": budget.levels, "margins": budget.margins})
    return Choice(label, {**choice.keys, "budget": own}, kept)


def model_level_shares(settings: Settings) -> tuple[Fraction, ...]:
    """Return the shares with the least error that the prior expects, root first, the margin's last."""
    pattern = settings.mechanism.kind(
        settings.model_of(0),
        days=PublicDays(settings.calendar.slots),
        counts=settings.privacy.counts,
        # these decide the noise: joint noise errs less at the levels that may have it
        period_lengths=settings.period_lengths,
        declared_leaves=settings.stream.leaves_per_window,
        **settings.mechanism.parameters,
    )
    oldest = settings.dated_hierarchy.periods[0][1]
    shares: tuple[Fraction, ...] = on_tree(pattern, oldest, "model").level_shares
    return shares


def _with_keys(choice: Choice, **own: Any) -> Choice:
    """Return the choice with keys of its mechanism."""
    keys = {**choice.keys, "mechanism": {**choice.keys.get("mechanism", {}), **own}}
    return replace(choice, keys=keys, settings=changed(choice.settings, mechanism=own))


def _lacks(choice: Choice, key: str) -> bool:
    """Whether the mechanism has this key, and it is not given."""
    return getattr(choice.settings.mechanism, key, "none") is None


# Plans of one stream, judged by their expected errors, from public facts and one prior for all.

Values = NDArray[np.float64]
JITTER = 1e-8  # of a step's relative variance: smooth kernels have matrices that are singular in floats
DRAWS, PERIODS, MOST_PERIODS = 3, 3, 48
"""Independent draws of series, each of at least so many periods, and at least two windows long."""
NO_SCALE = (
    "the public size of a typical leaf is needed, to which errors are relative: [mechanism] scale of "
    "HistoryInformed, or --scale, from public knowledge, never from the readings"
)


class Judged(Printed):
    """A plan and its expected errors, root first; relative: geometric mean over levels of error by size."""

    choice: InstanceOf[Choice] = Field(exclude=True)
    label: str
    mechanism: str
    level_shares: tuple[Exact, ...]
    joint_levels: tuple[int, ...] = Field(serialization_alias="levels_with_joint_noise")
    expected: tuple[Expected, ...]
    relative: float = Field(serialization_alias="relative_error")
    warnings: tuple[str, ...]


class Judge:
    """The measure of all plans of a stream: the public size, and series that vary as the prior says."""

    def __init__(self, settings: Settings, scale: float | None) -> None:
        """Raise ConfigurationError where no public size is known."""
        own = settings.mechanism
        known = getattr(own, "scale", None) or scale
        if known is None:
            raise ConfigurationError(f"{settings.file}: {NO_SCALE}")
        newest = settings.dated_hierarchy.periods[-1][0] or ORDINARY_DAY
        self.settings, self.scale = settings, known
        self.day = settings.calendar.periods_of(max(newest, ORDINARY_DAY))[0]
        self.tree: AggregationTree = settings.tree_of(self.day)  # a margin is its last level
        # the mechanism whose prior expects, as configured or by general figures, without a margin
        section = own if own.kind.chooses_shares else HistoryInformed(name="HistoryInformed")
        section = section.model_copy(update={"scale": known})
        scaled = changed(settings, mechanism=section, privacy={"delta": None})
        if settings.margin is not None:  # then the leaves are no cells, and the cells' level is gone
            shares = {"margins": {}, "levels": settings.level_shares[:-2]}
            scaled = changed(scaled, hierarchy={"margins": {}}, budget=shares)
        self.known = learned_by(settings)
        informed = mechanism_for(scaled, self.day).with_learned(self.known, keeps_blocks=True)
        figures = informed.pattern.figures(())  # type: ignore[attr-defined]
        self.prior = TemporalPrior.broad(figures.steps_per_day, figures.components)
        sizes = known * leaves_by_level(self.tree)
        running: Any = mechanism_for(settings, self.day).with_learned(self.known, keeps_blocks=True)
        factors = getattr(running, "learned_factors", None)
        self.factors = np.ones((len(sizes), 3)) if factors is None else np.nan_to_num(factors, nan=1.0)
        blind = np.minimum(misses_unmeasured(self.tree, figures), 1.0) * sizes * self.factors[:, 2]
        # of each level, the size of a typical node, and the error if nothing were measured
        self.sizes = tuple(zip(sizes.tolist(), blind.tolist(), strict=True))

    @cached_property
    def series(self) -> tuple[tuple[Values, ...], ...]:
        """Independent draws of consecutive periods of the leaves."""
        privacy, n_steps = self.settings.privacy, self.settings.calendar.n_steps(self.day)
        n_periods = min(max(PERIODS, -(-2 * privacy.window // n_steps)), MOST_PERIODS)
        shape = len(self.tree.leaves), n_periods * n_steps
        low, high = float(privacy.lower_bound), float(privacy.bounds[1])
        if self.settings.metered:  # its bounds are a customer's, and the series are leaves'
            high = np.inf
        draws = (
            drawn_series(self.prior, self.scale, *shape, counts=privacy.counts, seed=seed)
            for seed in range(DRAWS)
        )
        return tuple(tuple(np.split(np.clip(one, low, high), n_periods, axis=1)) for one in draws)

    def judged(self, choice: Choice, *, as_it_runs: bool = False) -> Judged:
        """Return the plan with its expected errors, by the learned prior where there is one, times how much
        more or less the last estimates state. Raises ParameterError if it does not fit the stream."""
        plain: Any = mechanism_for(choice.settings, self.day)
        mechanism = plain.with_learned(self.known, keeps_blocks=as_it_runs)
        if mechanism is not plain and mechanism.common_blocks != plain.common_blocks:
            blocks = "{n_blocks} x {block_length} blocks".format(**mechanism.common_blocks)
            choice = _with_keys(choice, **mechanism.common_blocks)
            choice = replace(choice, label=f"{choice.label}; {blocks}")
        settings = choice.settings
        n_steps, first_step = settings.calendar.n_steps(self.day), settings.calendar.first_step(self.day)
        figures = mechanism.expected_by_level()
        if figures is None:
            squares = [squared_errors(mechanism, periods, first_step) for periods in self.series]
            errors = np.sqrt(np.mean(squares, axis=0))
        else:
            errors = figures[:, 0] * (1.0 if as_it_runs else self.factors[:, 0])
        sized = zip(errors.tolist(), self.sizes, strict=True)
        expected = tuple(Expected(error, *size) for error, size in sized)
        spends = mechanism.plan(n_steps, first_step)
        return Judged(
            choice=choice,
            label=choice.label,
            mechanism=settings.mechanism.name,
            level_shares=settings.level_shares,
            joint_levels=tuple(sorted({one.level for one in spends if isinstance(one, OrderSpend)})),
            expected=expected,
            relative=float(np.exp(np.mean([np.log(one.error / one.size) for one in expected if one.size]))),
            warnings=warnings_of(settings, mechanism, expected),
        )

    def fitting(self, choices: Iterable[Choice]) -> Iterator[Judged]:
        """Judge the choices, but for those that do not fit the stream."""
        for choice in choices:
            with suppress(ParameterError):
                yield self.judged(choice)


class Comparison(Printed):
    """The plans of a stream, least expected error first; `levels` root first, the margin last."""

    judge: InstanceOf[Judge] = Field(exclude=True)
    levels: tuple[str, ...]
    plans: tuple[Judged, ...]
    configured: Judged

    @property
    def settings(self) -> Settings:
        return self.judge.settings

    @property
    def best(self) -> Judged:
        """The plan with the least expected error; the configured one if a prior cannot tell the gain."""
        least = self.plans[0]
        gain = 1.0 - least.relative / self.configured.relative
        return least if gain > WORTH_IT else self.configured


def compare_plans(settings: Settings, scale: float | None = None) -> Comparison:
    """Judge the configured plan and every other that fits from public facts; costs no privacy."""
    judge = Judge(settings, scale)
    configured = judge.judged(_as_it_runs(judge), as_it_runs=True)
    plans = [configured, *judge.fitting(_with_noises(mechanism_choices(settings), judge.scale))]
    best = min(plans, key=lambda one: one.relative).choice
    plans += judge.fitting(share_choices(best))
    apart = {(one.relative, *one.level_shares): one for one in reversed(plans)}
    levels = tuple(judge.tree.level_name(level) for level in range(judge.tree.n_levels))
    rising = tuple(sorted(apart.values(), key=lambda one: one.relative))
    return Comparison(judge=judge, levels=levels, plans=rising, configured=configured)


def _as_it_runs(judge: Judge) -> Choice:
    """Return the configured plan, with the public size for its errors alone: its blocks stay as they are."""
    choice = Choice("as configured", {}, judge.settings)
    if not _lacks(choice, "scale"):
        return choice
    blocks = mechanism_for(judge.settings, judge.day).pattern.blocks  # type: ignore[union-attr]
    own = {"scale": judge.scale, "n_blocks": blocks.n_blocks, "block_length": blocks.length}
    return replace(choice, settings=changed(judge.settings, mechanism=own))


def _with_noises(choices: Iterable[Choice], scale: float) -> Iterator[Choice]:
    for choice in choices:
        known = _with_keys(choice, scale=scale) if _lacks(choice, "scale") else choice
        yield known
        if _lacks(known, "noise"):
            yield replace(_with_keys(known, noise="laplace"), label=f"{known.label}, Laplace noise")


def drawn_series(
    prior: TemporalPrior, scale: float, n_leaves: int, n_steps: int, *, counts: bool, seed: int
) -> Values:
    """Return leaves scale * (1 + f + g), f shared and g their own, at least 0, (n_leaves, n_steps)."""
    generator, steps = np.random.default_rng(seed), Blocks.at(np.arange(n_steps))
    shared, own = (
        np.linalg.cholesky(one + JITTER * np.eye(n_steps)) for one in prior.covariances(steps, steps)
    )
    f = shared @ generator.normal(size=n_steps)
    g = generator.normal(size=(n_leaves, n_steps)) @ own.T
    values = scale * np.maximum(1.0 + f + g, 0.0)
    return generator.poisson(values).astype(np.float64) if counts else values


# Shares of one population's epsilon over its streams, with the least expected error; public facts alone.

ErrorOf = Callable[[Fraction], float]
"""A stream's expected error, relative to its size, with so much of epsilon; up to a factor."""


def choose_stream_shares(errors: Sequence[ErrorOf], total: Fraction) -> tuple[Fraction, ...]:
    """Return streams' shares of epsilon with the least geometric mean of errors, by public facts."""
    known = [lru_cache(maxsize=None)(one) for one in errors]

    def error(shares: tuple[Fraction, ...]) -> float:
        logs = (math.log(one(share)) for one, share in zip(known, shares, strict=True))
        return math.exp(sum(logs) / len(known))

    def moved(shares: tuple[Fraction, ...], move: Fraction) -> Iterator[tuple[Fraction, ...]]:
        for giver, taker in permutations(range(len(shares)), 2):
            if shares[giver] - move >= LEAST * total:
                own = {giver: shares[giver] - move, taker: shares[taker] + move}
                yield tuple(own.get(place, share) for place, share in enumerate(shares))

    equal = (total / len(errors),) * len(errors)
    best, least = equal, error(equal)
    for move in MOVES:
        while True:
            found = min(((error(one), one) for one in moved(best, move * total)), default=(least, best))
            if not found[0] < least * (1.0 - BETTER):
                break
            least, best = found
    return best if least < error(equal) * (1.0 - WORTH_IT) else equal


def total_of(streams: Sequence[Settings]) -> Fraction:
    """Return what streams of one population plan with together, at most all. Raises as `check_population`."""
    check_population(streams)
    return min(sum((one.budget.stream_share for one in streams), Fraction(0)), Fraction(1))


class StreamAdvice(Comparison):
    """Advice for one stream: keys of the configuration, by table, and the relative gain."""

    stream: str
    stream_share: Exact
    proposed: Judged
    keys: dict[str, dict[str, Any]]
    gain: float


class AdviceDocument(Printed):
    """Plans by their expected error; stream_shares_exceed_epsilon is the sum of shares, if more than 1."""

    format: Literal["optstream.plan-advice/1"] = "optstream.plan-advice/1"
    stream_shares_exceed_epsilon: Exact | None
    streams: tuple[StreamAdvice, ...]


def advise_plans(streams: Sequence[Settings], scales: Sequence[float | None]) -> AdviceDocument:
    """Propose mechanism, noise, blocks and shares from public facts, what was learned included; free."""
    total = total_of(streams)
    written = [one.budget.stream_share for one in streams]
    overdrawn = sum(written, Fraction(0)) if sum(written) > 1 else None
    if overdrawn is not None:
        streams = [changed(one, budget={"stream_share": total / len(streams)}) for one in streams]
    compared = [compare_plans(one, scale) for one, scale in zip(streams, scales, strict=True)]

    def at(one: Comparison, share: Fraction) -> Judged:
        choice = one.best.choice
        settings = changed(choice.settings, budget={"stream_share": share})
        return one.judge.judged(replace(choice, settings=settings))

    def error(one: Comparison, share: Fraction) -> float:
        return at(one, share).relative

    shares: Sequence[Fraction] = written
    if len(streams) > 1:
        shares = choose_stream_shares([partial(error, one) for one in compared], total)
    found = []
    for one, own, share in zip(compared, written, shares, strict=True):
        proposed = at(one, share) if len(streams) > 1 else one.best
        keys = {table: dict(entries) for table, entries in proposed.choice.keys.items()}
        if share != own:
            keys.setdefault("budget", {})["stream_share"] = str(share)
        if levels := useful_levels(one.settings, proposed.expected):
            keys["published"] = {"levels": levels}
        own_facts = {"stream": one.settings.stream.name, "stream_share": share, "keys": keys}
        gain = 1.0 - proposed.relative / one.configured.relative
        found.append(StreamAdvice(**vars(one), **own_facts, proposed=proposed, gain=gain))
    return AdviceDocument(stream_shares_exceed_epsilon=overdrawn, streams=tuple(found))


def useful_levels(settings: Settings, expected: Sequence[Expected]) -> list[int]:
    """Return the levels to publish where the deepest ones are as good as nothing; none to publish all."""
    n_levels = len(expected)
    while n_levels > 1 and is_useless(expected[n_levels - 1]):
        n_levels -= 1
    is_free = not (settings.margin or settings.published.levels or settings.dated_hierarchy.changes)
    return list(range(n_levels)) if is_free and n_levels < len(expected) else []


# A configuration with the proposed keys in it, comments and all else as the operator wrote them.


def write_proposal(settings: Settings, keys: Mapping[str, Mapping[str, Any]], path: Path) -> None:
    """Write the configuration with other keys to a new file next to it, or ConfigurationError and no file."""
    if path.absolute().parent != settings.file.parent:
        raise ConfigurationError(
            f"--write {path} must lie in {settings.file.parent}, next to the configuration: its "
            "relative paths start there"
        )
    document = tomlkit.parse(settings.file.read_bytes().decode("utf-8"))
    mechanism = keys.get("mechanism", {})
    if mechanism.get("name", settings.mechanism.name) != settings.mechanism.name:
        for key in [key for key in document["mechanism"] if key not in mechanism]:
            document["mechanism"].remove(key)
    for name, table in keys.items():
        if name in OWN_TABLES or name not in document:
            document[name] = tomlkit.table()
        for key, value in table.items():
            if value is None:
                document[name].pop(key, None)
            elif isinstance(value, Mapping):
                document[name].setdefault(key, tomlkit.inline_table()).update(value)
            else:
                document[name][key] = value
    if mechanism:
        taken = MECHANISMS[mechanism.get("name", settings.mechanism.name)].tables
        for name in OWN_TABLES - set(taken):
            document.pop(name, None)
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(tomlkit.dumps(document))
    except FileExistsError:
        raise ConfigurationError(f"--write {path} exists already: name a new file") from None
    try:
        load_settings(path)
    except ConfigurationError:
        path.unlink()
        raise
