"""From the configuration to a day: its mechanism and plan, its memory of earlier days, its public facts."""

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from datetime import date, timedelta
from fractions import Fraction
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any

import polars as pl

from optstream.catalogue import LongSpan
from optstream.errors import ConfigurationError, LedgerError, OptStreamError, ParameterError
from optstream.estimation.constraints import Fact, Kind, clash, keep
from optstream.ledger import Key, Ledger
from optstream.measurement import EquallySpaced, L1Sampling
from optstream.measurement.sums import customers_spend
from optstream.mechanisms import Hierarchical, OptStream, Release, on_tree
from optstream.privacy import OrderSpend, Spend
from optstream.privacy.horizon import HorizonLoss, losses_of_days
from optstream.privacy.spends import NOT_DRAWN
from optstream.stream import Measured, State, days_from, period_from
from optstream.stream.calendar import ORIGIN
from optstream.stream.covariate import Covariate
from optstream.stream.public_days import PublicDays
from tasks.config import Settings
from tasks.config.schema import CONSTRAINTS
from tasks.trusted.covariates import private_zones
from tasks.trusted.files import kept, read_verified

Mechanism = OptStream | Hierarchical


def mechanism_for(
    settings: Settings, day: date, revision: int = 0, covariates: Sequence[Covariate] = (), **chosen: object
) -> Mechanism:
    """The mechanism that the configuration names, on its tree, with parameters that were chosen before.

    Raises ParameterError or BudgetError.
    """
    model, kind, tree = settings.model_of(revision), settings.mechanism.kind, settings.tree_of(day)
    bound, sampling = float(settings.least_units * settings.privacy.resolution), settings.sampling
    # a zone may have had other days than it has now, and a day of the archive is planned all the same: the
    # ledger charges what it is planned with, and refuses a window that has too little left
    lengths = tuple(sorted({*settings.period_lengths, settings.calendar.n_steps(day)}))
    offered: dict[str, Callable[[], Any]] = {
        "tree": lambda: tree,
        "level_shares": lambda: settings.level_shares,
        "lower_bound": lambda: bound,
        "shortest_period": lambda: lengths[0],
        "leaves_per_period": lambda: settings.leaves_per_period(day),
        "counts": lambda: settings.privacy.counts,
        "variation": lambda: settings.variation,
        "declared_leaves": lambda: settings.stream.leaves_per_window,
        "period_lengths": lambda: lengths,
        "covariates": lambda: tuple(covariates),
        "features": lambda: settings.features(day),
        "days": lambda: PublicDays.from_calendar(settings.calendar, settings.mechanism.holidays_around(day)),
    }
    if sampling is not None:
        limit, n_samples = sampling.threshold, sampling.n_samples
        offered["sampling"] = lambda: (
            EquallySpaced(n_samples) if limit is None else L1Sampling(n_samples, limit)
        )
    own = {**settings.mechanism.parameters, **chosen}
    if revision and "noise" in kind.__dataclass_fields__:
        # of a restatement: noise that goes on would be that of days which may never be measured again
        own = {**own, "noise": "laplace"}
    asked = {field.name for field in fields(kind)} - own.keys() - settings.mechanism.fixed.keys()
    pattern = kind(model, **{name: offer() for name, offer in offered.items() if name in asked}, **own)
    built: Mechanism = on_tree(pattern, tree, settings.level_shares, bound)
    return built


def planner_for(settings: Settings, day: date) -> Mechanism:
    """The mechanism of a day, to plan with: blocks that public facts choose are read where they are kept."""
    if settings.mechanism.name != "HistoryInformed":
        return mechanism_for(settings, day)

    def choose() -> dict[str, int]:
        chosen: Any = mechanism_for(settings, day)
        return dict(chosen.common_blocks)

    tree = settings.dated_hierarchy.hash_of(day)
    facts = (settings.configuration_hash, tree, settings.calendar.n_steps(day))
    blocks = kept(settings.blocks_file, facts, choose)
    # holidays decide no plan, and take a tenth of a second to read
    return mechanism_for(settings, day, days=PublicDays.from_calendar(settings.calendar), **blocks)


