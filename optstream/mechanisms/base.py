"""The parts of every mechanism: a priced plan, a draw that costs it, an estimate that is free."""

import sys
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from fractions import Fraction
from numbers import Number, Real
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from optstream.errors import ParameterError
from optstream.estimation import Estimate
from optstream.estimation.estimate import hold
from optstream.estimation.least_squares import Consistent
from optstream.estimation.replicates import noise_replicates
from optstream.measurement.sums import measure_steps
from optstream.mechanisms.period_release import Release
from optstream.noise import NoiseSource
from optstream.privacy import JointSpend, OrderSpend, PrivacyModel, Spend, StepSpend
from optstream.privacy.exact import Exact, exact, round_up_to_float
from optstream.privacy.model import Currency
from optstream.privacy.spends import spend_from_document
from optstream.stream import AggregationTree, Measured, PrivatePeriod, State
from optstream.stream.changes import TreeMap
from optstream.stream.tree import some_of

__all__ = ["Mechanism", "SelfCheck", "SeriesMechanism"]


class SelfCheck(NamedTuple):
    """Noisy measurements against their predictions. unlike: the numbers, on the public clock, of days found
    unlike all others. levels_off: levels that miss their predictions far more than the prior expects."""

    unlike: tuple[int, ...] = ()
    levels_off: tuple[int, ...] = ()


