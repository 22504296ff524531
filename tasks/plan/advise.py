"""What `optstream advise` proposes: for each stream a plan, for streams of one population their shares."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import date
from fractions import Fraction
from functools import cached_property, lru_cache, partial
from itertools import permutations, product
from pathlib import Path
from typing import Any

import numpy as np
import tomlkit
from numpy.typing import NDArray

from optstream.errors import ConfigurationError, ParameterError
from optstream.history.blocks import Blocks
from optstream.history.prior import TemporalPrior
from optstream.mechanisms import on_tree
from optstream.mechanisms.history_informed_tree import (
    BETTER,
    LEAST,
    MOVES,
    WORTH_IT,
    leaves_by_level,
    misses_unmeasured,
)
from optstream.privacy import JointSpend
from optstream.stream import AggregationTree, Lattice
from optstream.stream.public_days import PublicDays
from tasks.config import Settings, load_settings
from tasks.config.schema import MECHANISMS, OWN_TABLES, Budget, Features, HistoryInformed, Sampling
from tasks.plan.dry_run import Expected, check_population, squared_errors, warnings_of
from tasks.release.mechanism import Mechanism, mechanism_for

# Ways to release a stream that are worth comparing, each with the keys that make it of the configuration.

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
            if of_epsilon and settings.budget.stream_share == 1:
                keys["privacy"] = {"delta": None}
                own_tables["privacy"] = without_delta(settings).privacy
                label += ", epsilon alone"
            yield Choice(label, keys, changed(settings, **own_tables))


def share_choices(choice: Choice) -> Iterator[Choice]:
    """Other shares of the levels, from all for the leaves to most for the root, with several of a margin."""
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
        declared_leaves=settings.stream.leaves_per_period,
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


def _with_key(choice: Choice, key: str, value: Any) -> Choice | None:
    """Return the choice with a key of its mechanism; None where that is given, or the mechanism has none."""
    mechanism = choice.settings.mechanism
    if getattr(mechanism, key, value) is not None:
        return None
    keys = {**choice.keys, "mechanism": {**choice.keys.get("mechanism", {}), key: value}}
    settings = changed(choice.settings, mechanism=mechanism.model_copy(update={key: value}))
    return replace(choice, keys=keys, settings=settings)


def _weights(n_levels: int, with_leaves: set[int]) -> list[tuple[int, ...]]:
    """Weights that grow or fall from level to level; a level above the leaves may be derived."""
    rows: list[list[int]] = [[1] * n_levels]
    rows += [[ratio ** (n_levels - 1 - level) for level in range(n_levels)] for ratio in (2, 3)]
    rows += [[ratio**level for level in range(n_levels)] for ratio in (2, 3)]
    rows.append([int(level in with_leaves) for level in range(n_levels)])
    return [*map(tuple, rows)]


# Plans of one stream, judged by their expected errors: from public facts alone, by one prior for all.
#
# No folder of the input is opened, and no ledger: what is judged is the configuration, the public size of a
# typical leaf, and series that are drawn from the prior.

Values = NDArray[np.float64]
JITTER = 1e-8
"""Of a step's relative variance: smooth kernels have matrices that are singular in floats."""
DRAWS, PERIODS, MOST_PERIODS = 3, 3, 48
"""Independent draws of series, each of at least so many periods, and at least two windows long."""
NO_SCALE = (
    "the public size of a typical leaf is needed, to which errors are relative: [mechanism] scale of "
    "HistoryInformed, or --scale, from public knowledge, never from the readings"
)


@dataclass(frozen=True)
class Judged:
    """A plan and its expected errors, root first, in the unit of the readings.

    joint_levels: whose noise is joint; that of others is Laplace noise. warnings: levels that are as good as
    nothing.
    """

    choice: Choice
    level_shares: tuple[Fraction, ...]
    joint_levels: tuple[int, ...]
    expected: tuple[Expected, ...]
    warnings: tuple[str, ...]

    @property
    def relative(self) -> float:
        """The geometric mean over levels of error by size, as shares of levels are chosen by."""
        parts = [one.error / one.size for one in self.expected if one.size]
        return float(np.exp(np.mean(np.log(parts))))


