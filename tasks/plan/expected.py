"""What a dry run found, as frozen values and as one document for machines. Public facts only."""

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from datetime import date
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from optstream.noise import joint_variance, simulated_noise
from optstream.privacy import PrivacyModel
from optstream.privacy.horizon import HorizonLoss
from tasks.config import Settings
from tasks.release.mechanism import Mechanism


@dataclass(frozen=True)
class Noise:
    """One kind of noise. of: what it is added to. scale, deviation: in the unit of the readings. joint_over:
    the most answers that share joint noise; 1 for Laplace noise. is_gaussian: its scale is its deviation.
    """

    of: str
    scale: float
    joint_over: int = 1
    is_gaussian: bool = False

    @property
    def deviation(self) -> float:
        if self.is_gaussian:
            return self.scale
        return math.sqrt(joint_variance(self.scale, self.joint_over))


@dataclass(frozen=True)
class Stage:
    """What measuring one stage of a level costs the worst window, this period alone, and its noise."""

    name: str
    epsilon: Fraction
    noise: tuple[Noise, ...]


@dataclass(frozen=True)
class Band:
    """Standard deviation of a published value, from noise alone, over a level's nodes and steps, in the unit
    of the readings. typical: its root mean square.
    """

    typical: float
    least: float
    most: float


@dataclass(frozen=True)
class Expected:
    """How far a published value is expected to be from the truth, root mean square over nodes and steps.

    size: of a typical node of the level; None where no public scale is known. unmeasured: what the error
    would be if nothing were measured, or 0 published; None likewise. In the unit of the readings.
    """

    error: float
    size: float | None
    unmeasured: float | None = None


@dataclass(frozen=True)
class Level:
    """One level of the tree, or its margin. name: "level 1", or the margin's. No stages: derived.

    epsilon: what its plan, repeated, costs any window. band: None where the draw decides the noise.
    expected: None where nothing public tells.
    """

    level: int
    n_nodes: int
    epsilon: Fraction
    stages: tuple[Stage, ...]
    band: Band | None
    expected: Expected | None
    name: str


@dataclass(frozen=True)
class Period:
    """Days whose plans are the same, and what one of them alone costs the worst window."""

    days: tuple[date, ...]
    n_steps: int
    epsilon: Fraction
    levels: tuple[Level, ...]


@dataclass(frozen=True)
class DryRun:
    """What releasing some days would cost, and how noisy it would be; amounts in the currency of `model`.

    epsilon: what the plan, repeated without end, costs any window. points_known: False where the draw
    chooses them; then OptStream's bands are those of equally spaced ones, and others have none. horizons:
    numbers of days, and what all readings of one customer in so many lose by this plan. warnings: of
    covariates that cannot be read, and of levels that are as good as nothing. model: the whole stream's.
    kept_back: the share of the budget that is left to restatements.
    """

    stream: str
    epsilon: Fraction
    points_known: bool
    periods: tuple[Period, ...]
    horizons: tuple[tuple[int, HorizonLoss], ...]
    warnings: tuple[str, ...]
    model: PrivacyModel
    kept_back: Fraction

    @property
    def grant(self) -> Fraction:
        return self.model.budget

    @property
    def currency(self) -> str:
        return self.model.currency

    @property
    def fits(self) -> bool:
        """Whether no window will ever be charged more than the privacy budget."""
        return self.epsilon <= self.grant


def dry_run_document(found: DryRun) -> dict[str, Any]:
    """`optstream run --dry-run --json`: versioned, for machines; each amount is called by its currency."""
    price = partial(_price, found.currency)
    return {
        "format": "optstream.dry-run/2",
        "stream": found.stream,
        "window_steps": found.model.window_length,
        "plan": price(found.epsilon),
        "grant": price(found.grant),
        "fits": found.fits,
        "points_known": found.points_known,
        "periods": [
            {
                "dates": [day.isoformat() for day in period.days],
                "n_steps": period.n_steps,
                "alone": price(period.epsilon),
                "levels": [_level_document(level, price) for level in period.levels],
            }
            for period in found.periods
        ],
        "horizons": [
            {
                "n_days": n_days,
                "epsilon_float": loss.epsilon,
                "delta": str(loss.delta),
                "plain_sum": price(loss.plain),
                "composed": loss.composed,
            }
            for n_days, loss in found.horizons
        ],
        "warnings": list(found.warnings),
        "currency": found.currency,
        **_in_rho(found),
    }


def _in_rho(found: DryRun) -> dict[str, Any]:
    """What the plan is at delta, where amounts are rho."""
    if found.currency == "epsilon":
        return {}
    told = found.model.to_epsilon(found.epsilon)
    return {"delta": str(found.model.delta), "plan_at_delta": _price("epsilon", told)}


def _level_document(level: Level, price: Callable[[Fraction], dict[str, Any]]) -> dict[str, Any]:
    return {
        "level": level.level,
        "name": level.name,
        "n_nodes": level.n_nodes,
        "plan": price(level.epsilon),
        "stages": [
            {
                "stage": stage.name,
                "alone": price(stage.epsilon),
                "noise": [
                    {"of": noise.of, "scale": noise.scale, "standard_deviation": noise.deviation}
                    | ({"joint_over": noise.joint_over} if noise.joint_over > 1 else {})
                    for noise in stage.noise
                ],
            }
            for stage in level.stages
        ],
        "noise_only_standard_deviation": asdict(level.band) if level.band else None,
        "expected": asdict(level.expected) if level.expected else None,
    }


def _price(currency: str, amount: Fraction) -> dict[str, Any]:
    """Exact, and as a float for reading."""
    return {currency: str(amount), f"{currency}_float": float(amount)}


# How far published values are expected to be from the truth, beside how large they are; nothing is read.

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