class Mechanism(ABC):
    """Base of every mechanism: a plan with a price, a private draw, an estimate.

    Only `measure` and `release` cost privacy. `measured` are one period's measurements of this mechanism:
    others raise ParameterError. Values and errors are (n_nodes, n_steps), in the unit of the readings.

    Attributes:
        model: The privacy guarantee.
        adaptive: Whether a period's draw or estimate needs the state after the period before; its plan may
            depend on other periods' spends, so `recall` comes first.
        noise_is_known: Whether each value's noise variance is known before the draw.
        one_leaf_a_period: Whether, for unit "customer", its price holds for readings of a period in at most
            `leaves_per_period` leaves, 1 where it has none.
        takes_covariates: Whether public covariates shape its estimates.
        chooses_shares: Whether its class on a tree chooses the levels' shares, from a public `scale`.
        takes_margin: Whether it takes a hierarchy with a margin, measured as one more level.
        serves_hours: Whether periods may be hours.
        also_called: Its other name in `optstream.mechanisms.MECHANISMS`.
        tree_class: The class of `optstream.mechanisms` that puts it on a tree; None with its own `tree`.
        currency: Of the privacy guarantees that it takes.
        revises: Whether it learns more of a period from later measurements (`revise`).
        noise_outlasts_trees: Whether its private state may be gone on from after a change of the tree.
        has_self_check: Whether it compares measurements with what those before predicted (`self_check`).
        days_independent: Whether the errors of one period's estimate are independent of another's.
    """

    model: PrivacyModel
    adaptive: ClassVar[bool] = False
    noise_is_known: ClassVar[bool] = True
    one_leaf_a_period: ClassVar[bool] = False
    takes_covariates: ClassVar[bool] = False
    chooses_shares: ClassVar[bool] = False
    takes_margin: ClassVar[bool] = False
    serves_hours: ClassVar[bool] = True
    also_called: ClassVar[str | None] = None
    tree_class: ClassVar[str | None] = None
    currency: ClassVar[Currency] = "epsilon"
    revises: ClassVar[bool] = False
    noise_outlasts_trees: ClassVar[bool] = False
    has_self_check: ClassVar[bool] = False
    days_independent: ClassVar[bool] = True

    @property
    @abstractmethod
    def epsilon(self) -> Fraction:
        """What the plan, repeated without end, costs any window, in the model's currency."""

    def expected_by_level(self) -> NDArray[np.float64] | None:
        """Return the root mean square errors that a prior expects, from public facts.

        Returns:
            (n_levels, 3), root first: a node's error, its typical size, and the error of no measurement. nan
            where no public scale is known; None without a prior.
        """
        return None

    def with_learned(self, known: State | None, *, keeps_blocks: bool) -> "Mechanism":
        """Return the plan whose errors are expected by the prior that a stream has learned, if it learns."""
        return self

    @abstractmethod
    def plan(self, n_steps: int, first_step: int = 0, state: State | None = None) -> tuple[Spend, ...]:
        """Return the most that a period will cost, known before the draw. Raises ParameterError for a state
        of another mechanism, or a length for which this one was not made.

        Args:
            n_steps: Steps of the period.
            first_step: Running index of its first step.
            state: The state after the period before, or of `recall`; None at the start of a stream.

        Returns:
            The spends that the ledger reserves; the draw costs at most these.
        """

    def carried_over(self, state: State, between: TreeMap, first_step: int) -> State | None:
        """Return the public state for a period, from first_step on, with another tree. `between` maps the
        nodes of the tree before to this one's; None where nodes came or went: start again."""
        return state if between.is_renaming else None

    @property
    def own_tree(self) -> AggregationTree | None:
        """The tree whose names label readings and values; None over plain series."""
        return getattr(self, "tree", None)

    @abstractmethod
    def _draw(self, period: PrivatePeriod, noise: NoiseSource, state: State | None) -> Measured:
        """Draw the measurements of one period, at most the plan's spends."""

    @abstractmethod
    def fitted(self, measured: Measured) -> Consistent | Estimate:
        """Return every node's value at every step, from the measurements alone."""

    def noise_variances(self, measured: Measured) -> NDArray[np.float64] | None:
        """Return the variance that noise leaves in each value before the bound, as `Estimate` has it."""
        return None

    def misses_only_noise(self, measured: Measured) -> bool:
        """Return whether the error before the bound is noise alone: all measured, none smoothed."""
        return False

    def noise_replicates(self, measured: Measured, n: int) -> NDArray[np.float64] | None:
        """Return n draws of the noise's effect on all values before the bound, (n, n_nodes, n_steps). None
        where `noise_variances` does not know all, or noise of other periods is in the values."""
        variances = self.noise_variances(measured) if self.days_independent else None
        if variances is None or not np.isfinite(variances).all():
            return None
        return noise_replicates(self.unbounded, measured, n)

    def unbounded(self, measured: Measured) -> NDArray[np.float64]:
        """Return every node's value at every step before the lower bound; standard errors are of these."""
        pattern: Any = self  # every mechanism is a dataclass, which mypy cannot know
        free = replace(pattern, lower_bound=None) if hasattr(pattern, "lower_bound") else pattern
        found: NDArray[np.float64] = free.fitted(measured).values
        return found

    def foreseen(self) -> "Mechanism | None":
        """Return a mechanism of the same scales whose noise is known before the draw; None without one."""
        return self if self.noise_is_known else None

    def recall(self, spends: Iterable[Spend], before: State | None = None) -> State | None:
        """Return the state for `plan` and `measure`, from the ledger; None for a mechanism that keeps none.

        Args:
            spends: Of all other periods within a window, earlier and later ones.
            before: The state after the period before, for estimates; another mechanism's is ignored.
        """
        return None

    def prepared(self, state: State | None, first_step: int) -> State | None:
        """Return the state for a period's draw, with all that can be computed before it, as `measure` does. A
        failure in it has drawn nothing. A state of another mechanism raises ParameterError."""
        return state

    def measure(
        self,
        values: ArrayLike | PrivatePeriod,
        *,
        noise: NoiseSource | None = None,
        first_step: int = 0,
        state: State | None = None,
    ) -> Measured:
        """Draw the measurements of one period: the only part that costs privacy, at most `plan`'s spends.

        Args:
            values: A PrivatePeriod, or (n_series, n_steps) in the unit of the readings: an array in the order
                of `tree.leaves` on a tree, or a polars or pandas frame with a row for each step and leaves'
                names as columns (or as the index of a pandas frame), in any order. Too large values are
                clamped, missing ones count as 0.
            noise: Secure for publication; a release of simulated noise is marked.
            first_step: Running index of the first step; not needed with a PrivatePeriod.
            state: The state after the period before; None at the start of a stream. The privacy guarantee
                over several periods holds only with it.

        Returns:
            Noisy numbers, their spends, and the state for the next period.

        Raises:
            ParameterError: Before the draw, for a shape, type, label, length, state or noise that does not
                fit, never for a value.
            NoiseError: If the noise source cannot draw.
        """
        noise = check_noise(noise)
        resolution = self.model.resolution
        if not isinstance(values, PrivatePeriod):
            array = self.in_order(values)
            values = PrivatePeriod.from_values(array, resolution=resolution, first_step=first_step)
        elif first_step not in (0, values.first_step):
            raise ParameterError(
                f"first_step is {first_step}, and the period begins at {values.first_step}: leave it out"
            )
        elif values.resolution != resolution:
            raise ParameterError(
                f"the period's resolution {values.resolution} is not the model's {resolution}"
            )
        return self._draw(values, noise, state)

    def in_order(self, values: Any) -> Any:
        """Return readings (n_leaves, n_steps) in the order of the leaves, as `measure` takes them."""
        return _in_order(values, None if self.own_tree is None else self.own_tree.leaves)

    def estimate(self, measured: Measured) -> Release:
        """Compute the release from its measurements; repeatable. Raises ParameterError for measurements of
        another kind than this mechanism draws, or of other levels.

        Args:
            measured: Of `measure` or `Measured.from_bytes`.
        """
        found = self.fitted(measured)
        free = found.unbounded if isinstance(found, Consistent) else None
        release = Release(found.values, measured, self, optimality=found.optimality, before_bound=free)
        is_noise = self.misses_only_noise(measured)
        return replace(release, standard_errors=release.noise_standard_errors) if is_noise else release

    def self_check(self, measured: Measured) -> SelfCheck:
        """Compare a period's measurements with what those before predicted of them."""
        return SelfCheck()

    def measured(self, measured: Measured) -> bool:
        """Return whether `revise` can make a new estimate of these measurements."""
        return False

    def revise(self, measured: Measured, later: Sequence[Measured]) -> Release:
        """Return a period estimated again, with later measurements too. Raises ParameterError as `estimate`.

        Args:
            measured: Of the period; must be `measured` by this mechanism where it revises.
            later: The following periods' measurements, in order, likewise.

        Returns:
            The new estimate, with the spends of `measured`; `estimate`'s where later periods teach nothing.
        """
        return self.estimate(measured)

    def release(
        self,
        values: ArrayLike | PrivatePeriod,
        *,
        noise: NoiseSource | None = None,
        first_step: int = 0,
        state: State | None = None,
    ) -> Release:
        """Measure and estimate; arguments, cost and errors as `measure`.

        Examples:
            >>> import optstream
            >>> model = optstream.PrivacyModel(epsilon=1, window=4, alpha=1, resolution=1)
            >>> release = optstream.Laplace(model).release([[5, 7, 6, 9]], noise=optstream.simulated_noise(0))
            >>> release.values
            array([[5., 5., 4., 6.]])
            >>> optstream.Laplace(model).release([[5, 7, 6, 9]])
            Traceback (most recent call last):
                ...
            optstream.errors.ParameterError: noise must be secure_noise(), or simulated_noise(seed) for ...
        """
        return self.estimate(self.measure(values, noise=noise, first_step=first_step, state=state))