def plan_of(
    settings: Settings, mechanism: Mechanism, day: date, revision: int = 0, state: State | None = None
) -> tuple[Spend, ...]:
    """The cost of a release: the mechanism's plan and, where they are published, the counts of customers."""
    n_steps, first_step = settings.calendar.n_steps(day), settings.calendar.first_step(day)
    plan = (*mechanism.plan(n_steps, first_step, state),)
    if not settings.published.reporting:
        return plan
    level, epsilon = mechanism.tree.tree.n_levels - 1, settings.reporting_epsilon(revision)
    n_periods = _periods_in_window(settings, day, n_steps)
    return (*plan, customers_spend(level, first_step, n_steps, epsilon, n_periods))


def _periods_in_window(settings: Settings, day: date, n_steps: int) -> int:
    """The most periods of which a window with a step of this one has steps."""
    calendar, window = settings.calendar, settings.privacy.window
    shortest = min(*settings.period_lengths, n_steps)
    most = (window + shortest - 2) // shortest + 1
    with suppress(ParameterError):  # a day near it is not whole steps: then no window holds more than `most`
        starts = [calendar.first_step(calendar.after(day, away)) for away in range(-most, most + 1)]
        return max(
            last - first + 1
            for first in range(most + 1)
            for last in range(most, 2 * most + 1)
            if first == last or starts[last] - starts[first + 1] + 2 <= window
        )
    return most


def learned_by(settings: Settings) -> State | None:
    """Return the state of the newest stored measurements: noisy and public; None where there are none."""
    if not settings.mechanism.kind.has_self_check:
        return None
    folder = settings.measurements_folder / settings.stream.name
    for path in sorted(folder.glob("*-r*/*"), reverse=True) if folder.is_dir() else ():
        with suppress(ParameterError, OSError):
            return Measured.from_bytes(path.read_bytes()).state
    return None


# The loss of a customer over months and years by the configured plan: composed once, kept for statements.

DELTA = Fraction(1, 10**6)
HORIZONS = (30, 365)  # default numbers of days of a customer's whole loss
_made: dict[tuple[object, ...], list[dict[str, Any]]] = {}
"""Documents of this process, by the facts that they are a function of."""


def long_spans_of(settings: Settings, day: date, revision: int) -> tuple[LongSpan, ...]:
    """Return what all readings of one customer in 30 and in 365 days lose by the plan, rounded up."""
    newest_tree = settings.dated_hierarchy.hashes[-1][1]
    plan = (settings.configuration_hash, newest_tree, day.year, revision > 0)
    if plan not in _made:
        _made[plan] = kept(
            settings.long_spans_file,
            plan,
            lambda: [
                LongSpan.rounded(n_days, loss.epsilon, loss.delta, loss.plain, loss.composed).to_json()
                for n_days, loss in plan_horizons(settings, day, revision)
            ],
        )
    return tuple(LongSpan.read(span) for span in _made[plan])


def plan_horizons(settings: Settings, day: date, revision: int = 0) -> tuple[tuple[int, HorizonLoss], ...]:
    """Return the largest loss of 30 and 365 days in a row by the plan, revisions included (Lemma 14)."""
    days = days_from(date(day.year - 1, 1, 1), date(day.year + 1, 12, 31))
    planned = range(1 + settings.budget.revisions) if settings.budget.revisions else (revision,)
    by_revision = zip(*(_plans(settings, days, one) for one in planned), strict=True)
    plans = [[spend for plan in of_day for spend in plan] for of_day in by_revision]
    of_window = sum(
        mechanism_for(settings, day, one).epsilon + settings.reporting_epsilon(one) for one in planned
    )
    window = settings.model.window_length, Fraction(of_window)
    return tuple(zip(HORIZONS, losses_of_days(plans, HORIZONS, DELTA, window=window), strict=True))


def _plans(settings: Settings, days: Sequence[date], revision: int) -> Iterator[Sequence[Spend]]:
    """Each day's plan, or its hours'; a day that is not whole steps is never released, and has none."""
    calendar, known = settings.calendar, {}
    for day in days:
        planned, released = list[Spend](), tuple[date, ...]()
        with suppress(ParameterError):
            calendar.n_steps(day)
            released = calendar.periods_of(day)
        for period in released:
            n_steps = calendar.n_steps(period)
            parts = tuple(feature.parts for feature in settings.features(period))
            alike = (n_steps, parts, settings.tree_of(period))
            if alike not in known:
                known[alike] = mechanism_for(settings, period, revision)
            planned += plan_of(settings, known[alike], period, revision)
        yield planned


