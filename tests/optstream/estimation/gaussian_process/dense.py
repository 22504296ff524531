"""The joint Gaussian process of a tree, written out: the oracle of the fast posterior."""

import numpy as np

from optstream.estimation.gaussian_process.prior import NUGGET


def by_hand(prior, rows, columns, which):
    """The covariance of two sets of blocks: that of every two steps, added up."""
    (steps, row), (others, column) = (_steps_of(one) for one in (rows, columns))
    lags = (steps[:, None] - others) / prior.steps_per_day
    event = rows.events[row][:, None]
    gates = {
        "always": True,
        "kind": rows.kinds[row][:, None] == columns.kinds[column],
        "event": (event == columns.events[column]) & (event > 0),
    }
    of_steps = sum(
        gates[one.gate] * (shared, own)[which] * one.kernel(lags, lengths)
        for one, _, shared, own, lengths in prior.parameters
    )
    found = np.zeros((rows.clock.size, columns.clock.size))
    np.add.at(found, (row[:, None], column), of_steps)
    return found * rows.worth[:, None] * columns.worth


def _steps_of(blocks):
    """Every step of the blocks, and of which block it is."""
    steps = [first + np.arange(length) for first, length in zip(blocks.clock, blocks.lengths, strict=True)]
    return np.concatenate(steps), np.repeat(np.arange(blocks.clock.size), blocks.lengths)


class Dense:
    """The joint Gaussian process of all nodes, written out."""

    def __init__(self, prior, seen):
        self.prior, self.seen = prior, seen
        self.sums = seen.tree.add_up(np.eye(len(seen.sizes)))
        known = np.isfinite(seen.noise)
        self.rows = np.repeat(known, seen.blocks.clock.size)
        noise = np.repeat(np.where(known, seen.noise, 1.0), seen.blocks.clock.size)
        nugget = np.diag(NUGGET * seen.blocks.worth**2 * seen.blocks.lengths)
        whole = self.covariance(seen.blocks, seen.blocks) + self.of_own(nugget) + np.diag(noise)
        self.measured = whole[np.ix_(self.rows, self.rows)]
        self.values = seen.residuals.ravel()[self.rows]

    def of_own(self, part):
        return np.kron(self.sums @ np.diag(self.seen.sizes**2) @ self.sums.T, part)

    def covariance(self, rows, columns):
        weights = self.sums @ self.seen.sizes
        shared, own = (by_hand(self.prior, rows, columns, which) for which in (0, 1))
        return np.kron(np.outer(weights, weights), shared) + self.of_own(own)

    def at(self, steps):
        across = self.covariance(steps, self.seen.blocks)[:, self.rows]
        means = across @ np.linalg.solve(self.measured, self.values)
        return means.reshape(len(self.sums), -1), np.diag(self.spread(steps)).reshape(len(self.sums), -1)

    def spread(self, steps):
        across = self.covariance(steps, self.seen.blocks)[:, self.rows]
        return self.covariance(steps, steps) - across @ np.linalg.solve(self.measured, across.T)

    @property
    def log_likelihood(self):
        quadratic = self.values @ np.linalg.solve(self.measured, self.values)
        return -0.5 * (quadratic + np.linalg.slogdet(self.measured)[1])
