"""The other mechanisms of the field as the audit runs them: windows so short that a bound comes near."""

from collections.abc import Callable, Mapping

from optstream.mechanisms import (
    BudgetAbsorption,
    BudgetDistribution,
    Fast,
    Fourier,
    Hierarchical,
    Laplace,
    PeGaSus,
    Sample,
)
from optstream.mechanisms.series import SeriesMechanism
from optstream.privacy import PrivacyModel
from optstream.stream import AggregationTree

Build = Callable[[PrivacyModel], SeriesMechanism]

FIELD: Mapping[str, Build] = {
    "Laplace": Laplace,
    "Sample": Sample,
    "Fourier": lambda model: Fourier(model, n_coefficients=2, shortest_period=1),
    "BudgetDistribution": BudgetDistribution,
    "BudgetAbsorption": BudgetAbsorption,
    "PeGaSus": PeGaSus,
    "Fast": lambda model: Fast(model, n_samples=2, integration_time=1),
}
"""Uniform is Laplace by another name, and measures the same."""


def alone(build: Build, window: int) -> Callable[[int], SeriesMechanism]:
    """A mechanism over plain series, for any length of period."""
    return lambda n_steps: build(PrivacyModel("1", window, 1))


def on_tree(build: Build, window: int, tree: AggregationTree) -> Callable[[int], SeriesMechanism]:
    """The same at each level of a tree, the leaves with half of epsilon, two leaves roaming."""
    shares = [*(["1/4"] * (tree.n_levels - 2)), "1/4", "1/2"][-tree.n_levels :]
    model = PrivacyModel("1", window, 1, unit="roaming", leaves_per_step=2)
    return lambda n_steps: Hierarchical(build(model), tree, shares)