# What a day may know of the days around it: spends from the ledger, memory from stored measurements.


@dataclass(frozen=True)
class Memory:
    """What a period goes on from; `closed`: from no private state, which is destroyed (Lemma 18)."""

    state: State | None = None
    folder: Path | None = None
    digest: str | None = None
    closed: bool = False


def recall(settings: Settings, ledger: Ledger, mechanism: Mechanism, day: date, revision: int) -> Memory:
    """The memory for the release of a day; a restatement has no raw state, which serves one draw."""
    if revision and not mechanism.adaptive:
        return Memory()
    stream, first_step = settings.stream.name, settings.calendar.first_step(day)
    spends: tuple[Spend, ...] = ()
    if mechanism.adaptive:
        steps = range(first_step, first_step + settings.calendar.n_steps(day))
        key = Key(stream, day.isoformat(), revision)
        near = partial(ledger.charged_near, key, steps, apart=settings.budget.revisions is not None)
        spends, drawn = near(), near(only_drawn=True)
        # what is not drawn may still be drawn otherwise: it is charged, and nothing counts on it (Lemma 16b)
        spends = tuple(
            replace(one, order=NOT_DRAWN) if isinstance(one, OrderSpend) and one not in drawn else one
            for one in spends
        )
    earlier = ledger.drawn_before(stream, first_step)
    if earlier is None:
        return Memory(mechanism.recall(spends))
    before, hierarchy = period_from(earlier.period), settings.dated_hierarchy
    folder, digest = settings.measurements_of(before, earlier.revision), earlier.measurements_hash
    if not (revision or mechanism.adaptive):
        # what another mechanism may have left is taken all the same, and so destroyed
        return Memory(mechanism.recall(spends), folder, digest)
    # nothing goes on from noise that others know; and what was remembered of other nodes, or in other units,
    # would be read as what it is not, or fail a draw after its first sample
    forgotten = earlier.compromised is not None or earlier.amendment != ledger.guarantee_number(stream)
    is_changed, remembered = bool(hierarchy.changes_between(before, day)), None
    if not forgotten:
        with suppress(LedgerError, ParameterError, OSError):  # gone, or of another format
            state = Measured.from_bytes(read_verified(folder, digest)).state
            if not rests_on_known_noise(settings, ledger, state, earlier.first_step):
                remembered = state
    if remembered is not None and is_changed:  # from the earlier nodes to the present ones
        remembered = mechanism.carried_over(remembered, hierarchy.map_between(before, day), first_step)
    recalled = mechanism.recall(spends, remembered)
    if revision:
        return Memory(recalled)
    closed = forgotten or (is_changed and not mechanism.noise_outlasts_trees)
    return Memory(recalled, folder, digest, closed=closed)


def rests_on_known_noise(settings: Settings, ledger: Ledger, state: State | None, first_step: int) -> bool:
    """Whether a memory of the periods before this step goes back to one whose noise became known since."""
    began = state.get("began") if state else None
    if began is None:
        return False
    first = settings.calendar.first_step(ORIGIN + timedelta(days=began))
    since = ledger.outlines(settings.stream.name, range(first, first_step))
    return any(one.compromised is not None and not one.revision for one in since)


# Public facts of a day, `[[constraints]]`: read, refused where they clash, and kept by its estimate.

LARGEST_TOTALS = 2**24  # bytes
MOST_UNITS = 2**53  # the largest total, in units of the resolution: a larger one would fail after the draw
MOST_NAMED = 12  # facts that one error names


