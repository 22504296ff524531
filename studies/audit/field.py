"""Every mechanism over plain series as the audit runs it: windows so short that a bound comes near."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from optstream import mechanisms
from optstream.mechanisms import MECHANISMS, Fast, Fourier, Gaussian, Hierarchical, HistoryInformed, Laplace
from optstream.mechanisms.joint_groups import Noise
from optstream.mechanisms.series import SeriesMechanism
from optstream.privacy import PrivacyModel
from optstream.stream import AggregationTree
from optstream.stream.public_days import PublicDays


@dataclass(frozen=True)
class FieldCase:
    """A mechanism, the privacy model under which it shows most, and readings around which its decisions turn.

    lengths: of one period that holds a window, and of periods whose border a window straddles.
    """

    name: str
    build: Callable[[PrivacyModel], SeriesMechanism]
    model: PrivacyModel
    base: float = 0.0
    lengths: tuple[tuple[int, ...], tuple[int, ...]] = ((2,), (3, 1, 2))

    def alone(self, n_steps: int) -> SeriesMechanism:
        """Return the mechanism over plain series."""
        return self.build(self.model)


def _fourier(n_coefficients: int) -> Callable[[PrivacyModel], SeriesMechanism]:
    return lambda model: Fourier(model, n_coefficients, shortest_period=4)


def _fast(model: PrivacyModel) -> SeriesMechanism:
    return Fast(model, n_samples=2, integration_time=1, set_point=0.5)


def _joint(model: PrivacyModel) -> SeriesMechanism:
    """Return Laplace with joint noise, in groups of two steps or three; with its own for roaming devices."""
    noise: Noise | None = "joint" if model.unit == "customer" else None
    return Laplace(model, noise, period_lengths=(3, 4), n_nodes=1)


def _joint_blocks(model: PrivacyModel) -> SeriesMechanism:
    """Return HistoryInformed with joint noise over pairs of blocks; with its own for roaming devices."""
    noise: Noise | None = "joint" if model.unit == "customer" else None
    given: dict[str, Any] = {"group_size": 2, "period_lengths": (3, 4), "n_nodes": 1}
    return HistoryInformed(model, 2, 1, days=PublicDays(1), relearn_days=1, noise=noise, **given)


def _history_informed(model: PrivacyModel) -> SeriesMechanism:
    """Return HistoryInformed over days of one step, so that a few periods teach it something."""
    return HistoryInformed(model, n_blocks=1, block_length=2, days=PublicDays(1), relearn_days=1)


PAIR = PrivacyModel("1", 2, 1)
DECIDING = PrivacyModel("4", 2, 10, resolution=1)
OWN: dict[str, tuple[FieldCase, ...]] = {
    "Laplace": (
        FieldCase("Laplace", Laplace, PAIR),
        FieldCase("Laplace, joint noise", _joint, PAIR, lengths=((4,), (4, 3))),
    ),
    "Fourier": (
        FieldCase("Fourier, mean", _fourier(1), PrivacyModel("1", 9, 1), lengths=((9,), (8, 8))),
        FieldCase("Fourier", _fourier(2), PrivacyModel("1", 6, 1), lengths=((6,), (4, 6))),
    ),
    "Gaussian": (FieldCase("Gaussian", Gaussian, PrivacyModel("1", 2, 1, delta="1/1000")),),
    # first publications have a scale of 40 / 4, and distances lie on either side of that
    **{
        name: (FieldCase(name, getattr(mechanisms, name), DECIDING, base=5.0),)
        for name in ("BudgetDistribution", "BudgetAbsorption")
    },
    "Fast": (FieldCase("Fast", _fast, PrivacyModel("1", 4, 1), base=2.0, lengths=((4,), (3, 5))),),
    "HistoryInformed": (
        FieldCase("HistoryInformed", _history_informed, PAIR),
        FieldCase("HistoryInformed, joint noise", _joint_blocks, PAIR, lengths=((4,), (4, 3))),
    ),
}
"""Those that show more elsewhere than in a pair of steps, or need other parameters than their defaults."""
FIELD = tuple(
    case
    for name in MECHANISMS
    if issubclass(getattr(mechanisms, name), SeriesMechanism)  # others need a tree: `plans`
    for case in OWN.get(name, (FieldCase(name, getattr(mechanisms, name), PAIR),))
)


def on_tree(case: FieldCase, tree: AggregationTree) -> Callable[[int], SeriesMechanism]:
    """Return the same at each level of a tree, most at the root, which two roaming leaves move together."""
    shares = ["1/2", *(["1/2"] if tree.n_levels == 2 else ["1/4"] * (tree.n_levels - 1))]
    delta = case.model.delta
    model = PrivacyModel("1", 4, 1, unit="roaming", leaves_per_step=2, delta=delta)
    return lambda n_steps: Hierarchical(case.build(model), tree, shares)