# Mechanisms over plain series, by period or by step.

LARGEST_SCALE = 2**40
"""Noise of this scale still fits, with a margin, in exactly represented integers, and its sums into
floats that show a resolution unit: so no release fails its contract for want of digits."""


def checked_scale(scale: Fraction) -> Fraction:
    """Return the scale of some noise. Raises ParameterError where it would outgrow the integers."""
    if scale > LARGEST_SCALE:
        raise ParameterError(
            "the noise would outgrow the integers: choose a larger epsilon or a coarser resolution"
        )
    return scale


class SeriesMechanism(Mechanism):
    """A mechanism over series; one customer changes `model.leaves_per_step` of them at a step. Its series are
    the nodes of one level. By default the steps of its only spend are measured, and their values held until
    the next. But for `Fourier`, a period may be a single step."""

    tree_class: ClassVar[str | None] = "Hierarchical"
    takes_margin: ClassVar[bool] = True

    def on_level(self, model: PrivacyModel, n_nodes: int) -> "SeriesMechanism":
        """Return the same mechanism for the `n_nodes` nodes of one level, with the level's guarantee."""
        pattern: Any = self  # every mechanism is a dataclass, which mypy cannot know
        given = {"n_nodes": n_nodes} if hasattr(pattern, "n_nodes") else {}
        found: SeriesMechanism = replace(pattern, model=model, **given)
        return found

    def fitted(self, measured: Measured) -> Estimate:
        """Return every step's value and variance, from the measurements alone, (n_series, n_steps)."""
        return hold(measured)

    def _draw(self, period: PrivatePeriod, noise: NoiseSource, state: State | None) -> Measured:
        spend: Any
        (spend,) = self.plan(period.n_steps, period.first_step, state)
        return measure_steps(period, np.flatnonzero(spend.weights).tolist(), spend, noise)

    def noise_variances(self, measured: Measured) -> NDArray[np.float64] | None:
        return self.fitted(measured).noise_variances

    def period_scales(self, n_steps: int) -> dict[str, Fraction]:
        """Return the noise scales, in units, of spends by the period (`PeriodSpend`), by name."""
        return {}

    def _scale(self, epsilon: Fraction) -> Fraction:
        """Return the scale of Laplace noise that loses at most `epsilon` a step, rounded up to a float."""
        return checked_scale(Fraction(round_up_to_float(self.model.moved_units / epsilon)))

    def _step_spend(
        self, stage: str, first_step: int, weights: tuple[int, ...], epsilon: Fraction
    ) -> StepSpend:
        """Return the spend of noise by `_scale`: a step of weight 1 loses at most `epsilon`."""
        model, scale = self.model, self._scale(epsilon)
        return StepSpend(0, stage, first_step, weights, scale, model.alpha_units, model.leaves_per_step)


