"""How far a day's mean may be off: not as a single value, and leaves more than the prior says."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import eye_array

from optstream.estimation.error_products import ErrorProducts
from optstream.estimation.gaussian_process.doubts.leaf_covariance import LeafCovariance
from optstream.estimation.gaussian_process.posterior import MORE_NOISE, DoubtOfLeaves
from optstream.estimation.many_leaves.groups import Groups, added, alike

Floats = NDArray[np.float64]

MORE_OF_DAYS = 0.9
"""How many times more what the prior leaves open of leaves' days counts, beside their shares of the sum."""


@dataclass(frozen=True, eq=False)
class DoubtOfDays:
    """`DoubtOfLeaves`, but for means over a day (`CovarianceOfSums`).

    The factor of a posterior is what single blocks show, of which single values err by as much. It does not
    hold of a day's mean, most of which is the doing of noise, and that is known: so an error w of a value
    becomes w - (1 - 1 / sqrt(factor)) u m, m the mean of w over its day, which is then as sure as the
    posterior says. u, of mean 1 over the day's steps, is how much of what is in doubt lies at the step
    (`in_doubt`): a step that was measured well has little of it. And the prior takes the leaves' own parts
    for independent and alike, where neighbours have the same weather: what it leaves open of a leaf's day,
    beside its share of the sum of all, counts `MORE_OF_DAYS` times more, as an error of its own that goes
    with u over the day. On the French load that is so at every epsilon alike
    (docs/decisions/0021-errors-of-sums.md).

    A day of one step is none of this: there a single value is a day's mean, and the factor is its own.

    Which part of a doubt V the prior leaves open, and not the noise: V is homogeneous in prior and noise
    together, so it is V less the derivative of V by the logarithm of the noise. Costs no privacy: a function
    of what was measured.

    Attributes:
        doubt: Of the leaves at the period's steps, then at runs of the days before it.
        n_steps: Of the period, which is a day.
    """

    doubt: DoubtOfLeaves
    n_steps: int
    n_earlier: ClassVar[int] = 0
    of_nodes: ClassVar[bool] = False

    def products(self, leaves: Floats, times: Floats) -> ErrorProducts:
        """Return what the covariance of weighted sums of leaves and of steps adds up from."""
        return self.every.of_sums(leaves, times)

    def variances(self, leaves: Floats, times: Floats) -> Floats:
        """Return the variances of the same sums, (p, q)."""
        return self.every.variances(leaves, times)

    @cached_property
    def every(self) -> ErrorProducts:
        """What the covariance of all leaves at all that is asked adds up from: rows and their file ask it."""
        n, n_leaves = self.n_steps, len(self.doubt.fitted.posterior.seen.sizes)
        times = np.eye(self.doubt.asked.clock.size)
        of_day, before = times[:, :n] @ self.in_doubt, times[:, n:].T
        even = times.copy()
        even[:, :n] = of_day[:, None] / n
        trusted = times + (self.doubt.fitted.factor**-0.5 - 1.0) * even
        together = of_day[:, None] * before[:, None, :]
        shared = np.concatenate([np.outer(of_day, of_day)[None], together + together.transpose(0, 2, 1)])
        if not self.doubt.fitted.known.leaf_spans.are_many:
            leaves = np.eye(n_leaves)
            return self.doubt.products(leaves, trusted).plus(self.more(leaves), shared)
        found = self.doubt.products(eye_array(n_leaves, format="csr"), trusted)
        return replace(found, groups=(*found.groups, *self._more_in_groups(shared)))

    def more(self, leaves: Floats) -> Floats:
        """Return by what the covariances of leaves' mean over the day, by weights (p, n_leaves), are larger,
        (1 + n_runs, p, p).

        That with itself, then with the sum of each run of days before it. What days before share among
        themselves is told by their own files.
        """
        sizes = self.doubt.fitted.posterior.seen.sizes
        divided = leaves - (leaves @ sizes / sizes.sum())[:, None]
        known, noisier = (
            one.with_first(divided, self._day_and_runs) for one in (self.doubt.covariance, self._noisier)
        )
        return np.asarray(MORE_OF_DAYS * (known - (noisier - known) / MORE_NOISE))

    def _more_in_groups(self, shared: Floats) -> list[Groups]:
        """Return `more` of many leaves, times matrices of times, (1 + n_runs, n_asked, n_asked)."""
        sizes, less = self.doubt.fitted.posterior.seen.sizes, MORE_OF_DAYS / MORE_NOISE
        every, known = eye_array(sizes.size, format="csr"), self.doubt.covariance
        parts = (
            replace(divided, matrices=part * divided.matrices)
            for part, covariance in ((MORE_OF_DAYS + less, known), (-less, self._noisier))
            for one in covariance.in_groups(self._day_and_runs)
            for divided in one.of_sums(every).of_first(shared).divided(sizes)
        )
        return [added(some) for some in alike(parts)]

    @property
    def _day_and_runs(self) -> Floats:
        """Weights of the mean over the day, then of each run of days before it, (1 + n_runs, n_asked)."""
        n, n_asked = self.n_steps, self.doubt.asked.clock.size
        times = np.zeros((1 + n_asked - n, n_asked))
        times[0, :n], times[1:, n:] = 1.0 / n, np.eye(n_asked - n)
        return times

    @cached_property
    def in_doubt(self) -> Floats:
        """How much of the day's doubt lies at each of its steps, (n_steps,), of mean 1: in proportion to the
        mean of leaves' posterior standard deviations there. About 1 at all steps where noise hides the most.
        """
        posterior, steps = self.doubt.fitted.known.published, self.doubt.asked.between(0, self.n_steps)
        found = np.sqrt(posterior.variances(steps, posterior.seen.tree.leaf_indices)).mean(axis=0)
        return np.asarray(found / found.mean() if found.any() else np.ones(self.n_steps))

    @cached_property
    def _noisier(self) -> LeafCovariance:
        """The covariance of leaves if the noise were larger by `MORE_NOISE`."""
        return LeafCovariance(self.doubt.fitted.known.noisier_leaf_spans, self.doubt.asked)
