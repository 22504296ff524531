"""Blocks measured at drifting times, and all other steps estimated from earlier measurements."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, ClassVar

import numpy as np

from optstream.errors import ParameterError
from optstream.estimation import Estimate
from optstream.history.blocks import BlockHistory, n_series_of
from optstream.history.filter import NEAR_DAYS, FilterState
from optstream.history.prior import COMPONENTS, Component, constant
from optstream.measurement.blocks import measure_blocks
from optstream.mechanisms.blocks import NAME, BlockPlan
from optstream.mechanisms.period_release import Release
from optstream.mechanisms.state import memory_of, own_state
from optstream.noise import NoiseSource
from optstream.privacy import Spend
from optstream.privacy.spends import spend_from_document, spend_to_document
from optstream.stream import Measured, PrivatePeriod, State
from optstream.stream.covariate import Covariate
from optstream.stream.state import public_part

# Public covariates in a period's state: the values that a night knew, never later ones.

MOST_LATE = 3
"""Periods, the last ones, from which a new estimate takes a covariate's values."""
COVARIATES, LATE = "covariates", "late covariates"
"""In a state on its way to a draw, and in `Measured.before`: values that tell the period's own day; those of
others, for new estimates of the days before.
"""


def covariates_of(covariates: Sequence[Covariate], day: int, history_days: int) -> dict[str, Any]:
    """Return the covariates known in the night that releases a day, as a part of its state.

    Those with a value for the day itself are apart from others.
    """
    known = [found for one in covariates if (found := one.public(day, history_days)) is not None]
    parts = {
        COVARIATES: [one.to_document() for one in known if one.tells(day)],
        LATE: [one.to_document() for one in known if not one.tells(day)],
    }
    return {key: documents for key, documents in parts.items() if documents}


def used_covariates(*measured: Measured, day: int | None = None) -> dict[str, Any]:
    """Return the newest values of each covariate in the states of these periods, as a part of a state.

    If `day` is given, values for it that were public too late for the periods' own estimates are included.
    """
    newest: dict[str, Any] = {}
    for period in measured[-MOST_LATE:]:
        before = period.before or {}
        late = before.get(LATE, ())
        tells_day = [one for one in late if day is not None and Covariate.from_document(one).tells(day)]
        newest |= {one["name"]: one for one in (*tells_day, *before.get(COVARIATES, ()))}
    return {COVARIATES: list(newest.values())} if newest else {}


