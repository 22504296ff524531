"""Prior medians learned from a series that was public all along, for a stream that has learned nothing."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from optstream.errors import ParameterError
from optstream.estimation.gaussian_process.history import BlockHistory
from optstream.estimation.gaussian_process.hyperparameters import learn
from optstream.estimation.gaussian_process.prior import COMPONENTS, Component, TemporalPrior, constant
from optstream.estimation.gaussian_process.training_data import seen_series
from optstream.measurement.drifting_blocks import drifting_blocks
from optstream.stream import Measured
from optstream.stream.public_days import PublicDays

Medians = Mapping[str, Sequence[float]]

STRETCH_DAYS, MOST_STRETCHES = 28, 13
"""What is learned at a time, and how often: a year's worth, spread over what is given."""
BLOCKS_A_DAY = 8
LEAST_MEDIAN, LARGEST_MEDIAN = 1e-9, 1e6
"""What a median may be: a strength relative to a series' size, or a length in days. Beyond it floating point
overflows, and a search for blocks or shares has no end."""
LEAST_SIZE, LARGEST_SIZE = 1e-100, 1e100
"""Of a series, in its own unit: beyond them squares overflow, and nothing would be learned in silence."""
ROUNDING = 1e-3
"""Relative to the mean size: the noise that public values are taken to have, for the numerics."""


def learn_from_public(public: Measured, days: PublicDays) -> tuple[Component, ...]:
    """Return the components with the medians that a public proxy shows.

    public: every step of some series (`Measured.from_public`: whoever made it vouches for it), of at least
    `STRETCH_DAYS` days. Each stretch of days is learned by itself, as a stream learns from its own blocks but
    without noise; a parameter's median is that over stretches, so that no single month decides. Costs no
    privacy. Raises ParameterError for too short a series, values that are not finite, or a series of zeros.
    """
    n_days = round(public.n_steps / days.steps_per_day)  # one of them may be short: clocks change
    if n_days < STRETCH_DAYS:
        raise ParameterError(f"a public proxy must have at least {STRETCH_DAYS} days; this has {n_days}")
    sizes = np.abs(public.points).mean(axis=1)
    if not (np.isfinite(sizes) & (sizes > 0)).all():
        raise ParameterError("a public proxy must have finite values only, and no series of zeros")
    if sizes.min() < LEAST_SIZE or sizes.max() > LARGEST_SIZE:
        raise ParameterError(
            f"a public proxy's series must be of sizes in [{LEAST_SIZE:g}, {LARGEST_SIZE:g}]; choose another "
            "unit"
        )
    n_stretches = min(MOST_STRETCHES, n_days // STRETCH_DAYS)
    starts = np.linspace(0, n_days - STRETCH_DAYS, n_stretches).astype(int) * days.steps_per_day
    learned = [_learned(_stretch(public, int(start), days), days).logs for start in starts]
    values = np.clip(np.exp(np.median(learned, axis=0)), LEAST_MEDIAN, LARGEST_MEDIAN)
    medians = np.split(values, np.cumsum([one.n_parameters for one in COMPONENTS]))
    found = zip(COMPONENTS, medians, strict=False)
    return tuple(_with(one, list(own)) if _is_shown(one) else one for one, own in found)


def _stretch(public: Measured, start: int, days: PublicDays) -> BlockHistory:
    """Return single steps at drifting times over `STRETCH_DAYS`, with next to no noise."""
    slots, first = days.steps_per_day, public.first_step + start
    rule = drifting_blocks(slots, min(BLOCKS_A_DAY, slots), 1, slots)
    n_steps = min(STRETCH_DAYS * slots, public.n_steps - start)
    steps = np.array([part.start for part in rule.parts(first, n_steps)], dtype=np.int64)
    values = public.points[:, start + steps]
    noise = np.full(steps.size, ROUNDING * float(np.abs(values).mean()))
    return BlockHistory(first + steps, np.ones_like(steps), noise, values)


def _learned(history: BlockHistory, days: PublicDays) -> TemporalPrior:
    return learn(TemporalPrior.broad(days.steps_per_day), seen_series(history, days, None)[0])


def medians_of(components: Sequence[Component]) -> dict[str, list[float]]:
    """Return for each component that a proxy shows: shared, own and lengths, to four digits; for
    `with_medians`.
    """
    return {
        one.name: [float(f"{value:.4g}") for value in (one.shared, one.own, *one.lengths)]
        for one in components
        if _is_shown(one)
    }


def with_medians(medians: Medians) -> tuple[Component, ...]:
    """Return `COMPONENTS`, those that a proxy shows with these medians.

    Raises ParameterError unless each of them has all of its own, in [`LEAST_MEDIAN`, `LARGEST_MEDIAN`], and
    no other is named.
    """
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
    """Return whether a proxy shows the parameter. Sizes are relative to the stream's own public scale, and
    ordinary days tell nothing of events.
    """
    return component.kernel is not constant and component.gate != "event"


def _with(component: Component, medians: Sequence[float]) -> Component:
    shared, own, *lengths = (float(value) for value in medians)
    return replace(component, shared=shared, own=own, lengths=tuple(lengths))