@dataclass(frozen=True)
class Comparison:
    """The plans of a stream, least expected error first. configured: as the file has it, among them. levels:
    what each level is called, root first, the margin last.
    """

    settings: Settings
    levels: tuple[str, ...]
    plans: tuple[Judged, ...]
    configured: Judged

    @property
    def best(self) -> Judged:
        """The plan with the least expected error; as configured, if it gains less than a prior can tell."""
        least = self.plans[0]
        gain = 1.0 - least.relative / self.configured.relative
        return least if gain > WORTH_IT else self.configured


@dataclass(frozen=True)
class Judge:
    """What all plans of a stream are judged by: the public size, and series that vary as the prior says."""

    settings: Settings
    scale: float
    day: date

    @classmethod
    def of(cls, settings: Settings, scale: float | None) -> "Judge":
        """Return the judge of a stream; raises ConfigurationError where no public size is known."""
        known = getattr(settings.mechanism, "scale", None) or scale
        if known is None:
            raise ConfigurationError(f"{settings.file}: {NO_SCALE}")
        return cls(settings, known, ordinary_day(settings))

    @cached_property
    def tree(self) -> AggregationTree:
        """The hierarchy by which plans are compared; a margin is its last level."""
        return self.settings.tree_of(self.day)

    @cached_property
    def reference(self) -> Any:
        """The mechanism whose prior expects, as configured or by general figures, without a margin."""
        own = self.settings.mechanism
        section = own if own.kind.chooses_shares else MECHANISMS[INFORMED](name=INFORMED)
        told = changed(
            without_delta(self.settings), mechanism=section.model_copy(update={"scale": self.scale})
        )
        return mechanism_for(without_margin(told), self.day).pattern  # type: ignore[union-attr]

    @cached_property
    def sizes(self) -> tuple[tuple[float, float], ...]:
        """Of each level, the size of a typical node, and the error if nothing were measured."""
        sizes = self.scale * leaves_by_level(self.tree)
        blind = np.minimum(misses_unmeasured(self.tree, self.reference.figures), 1.0)
        return tuple(zip(sizes.tolist(), (blind * sizes).tolist(), strict=True))

    @cached_property
    def series(self) -> tuple[tuple[Values, ...], ...]:
        """Independent draws of consecutive periods of the leaves."""
        settings, window = self.settings, self.settings.privacy.window
        n_steps = settings.calendar.n_steps(self.day)
        n_periods = min(max(PERIODS, -(-2 * window // n_steps)), MOST_PERIODS)
        prior, n_leaves = self.reference.figures.prior, len(self.tree.leaves)
        low, high = float(settings.privacy.lower_bound), float(settings.privacy.bounds[1])
        if settings.metered:  # its bounds are a customer's, and the series are leaves'
            high = np.inf
        draws = (
            drawn_series(
                prior, self.scale, n_leaves, n_periods * n_steps, counts=settings.privacy.counts, seed=seed
            )
            for seed in range(DRAWS)
        )
        return tuple(tuple(np.split(np.clip(one, low, high), n_periods, axis=1)) for one in draws)

    def judged(self, choice: Choice) -> Judged:
        """Return the plan with its expected errors. Raises ParameterError if it does not fit the stream."""
        mechanism = mechanism_for(choice.settings, self.day)
        expected = tuple(
            Expected(float(error), size, unmeasured)
            for error, (size, unmeasured) in zip(self._errors(mechanism), self.sizes, strict=True)
        )
        settings = choice.settings
        steps = settings.calendar.n_steps(self.day), settings.calendar.first_step(self.day)
        joint = {spend.level for spend in mechanism.plan(*steps) if isinstance(spend, JointSpend)}
        warnings = warnings_of(settings, mechanism, expected)
        return Judged(choice, settings.level_shares, tuple(sorted(joint)), expected, warnings)

    def _errors(self, mechanism: Mechanism) -> Values:
        figures = mechanism.expected_by_level()
        if figures is not None:
            return figures[:, 0]
        first_step = self.settings.calendar.first_step(self.day)
        squares = [squared_errors(mechanism, periods, first_step) for periods in self.series]
        return np.asarray(np.sqrt(np.mean(squares, axis=0)))


def compare_plans(settings: Settings, scale: float | None = None) -> Comparison:
    """Judge the configured plan, every other mechanism and noise, then other level shares for the best; those
    left out that do not fit the stream, or that come to the same as another.

    scale: the public size of a typical leaf, where the configuration has none. Reads no dump and no ledger;
    costs no privacy. Raises ConfigurationError where no public size is known, ParameterError where the
    configured plan itself does not fit.
    """
    judge = Judge.of(settings, scale)
    configured = judge.judged(_as_it_runs(settings, judge))
    _, *others = mechanism_choices(settings)
    plans = [configured, *_fitting(judge, _with_noises(others, judge.scale))]
    best = min(plans, key=lambda one: one.relative).choice
    plans += _fitting(judge, _shares_of(best))
    apart = {(one.relative, *one.level_shares): one for one in reversed(plans)}
    levels = tuple(judge.tree.level_name(level) for level in range(judge.tree.n_levels))
    ordered = tuple(sorted(apart.values(), key=lambda one: one.relative))
    return Comparison(settings, levels, ordered, configured)


class WithBlocks(HistoryInformed):
    """The mechanism with blocks that are not chosen by its scale; no key of a file."""

    n_blocks: int
    block_length: int


def _as_it_runs(settings: Settings, judge: Judge) -> Choice:
    """Return the configured plan, with the public size for its errors alone: its blocks stay as they are."""
    choice = Choice("as configured", {}, settings)
    told = _with_key(choice, "scale", judge.scale)
    if told is None:
        return choice
    blocks = mechanism_for(settings, judge.day).pattern.blocks  # type: ignore[union-attr]  # it has a scale
    own = dict(told.settings.mechanism)
    mechanism = WithBlocks(**own, n_blocks=blocks.n_blocks, block_length=blocks.length)
    return Choice(choice.label, {}, changed(told.settings, mechanism=mechanism))


def _with_noises(choices: Iterable[Choice], scale: float) -> Iterator[Choice]:
    for choice in choices:
        known = _with_key(choice, "scale", scale) or choice
        yield known
        if (laplace := _with_key(known, "noise", "laplace")) is not None:
            yield replace(laplace, label=f"{known.label}, Laplace noise")


def _shares_of(choice: Choice) -> Iterator[Choice]:
    if choice.settings.mechanism.kind.chooses_shares:
        yield with_level_shares(choice, model_level_shares(choice.settings))
    yield from share_choices(choice)


def _fitting(judge: Judge, choices: Iterable[Choice]) -> Iterator[Judged]:
    for choice in choices:
        try:
            yield judge.judged(choice)
        except ParameterError:
            continue


def drawn_series(
    prior: TemporalPrior, scale: float, n_leaves: int, n_steps: int, *, counts: bool, seed: int
) -> Values:
    """Return leaves of the size `scale` that vary as the prior expects, (n_leaves, n_steps).

    A leaf is scale * (1 + f + g): f is shared by all, g its own. Nothing below 0. counts: whole numbers that
    vary around that.
    """
    generator = np.random.default_rng(seed)
    steps = Blocks.at(np.arange(n_steps))
    shared, own = prior.covariances(steps, steps)
    f = _root(shared) @ generator.normal(size=n_steps)
    g = generator.normal(size=(n_leaves, n_steps)) @ _root(own).T
    values = scale * np.maximum(1.0 + f + g, 0.0)
    return generator.poisson(values).astype(np.float64) if counts else values


def _root(covariance: Values) -> Values:
    return np.asarray(np.linalg.cholesky(covariance + JITTER * np.eye(len(covariance))))


# Shares of one population's epsilon over its streams, with the least expected error; public facts alone.

ErrorOf = Callable[[Fraction], float]
"""A stream's expected error, relative to its size, with so much of epsilon; up to a factor."""


def choose_stream_shares(errors: Sequence[ErrorOf], total: Fraction) -> tuple[Fraction, ...]:
    """Return one share of epsilon for each stream, which add up to `total`, none less than `LEAST` of it; a
    function of public facts, hence free.

    The measure is the geometric mean over streams of their errors, as that of levels is: a factor in one
    stream's error, such as its unit, changes no share. Equal shares are kept where others gain less than a
    prior can tell.
    """
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
    """Return what streams of one population plan with together, at most all. Raises as `check_population`."""
    check_population(streams)
    return min(sum((one.budget.stream_share for one in streams), Fraction(0)), Fraction(1))


def _moved(shares: tuple[Fraction, ...], move: Fraction, least: Fraction) -> list[tuple[Fraction, ...]]:
    found = []
    for giver, taker in permutations(range(len(shares)), 2):
        if shares[giver] - move >= least:
            moved = list(shares)
            moved[giver] -= move
            moved[taker] += move
            found.append(tuple(moved))
    return found


@dataclass(frozen=True)
class StreamAdvice:
    """Of one stream: what was compared at its present share, and what is proposed.

    written: the share of the population's epsilon in its file. share: that it would plan with. proposed: the
    best plan at that share.
    """

    compared: Comparison
    written: Fraction
    share: Fraction
    proposed: Judged

    @property
    def gain(self) -> float:
        """By which part the error becomes smaller than that of the configured plan."""
        return 1.0 - self.proposed.relative / self.compared.configured.relative

    @property
    def keys(self) -> dict[str, dict[str, Any]]:
        """What to write into the configuration, by table."""
        keys = {table: dict(entries) for table, entries in self.proposed.choice.keys.items()}
        if self.share != self.written:
            keys.setdefault("budget", {})["stream_share"] = str(self.share)
        return keys


@dataclass(frozen=True)
class PlanAdvice:
    """Of all streams that were asked for. overdrawn: what they plan with now, where that is more than all."""

    streams: tuple[StreamAdvice, ...]
    overdrawn: Fraction | None


def advise_plans(streams: Sequence[Settings], scales: Sequence[float | None]) -> PlanAdvice:
    """Propose mechanism, noise and shares from public facts alone: no dump, no ledger; costs no privacy.

    Streams, all of one population, that plan with more than the whole epsilon together are compared at equal
    shares of it. scales: the public size of a typical leaf of each, where its configuration has none. Raises
    ConfigurationError for streams of different populations, or a public size that is missing, ParameterError
    for a configured plan that does not fit.
    """
    total = total_of(streams)
    written = [one.budget.stream_share for one in streams]
    planned = sum(written, Fraction(0))
    if planned > 1:
        streams = [with_stream_share(one, total / len(streams)) for one in streams]
    compared = [compare_plans(one, scale) for one, scale in zip(streams, scales, strict=True)]
    if len(streams) == 1:
        (one,) = compared
        return PlanAdvice((StreamAdvice(one, written[0], written[0], one.best),), None)
    judges = [Judge.of(one, scale) for one, scale in zip(streams, scales, strict=True)]

    def at(place: int, share: Fraction) -> Judged:
        choice = compared[place].best.choice
        return judges[place].judged(replace(choice, settings=with_stream_share(choice.settings, share)))

    def error(place: int, share: Fraction) -> float:
        return at(place, share).relative

    shares = choose_stream_shares([partial(error, place) for place in range(len(streams))], total)
    found = tuple(
        StreamAdvice(one, written[place], share, at(place, share))
        for place, (one, share) in enumerate(zip(compared, shares, strict=True))
    )
    return PlanAdvice(found, planned if planned > 1 else None)


def advice_document(advice: PlanAdvice) -> dict[str, Any]:
    """`optstream advise --json`: versioned, for machines."""
    return {
        "format": "optstream.plan-advice/1",
        "stream_shares_exceed_epsilon": None if advice.overdrawn is None else str(advice.overdrawn),
        "streams": [
            {
                "stream": one.compared.settings.stream.name,
                "stream_share": str(one.share),
                "levels": list(one.compared.levels),
                "proposed": _plan_document(one.proposed),
                "keys": one.keys,
                "gain": one.gain,
                "configured": _plan_document(one.compared.configured),
                "plans": [_plan_document(plan) for plan in one.compared.plans],
            }
            for one in advice.streams
        ],
    }


def _plan_document(plan: Judged) -> dict[str, Any]:
    return {
        "label": plan.choice.label,
        "mechanism": plan.choice.settings.mechanism.name,
        "level_shares": [str(share) for share in plan.level_shares],
        "levels_with_joint_noise": list(plan.joint_levels),
        "expected": [asdict(one) for one in plan.expected],
        "relative_error": plan.relative,
        "warnings": list(plan.warnings),
    }


# A configuration with the proposed keys in it, comments and all else as the operator wrote them.


def write_proposal(settings: Settings, keys: Mapping[str, Mapping[str, Any]], path: Path) -> None:
    """Write the configuration of a stream with other keys to a new file beside it; what cannot be loaded is
    not left.

    keys: what to set, by table. A table [mechanism] with a name replaces the old one, and tables that the
    mechanism does not take are left out. Raises
    ConfigurationError for another folder, a file that exists, or keys that do not make a configuration.
    """
    if path.absolute().parent != settings.file.parent:
        raise ConfigurationError(
            f"--write {path} must lie in {settings.file.parent}, beside the configuration: its "
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
