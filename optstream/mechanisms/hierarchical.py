"""Any mechanism on a tree: each level measured under its share, all levels made consistent."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from optstream.estimation import Estimate
from optstream.estimation.least_squares import BoundRule, consistent
from optstream.estimation.problem import LeastSquares, least_squares
from optstream.estimation.variances import reconciled_variances
from optstream.measurement.sums import combined, level_period
from optstream.mechanisms.base import (
    SeriesMechanism,
    checked_level_shares,
    memory_of,
    own_state,
)
from optstream.mechanisms.period_release import Release
from optstream.noise import NoiseSource
from optstream.privacy import PrivacyModel, Spend
from optstream.privacy.exact import Exact, plain
from optstream.stream import AggregationTree, Measured, PrivatePeriod, State
from optstream.stream.private_period import public_part, with_raw_of

NAME = "Hierarchical"


@dataclass(frozen=True, init=False)
class Hierarchical(SeriesMechanism):
    """A mechanism at every level of a tree, and one consistent, bounded series for every node.

    Each level has a mechanism like the given one: its nodes are the series, its share the model's budget.
    Levels add up ("Composition over levels", docs/privacy.md). Their estimates go through OptStream's least
    squares, weighted by their noise, so that nodes add up and no leaf lies below `lower_bound`; where that is
    met, parents keep their estimates (`make_consistent`'s "held"). Raises ParameterError for shares that do
    not fit the tree, or a share that the pattern refuses.

    Args:
        mechanism: The pattern, made with the whole stream's model.
        tree: The hierarchy.
        level_shares: Of its epsilon, or rho, exact, one for each level, root first, adding up to at most 1; 0
            above the leaves means derived from below.
        lower_bound: Of every leaf, in the unit of the readings; None for no bound.
    """

    mechanism: SeriesMechanism
    tree: AggregationTree
    level_shares: tuple[Fraction, ...]
    lower_bound: float | None
    tree_class: ClassVar[str | None] = None

    def __init__(
        self,
        mechanism: SeriesMechanism,
        tree: AggregationTree,
        level_shares: Sequence[Exact],
        lower_bound: float | None = 0.0,
    ) -> None:
        object.__setattr__(self, "mechanism", mechanism)
        object.__setattr__(self, "tree", tree)
        object.__setattr__(self, "level_shares", checked_level_shares(level_shares, tree))
        object.__setattr__(self, "lower_bound", plain(lower_bound))
        _ = self.levels  # refuses a share that the pattern refuses

    @property
    def model(self) -> PrivacyModel:  # type: ignore[override]  # mypy: a property over a read-only one
        """The privacy model of all levels together."""
        return self.mechanism.model

    @cached_property
    def levels(self) -> tuple[tuple[int, SeriesMechanism], ...]:
        """The measured levels and their mechanisms, root first."""
        return self._levels_of(self.mechanism)

    def _levels_of(self, pattern: SeriesMechanism) -> tuple[tuple[int, SeriesMechanism], ...]:
        return tuple(
            (level, pattern.on_level(self.model.with_budget(self.model.budget * share), len(nodes)))
            for level, (share, nodes) in enumerate(zip(self.level_shares, self.tree.levels, strict=True))
            if share > 0
        )

    @property
    def by_level(self) -> dict[int, SeriesMechanism]:
        return dict(self.levels)

    @property
    def adaptive(self) -> bool:  # type: ignore[override]  # mypy: a property over a read-only one
        return any(own.adaptive for _, own in self.levels)

    @property
    def noise_is_known(self) -> bool:  # type: ignore[override]  # mypy: a property over a read-only one
        return all(own.noise_is_known for _, own in self.levels)

    @property
    def days_independent(self) -> bool:  # type: ignore[override]  # mypy: a property over a read-only one
        return self.mechanism.days_independent

    @property
    def epsilon(self) -> Fraction:
        """What the plan, repeated, costs any window: the sum over levels (Lemma 1)."""
        return sum((own.epsilon for _, own in self.levels), Fraction(0))

    def plan(self, n_steps: int, first_step: int = 0, state: State | None = None) -> tuple[Spend, ...]:
        """Return the levels' plans in a row."""
        states = level_states(state)
        return tuple(
            replace(spend, level=level)
            for level, own in self.levels
            for spend in own.plan(n_steps, first_step, states.get(str(level)))
        )

    def recall(self, spends: Iterable[Spend], before: State | None = None) -> State | None:
        """Return each level's state, from that level's spends."""
        known = list(spends)
        earlier = level_states(memory_of(before, NAME) or None)
        found = {}
        for level, mechanism in self.levels:
            own = [replace(spend, level=0) for spend in known if spend.level == level]
            found[level] = mechanism.recall(own, earlier.get(str(level)))
        return _state_of(found)

    def _draw(self, period: PrivatePeriod, noise: NoiseSource, state: State | None) -> Measured:
        states = level_states(state)
        parts = {}
        for level, mechanism in self.levels:
            own = level_period(period, self.tree, level)
            parts[level] = mechanism.measure(own, noise=noise, state=states.get(str(level)))
        after = _state_of({level: part.state for level, part in parts.items()})
        left = {"levels": {str(level): part.before or {} for level, part in parts.items()}}
        return combined(parts, after, with_raw_of(public_part(state) or {}, left) or None)

    def _by_level(self, measured: Measured) -> Iterator[tuple[slice, Estimate]]:
        """Yield where each measured level's nodes stand, and their own estimate."""
        for (level, mechanism), part in zip(self.levels, measured.parts, strict=True):
            nodes = self.tree.levels[level]
            yield slice(nodes.start, nodes.stop), mechanism.fitted(part)

    def merged(self, measured: Measured) -> Measured:
        """Return the levels' estimates before consistency, in tree order; derived ones are 0 ± infinity."""
        shape, levels = (len(self.tree.nodes), measured.n_steps), [*self._by_level(measured)]
        draws = levels[0][1].values.shape[:-2]
        values, variances = np.zeros((*draws, *shape)), np.full(shape, np.inf)
        for nodes, own in levels:
            values[..., nodes, :] = own.values
            variances[nodes] = own.variances[(0,) * (own.variances.ndim - 2)]  # of all draws alike
        return measured.seen_as(values, variances)

    def noise_variances(self, measured: Measured) -> NDArray[np.float64] | None:
        """Return the levels' own noise through the tree; consistency weighs each step by itself."""
        shape = (len(self.tree.nodes), measured.n_steps)
        weights, noise = np.zeros(shape), np.zeros(shape)
        for nodes, own in self._by_level(measured):
            if own.noise_variances is None:
                return None
            weights[nodes], noise[nodes] = 1.0 / own.variances, own.noise_variances
        return reconciled_variances(weights, noise, self.tree)

    def program(self, release: Release) -> tuple[LeastSquares, BoundRule]:
        """Return the least squares of its estimate, and how that meets the lower bound."""
        return least_squares(self.merged(release.measured), self.tree, [], "variance"), "held"

    def misses_only_noise(self, measured: Measured) -> bool:
        """Return whether it is so at every measured level."""
        pairs = zip(self.levels, measured.parts, strict=True)
        return all(own.misses_only_noise(part) for (_, own), part in pairs)

    def fitted(self, measured: Measured) -> Estimate:
        """Return the consistent series; variances: of the levels' own estimates, before consistency."""
        merged = self.merged(measured)
        assert merged.point_variances is not None
        found = consistent(merged, self.tree, [], "variance", self.lower_bound)
        variances = merged.point_variances * float(measured.resolution) ** 2
        return Estimate(found.values, variances, optimality=found.optimality)


def level_states(state: State | None) -> Mapping[str, Any]:
    """Return the levels' own states, by level. Raises ParameterError for another mechanism's."""
    levels: Mapping[str, Any] = {} if state is None else own_state(state, NAME)["levels"]
    return levels


def _state_of(levels: Mapping[int, State | None]) -> State | None:
    if all(state is None for state in levels.values()):
        return None
    return {"mechanism": NAME, "levels": {str(level): state for level, state in levels.items()}}
