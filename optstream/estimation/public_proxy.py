"""Prior medians learned from a series that was public all along, for a stream that has learned nothing."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from optstream.errors import ParameterError
from optstream.estimation.block_history import BlockHistory
from optstream.estimation.history_fit import seen_series
from optstream.estimation.learning import learn
from optstream.estimation.temporal_prior import COMPONENTS, Component, TemporalPrior, constant
from optstream.measurement.drifting_blocks import DriftingBlocks, drift_for
from optstream.stream import Measured
from optstream.stream.public_days import PublicDays

Floats = NDArray[np.float64]
Medians = Mapping[str, Sequence[float]]

STRETCH_DAYS, MOST_STRETCHES = 28, 13
"""What is learned at a time, and how often: a year's worth, spread over what is given."""
BLOCKS_A_DAY = 8
ROUNDING = 1e-3
"""Relative to a series' mean size: how finely public values are taken."""


def learn_from_public(values: Floats, first_step: int, days: PublicDays) -> tuple[Component, ...]:
    """Return the components with the medians that a public proxy shows.

    values: (n_series, n_steps), of at least `STRETCH_DAYS` days; whoever calls this vouches that nothing in
    them is private. first_step: running step of the first. Each stretch of days is learned by itself, as a
    stream learns from its own blocks but without noise; a parameter's median is that over stretches, so that
    no single month decides. Costs no privacy. Raises ParameterError for too short a series or values that
    are not finite, or none above 0.
    """
    slots = days.steps_per_day
    n_days = values.shape[1] // slots
    if n_days < STRETCH_DAYS:
        raise ParameterError(f"a public proxy must have at least {STRETCH_DAYS} days; this has {n_days}")
    if not np.isfinite(values).all() or not (np.abs(values).mean(axis=1) > 0).all():
        raise ParameterError("a public proxy must have finite values only, and no series of zeros")
    n_stretches = min(MOST_STRETCHES, n_days // STRETCH_DAYS)
    starts = np.linspace(0, n_days - STRETCH_DAYS, n_stretches).astype(int) * slots
    learned = [_learned(values, int(start), first_step, days).logs for start in starts]
    medians = np.split(
        np.exp(np.median(learned, axis=0)), np.cumsum([one.n_parameters for one in COMPONENTS])
    )
    found = zip(COMPONENTS, medians, strict=False)
    return tuple(_with(one, list(own)) if _is_shown(one) else one for one, own in found)


def _learned(values: Floats, start: int, first_step: int, days: PublicDays) -> TemporalPrior:
    slots = days.steps_per_day
    n_blocks = min(BLOCKS_A_DAY, slots)
    parts = DriftingBlocks(slots, n_blocks, 1, drift_for(slots, slots)).parts(
        first_step + start, STRETCH_DAYS * slots
    )
    steps = np.array([part.start for part in parts])
    units = ROUNDING * float(np.abs(values).mean())
    seen = np.rint(values[:, start + steps] / units).astype(np.int64)
    public = Measured.from_public(values[:, :1], [seen], [1.0, 1.0])
    blocks = {"blocks": [[part.start, part.stop] for part in parts]}
    history = BlockHistory.of(replace(public, first_step=first_step + start, choices=blocks))
    return learn(TemporalPrior.broad(slots), seen_series(history, days, None)[0])


def medians_of(components: Sequence[Component]) -> dict[str, list[float]]:
    """For each component that a proxy shows: shared, own and lengths, to four digits; for `with_medians`."""
    return {
        one.name: [float(f"{value:.4g}") for value in (one.shared, one.own, *one.lengths)]
        for one in components
        if _is_shown(one)
    }


def with_medians(medians: Medians) -> tuple[Component, ...]:
    """Return `COMPONENTS`, those that a proxy shows with these medians.

    Raises ParameterError unless each of them has all of its own, finite and above 0, and no other is named.
    """
    shown = {one.name: one for one in COMPONENTS if _is_shown(one)}
    for name in [*medians, *shown]:
        if name not in shown:
            raise ParameterError(f"a proxy shows the components {', '.join(shown)}; got {name!r}")
        given, count = list(medians.get(name, ())), shown[name].n_parameters
        if len(given) != count or not all(0.0 < value < float("inf") for value in given):
            raise ParameterError(
                f"component {name!r} of a prior must have {count} finite numbers above 0: shared and own "
                f"strength, then lengths in days; got {given!r}"
            )
    return tuple(_with(one, medians[one.name]) if _is_shown(one) else one for one in COMPONENTS)


def _is_shown(component: Component) -> bool:
    """Sizes are relative to the stream's own public scale, and ordinary days tell nothing of events."""
    return component.kernel is not constant and component.gate != "event"


def _with(component: Component, medians: Sequence[float]) -> Component:
    shared, own, *lengths = (float(value) for value in medians)
    return replace(component, shared=shared, own=own, lengths=tuple(lengths))
