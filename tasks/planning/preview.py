"""What a dry run found, as frozen values and as one document for machines. Public facts only."""

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import date
from fractions import Fraction
from functools import partial
from typing import Any

from optstream.noise import joint_variance
from optstream.privacy import PrivacyModel
from optstream.privacy.horizon import HorizonLoss
from tasks.planning.currencies import Currencies


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
class NumberOfPoints:
    """The suggested n_samples for a level, or for all (None), and the bounds on the mean error a step."""

    level: int | None
    n_samples: int
    error: float
    error_as_configured: float


@dataclass(frozen=True)
class DryRun:
    """What releasing some days would cost, and how noisy it would be; amounts in the currency of `model`.

    epsilon: what the plan, repeated without end, costs any window. points_known: False where the draw
    chooses them; then OptStream's bands are those of equally spaced ones, and others have none. horizons:
    numbers of days, and what all readings of one customer in so many lose by this plan. warnings: of
    covariates that cannot be read, and of levels that are as good as nothing. model: the whole stream's.
    currencies: of the first day, where every step is measured. kept_back: the share of the budget that is
    left to restatements.
    """

    stream: str
    epsilon: Fraction
    points_known: bool
    periods: tuple[Period, ...]
    suggestions: tuple[NumberOfPoints, ...]
    horizons: tuple[tuple[int, HorizonLoss], ...]
    warnings: tuple[str, ...]
    model: PrivacyModel
    currencies: Currencies | None
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
        "format": "optstream.dry-run/1",
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
        "suggestions": [asdict(suggestion) for suggestion in found.suggestions],
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
        **({} if found.currencies is None else {"currencies": _currencies_document(found.currencies)}),
    }


def _in_rho(found: DryRun) -> dict[str, Any]:
    """What the plan is at delta, where amounts are rho."""
    if found.currency == "epsilon":
        return {}
    told = found.model.told_epsilon(found.epsilon)
    return {"delta": str(found.model.delta), "plan_at_delta": _price("epsilon", told)}


def _currencies_document(found: Currencies) -> dict[str, Any]:
    levels = [asdict(one) for one in found.levels]
    return {"delta": str(found.delta), "better": found.better, "levels": levels}


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