def facts_of(settings: Settings, day: date) -> tuple[Fact, ...]:
    """Return the facts of a day, of nodes that its tree has; ConfigurationError where they clash."""
    tree, found, unit = settings.tree_of(day), list[Fact](), settings.privacy.resolution
    place = {node: number for number, node in enumerate(tree.nodes)}
    for number, one in enumerate(settings.constraints, 1):
        kind: Kind = "at_most" if one.at_most is not None else "most_change"
        most, stated = one.at_most or one.most_change or 0, one.model_dump(mode="json", exclude_defaults=True)
        if most == "up":
            kind, most = "never_falls", 0
        if kind == "at_most" and not isinstance(one.nodes, dict):
            # lowered to whole units, as the lower bound is raised to them
            most = math.floor(most / unit) * unit
        sums = [(float(most), weights) for weights in one.sums_in(tree)]
        if one.totals is not None:
            kind, (stated, totals) = "totals", _totals(settings, number, one.totals, day)
            sums = [(total, {node: 1.0}) for node, total in totals.items() if node in place]
        for limit, weights in sums:
            named = ", ".join(f"{'' if w == 1 else f'{w:g} '}{node!r:.80}" for node, w in weights.items())
            words = f"{CONSTRAINTS} {number}, {kind} {limit:.15g} of {named}"
            at = {place[node]: weight for node, weight in weights.items()}
            found.append(Fact(words, at, kind, limit, stated))
    bound = float(settings.least_units * unit)
    clashing, at_bound = clash(found, tree, settings.calendar.n_steps(day), bound)
    if clashing:
        listed = [f"privacy.lower_bound {bound:g} of each leaf"] if at_bound else []
        listed += [fact.words for fact in clashing]
        more = f"; and {len(listed) - MOST_NAMED} more" if len(listed) > MOST_NAMED else ""
        raise ConfigurationError(
            f"the public facts of {day} clash, for no values keep these together: "
            f"{'; '.join(listed[:MOST_NAMED])}{more}. Correct one of them, or leave one out"
        )
    return tuple(found)


def clashes(settings: Settings, days: Sequence[date]) -> list[str]:
    found = []
    for day in days if settings.constraints else ():
        try:
            facts_of(settings, day)
        except OptStreamError as error:
            found.append(str(error))
    return found


def estimate_of(
    settings: Settings, day: date, mechanism: Mechanism, measured: Measured, later: Sequence[Measured] = ()
) -> Release:
    """Return the estimate of a day that keeps its public facts; a new one where there are later days."""
    release = mechanism.revise(measured, later) if later else mechanism.estimate(measured)
    facts = facts_of(settings, day)
    if not facts:
        return release
    free, unit = release.unbounded, settings.privacy.resolution
    bound, tree = float(settings.least_units * unit), settings.tree_of(day)
    kept = keep(facts, tree, mechanism.program(release), free, release.values, bound, float(unit))
    optimality = release.optimality if kept.values is release.values else None
    return replace(release, values=kept.values, optimality=optimality, kept=kept, before_bound=free)


def _totals(settings: Settings, number: int, path: str, day: date) -> tuple[dict[str, str], dict[str, float]]:
    """Return the hash of a file of totals, and those of a day; no error shows the file's content."""
    named, place = f"{CONSTRAINTS} {number}: totals {path!r:.80}", settings.folder / path
    most = float(MOST_UNITS * settings.privacy.resolution)
    try:
        real, zones = place.resolve(strict=True), private_zones(settings, place)
        if any(real.is_relative_to(zone.resolve()) for zone in zones.values()) or not real.is_file():
            raise ValueError
        with real.open("rb") as file:
            data = file.read(LARGEST_TOTALS)
        data.decode()  # packed data, which polars would unpack to any size, is no text
        kinds = {"node": pl.String, "date": pl.String, "total": pl.Float64}
        table = pl.read_csv(data, schema_overrides=kinds)
        table = table.with_columns(pl.col("date").str.to_date("%Y-%m-%d"))
        nodes = {node for _, tree in settings.dated_hierarchy.periods for node in tree.nodes}
        is_known = table["node"].is_in(nodes) & table["date"].is_not_null() & (table["total"].abs() < most)
        is_whole = len(data) < LARGEST_TOTALS and bool(is_known.fill_null(value=False).all())
        if not is_whole or table["node", "date"].is_duplicated().any():
            raise ValueError
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError, RuntimeError, ValueError):
        raise ConfigurationError(
            f"{named} must be a file in no private folder, of less than {LARGEST_TOTALS // 2**20} MiB, with "
            "columns node, date and total: in each line a node of the hierarchy, a date such as 2016-02-01 "
            f"and a number of less than {most:.3g} in size, each node once a day; correct the file"
        ) from None
    of_day = table.filter(pl.col("date") == day)
    return {"totals_sha256": sha256(data).hexdigest()}, dict(
        zip(of_day["node"], of_day["total"], strict=True)
    )
