"""Who is compared: each contender's name, what it takes from a grid point, and how it is made.

calibration "strict": the house's, at most epsilon in any window. "paper": the scales that its paper takes;
the accountant says what they cost. A contender is made for a tree, for plain series or for one series.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Literal

from optstream.errors import ParameterError
from optstream.evaluation.cells import Calibration, Cell, Point, Study
from optstream.evaluation.data import STEPS_PER_DAY
from optstream.measurement import EquallySpaced, L1Sampling
from optstream.mechanisms import (
    BudgetAbsorption,
    BudgetDistribution,
    Fast,
    Fourier,
    Hierarchical,
    Laplace,
    OptStream,
    PeGaSus,
    Sample,
)
from optstream.mechanisms.mechanism import Mechanism
from optstream.mechanisms.series import SeriesMechanism
from optstream.privacy import PrivacyModel
from optstream.stream import AggregationTree, Feature

RAW = "no noise"
"""The real values as they are: what a forecast or last week's figures would be without privacy."""
LEVELS_APART = "Laplace, levels apart"
"""Every level released by itself, not made consistent."""
POINTS_ONLY = "OptStream ES, no optimisation"
"""Sampled points, perturbed and reconstructed."""
KNOWN_MOVE_MW = 100.0
"""How far FAST's filter takes a region's load to move in half an hour: a round number, publicly known."""

Uses = Literal["n_samples", "threshold"]


@dataclass(frozen=True)
class Contender:
    """uses: what of a grid point the mechanism depends on. each_region: decided for every region by itself,
    not once for all. calibrations: those under which its noise differs.
    """

    uses: frozenset[Uses] = frozenset()
    each_region: bool = False
    calibrations: tuple[Calibration, ...] = ("strict",)


_BOTH: tuple[Calibration, ...] = ("strict", "paper")
_K, _K_THETA = frozenset[Uses](["n_samples"]), frozenset[Uses](["n_samples", "threshold"])

CONTENDERS: dict[str, Contender] = {
    RAW: Contender(calibrations=("none",)),
    "Laplace": Contender(),
    LEVELS_APART: Contender(),
    "DFT": Contender(_K, calibrations=_BOTH),
    "OptStream ES": Contender(_K, calibrations=_BOTH),
    "OptStream ES, paper's weights": Contender(_K),
    POINTS_ONLY: Contender(_K),
    "OptStream, every step": Contender(calibrations=_BOTH),
    "OptStream L1": Contender(_K_THETA, calibrations=_BOTH),
    "OptStream L1, each region": Contender(_K_THETA, each_region=True, calibrations=_BOTH),
    "Sample": Contender(),
    "BudgetDistribution": Contender(),
    "BudgetAbsorption": Contender(),
    "PeGaSus": Contender(calibrations=_BOTH),
    "PeGaSus, average": Contender(calibrations=_BOTH),
    "Fast": Contender(_K),
    "Fast, fixed": Contender(_K),
    "Fast, linear": Contender(_K),
    "Fast, fixed, linear": Contender(_K),
}


def cell_of(
    study: Study, mechanism: str, calibration: Calibration, point: Point, span: str, trials: tuple[int, int]
) -> Cell:
    """A cell that names only what its mechanism depends on, so that equal work is the same cell.

    Raises ParameterError for an unknown mechanism, or a calibration that it does not have.
    """
    contender = CONTENDERS.get(mechanism)
    if contender is None:
        raise ParameterError(f"mechanism must be one of {', '.join(CONTENDERS)}; got {mechanism!r}")
    if calibration not in contender.calibrations:
        raise ParameterError(
            f"{mechanism} has {' and '.join(contender.calibrations)} calibration; got {calibration!r}"
        )
    if "n_samples" not in contender.uses:
        point = replace(point, n_samples=None)
    if "threshold" not in contender.uses:
        point = replace(point, threshold=None)
    if mechanism == RAW:
        point = Point("inf", "0", None, None)
    return Cell(study, mechanism, calibration, point, span, trials)


def on_series(cell: Cell, names: Sequence[str]) -> Mechanism:
    """The cell's mechanism with all of epsilon for plain series of days, w = 48 half-hours, without bound.

    Raises ParameterError for parameters that it refuses.
    """
    if cell.mechanism in _SERIES:
        return _SERIES[cell.mechanism](_model(cell), cell)
    tree = AggregationTree.from_parents({"all": None} | dict.fromkeys(names, "all"))
    shares = ["0", "1"]
    if len(names) == 1:
        tree, shares = AggregationTree.from_parents({names[0]: None}), ["1"]
    return _optstream(cell, tree, shares, None)