# From a caller's values to a private period. Labels, types and shapes may be refused, never a reading.


def check_noise(noise: NoiseSource | None) -> NoiseSource:
    """Return a source of noise. Raises ParameterError for anything else, such as None or 0."""
    if noise is None or isinstance(noise, type) or not hasattr(noise, "discrete_laplace"):
        raise ParameterError(
            "noise must be secure_noise(), or simulated_noise(seed) for unpublished values: nothing is "
            f"released without noise, and epsilon says how much; got {noise!r:.80}"
        )
    return noise


def _frame_kind(value: object) -> str | None:
    """Return a frame's or series' library and class; a caller's value is of one only if it is imported."""
    for library in ("polars", "pandas"):
        for name in ("DataFrame", "Series"):
            kind = getattr(sys.modules.get(library), name, None)
            if kind is not None and isinstance(value, kind):
                return f"{library}.{name}"
    return None


def _in_order(values: Any, leaves: Sequence[str] | None) -> Any:
    """Return a frame's readings (n_leaves, n_steps), labels matched with the leaves; an array as it is."""
    kind = _frame_kind(values)
    if kind is None:
        if not isinstance(values, np.ndarray | np.generic | Sequence | Number):
            raise ParameterError(
                "values must be a numpy array or lists, series in their order, or a polars or pandas frame, "
                f"leaves by their names; got {type(values).__name__}"
            )
        # masked entries are missing; numpy would take the values under the mask
        return values.filled(0) if isinstance(values, np.ma.MaskedArray) else values
    if leaves is None and kind.endswith("Series"):
        return values.to_numpy()
    if leaves is None:
        raise ParameterError(
            "this mechanism is over plain series, which have no names that a frame's labels could be matched "
            "with: give an array, a series in each row, or put the mechanism on its tree (Hierarchical)"
        )
    frame = values.to_frame() if kind.endswith("Series") else values
    columns = Counter(frame.columns)
    index = Counter(frame.index) if hasattr(frame, "index") else Counter[Any]()
    by_row = index == Counter(leaves)
    if by_row == (columns == Counter(leaves)):
        found = {
            "missing": [leaf for leaf in leaves if leaf not in columns | index],
            "no leaf": [f"{label}" for label in columns if label not in leaves],
            "more than once": [leaf for leaf in leaves if columns[leaf] > 1],
        }
        wrong = next((f"{name}: {some_of(labels)}" for name, labels in found.items() if labels), None)
        raise ParameterError(
            "a frame must have each leaf of the hierarchy once, and nothing else, in its columns, or in the "
            f"index of a pandas frame; {wrong or 'here both have them'}"
        )
    if by_row:
        frame = frame.T
    if kind.startswith("polars"):
        numeric = all(dtype.is_integer() or dtype.is_float() for dtype in frame.dtypes)
    else:
        numeric = all(getattr(dtype, "kind", "O") in "iuf" for dtype in frame.dtypes)
    if not numeric:
        raise ParameterError("a frame's columns must be integers or floats to be counted")
    if kind.startswith("polars"):
        return frame.select(leaves).fill_null(0).to_numpy().T
    if frame.index.inferred_type != "string" and not frame.index.is_monotonic_increasing:
        raise ParameterError(
            "a frame's steps must be in order: sort them by time, in UTC where clocks change"
        )
    return np.stack([frame[leaf].fillna(0).to_numpy() for leaf in leaves])


