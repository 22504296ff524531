"""How large the nodes of a level are, learned from noisy measurements of all of them: empirical Bayes."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

GRID_POINTS = 80
LEAST_RATIO, LARGEST_RATIO = 1e-3, 1e3
"""Of a node's size to the mean of its siblings: what the mixture is spread over, beside 0."""
WIDTH = 0.1
"""Standard deviation of what an atom stands for, relative to it: half the way to its neighbours."""
ROUNDS = 300
BELIEF = 2.0
"""Nodes' worth of a belief that all ratios of the grid are alike: what few nodes leave open."""
FINE = 20.0
"""Cells for each standard error, and for each factor e of a typical size: nodes that fall in one are one."""


@dataclass(frozen=True, eq=False)
class Mixture:
    """A distribution of a node's size relative to the mean of its siblings.

    Attributes:
        atoms: (n_atoms,), ratios; each stands for normal ones around it, as wide as the grid is fine.
        weights: (n_atoms,), their probabilities.
    """

    atoms: Floats
    weights: Floats

    @classmethod
    def learned(cls, observed: Floats, variances: Floats, typical: Floats) -> "Mixture":
        """Return the distribution of ratios under which what was observed is most likely.

        Maximum likelihood without a form, on a grid, by EM; with a few nodes' worth of a distribution that is
        even on the logarithm, so that a level of few nodes does not believe its own noise. Busy and empty
        nodes are atoms apart: what an empty one shows is taken for noise, what a busy one shows is not. Time
        linear in nodes but for one sort. Costs no privacy: noisy numbers only.

        observed, variances: (n,), noisy sizes in any unit, and of their noise, above 0. typical: (n,), above
        0: the mean of each node's siblings, itself included, as its parent tells.

        Source: Kiefer and Wolfowitz 1956; Jiang and Zhang 2009, "General maximum likelihood empirical Bayes
        estimation of normal means".
        """
        atoms = np.concatenate([[0.0], np.geomspace(LEAST_RATIO, LARGEST_RATIO, GRID_POINTS)])
        deviation = np.sqrt(variances)
        cells = np.rint(FINE * np.stack([observed / deviation, np.log(typical / deviation)], axis=1))
        cells, counts = np.unique(cells, axis=0, return_counts=True)
        likely = _likelihood(cells[:, 0] / FINE, np.exp(cells[:, 1] / FINE), atoms)
        weights = np.full(atoms.size, 1.0 / atoms.size)
        for _ in range(ROUNDS):
            shares = likely * weights
            weights = (counts / shares.sum(axis=1)) @ shares + BELIEF / atoms.size
            weights /= weights.sum()
        return cls(atoms, weights)

    def posterior(self, observed: Floats, variances: Floats, typical: Floats) -> tuple[Floats, Floats]:
        """Return what is known of sizes once they were observed, as in `learned`: means, at least 0, and
        variances, (n,) each, in the unit of what was observed; free.
        """
        deviation = np.sqrt(variances)
        seen, unit = (observed / deviation)[:, None], (typical / deviation)[:, None]
        shares = _likelihood(seen[:, 0], unit[:, 0], self.atoms) * self.weights
        shares /= shares.sum(axis=1, keepdims=True)
        wide = (WIDTH * unit * self.atoms) ** 2
        own = (unit * self.atoms + wide * seen) / (1.0 + wide)
        means = (shares * own).sum(axis=1)
        spread = (shares * ((own - means[:, None]) ** 2 + wide / (1.0 + wide))).sum(axis=1)
        return np.maximum(means, 0.0) * deviation, spread * variances


def _likelihood(observed: Floats, typical: Floats, atoms: Floats) -> Floats:
    """Return the density of what was observed, in standard errors, (n, n_atoms), up to a factor a row."""
    spread = 1.0 + (WIDTH * typical[:, None] * atoms) ** 2
    logs = -0.5 * ((observed[:, None] - typical[:, None] * atoms) ** 2 / spread + np.log(spread))
    return np.asarray(np.exp(logs - logs.max(axis=1, keepdims=True)))