def on_tree(cell: Cell, tree: AggregationTree) -> Mechanism:
    """The cell's mechanism on a tree of two levels, half of epsilon each, every leaf at least 0.

    Raises ParameterError for parameters that it refuses.
    """
    halves = ["1/2", "1/2"]
    if cell.mechanism in _SERIES:
        return Hierarchical(_SERIES[cell.mechanism](_model(cell), cell), tree, halves)
    return _optstream(cell, tree, halves, 0.0)


def on_finite_series(cell: Cell, n_steps: int, resolution: str, deviation: float) -> SeriesMechanism:
    """The cell's mechanism for one finite series that is protected as a whole: the window is its length.

    Raises ParameterError for parameters that it refuses.
    """
    point = cell.point
    model = PrivacyModel(point.epsilon, n_steps, point.alpha, resolution)
    if cell.mechanism.startswith("Fast"):
        return _fast(model, cell, deviation)
    return _SERIES[cell.mechanism](model, cell)


def _model(cell: Cell) -> PrivacyModel:
    return PrivacyModel(cell.point.epsilon, STEPS_PER_DAY, cell.point.alpha)


def _optstream(
    cell: Cell, tree: AggregationTree, shares: Sequence[str], lower_bound: float | None
) -> OptStream:
    """The paper's features; halves with equal spacing, thirds with L1. The paper's scales go with its weights."""
    name, point = cell.mechanism, cell.point
    plain = name in (POINTS_ONLY, LEVELS_APART)
    whole = name in ("OptStream, every step", LEVELS_APART)
    n_samples = STEPS_PER_DAY if whole else point.n_samples
    assert n_samples is not None
    sampling: Any = EquallySpaced(n_samples)
    if name.startswith("OptStream L1"):
        assert point.threshold is not None
        sampling = L1Sampling(n_samples, point.threshold)
    papers = cell.calibration == "paper" or name.endswith("paper's weights")
    return OptStream(
        _model(cell),
        tree,
        sampling=sampling,
        features=[] if plain else Feature.day_parts(STEPS_PER_DAY),
        level_shares=shares,
        weights="paper" if papers else "variance",
        calibration="paper" if cell.calibration == "paper" else "strict",
        lower_bound=lower_bound,
        post_processing=not plain,
    )


def _fourier(model: PrivacyModel, cell: Cell) -> Fourier:
    assert cell.point.n_samples is not None
    calibration: Literal["strict", "paper"] = "paper" if cell.calibration == "paper" else "strict"
    return Fourier(model, cell.point.n_samples, calibration)


def _pegasus(model: PrivacyModel, cell: Cell) -> PeGaSus:
    """Its paper promises epsilon a step and not a window: under "paper" a step has all of epsilon."""
    if cell.calibration == "paper":
        model = replace_epsilon(model, model.epsilon * model.window_length)
    return PeGaSus(model, smoother="average" if cell.mechanism.endswith("average") else "median")


def _fast(model: PrivacyModel, cell: Cell, deviation: float = KNOWN_MOVE_MW) -> Fast:
    return Fast(
        model,
        cell.point.n_samples,
        sampling="fixed" if "fixed" in cell.mechanism else "adaptive",
        predictor="linear" if "linear" in cell.mechanism else "kalman",
        process_deviation=deviation,
    )


def replace_epsilon(model: PrivacyModel, epsilon: Fraction) -> PrivacyModel:
    """The same promise with another epsilon."""
    return model.with_epsilon(epsilon, model.leaves_per_step)


_SERIES: dict[str, Callable[[PrivacyModel, Cell], SeriesMechanism]] = {
    "Laplace": lambda model, _: Laplace(model),
    "DFT": _fourier,
    "Sample": lambda model, _: Sample(model),
    "BudgetDistribution": lambda model, _: BudgetDistribution(model),
    "BudgetAbsorption": lambda model, _: BudgetAbsorption(model),
    "PeGaSus": _pegasus,
    "PeGaSus, average": _pegasus,
    "Fast": _fast,
    "Fast, fixed": _fast,
    "Fast, linear": _fast,
    "Fast, fixed, linear": _fast,
}