# Parameters and states.


def check_positive(value: object, name: str) -> None:
    """Raise ParameterError for anything but a finite number above 0."""
    if isinstance(value, bool) or not isinstance(value, Real) or not 0 < float(value) < float("inf"):
        raise ParameterError(f"{name} must be a finite number greater than 0; got {value!r}")


def own_state(state: State | None, mechanism: str) -> dict[str, Any]:
    """Return the state of this mechanism, empty at the start of a stream. Another's raises ParameterError:
    read as "nothing spent" it would void the guarantee."""
    if state is None:
        return {}
    if not hasattr(state, "get") or state.get("mechanism") != mechanism:
        raise ParameterError(f"state of {mechanism} must be a state that a release of {mechanism} left")
    return dict(state)


def memory_of(before: State | None, mechanism: str) -> dict[str, Any]:
    """Return `own_state`, but empty for another mechanism's: the stream has changed its mechanism."""
    return own_state(before, mechanism) if before and before.get("mechanism") == mechanism else {}


def known_spends(state: State | None, mechanism: str) -> list[Spend]:
    """Return the spends of a state; none for no state. Raises ParameterError as `own_state`."""
    return [spend_from_document(one) for one in own_state(state, mechanism).get("spends", ())]


def measured_steps(spends: Iterable[Spend], stage: str) -> list[int]:
    """Return the running index of every step that these spends measured at this stage, rising."""
    return sorted(
        spend.first_step + step
        for spend in spends
        if isinstance(spend, StepSpend | JointSpend | OrderSpend) and spend.stage == stage
        for step, weight in enumerate(spend.weights)
        if weight
    )


def points_after(points: Iterable[int], end: int, window_length: int) -> list[int]:
    """Return, rising, the steps that share a window with one at or after `end`, repeats included."""
    return sorted(step for step in points if step > end - window_length)


def last_values(measured: Measured) -> dict[str, Any]:
    """Return the last values of a period, from which `estimate.hold` begins the next one."""
    if measured.positions:
        assert measured.point_variances is not None
        return {
            "held": [int(value) for value in measured.points[:, -1]],
            "held_variance": float(measured.point_variances[0, -1]),
        }
    return {key: value for key, value in (measured.before or {}).items() if key in ("held", "held_variance")}


def checked_share(share: Exact, name: str) -> Fraction:
    """Return a share as a fraction, between 0 and 1, which both sides of a division of epsilon need."""
    found = exact(share, name)
    if not 0 < found < 1:
        raise ParameterError(f"{name} must lie between 0 and 1; got {found}")
    return found


def checked_shares(shares: Sequence[Exact], length: int, name: str) -> tuple[Fraction, ...]:
    """Return `length` shares as fractions, none negative, their sum in (0, 1]."""
    if isinstance(shares, str) or len(shares) != length:
        raise ParameterError(f"{name} must have {length} shares; got {shares!r}")
    parts = tuple(exact(share, name) for share in shares)
    listed = ", ".join(map(str, parts))
    if any(part < 0 for part in parts):
        raise ParameterError(f"{name} must not be negative; got {listed}")
    if not 0 < sum(parts) <= 1:
        raise ParameterError(f"{name} must add up to more than 0 and at most 1; got {listed} = {sum(parts)}")
    return parts


def checked_level_shares(shares: Sequence[Exact], tree: AggregationTree) -> tuple[Fraction, ...]:
    """Return one share for each level, root first; a level that holds leaves must have one."""
    parts = checked_shares(shares, tree.n_levels, "level_shares (one for each level, root first)")
    for leaf in tree.leaf_indices:
        if parts[tree.depths[leaf]] == 0:
            raise ParameterError(
                f"level_shares: level {tree.depths[leaf]} holds the leaf {tree.nodes[leaf]!r} and needs a "
                "share above 0; only levels without leaves can be derived from those below"
            )
    return parts
