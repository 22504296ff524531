"""From the configuration to the mechanism of a day."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields
from datetime import date, timedelta
from pathlib import Path
from typing import Any

from optstream.errors import LedgerError, ParameterError
from optstream.ledger import Key, Ledger, ReleaseRecord
from optstream.measurement import EquallySpaced, L1Sampling
from optstream.mechanisms import Hierarchical, OptStream, on_tree
from optstream.privacy import Spend
from optstream.stream import Measured, State, period_from
from optstream.stream.calendar import ORIGIN
from optstream.stream.changes import TreeMap
from optstream.stream.covariate import Covariate
from optstream.stream.public_days import PublicDays
from tasks.config import Settings
from tasks.trusted.files import read_verified

Mechanism = OptStream | Hierarchical


def mechanism_for(
    settings: Settings, day: date, revision: int = 0, covariates: Sequence[Covariate] = ()
) -> Mechanism:
    """The mechanism that the configuration names, on its tree. Raises ParameterError or BudgetError."""
    model, kind, tree = settings.model_of(revision), settings.mechanism.kind, settings.tree_of(day)
    bound = float(settings.least_units * settings.privacy.resolution)
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
        "declared_leaves": lambda: settings.stream.leaves_per_period,
        "period_lengths": lambda: lengths,
        "covariates": lambda: tuple(covariates),
        "sampling": lambda: _sampling(settings),
        "features": lambda: settings.features(day),
        "days": lambda: PublicDays.from_calendar(settings.calendar, settings.mechanism.holidays_around(day)),
    }
    own = settings.mechanism.parameters
    asked = {field.name for field in fields(kind)} - own.keys() - settings.mechanism.fixed.keys()
    given = {name: offer() for name, offer in offered.items() if name in asked}
    pattern = kind(model, **given, **own)
    built: Mechanism = on_tree(pattern, tree, settings.level_shares, bound)
    return built


def _sampling(settings: Settings) -> EquallySpaced | L1Sampling:
    given = settings.sampling
    assert given is not None  # the settings refuse a mechanism that samples without
    if given.threshold is None:
        return EquallySpaced(given.n_samples)
    return L1Sampling(given.n_samples, given.threshold)


# What a day may know of the days around it: spends from the ledger, memory from stored measurements.


@dataclass(frozen=True)
class Memory:
    """What a period goes on from; `closed`: nothing goes on from private state, which is destroyed (Lemma
    18).
    """

    state: State | None = None
    folder: Path | None = None
    digest: str | None = None
    closed: bool = False


def recall(settings: Settings, ledger: Ledger, mechanism: Mechanism, day: date, revision: int) -> Memory:
    """The memory for the release of a day; a restatement has no raw state, which serves one draw."""
    first_step = settings.calendar.first_step(day)
    earlier = ledger.drawn_before(settings.stream.name, first_step)
    if revision and not mechanism.reads_spends:
        return Memory()
    spends: tuple[Spend, ...] = ()
    if mechanism.reads_spends:
        steps = range(first_step, first_step + settings.calendar.n_steps(day))
        spends = ledger.charged_near(Key(settings.stream.name, day.isoformat(), revision), steps)
    if earlier is None:
        return Memory(mechanism.recall(spends))
    folder = settings.measurements_of(period_from(earlier.period), earlier.revision)
    if not (revision or mechanism.adaptive):
        # what another mechanism may have left is taken all the same, and so destroyed
        return Memory(mechanism.recall(spends), folder, earlier.measurements_hash)
    # nothing goes on from noise that others know; and what was remembered of other nodes, or in other units,
    # would be read as what it is not, or fail a draw after its first sample
    known = earlier.compromised is not None
    forgotten = known or earlier.amendment != ledger.guarantee_number(settings.stream.name)
    between = _between(settings, earlier, day)
    before = None if forgotten else _remembered(settings, ledger, folder, earlier)
    if before is not None and between is not None:  # from the nodes of then to those of now
        before = mechanism.carried_over(before, between, first_step)
    state = mechanism.recall(spends, before)
    if revision:
        return Memory(state)
    return Memory(state, folder, earlier.measurements_hash, closed=forgotten or between is not None)


def _between(settings: Settings, earlier: ReleaseRecord, day: date) -> TreeMap | None:
    """What became of the nodes since the period before; None where the hierarchy did not change."""
    hierarchy, before = settings.dated_hierarchy, period_from(earlier.period)
    return hierarchy.map_between(before, day) if hierarchy.changes_between(before, day) else None


def rests_on_known_noise(settings: Settings, ledger: Ledger, state: State | None, first_step: int) -> bool:
    """Whether a memory of the periods before this step goes back to one whose noise became known since."""
    began = state.get("began") if state else None
    if began is None:
        return False
    first = settings.calendar.first_step(ORIGIN + timedelta(days=began))
    since = ledger.outlines(settings.stream.name, range(first, first_step))
    return any(one.compromised is not None and not one.revision for one in since)


def _remembered(settings: Settings, ledger: Ledger, folder: Path, earlier: ReleaseRecord) -> State | None:
    """What a period left in public; None if it is gone, of another format, or rests on known noise."""
    with suppress(LedgerError, ParameterError, OSError):
        state = Measured.from_bytes(read_verified(folder, earlier.measurements_hash)).state
        known = rests_on_known_noise(settings, ledger, state, earlier.first_step)
        return None if known else state
    return None
