"""Draws of the posterior's error, consistent across days: replicates of what learns from history.

By Matheron's rule: with f drawn from the prior and noise n, f less its posterior mean given f + n at the
blocks has the posterior's covariance. Both are functions of replicate, leaf and time alone (`uniforms`).
Source: Wilson et al. 2021, "Pathwise conditioning of Gaussian processes"; random features: Rahimi and Recht
2007. Privacy: none.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy
from numpy.typing import NDArray

from optstream.estimation.replicates import Keys, keys_of, normals, uniforms
from optstream.history.blocks import Blocks
from optstream.history.posterior import TreePosterior
from optstream.history.prior import (
    Component,
    Kernel,
    Lengths,
    TemporalPrior,
    constant,
    daily,
    rough,
    smooth,
    weekly,
)
from optstream.stream.public_days import DAYS_OF_A_WEEK

Floats = NDArray[np.float64]

N_FREQUENCIES = 24  # of each component and replicate; of any number the covariance is right on average
MOST_HARMONICS = 64
SHARED, OWN, NOISE, FREQUENCY, COEFFICIENTS = range(5)  # first keys: different ones give independent numbers
PERIODS: dict[Kernel, float] = {daily: 1.0, weekly: float(DAYS_OF_A_WEEK)}


@dataclass(frozen=True, eq=False)
class Frequencies:
    """Random frequencies of a component, (n_replicates, n) each: harmonic times of its period, plus the rest.
    Drawn at the prior medians and weighted for learned parameters, so that these move a draw a little."""

    component: Component
    harmonics: NDArray[np.int64]
    rest: Floats

    @classmethod
    def drawn(cls, component: Component, number: int, n_replicates: int) -> "Frequencies":
        """Return those of the component of this number in the prior, by stratified uniform numbers."""
        n = 1 if component.kernel is constant else N_FREQUENCIES
        replicates, places = np.arange(n_replicates)[:, None], np.arange(n)
        moved, shuffled = (uniforms(FREQUENCY, part, number, replicates, places) for part in (0, 1))
        even = (places + moved) / n
        none = np.zeros_like(even, dtype=np.int64)
        if component.kernel is constant:
            return cls(component, none, np.zeros_like(even))
        first, last = component.lengths[0], component.lengths[-1]
        if component.kernel is smooth:
            return cls(component, none, scipy.special.stdtrit(3.0, even) / first)
        rest = np.tan(np.pi * (even - 0.5)) / last
        if component.kernel is rough:
            return cls(component, none, rest)
        every = np.arange(-MOST_HARMONICS, MOST_HARMONICS + 1)
        below = np.cumsum(scipy.special.ive(np.abs(every), first**-2.0))
        return cls(component, every[np.searchsorted(below / below[-1], shuffled)], rest)

    def weights(self, lengths: Lengths) -> Floats:
        """Return each frequency's share of the variance under these lengths, (n_replicates, n)."""
        ratio = self._density(lengths) / self._density(self.component.lengths)
        return np.asarray(ratio / ratio.shape[1])

    def _density(self, lengths: Lengths) -> Floats:
        if self.component.kernel is constant:
            return np.ones(self.rest.shape)
        if self.component.kernel is smooth:
            return np.asarray(lengths[0] * (1.0 + (self.rest * lengths[0]) ** 2 / 3.0) ** -2)
        found = lengths[-1] / (1.0 + (self.rest * lengths[-1]) ** 2)
        if self.component.kernel in PERIODS:
            found = found * scipy.special.ive(np.abs(self.harmonics), lengths[0] ** -2.0)
        return np.asarray(found)

    def at(self, blocks: Blocks, steps_per_day: int, lengths: Lengths) -> Floats:
        """Return cosines and sines summed over unweighted blocks, of variance 1 together under these lengths,
        (n_replicates, 2 n, n_blocks)."""
        period = PERIODS.get(self.component.kernel, 1.0)
        a_step = (2.0 * np.pi * self.harmonics / period + self.rest)[:, :, None] / steps_per_day
        days, within = np.divmod(blocks.clock, steps_per_day)
        kinds, kind = np.unique(np.stack([within, blocks.lengths]), axis=1, return_inverse=True)
        days, day = np.unique(days, return_inverse=True)
        half, (first, size) = np.sin(0.5 * a_step), kinds
        flat = np.abs(half) < 1e-7  # a sum of equal terms, to their last digits
        sums = np.sin(0.5 * a_step * size) / np.where(flat, 1.0, half)
        if flat.any():
            sums = np.where(flat, size * np.cos(0.5 * a_step * (size - 1)), sums)
        sums = sums * np.sqrt(self.weights(lengths))[:, :, None]
        of_kinds = sums * np.exp(1j * (a_step * (first + 0.5 * (size - 1))))
        of_days = np.exp(1j * (a_step * steps_per_day * days))
        # a block's angle is that of its day and that of its place in it, and there are few of each
        waves = of_days[:, :, day] * of_kinds[:, :, kind]
        return np.concatenate([waves.real, waves.imag], axis=1)


