"""The result of a mechanism."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from fractions import Fraction
from functools import cached_property
from numbers import Integral
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from optstream.errors import ParameterError
from optstream.estimation.constraints import Kept
from optstream.estimation.estimate import BAND, Optimality, SumOfValues
from optstream.estimation.replicates import n_replicates
from optstream.privacy import Spend, worst_window
from optstream.stream import AggregationTree, Measured
from optstream.stream.covariate import Covariate
from optstream.stream.tree import several

if TYPE_CHECKING:
    import altair as alt
    import polars as pl

MOST_PLOTTED = 5  # nodes of a chart by default
REPLICATES = 50  # of a release by default: a standard error is then known to a tenth of it


@dataclass(frozen=True, eq=False)
class Release:
    """The estimate of one period for every node, with its cost; printed, it says both in ten lines.

    Attributes:
        values: (n_nodes, n_steps), tree.nodes order, in the unit of the readings.
        measured: The measurements.
        mechanism: Of the measurements.
        standard_errors: Of the values, like them; nan or None where the total error is not known.
        optimality: The certificate of the bounded program; None where none was solved.
        bands: For counts, the lowest and highest of a 95 % band around each value, both included; nan where
            nothing is known.
        covariates: Public series, with the values that the estimate used.
        before_bound: The values before their bounds; None where only the mechanism without `lower_bound`
            knows them.
        errors_of: Draws whole errors, (n, n_nodes, n_steps), for `replicates`; None where noise is the whole
            error, or the whole error is not known.
        kept: The public facts that the values keep, and how exactly; None without facts.
        for_sums: Of counts, estimates whose sums are unbiased; None where `unbounded` are the best ones.
    """

    values: NDArray[np.float64]
    measured: Measured
    mechanism: Any = field(repr=False)
    standard_errors: NDArray[np.float64] | None = None
    optimality: Optimality | None = None
    bands: tuple[NDArray[np.float64], NDArray[np.float64]] | None = None
    covariates: tuple[Covariate, ...] = ()
    before_bound: NDArray[np.float64] | None = field(default=None, repr=False)
    errors_of: Callable[[int], NDArray[np.float64] | None] | None = field(default=None, repr=False)
    kept: Kept | None = field(default=None, repr=False)
    for_sums: NDArray[np.float64] | None = field(default=None, repr=False)

    @property
    def spends(self) -> tuple[Spend, ...]:
        """The cost of the draw."""
        return self.measured.spends

    @property
    def epsilon(self) -> Fraction:
        """The cost of the plan, repeated without end, to any window."""
        return Fraction(self.mechanism.epsilon)

    @property
    def epsilon_alone(self) -> Fraction:
        """The cost of these spends alone to their worst window."""
        return worst_window(self.spends, self.mechanism.model.window_length).epsilon

    @property
    def state(self) -> Mapping[str, Any] | None:
        """Public but for raw entries, for the next period."""
        return self.measured.state

    @property
    def simulated(self) -> bool:
        """Whether it is drawn with seeded noise, never publishable."""
        return self.measured.simulated

    @property
    def tree(self) -> AggregationTree | None:
        """The tree whose nodes the values are of; None over plain series."""
        found: AggregationTree | None = self.mechanism.own_tree
        return found

    @cached_property
    def noise_standard_errors(self) -> NDArray[np.float64] | None:
        """The standard deviation of the noise in each value before the bound, like the values. No error
        bands: the estimate's error between measurements is not in it. nan where it is not known or no noise
        enters, None if that is so everywhere (medians, learned parameters)."""
        variances = self.mechanism.noise_variances(self.measured)
        if variances is None or not (variances > 0).any():
            return None
        return np.sqrt(np.where(variances > 0, variances, np.nan))

    @cached_property
    def unbounded(self) -> NDArray[np.float64]:
        """The values before their lower bound, which has no part in standard errors and biases no sum."""
        if self.before_bound is not None:
            return self.before_bound
        if getattr(self.mechanism, "lower_bound", None) is None:
            return self.values
        found: NDArray[np.float64] = self.mechanism.unbounded(self.measured)
        return found

    @property
    def estimate(self) -> NDArray[np.float64]:
        """The values to add up over time: `for_sums`, or else `unbounded`."""
        return self.unbounded if self.for_sums is None else self.for_sums

    def replicates(
        self, wanted: int = REPLICATES
    ) -> tuple[Literal["whole", "noise"], NDArray[np.float64]] | None:
        """Return versions of `estimate` that err around it as it errs around the truth.

        The standard deviation of any figure over them is that figure's standard error.

        Args:
            wanted: How many; of many nodes there are fewer.

        Returns:
            "whole", or "noise" where the errors of the noise alone are known, and (n_replicates, n_nodes,
            n_steps); None where neither is known.
        """
        n = n_replicates(wanted, *self.values.shape)
        errors = self.errors_of(n) if self.errors_of and n else None
        if errors is not None:
            return "whole", self.estimate + errors
        errors = self.mechanism.noise_replicates(self.measured, n) if n else None
        if errors is None:
            return None
        is_whole = self.mechanism.misses_only_noise(self.measured)
        return "whole" if is_whole else "noise", self.estimate + errors

    def sum(self, nodes: Sequence[str] | None = None, steps: Sequence[int] | None = None) -> SumOfValues:
        """Return the sum of some nodes' values over some steps, with its standard errors.

        Standard errors are of `estimate`, the sum that the lower bound does not bias, from `REPLICATES`
        replicates. Raises ParameterError for no node or step, an unknown one, or a node that lies in another.

        Args:
            nodes: Their names, over plain series their numbers as text; None for the root, or all series.
            steps: Running indices; None for all of the period.

        Returns:
            In the unit of the readings times steps.

        Examples:
            >>> import optstream
            >>> model = optstream.PrivacyModel(epsilon=1, window=2, alpha=1, resolution=1)
            >>> noise = optstream.simulated_noise(0)
            >>> release = optstream.Laplace(model).release([[5, 7, 6], [8, 9, 7]], noise=noise)
            >>> total = release.sum(["0", "1"], range(0, 2))
            >>> total.value, f"{total.standard_error:.1f}"
            (23.0, '4.9')
        """
        if isinstance(nodes, Mapping):
            raise ParameterError(
                "nodes of a release's sum must be names, each once; `optstream.read_sum` takes weights"
            )
        at = np.ix_(self._rows(nodes), self._columns(steps))
        value, before = (float(one[at].sum()) for one in (self.values, self.estimate))
        of, replicates = self._replicates or (None, None)
        if replicates is None:
            return SumOfValues(value, None, None, before)
        error = float(replicates[:, at[0], at[1]].sum(axis=(1, 2)).std(ddof=1))
        is_noise = of == "noise" or self.mechanism.misses_only_noise(self.measured)
        return SumOfValues(value, error if of == "whole" else None, error if is_noise else None, before)

    @cached_property
    def _replicates(self) -> tuple[Literal["whole", "noise"], NDArray[np.float64]] | None:
        return self.replicates()

    def _rows(self, nodes: Sequence[str] | None) -> list[int]:
        """Return the places of nodes, none of which lies in another."""
        known = self._names
        if self.tree is not None:
            chosen = known[:1] if nodes is None else tuple(several(nodes))
            self.tree.leaves_in(chosen)  # refuses others
        else:
            chosen = known if nodes is None else tuple(several(nodes))
            if not chosen or not {*chosen} <= {*known} or len({*chosen}) < len(chosen):
                raise ParameterError(
                    f"nodes of a sum must be some of the series {known[0]!r} to {known[-1]!r}"
                )
        return [known.index(name) for name in chosen]

    def _columns(self, steps: Sequence[int] | None) -> list[int]:
        own = range(self.measured.first_step, self.measured.first_step + self.values.shape[1])
        given = own if steps is None else tuple(steps)
        if bad := [step for step in given if not isinstance(step, Integral)]:
            raise ParameterError(f"steps of a sum must be integers; got {bad[0]!r:.80}")
        chosen = {int(step) for step in given}
        if not chosen or not chosen <= {*own}:
            raise ParameterError(
                f"steps of a sum must be at least one, and of this period: {own.start} to {own[-1]}"
            )
        return [step - own.start for step in sorted(chosen)]

    @property
    def _names(self) -> tuple[str, ...]:
        return self.tree.nodes if self.tree else tuple(str(number) for number in range(len(self.values)))

    def to_frame(self) -> "pl.DataFrame":
        """Return the values with their labels, a row for each node and step, nodes in the order of the tree.

        Returns:
            Columns `step` (the running index), `node` (over plain series their number), `parent` and `level`
            on a tree, `value`, and where known `standard_error`, `lowest` and `highest` (`bands`), and
            `noise_standard_error`.
        """
        import polars as pl  # a seventh of a second, which nothing else here needs

        n_nodes, n_steps = self.values.shape
        labels: dict[str, Any] = {"node": self._names}
        if self.tree is not None:
            parents = [parent for _, parent in self.tree.parents_by_name()]
            labels |= {"parent": parents, "level": self.tree.depths}
        lowest, highest = self.bands or (None, None)
        figures = {
            "value": self.values,
            "standard_error": self.standard_errors,
            "lowest": lowest,
            "highest": highest,
            "noise_standard_error": self.noise_standard_errors,
        }
        first = self.measured.first_step
        return pl.DataFrame(
            {
                "step": np.tile(np.arange(first, first + n_steps), n_nodes),
                **pl.DataFrame(labels)[np.repeat(np.arange(n_nodes), n_steps)].to_dict(),
                **{name: array.ravel() for name, array in figures.items() if array is not None},
            }
        )

    @cached_property
    def band(self) -> tuple[NDArray[np.float64], NDArray[np.float64]] | None:
        """The lowest and highest of a 95 % band around each value; None where no total error is known."""
        if self.bands is not None or self.standard_errors is None:
            return self.bands
        return self.values - BAND * self.standard_errors, self.values + BAND * self.standard_errors

    def plot(
        self,
        nodes: Sequence[str] | None = None,
        *,
        unit: str = "",
        times: Sequence[datetime] | None = None,
        truth: Any = None,
    ) -> "alt.LayerChart | alt.FacetChart":
        """Return an Altair chart of some nodes, with bands of 95 % where total errors are known. Raises
        ParameterError for a name that is no node, times or a truth of another length, and where Altair is not
        installed.

        Args:
            nodes: Their names; None for the first five.
            unit: Of the values, for the axis.
            times: Of the steps, such as `Calendar.local_times`; None for running indices.
            truth: To compare in private, dashed: readings as `measure` takes them.
        """
        try:
            import altair as alt
            import polars as pl
        except ImportError:
            raise ParameterError("a chart needs Altair: pip install 'optstream[plots]'") from None
        frame = self.to_frame()
        chosen = self._names[:MOST_PLOTTED] if nodes is None else tuple(several(nodes))
        if unknown := [name for name in chosen if name not in self._names]:
            raise ParameterError(f"nodes must be names of the release's nodes; got {unknown[0]!r:.80}")
        steps = frame["step"]
        if times is not None:
            if len(times) != self.values.shape[1]:
                raise ParameterError(f"times must be {self.values.shape[1]}, one a step; got {len(times)}")
            steps = pl.concat([pl.Series("step", times)] * len(self.values))
        added = {} if self.band is None else {"lowest": self.band[0].ravel(), "highest": self.band[1].ravel()}
        if truth is not None:
            added["truth"] = self._truth(truth).ravel()
        rows = frame.with_columns(steps, **{name: pl.Series(values) for name, values in added.items()})
        rows = rows.filter(rows["node"].is_in(chosen))
        if times is None:
            x = alt.X("step:Q", scale=alt.Scale(zero=False, nice=False))
        else:
            x = alt.X("step:T", title="time")
        base = alt.Chart(rows).encode(x=x, color=alt.Color("node:N", sort=list(chosen)))
        y = alt.Y("value:Q", title=unit or "value", scale=alt.Scale(zero=False))
        layers: list[Any] = [base.mark_line().encode(y=y)]
        said = ["simulated noise"] * self.simulated + ["lines: released"]
        if self.band is not None:
            layers.insert(
                0, base.mark_area(opacity=0.2).encode(y=alt.Y("lowest:Q", title=""), y2="highest:Q")
            )
            said.append("bands: 95 %")
        if truth is not None:
            layers.append(base.mark_line(strokeDash=[4, 3]).encode(y=alt.Y("truth:Q", title="")))
            said.append("dashed: truth")
        return alt.layer(*layers).properties(title=", ".join(said))

    def _truth(self, readings: Any) -> NDArray[np.float64]:
        """Return every node's true values, (n_nodes, n_steps)."""
        tree, found = self.tree, np.asarray(self.mechanism.in_order(readings), dtype=np.float64)
        rows = len(self.values) if tree is None else len(tree.leaves)
        if found.shape != (rows, self.values.shape[1]):
            raise ParameterError(
                f"truth must have {rows} series of {self.values.shape[1]} steps, as the values that were "
                f"released; got {found.shape}"
            )
        return found if tree is None else tree.add_up(found)

    def __repr__(self) -> str:
        """Return cost and range of up to five nodes, in ten lines."""
        (n_nodes, n_steps), model, first = self.values.shape, self.mechanism.model, self.measured.first_step
        kind, by = "series" if self.tree is None else "nodes", type(self.mechanism).__name__
        lines = [
            f"Release of {n_nodes:,} {kind} at {n_steps} steps, {first} to {first + n_steps - 1}, by {by}",
            f"{model.in_words} in any window of {model.window} steps, charged {float(self.epsilon_alone):.4g}"
            + ("; simulated noise: never to be published" if self.simulated else ""),
            f"{'node':<20}{'lowest':>12}{'mean':>12}{'highest':>12}{'95 % band':>12}",
        ]
        for row, name in enumerate(self._names[:MOST_PLOTTED]):
            own = self.values[row]
            half = None if self.band is None else (self.band[1][row] - self.band[0][row]).mean() / 2
            shown = "" if half is None or np.isnan(half) else f"± {half:,.4g}"
            figures = "".join(f"{figure:>12,.6g}" for figure in (own.min(), own.mean(), own.max()))
            lines.append(f"{name:<20.20}{figures}{shown:>12}")
        more = n_nodes - MOST_PLOTTED
        return "\n".join([*lines, *([f"and {more:,} more: to_frame() has all"] if more > 0 else [])])

    def _repr_html_(self) -> str:
        """Return the release for notebooks: its cost, and its first and last rows."""
        n_nodes, n_steps = self.values.shape
        mark = " Simulated noise: never to be published." if self.simulated else ""
        return (
            f"<p>Release of {n_nodes} nodes at {n_steps} steps from step {self.measured.first_step}: "
            f"epsilon {self.epsilon} in any window.{mark}</p>{self.to_frame()._repr_html_()}"
        )
