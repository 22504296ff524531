"""A cell's mechanism, made for plain series, for a tree, or for one finite series."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from optstream.measurement import EquallySpaced, L1Sampling
from optstream.mechanisms import (
    BudgetAbsorption,
    BudgetDistribution,
    Fast,
    Fourier,
    Hierarchical,
    HistoryInformed,
    HistoryInformedTree,
    Laplace,
    OptStream,
    PeGaSus,
    Sample,
)
from optstream.mechanisms.base import Mechanism
from optstream.mechanisms.series import SeriesMechanism
from optstream.privacy import PrivacyModel
from optstream.stream import AggregationTree, Feature
from optstream.stream.covariate import Covariate
from optstream.stream.public_days import PublicDays
from studies.evaluation.data import STEPS_PER_DAY, Counts
from studies.evaluation.experiments import (
    INFORMED,
    INFORMED_BLOCKS,
    INFORMED_JOINT,
    INFORMED_WEATHER,
    JOINT_NOISE,
    LEVELS_APART,
    POINTS_ONLY,
    Cell,
)
from studies.evaluation.paper_scales import PaperFourier, PaperOptStream

KNOWN_MOVE_MW = 100.0
"""How far FAST's filter takes a region's load to move in half an hour: a round number, publicly known."""


KNOWN_LOAD_MW = 5000.0
"""How large a region's load is taken to be for a plan: a round number, publicly known."""
_JOINT = (INFORMED_JOINT, INFORMED_WEATHER)


def on_series(
    cell: Cell, names: Sequence[str], days: PublicDays | None = None, covariates: Sequence[Covariate] = ()
) -> Mechanism:
    """Return the cell's mechanism with all of epsilon for plain series of days, w = 48 half-hours, without
    bound.

    days: the public calendar, covariates: public series, for mechanisms that know of them. Raises
    ParameterError for parameters that it refuses.
    """
    if cell.mechanism in (INFORMED, INFORMED_BLOCKS):
        return _informed(cell, days)
    if cell.mechanism in _JOINT:
        weather = tuple(covariates) if cell.mechanism == INFORMED_WEATHER else ()
        return replace(_informed(cell, days), covariates=weather, **_one_region(names))
    if cell.mechanism == JOINT_NOISE:
        return Laplace(_model(cell), **_one_region(names))
    if cell.mechanism in _SERIES:
        return _SERIES[cell.mechanism](_model(cell), cell)
    tree = AggregationTree.from_parents({"all": None} | dict.fromkeys(names, "all"))
    shares = ["0", "1"]
    if len(names) == 1:
        tree, shares = AggregationTree.from_parents({names[0]: None}), ["1"]
    return _optstream(cell, tree, shares, None)


def on_tree(cell: Cell, tree: AggregationTree, days: PublicDays | None = None) -> Mechanism:
    """Return the cell's mechanism on a tree of two levels, half of epsilon each, every leaf at least 0.

    days: as in `on_series`. Raises ParameterError for parameters that it refuses.
    """
    halves = ["1/2", "1/2"]
    if cell.mechanism == INFORMED:
        return HistoryInformedTree(_informed(cell, days), tree, halves)
    if cell.mechanism in _SERIES:
        return Hierarchical(_SERIES[cell.mechanism](_model(cell), cell), tree, halves)
    return _optstream(cell, tree, halves, 0.0)


def on_finite_series(cell: Cell, counts: Counts) -> SeriesMechanism:
    """Return the cell's mechanism for one finite series that is protected as a whole: the window is its
    length.

    Raises ParameterError for parameters that it refuses.
    """
    point = cell.point
    model = PrivacyModel(point.epsilon, counts.values.size, point.alpha, counts.resolution)
    if cell.mechanism.startswith("Fast"):
        return _fast(model, cell, counts.deviation)
    if cell.mechanism in (INFORMED, INFORMED_BLOCKS):
        days = PublicDays(counts.cycle) if counts.cycle else None
        return HistoryInformed(model, point.n_samples, 1, counts.size, days)
    return _SERIES[cell.mechanism](model, cell)


def _informed(cell: Cell, days: PublicDays | None) -> HistoryInformed:
    return HistoryInformed(_model(cell), cell.point.n_samples, scale=KNOWN_LOAD_MW, days=days)


def _one_region(names: Sequence[str]) -> dict[str, Any]:
    """Return what joint noise asks to be told: all readings of a customer's day lie in one region."""
    return {"period_lengths": (STEPS_PER_DAY,), "n_nodes": len(names), "declared_leaves": 1}


def _model(cell: Cell) -> PrivacyModel:
    return PrivacyModel(cell.point.epsilon, STEPS_PER_DAY, cell.point.alpha)


def _optstream(
    cell: Cell, tree: AggregationTree, shares: Sequence[str], lower_bound: float | None
) -> OptStream:
    """Return the paper's features; halves with equal spacing, thirds with L1; its scales go with its
    weights.
    """
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
    made = PaperOptStream if cell.calibration == "paper" else OptStream
    return made(
        _model(cell),
        tree,
        sampling=sampling,
        features=[] if plain else Feature.day_parts(STEPS_PER_DAY),
        level_shares=shares,
        weights="paper" if papers else "variance",
        lower_bound=lower_bound,
        post_processing=not plain,
    )


def _fourier(model: PrivacyModel, cell: Cell) -> Fourier:
    assert cell.point.n_samples is not None
    made = PaperFourier if cell.calibration == "paper" else Fourier
    return made(model, cell.point.n_samples)


def _pegasus(model: PrivacyModel, cell: Cell) -> PeGaSus:
    """Return PeGaSus, whose paper guarantees epsilon a step and not a window: under "paper" a step has all of
    epsilon.
    """
    if cell.calibration == "paper":
        model = model.with_budget(model.epsilon * model.window_length)
    return PeGaSus(model, smoother="average" if cell.mechanism.endswith("average") else "median")


def _fast(model: PrivacyModel, cell: Cell, deviation: float = KNOWN_MOVE_MW) -> Fast:
    return Fast(
        model,
        cell.point.n_samples,
        sampling="fixed" if "fixed" in cell.mechanism else "adaptive",
        predictor="linear" if "linear" in cell.mechanism else "kalman",
        process_deviation=deviation,
    )


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
