"""What every mechanism is: a plan that is priced, a draw that costs it, an estimate that is free."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from optstream.estimation.estimate import Optimality
from optstream.estimation.least_squares import Consistent
from optstream.estimation.replicates import noise_replicates
from optstream.mechanisms.period_release import Release
from optstream.mechanisms.values import as_period, check_noise
from optstream.noise import NoiseSource
from optstream.privacy import PrivacyModel, Spend, worst_window
from optstream.privacy.model import Currency
from optstream.stream import AggregationTree, Measured, PrivatePeriod, State
from optstream.stream.changes import TreeMap


class Mechanism(ABC):
    """Base of every mechanism: a plan that is priced, a draw that costs it, an estimate.

    Only `measure` and `release` cost privacy; all other methods read noisy numbers and public facts.
    `measured` are measurements of one period, of this mechanism: others raise ParameterError. Values and
    their errors are (n_nodes, n_steps), in the unit of the readings.

    Attributes:
        model: The privacy guarantee.
        adaptive: Whether a period's measurements or estimates depend on those of other periods, so that
            periods go one by one and a state goes from each to the next.
        noise_is_known: Whether each value's noise variance is known before the draw.
        one_leaf_a_period: Whether, for unit "customer", it is priced for customers whose readings of a period
            lie in so many leaves as its `leaves_per_period`, 1 where it has none.
        takes_covariates: Whether public covariates shape its estimates.
        compares_noise: Whether it chooses between joint and Laplace noise by default.
        chooses_shares: Whether its class on a tree chooses the levels' shares, from a public `scale`.
        takes_margin: Whether it may stand on a hierarchy with a margin, which is measured as one more level.
        serves_hours: Whether periods may be hours: it cuts or transforms no day as a whole.
        also_called: Its other name in `optstream.mechanisms.MECHANISMS`; None mostly.
        tree_class: The class of `optstream.mechanisms` that puts it on a tree; None where it has a `tree` of
            its own.
        currency: That of the privacy guarantees that it takes: it refuses others when it is made.
        revises: Whether it learns more of a period from later measurements (`revise`).
        has_self_check: Whether it finds days that were unlike all others (`events`).
        days_independent: Whether the errors of one period's estimate are independent of another's.
    """

    model: PrivacyModel
    adaptive: ClassVar[bool] = False
    noise_is_known: ClassVar[bool] = True
    one_leaf_a_period: ClassVar[bool] = False
    takes_covariates: ClassVar[bool] = False
    compares_noise: ClassVar[bool] = False
    chooses_shares: ClassVar[bool] = False
    takes_margin: ClassVar[bool] = False
    serves_hours: ClassVar[bool] = True
    also_called: ClassVar[str | None] = None
    tree_class: ClassVar[str | None] = None
    currency: ClassVar[Currency] = "epsilon"
    revises: ClassVar[bool] = False
    has_self_check: ClassVar[bool] = False
    days_independent: ClassVar[bool] = True

    @property
    def reads_spends(self) -> bool:
        """Whether a plan depends on other periods' spends, by default if adaptive: `recall` comes first."""
        return self.adaptive

    @property
    @abstractmethod
    def epsilon(self) -> Fraction:
        """What the plan, repeated without end, costs any window, in the model's currency."""

    def expected_by_level(self) -> NDArray[np.float64] | None:
        """Return the errors that a prior expects at each level once it has learned, from public facts.

        Returns:
            (n_levels, 3), in the unit of the readings, root first: a node's root mean square error, the size
            of a typical node, and the error if nothing were measured, or 0 published. nan where no public
            scale is known; None for a mechanism without a prior.
        """
        return None

    @abstractmethod
    def plan(self, n_steps: int, first_step: int = 0, state: State | None = None) -> tuple[Spend, ...]:
        """Return the most that a period will cost, known before the draw.

        Args:
            n_steps: Steps of the period.
            first_step: Running index of its first step.
            state: The state after the period before, or of `recall`; None at the start of a stream.

        Returns:
            The spends that the ledger reserves. The draw costs at most that.

        Raises:
            ParameterError: For a state of another mechanism, or a period of a length for which the mechanism
                was not made (too short, or not that of its features).
        """

    def carried_over(self, state: State, between: TreeMap, first_step: int) -> State | None:
        """Return the state after a period for a period with another tree.

        Args:
            state: Public, of the last period with the tree before.
            between: From the nodes of that tree to those of this mechanism's.
            first_step: Running index of the first step of the period.

        Returns:
            The state where every node keeps its place; None where nodes came or went, and the mechanism
            starts again.
        """
        return state if between.is_renaming else None

    @property
    def own_tree(self) -> AggregationTree | None:
        """The tree whose names label readings and values; None over plain series."""
        found: AggregationTree | None = getattr(self, "tree", None)
        return found

    @abstractmethod
    def _draw(self, period: PrivatePeriod, noise: NoiseSource, state: State | None) -> Measured:
        """Draw the measurements of one period, at most the plan's spends."""

    @abstractmethod
    def _consistent(self, measured: Measured) -> Consistent:
        """Return every node's value at every step, from the measurements alone."""

    def noise_variances(self, measured: Measured) -> NDArray[np.float64] | None:
        """Return the variance that the noise of all measurements leaves in each value before the bound.

        It is computed from noise scales and positions alone; `Estimate` says when it is 0, nan or None.
        """
        return None

    def misses_only_noise(self, measured: Measured) -> bool:
        """Return whether the error of the estimate, before its bound, is noise alone.

        So it is where every step was measured and nothing was smoothed: then the noise's standard errors are
        those of the whole error.
        """
        return False

    def noise_replicates(self, measured: Measured, n: int) -> NDArray[np.float64] | None:
        """Return n draws of the noise's effect on all values before the bound, (n, n_nodes, n_steps).

        None where `noise_variances` does not know all of them, and where noise of other periods is in the
        values.
        """
        pattern = getattr(self, "mechanism", self)
        if not (self.days_independent and pattern.days_independent):
            return None
        variances = self.noise_variances(measured)
        if variances is None or not np.isfinite(variances).all():
            return None
        return noise_replicates(self.unbounded, measured, n)

    def unbounded(self, measured: Measured) -> NDArray[np.float64]:
        """Return every node's value at every step before the lower bound, of which standard errors are."""
        pattern: Any = self  # every mechanism is a dataclass, which mypy cannot know
        free = replace(pattern, lower_bound=None) if hasattr(pattern, "lower_bound") else pattern
        found: NDArray[np.float64] = free._consistent(measured).values
        return found

    def foreseen(self) -> "Mechanism | None":
        """Return a mechanism of the same scales whose noise is known before the draw, for a preview.

        It is the mechanism itself where its noise is known; None where the draw decides.
        """
        return self if self.noise_is_known else None

    def recall(self, spends: Iterable[Spend], before: State | None = None) -> State | None:
        """Return the state for `plan` and `measure`, from the ledger; None for a mechanism that keeps none.

        Args:
            spends: Of all other periods within a window, earlier and later ones.
            before: The state after the period before, if there is one. Only estimates need it, and that of
                another mechanism is ignored.
        """
        return None

    def prepared(self, state: State | None, first_step: int) -> State | None:
        """Return the state for the draw of a period, with all that can be computed before the draw.

        `measure` does it by default; done before, a failure in it has drawn nothing.

        Args:
            state: As for `plan`.
            first_step: Running index of the period's first step.

        Raises:
            ParameterError: For a state of another mechanism.
        """
        return state

    def measure(
        self,
        values: ArrayLike | PrivatePeriod,
        *,
        noise: NoiseSource,
        first_step: int = 0,
        state: State | None = None,
    ) -> Measured:
        """Draw the measurements of one period: the only part that costs privacy, at most `plan`'s spends.

        Args:
            values: (n_series, n_steps) in the unit of the readings: an array by position, in the order of
                `tree.leaves` on a tree; a polars or pandas frame by label, with the leaves' names in its
                columns (or in the index of a pandas frame) in any order and a row for each step; or a
                PrivatePeriod.
            noise: Secure for publication; a release of simulated noise is marked.
            first_step: Running index of the first step; may be left out with a PrivatePeriod, which knows it.
            state: The state after the period before; None at the start of a stream. The privacy guarantee
                over several periods holds only with it.

        Returns:
            Noisy numbers, their spends, and the state for the next period.

        Raises:
            ParameterError: For a shape, type, label, length, state or noise that does not fit, never for a
                value. Nothing was drawn then.
            NoiseError: If the noise source cannot draw.
        """
        check_noise(noise)
        leaves = None if self.own_tree is None else self.own_tree.leaves
        period = as_period(values, self.model, first_step, leaves)  # labels are matched: nothing is drawn yet
        return self._draw(period, noise, state)

    def estimate(self, measured: Measured) -> Release:
        """Compute the release from its measurements; repeatable.

        Args:
            measured: Of `measure` or `Measured.from_bytes`.

        Returns:
            Every node's value at every step, with its cost.

        Raises:
            ParameterError: For measurements of another kind than this mechanism draws, or of other levels.
        """
        found = self._consistent(measured)
        return self._release(measured, found.values, optimality=found.optimality)

    def events(self, measured: Measured) -> tuple[int, ...]:
        """Return the numbers, on the public clock, of days that were found unlike all others.

        There are none without a self-check.
        """
        return ()

    def measured(self, measured: Measured) -> bool:
        """Return whether these are measurements of which `revise` makes a new estimate."""
        return False

    def revise(self, measured: Measured, later: Sequence[Measured]) -> Release:
        """Return a period estimated again, with later measurements too.

        Args:
            measured: Of the period; must be `measured` by this mechanism where it revises.
            later: The following periods' measurements, in order, likewise.

        Returns:
            The new estimate, with the spends of `measured`; the first one where nothing is learned from
            later periods.

        Raises:
            ParameterError: As `estimate`.
        """
        return self.estimate(measured)

    def _release(
        self,
        measured: Measured,
        values: NDArray[np.float64],
        standard_errors: NDArray[np.float64] | None = None,
        optimality: Optimality | None = None,
        errors_of: Callable[[int], NDArray[np.float64] | None] | None = None,
    ) -> Release:
        bounded = getattr(self, "lower_bound", None) is not None
        noise_of = partial(self._noise_standard_errors, measured)
        noise_errors_of = partial(self.noise_replicates, measured)
        if standard_errors is None and self.misses_only_noise(measured):
            standard_errors, errors_of = noise_of(), noise_errors_of
        return Release(
            values=values,
            measured=measured,
            spends=measured.spends,
            epsilon=self.epsilon,
            epsilon_alone=worst_window(measured.spends, self.model.window_length).epsilon,
            state=measured.state,
            simulated=measured.simulated,
            standard_errors=standard_errors,
            optimality=optimality,
            noise_of=noise_of,
            unbounded_of=partial(self.unbounded, measured) if bounded else None,
            noise_errors_of=noise_errors_of,
            errors_of=errors_of,
            tree=self.own_tree,
        )

    def _noise_standard_errors(self, measured: Measured) -> NDArray[np.float64] | None:
        variances = self.noise_variances(measured)
        if variances is None:
            return None
        known = np.where(variances > 0, variances, np.nan)
        return None if np.isnan(known).all() else np.sqrt(known)

    def release(
        self,
        values: ArrayLike | PrivatePeriod,
        *,
        noise: NoiseSource,
        first_step: int = 0,
        state: State | None = None,
    ) -> Release:
        """Measure and estimate; arguments, cost and errors as `measure`."""
        return self.estimate(self.measure(values, noise=noise, first_step=first_step, state=state))
