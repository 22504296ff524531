"""OptStream: sample, perturb, reconstruct, and make the hierarchy consistent."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import Any

from numpy.typing import ArrayLike

from optstream.errors import ParameterError
from optstream.estimation import make_consistent
from optstream.measurement import EquallySpaced, measure_points_and_sums
from optstream.measurement.linear import SAMPLES, feature_stage, query_weights
from optstream.mechanisms.release import Release
from optstream.mechanisms.shares import LARGEST_SCALE, checked_level_shares, checked_shares
from optstream.noise import NoiseSource
from optstream.privacy import PrivacyModel, StepSpend, worst_window
from optstream.privacy.exact import Exact, round_up_to_float
from optstream.privacy.model import Calibration
from optstream.stream import AggregationTree, Feature, Measured, PrivatePeriod


@dataclass(frozen=True, init=False)
class OptStream:
    """The mechanism of the OptStream paper on a tree, with equally spaced sampling.

    Every node measures the sampled steps and the sums of each feature's parts with Laplace noise;
    everything between is reconstructed and fitted from those noisy numbers, so that nodes add up and no
    value lies below the bound. It is not adaptive: the plan is public, every period costs the same.

    model: what is protected. tree: the hierarchy. sampling: which steps are measured. features:
    partitions of the period. level_shares: of epsilon, one a level, root first; 0 above the leaves means
    derived. stage_shares: of a level's epsilon, for (samples, features); halves by default.
    weights: "variance" or "paper" (estimation). calibration: "strict" costs at most epsilon in any
    window, for ever; "paper" takes the paper's feature sensitivity alpha (Theorem 9) and costs more than
    it says, which `epsilon` of its releases states. lower_bound: of every leaf, None for no bound.

    Raises ParameterError naming the parameter, its legal range and what it got.
    Source: Fioretto and Van Hentenryck, OptStream, Algorithms 2 and 4.
    """

    model: PrivacyModel
    tree: AggregationTree
    sampling: EquallySpaced
    features: tuple[Feature, ...]
    level_shares: tuple[Fraction, ...]
    stage_shares: tuple[Fraction, ...]
    weights: str
    calibration: Calibration
    lower_bound: float | None

    def __init__(
        self,
        model: PrivacyModel,
        tree: AggregationTree,
        *,
        sampling: EquallySpaced,
        features: Sequence[Feature],
        level_shares: Sequence[Exact],
        stage_shares: Sequence[Exact] | None = None,
        weights: str = "variance",
        calibration: Calibration = "strict",
        lower_bound: float | None = 0.0,
    ) -> None:
        if calibration not in ("strict", "paper"):
            raise ParameterError(f'calibration of OptStream must be "strict" or "paper"; got {calibration!r}')
        if weights not in ("variance", "paper"):
            raise ParameterError(f'weights of OptStream must be "variance" or "paper"; got {weights!r}')
        if len({feature.name for feature in features}) != len(features):
            raise ParameterError("features of OptStream must have different names")
        if len({feature.n_steps for feature in features}) > 1:
            raise ParameterError("features of OptStream must partition periods of one length")
        sampling.residues(model.window_length)
        n_stages = 2 if features else 1
        given = stage_shares if stage_shares is not None else [Fraction(1, n_stages)] * n_stages
        stages = checked_shares(given, n_stages, "stage_shares (samples, and features if there are any)")
        if 0 in stages:
            raise ParameterError("stage_shares must be above 0 for each stage; leave features out instead")
        settled = {
            "model": model,
            "tree": tree,
            "sampling": sampling,
            "features": tuple(features),
            "level_shares": checked_level_shares(level_shares, tree),
            "stage_shares": stages,
            "weights": weights,
            "calibration": calibration,
            "lower_bound": lower_bound,
        }
        for name, value in settled.items():
            object.__setattr__(self, name, value)
        if max(spend.scale for spend in self._plan_at(0, self._period_length)) > LARGEST_SCALE:
            raise ParameterError(
                "the noise would outgrow the integers: choose a larger epsilon or a coarser resolution"
            )

    @property
    def _period_length(self) -> int:
        return self.features[0].n_steps if self.features else self.model.window_length

    def _scale(self, level: int, stage: str) -> Fraction:
        """The noise scale of a stage, in units of the resolution, rounded up to a float.

        A window meets k sampled steps, each charged alpha/scale, and w steps of each feature, each charged
        alpha/scale (Lemmas 3 and 4): so k, or w times the number of features, over the stage's epsilon.
        """
        share = self.model.epsilon * self.level_shares[level]
        if stage == SAMPLES:
            charged, budget = self.sampling.n_samples, share * self.stage_shares[0]
        else:
            steps = self.model.window_length if self.calibration == "strict" else 1
            charged, budget = steps * len(self.features), share * self.stage_shares[1]
        nodes = self.model.nodes_changed(len(self.tree.levels[level]))
        return Fraction(round_up_to_float(nodes * self.model.alpha_units * charged / budget))

    def plan(
        self, n_steps: int, first_step: int = 0, state: Mapping[str, Any] | None = None
    ) -> tuple[StepSpend, ...]:
        """What a period will cost, known before anything is drawn. Costs no privacy.

        Raises ParameterError if the features are for a period of another length.
        """
        if self.features and self.features[0].n_steps != n_steps:
            raise ParameterError(
                f"the features are for periods of {self.features[0].n_steps} steps; this one has {n_steps}"
            )
        residue = first_step % self.model.window_length
        return tuple(replace(spend, first_step=first_step) for spend in self._plan_at(residue, n_steps))

    def _plan_at(self, residue: int, n_steps: int) -> tuple[StepSpend, ...]:
        return _plan(self, residue, n_steps, self.features)

    @property
    def epsilon(self) -> Fraction:
        """What the plan, repeated for ever, costs any window.

        The plan charges by residue modulo w, whatever the periods; so one stretch of 2w steps shows every
        window. (Features charge each step alike, hence a partition of that stretch stands for theirs.)
        """
        return _plan_cost(self)

    def measure(
        self,
        values: ArrayLike | PrivatePeriod,
        *,
        noise: NoiseSource,
        first_step: int = 0,
        state: Mapping[str, Any] | None = None,
    ) -> Measured:
        """Draw the measurements of one period: the only part that costs privacy, exactly `plan`'s spends.

        values: (n_leaves, n_steps) in tree.leaves order and the unit of the readings, or a PrivatePeriod.
        Raises ParameterError for a shape, type or size that does not fit; then nothing was drawn.
        """
        resolution = self.model.resolution
        if isinstance(values, PrivatePeriod):
            period = values
            if period.resolution != resolution:
                raise ParameterError(
                    f"the period's resolution {period.resolution} is not the model's {resolution}"
                )
        else:
            period = PrivatePeriod.from_values(values, resolution=resolution, first_step=first_step)
        return measure_points_and_sums(
            period,
            self.tree,
            positions=self.sampling.positions(period.n_steps, period.first_step, self.model.window_length),
            features=self.features,
            spends=self.plan(period.n_steps, period.first_step),
            noise=noise,
            state=state,
        )

    def estimate(self, measured: Measured) -> Release:
        """Compute the release from its measurements; repeatable, free."""
        return Release(
            values=make_consistent(measured, self.tree, self.features, self.weights, self.lower_bound),
            measured=measured,
            spends=measured.spends,
            epsilon=self.epsilon,
            epsilon_alone=worst_window(measured.spends, self.model.window_length, self.model.windows).epsilon,
            state=measured.state,
            simulated=measured.simulated,
        )

    def release(
        self,
        values: ArrayLike | PrivatePeriod,
        *,
        noise: NoiseSource,
        first_step: int = 0,
        state: Mapping[str, Any] | None = None,
    ) -> Release:
        """Measure and estimate in a row. Costs and raises as `measure`."""
        return self.estimate(self.measure(values, noise=noise, first_step=first_step, state=state))


@lru_cache(maxsize=64)
def _plan_cost(mechanism: OptStream) -> Fraction:
    window = mechanism.model.window_length
    stretch = tuple(Feature((range(2 * window),), feature.name) for feature in mechanism.features)
    return worst_window(_plan(mechanism, 0, 2 * window, stretch), window).epsilon


@lru_cache(maxsize=512)
def _plan(
    mechanism: OptStream, residue: int, n_steps: int, features: tuple[Feature, ...]
) -> tuple[StepSpend, ...]:
    """The spends of a period that starts at this residue modulo the window, as if at that very step."""
    model, tree = mechanism.model, mechanism.tree
    positions = mechanism.sampling.positions(n_steps, residue, model.window_length)
    queries = {SAMPLES: tuple(range(step, step + 1) for step in positions)}
    queries |= {feature_stage(feature): feature.parts for feature in features}
    return tuple(
        StepSpend(
            level=level,
            stage=stage,
            first_step=residue,
            weights=query_weights(parts, n_steps),
            scale=mechanism._scale(level, stage),
            alpha_units=model.alpha_units,
            nodes_changed=model.nodes_changed(len(tree.levels[level])),
        )
        for level, share in enumerate(mechanism.level_shares)
        if share > 0
        for stage, parts in queries.items()
    )