def late_part(state: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the part of a state for new estimates of the days before."""
    return {LATE: state[LATE]} if state and LATE in state else {}


READY = "ready"
"""What a state holds on its way to a draw alone: the first step that it was prepared for. Covariates
(`covariate_memory`) are kept in `before`.
"""


@dataclass(frozen=True)
class HistoryInformed(BlockPlan):
    """Sums of short blocks with Laplace or joint noise; every step estimated from those of the last weeks.

    Measured are `n_blocks` blocks of `block_length` steps in any window, each with all that it may lose, at
    times that drift through the day (`DriftingBlocks`, Lemma 13). With joint noise the blocks of a period
    share it in groups (Lemma 16): those that lie in the period whole, for a piece would cost a group as much.
    Published is the mean of a Gaussian process over all series together, given all blocks of the last
    `history_days`, with its variance. Between the blocks it interpolates by what it learned of the day's
    shape, the week, and the other series. Learning, estimates and later revisions read noisy sums and public
    facts alone.

    Period by period it smooths: a block at the end of a day informs its beginning. Step by step it filters,
    and a block of several steps is cut into as many queries: choose `block_length=1` there.

    Source: none; it is our own. The OptStream paper names learned temporal patterns as future work.

    Args:
        model: The privacy guarantee.
        n_blocks: m, in [1, w]; None for m with the least error that the prior expects, from epsilon, alpha
            and `scale` alone.
        block_length: L, in [1, w / m]; None as for `n_blocks`.
        scale: The public size of a typical series, > 0, in the unit of the readings; None if nothing is
            known: then m is a sixth of a window.
        days: The clock, the week, public holidays (`optstream.PublicDays`); None for days of w steps without
            a week.
        history_days: Days of blocks that an estimate reads, at least 1.
        relearn_days: After how many days the parameters are learned again from the noisy blocks; 0 for never.
        components: Of the prior, with the medians that it starts from, such as those of a public proxy
            (`mechanisms.history_informed.public_prior`); general ones of loads or of counts by default.
        counts: Whether readings are counts, of resolution 1: whole numbers that vary around their expectation
            by as much as that is. Used by `HistoryInformedTree`, not by plain series.
        covariates: Public series that explain part of the readings, such as temperature. A period stores
            the values that it used (`Measured.before`) for its estimates.
        noise: As in `Laplace`.
        group_size: Blocks to a group of joint noise, at least, on a period's average, exact and above 1; None
            for the one with the least noise.
        period_lengths: As in `Laplace`.
        n_nodes: As in `Laplace`.
        declared_leaves: As in `Laplace`.
        horizon: As in `Laplace`.

    Raises:
        ParameterError: For a parameter outside its range; for counts of another resolution; for joint noise
            that was required and cannot be had; and where the noise would outgrow the integers.
    """

    adaptive: ClassVar[bool] = True
    noise_is_known: ClassVar[bool] = False
    revises: ClassVar[bool] = True
    has_self_check: ClassVar[bool] = True
    days_independent: ClassVar[bool] = False
    takes_covariates: ClassVar[bool] = True
    chooses_shares: ClassVar[bool] = True
    compares_noise: ClassVar[bool] = True
    tree_class: ClassVar[str | None] = "HistoryInformedTree"

    def recall(self, spends: Iterable[Spend], before: State | None = None) -> State:
        """Return all that other periods spent, by whatever mechanism, and the memory of the period before."""
        near = [spend_to_document(spend) for spend in spends]
        return {**memory_of(before, NAME), "mechanism": NAME, "spends": near}

    def fitted(self, measured: Measured) -> Estimate:
        """Return the posterior mean of every step and its variance."""
        belief = self._belief(measured.before, len(measured.points))
        return self._estimate(measured, belief, BlockHistory.of(measured))

    def estimate(self, measured: Measured) -> Release:
        """Compute the release from its measurements, standard errors included; repeatable."""
        belief = self._belief(measured.before, len(measured.points))
        return self._with_errors(measured, self.fitted(measured), belief)

    def events(self, measured: Measured) -> tuple[int, ...]:
        """Return the days that were found unlike all others, this period's included.

        The self-check: the blocks of such a day miss their predictions by more than known noise can. It is
        estimated with wider priors.
        """
        belief = self._belief(measured.before, len(measured.points))
        steps = range(measured.first_step, measured.first_step + measured.n_steps)
        return belief.events_with(BlockHistory.of(measured), steps, self.history_days, self.scale_units)

    def revise(self, measured: Measured, later: Sequence[Measured]) -> Release:
        """Return the same period estimated again, with later measurements; without them, from its state.

        The last period's state reaches `NEAR_DAYS` back; after more, this period's state is read too.
        """
        last = later[-1] if later else measured
        used = used_covariates(measured, *later, day=self.public_days.day_of(measured.first_step))
        belief = self._belief({**(last.state or {}), **used}, len(measured.points))
        history = belief.history.completed([measured, *later])
        if self.is_far(measured, last):
            history = history.with_those(self._belief(measured.state, len(measured.points)).history)
        belief = replace(belief, history=history)
        nothing = BlockHistory.empty(len(measured.points))
        return self._with_errors(measured, self._estimate(measured, belief, nothing), belief)

    def is_far(self, measured: Measured, last: Measured) -> bool:
        """Return whether more than `NEAR_DAYS` lie between a period and the last one of its new estimate.

        Then the state of the later one does not reach back, and the period's own is read.

        Args:
            measured: Of the period that is estimated again.
            last: Of the last period that the new estimate reads.
        """
        day_of = self.public_days.day_of
        return day_of(last.first_step) - day_of(measured.first_step) > NEAR_DAYS

    def prepared(self, state: State | None, first_step: int) -> State | None:
        """Judge the last day, with the covariates of its own estimate, and learn again when due."""
        memory, known = own_state(state, NAME), self.known_covariates(first_step)
        if memory.get(READY) == first_step or not (memory.get("history") or known):
            return state
        memory = {"mechanism": NAME, **memory}
        if memory.get("history"):
            belief = self._belief(memory, n_series_of(memory["history"]))
            known_then = self._belief(self.known_with([belief.history]), 0).covariates
            belief = replace(belief, covariates=known_then)
            belief = belief.refreshed(first_step, self.relearn_days, self.scale_units)
            memory |= replace(belief, covariates=()).to_document()
        return {**memory, **known, READY: first_step}

    def known_covariates(self, first_step: int) -> dict[str, Any]:
        """Return the covariates known in the night that releases a period, as a part of its state.

        Args:
            first_step: Of the period.
        """
        return covariates_of(self.covariates, self.public_days.day_of(first_step), self.history_days)

    def known_with(self, histories: Iterable[BlockHistory]) -> dict[str, Any]:
        """Return `known_covariates` of the day of the newest of these blocks; nothing without blocks.

        Args:
            histories: Of one stream.
        """
        newest = max((int(one.starts[-1]) for one in histories if one.n_blocks), default=None)
        return {} if newest is None else self.known_covariates(newest)

    def _still_seen(self, spends: Iterable[Spend], end: int) -> list[dict[str, Any]]:
        """Return those that share a window with a step at or after `end`, JSON-ready."""
        first = end - self.model.window_length
        return [spend_to_document(one) for one in spends if one.first_step + one.n_steps > first]

    def _with_errors(self, measured: Measured, found: Estimate, belief: FilterState) -> Release:
        release = self._release(measured, found.values, np.sqrt(found.variances))
        return replace(release, covariates=belief.covariates)

    def _belief(self, document: Mapping[str, Any] | None, n_series: int) -> FilterState:
        return FilterState.from_document(document, n_series, self.public_days, self.prior_components)

    def _estimate(self, measured: Measured, belief: FilterState, own: BlockHistory) -> Estimate:
        steps = range(measured.first_step, measured.first_step + measured.n_steps)
        values, variances = belief.fitted(own, steps, self.history_days, self.scale_units)
        unit = float(measured.resolution)
        return Estimate(values * unit, variances * unit**2)

    def _draw(self, period: PrivatePeriod, noise: NoiseSource, state: State | None) -> Measured:
        # learned before the first sample: what fails here has drawn nothing
        for one in self.covariates:
            if len(one.values) not in (1, period.n_leaves):
                raise ParameterError(
                    f"covariate {one.name!r} must have one row of values, or one for each of "
                    f"{period.n_leaves} series; got {len(one.values)}"
                )
        memory = own_state(self.prepared(state, period.first_step), NAME)
        groups = self._groups(period.n_steps, period.first_step, memory)
        spend = self._spend(groups, period.n_steps, period.first_step)
        belief = self._belief(memory, period.n_leaves)
        measured = measure_blocks(period, tuple(chain.from_iterable(groups)), spend, noise)
        after = replace(belief, covariates=()).after(BlockHistory.of(measured), self.history_days)
        end = period.first_step + period.n_steps
        near = [*(spend_from_document(one) for one in memory.get("spends", ())), spend]
        return replace(
            measured,
            before=public_part({"mechanism": NAME, **belief.to_document(), **late_part(memory)}),
            state={
                "mechanism": NAME,
                **after.to_document(),
                "spends": self._still_seen(near, end),
            },
        )


# Prior medians of a series that was public all along, for a stream that has learned nothing.

Medians = Mapping[str, Sequence[float]]

LEAST_MEDIAN, LARGEST_MEDIAN = 1e-9, 1e6
"""What a median may be: a strength relative to a series' size, or a length in days. Beyond it floating point
overflows, and a search for blocks or shares has no end."""


def with_medians(medians: Medians) -> tuple[Component, ...]:
    """Return `COMPONENTS`, those that a proxy shows with all of these medians."""
    shown = {one.name: one for one in COMPONENTS if _is_shown(one)}
    for name in [*medians, *shown]:
        if name not in shown:
            raise ParameterError(f"a proxy shows the components {', '.join(shown)}; got {name!r}")
        given, count = list(medians.get(name, ())), shown[name].n_parameters
        if len(given) != count or not all(LEAST_MEDIAN <= value <= LARGEST_MEDIAN for value in given):
            raise ParameterError(
                f"component {name!r} of a prior must have {count} numbers in [{LEAST_MEDIAN:g}, "
                f"{LARGEST_MEDIAN:g}]: shared and own strength, then lengths in days; got {given!r}"
            )
    return tuple(_with(one, medians[one.name]) if _is_shown(one) else one for one in COMPONENTS)


def _is_shown(component: Component) -> bool:
    """Return whether a proxy shows the component: neither the public scale's size nor events."""
    return component.kernel is not constant and component.gate != "event"


def _with(component: Component, medians: Sequence[float]) -> Component:
    shared, own, *lengths = (float(value) for value in medians)
    return replace(component, shared=shared, own=own, lengths=tuple(lengths))
