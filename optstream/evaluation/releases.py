"""A cell's mechanism run over days, one after the other, states passed on."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from optstream.evaluation.data import STEPS_PER_DAY, Values
from optstream.mechanisms.mechanism import Mechanism
from optstream.noise import NoiseSource
from optstream.privacy import Spend, worst_window


@dataclass(frozen=True, eq=False)
class Released:
    """values: (n_days, n_nodes, 48), MW. drawn, drawn_aligned: the worst window of this history, any and
    those inside one day; None for what has no promise.
    """

    values: Values
    drawn: Fraction | None
    drawn_aligned: Fraction | None


def release_days(
    mechanism: Mechanism, values: Values, first_row: int, noise: NoiseSource, *, accounted: bool = True
) -> Released:
    """Release days (n_days, n_series, 48) in a row. first_row: how many days the stream is old.

    accounted: whether the accountant looks at what was drawn; what does not depend on draws need not be
    looked at in every trial.
    """
    state, spends, released = None, list[Spend](), []
    for number, day in enumerate(values, start=first_row):
        release = mechanism.release(day, noise=noise, first_step=number * STEPS_PER_DAY, state=state)
        state = release.state
        spends += release.spends
        released.append(release.values)
    drawn = worst_window(spends, STEPS_PER_DAY).epsilon if accounted else None
    aligned = worst_window(spends, STEPS_PER_DAY, "aligned").epsilon if accounted else None
    return Released(np.array(released), drawn, aligned)


def side_by_side(parts: Sequence[Released]) -> Released:
    """Series that were released apart, as one release; the worst of what each costs its own customers."""
    drawn = [part.drawn for part in parts if part.drawn is not None]
    aligned = [part.drawn_aligned for part in parts if part.drawn_aligned is not None]
    values = np.concatenate([part.values for part in parts], axis=1)
    return Released(values, max(drawn, default=None), max(aligned, default=None))
