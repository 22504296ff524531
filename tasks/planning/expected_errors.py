"""How far published values are expected to be from the truth, beside how large they are; nothing is read."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from optstream.noise import simulated_noise
from tasks.config import Settings
from tasks.planning.preview import Band, Expected
from tasks.release.build_mechanism import Mechanism

AS_GOOD_AS_NOTHING = 0.9
"""Of what publishing 0, or the public scale, everywhere would miss by."""
STILL_PERIODS = 3


def expected_errors(
    settings: Settings, mechanism: Mechanism, bands: Sequence[Band] | None, n_steps: int, first_step: int
) -> tuple[Expected | None, ...]:
    """Return the expected error of each level's nodes, root first.

    What a mechanism's prior expects once it has learned, of counts with what they vary; None without a public
    scale, to which all that it expects is relative. Where the noise of a value is known before the
    draw: that, which leaves out what interpolation gets wrong. Else the mean of a few periods with simulated
    noise over series that stand still, which no mechanism finds harder than real ones. Costs no privacy:
    nothing is read.
    """
    figures = mechanism.expected_by_level()
    if figures is not None:
        return tuple(Expected(*row) if np.isfinite(row).all() else None for row in figures.tolist())
    if bands is not None:
        return tuple(Expected(band.typical, None) for band in bands)
    still = np.full((len(mechanism.tree.leaves), n_steps), float(sum(settings.privacy.bounds)) / 2)
    squares = squared_errors(mechanism, [still] * STILL_PERIODS, first_step)
    return tuple(Expected(float(np.sqrt(square)), None) for square in squares)


def squared_errors(
    mechanism: Mechanism, periods: Sequence[NDArray[np.float64]], first_step: int
) -> NDArray[np.float64]:
    """Return each level's mean squared error over made-up periods that follow each other, (n_levels,), in the
    squared unit of the readings, root first.

    With simulated noise, the same for every mechanism. Costs no privacy: periods, (n_leaves, n_steps) each,
    hold no reading. Raises ParameterError where the mechanism is not for such periods.
    """
    tree, state, noise, at = mechanism.tree, None, simulated_noise(0), first_step
    squares = np.zeros(len(tree.nodes))
    for values in periods:
        release = mechanism.release(values, noise=noise, first_step=at, state=state)
        squares += ((release.values - tree.add_up(values)) ** 2).mean(axis=1) / len(periods)
        state, at = release.state, at + values.shape[1]
    return np.array([squares[level.start : level.stop].mean() for level in tree.levels])


def warnings_of(
    settings: Settings, mechanism: Mechanism, expected: Sequence[Expected | None]
) -> tuple[str, ...]:
    """Return what an operator should know before anything is spent: levels that are as good as nothing, and
    a lower bound that nobody wrote where readings may lie below it.
    """
    tree, (low, high) = mechanism.tree, settings.privacy.bounds
    with_leaves = {int(tree.depths[leaf]) for leaf in tree.leaf_indices}
    found = []
    left_out = "lower_bound" not in settings.privacy.model_fields_set
    if low < 0 and left_out and not settings.privacy.counts:  # no count is less than 0
        least = "the least sum of a leaf" if settings.metered else f'"{low}"'
        found.append(
            f"privacy.lower_bound is left out, so nothing below 0 is published, and readings may be {low}: "
            f'write {least} to keep what is negative, or "0" where that is meant'
        )
    for level, one in enumerate(expected):
        if one is None:
            continue
        called = tree.level_name(level)
        if one.unmeasured is not None and one.error >= AS_GOOD_AS_NOTHING * one.unmeasured:
            found.append(
                f"{called}: error {one.error:.3g} at a typical {one.size:.3g}: as good as nothing; "
                "give it a larger share of epsilon, a larger epsilon, or leave it out of what is used"
            )
        # where rows are customers', bounds say nothing of a leaf
        elif level in with_leaves and not settings.metered and one.error > high - low:
            found.append(
                f"{called}: error {one.error:.3g}, and a reading lies between {float(low):g} and "
                f"{float(high):g} anyway: as good as nothing; publish fewer leaves or take a larger epsilon"
            )
    return tuple(found)