def prior_draws(prior: TemporalPrior, blocks: Blocks, n: int, *parts: tuple[int, Keys]) -> list[Floats]:
    """Return draws of parts (`SHARED` or `OWN`) of the prior of leaves, (n, n_leaves, n_blocks) each."""
    found = [np.zeros((n, leaves.size, blocks.clock.size)) for _, leaves in parts]
    replicates = np.arange(n)[:, None, None]
    of_gates = {"always": np.zeros_like(blocks.kinds), "kind": blocks.kinds, "event": blocks.events}
    strengths = prior.strengths(blocks) if prior.hours.size else np.ones(blocks.clock.size)
    for number, (one, _, *variances, lengths) in enumerate(prior.parameters):
        gates = of_gates[one.gate]
        open_gates = np.unique(gates[gates > 0] if one.gate == "event" else gates).tolist()
        if not open_gates:
            continue
        every = Frequencies.drawn(one, number, n).at(blocks, prior.steps_per_day, lengths)
        times = blocks.weight * (strengths if one.by_hour else 1.0)
        numbers = np.arange(every.shape[1])
        for gate in open_gates:
            at = np.flatnonzero(gates == gate)
            waves = every if at.size == gates.size else every[:, :, at]
            for drawn, (part, leaves) in zip(found, parts, strict=True):
                amplitudes = normals(part, replicates, number, gate, numbers, leaves[:, None])
                drawn[:, :, at] += np.sqrt(variances[part]) * (amplitudes @ waves) * times[at]
    return found


@dataclass(frozen=True, eq=False)
class ErrorDraws:
    """Draws of the error of a posterior, for any steps."""

    posterior: TreePosterior
    n_replicates: int

    def at(self, steps: Blocks) -> tuple[Floats, Floats]:
        """Return the leaves' errors, (n_replicates, n_leaves, n_steps) each: what an estimate without noise
        would miss, and the noise's part. Their sum is a draw."""
        posterior, seen, n = self.posterior, self.posterior.seen, self.n_replicates
        moved = posterior.means_of_pulled(*self._pulled, steps)[:, seen.tree.leaf_indices]
        return self._prior(steps) - moved[:n], -moved[n:]

    @cached_property
    def _pulled(self) -> tuple[Floats, Floats]:
        """The posterior's answer to draws of the prior, then of the noise, at the blocks."""
        seen, n = self.posterior.seen, self.n_replicates
        drawn = np.stack([seen.tree.add_up(one) for one in self._prior(seen.blocks)])
        nodes, clock = keys_of(seen.tree.nodes), seen.blocks.clock
        scales = np.sqrt(np.where(np.isfinite(seen.noise), seen.noise, 0.0))
        noise = scales[:, None] * normals(NOISE, np.arange(n)[:, None, None], nodes[:, None], clock)
        return self.posterior.pulled(np.concatenate([drawn, noise]))

    def _prior(self, blocks: Blocks) -> Floats:
        """Draws of the leaves under the prior, (n_replicates, n_leaves, n_blocks)."""
        prior, seen, n = self.posterior.prior, self.posterior.seen, self.n_replicates
        parts = (SHARED, np.zeros(1, dtype=np.uint64)), (OWN, keys_of(seen.tree.leaves))
        shared, own = prior_draws(prior, blocks, n, *parts)
        return np.asarray(seen.sizes[:, None] * (shared + own))
