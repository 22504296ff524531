"""A cell's mechanism run over days, one after the other, states passed on."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from optstream.mechanisms.base import Mechanism
from optstream.mechanisms.series import SeriesMechanism
from optstream.noise import NoiseSource
from optstream.privacy import Spend, worst_window
from optstream.stream import Measured, State
from studies.evaluation.data import STEPS_PER_DAY, Values


@dataclass(frozen=True, eq=False)
class Released:
    """What was released of some days.

    Attributes:
        values: (n_days, n_nodes, 48), in MW.
        drawn: The worst window of this history; None for what has no guarantee.
        drawn_aligned: The worst of those inside one day; None likewise.
        errors: Standard errors of the values, their shape, where the mechanism says how far it may be from
            the truth.
        state: What the last day left.
    """

    values: Values
    drawn: Fraction | None
    drawn_aligned: Fraction | None
    errors: Values | None = None
    state: State | None = None


def release_days(
    mechanism: Mechanism,
    values: Values,
    first_day: int,
    noise: NoiseSource,
    *,
    accounted: bool = True,
    only_measured: int = 0,
    state: State | None = None,
    told: Callable[[Measured], None] | None = None,
) -> Released:
    """Release days (n_days, n_series, 48) in a row. first_day: how many days the stream is old.

    accounted: whether the accountant looks at what was drawn; what does not depend on draws need not be
    looked at in every trial. only_measured: so many days are measured and nothing is computed from them
    before later days ask; `values` begins after them. state: what the day before left. told: each day's
    measurements, in order; they hold a past each and are not kept.
    """
    spends, found, errors = list[Spend](), list[Values](), list[Values]()
    for number, day in enumerate(values):
        first_step = (first_day + number) * STEPS_PER_DAY
        measured = mechanism.measure(day, noise=noise, first_step=first_step, state=state)
        state = measured.state
        spends += measured.spends
        if told:
            told(measured)
        if number >= only_measured:
            release = mechanism.estimate(measured)
            found.append(release.values)
            own = release.standard_errors  # of the series, without a root that is derived from them
            errors += [] if own is None else [own[-values.shape[1] :]]
    return Released(
        np.array(found),
        worst_window(spends, STEPS_PER_DAY).epsilon if accounted else None,
        _worst_of_a_day(spends) if accounted else None,
        np.array(errors) if errors else None,
        state,
    )


def release_counts(
    mechanism: SeriesMechanism, values: Values, steps: int | None, noise: NoiseSource
) -> Released:
    """Release one finite series (n_steps,), so many steps at a time where the mechanism learns from its past,
    or all at once. The window is the whole series.
    """
    at_once = steps if steps and mechanism.revises else values.size
    state, parts, spends = None, list[Values](), list[Spend]()
    for first in range(0, values.size, at_once):
        part = values[None, first : first + at_once]
        release = mechanism.release(part, noise=noise, first_step=first, state=state)
        state = release.state
        spends += release.spends
        parts.append(release.values[0])
    drawn = worst_window(spends, values.size).epsilon
    return Released(np.concatenate(parts), drawn, drawn)


def side_by_side(parts: Sequence[Released]) -> Released:
    """Return series that were released apart, as one release; the worst of what each costs its own
    customers.
    """
    if len(parts) == 1:
        return parts[0]
    drawn = [part.drawn for part in parts if part.drawn is not None]
    aligned = [part.drawn_aligned for part in parts if part.drawn_aligned is not None]
    values = np.concatenate([part.values for part in parts], axis=1)
    return Released(values, max(drawn, default=None), max(aligned, default=None))


def _worst_of_a_day(spends: Iterable[Spend]) -> Fraction:
    """Return the worst window of those inside one day, which are the days."""
    by_day: dict[int, list[Spend]] = {}
    for spend in spends:
        by_day.setdefault(spend.first_step, []).append(spend)
    return max((worst_window(own, STEPS_PER_DAY).epsilon for own in by_day.values()), default=Fraction(0))
