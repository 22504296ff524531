"""The joint Gaussian process of a tree, written out: the oracle of the fast posterior."""

import numpy as np

from optstream.history.prior import NUGGET


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
    hours = 1.0
    if prior.hours.size:
        hours = np.outer(prior.strengths(rows)[row], prior.strengths(columns)[column])
    of_steps = sum(
        gates[one.gate] * (shared, own)[which] * one.kernel(lags, lengths) * (hours if one.by_hour else 1.0)
        for one, _, shared, own, lengths in prior.parameters
    )
    found = np.zeros((rows.clock.size, columns.clock.size))
    np.add.at(found, (row[:, None], column), of_steps)
    return found * rows.weight[:, None] * columns.weight


def _steps_of(blocks):
    """Every step of the blocks, and of which block it is."""
    steps = [first + np.arange(length) for first, length in zip(blocks.clock, blocks.lengths, strict=True)]
    return np.concatenate(steps), np.repeat(np.arange(blocks.clock.size), blocks.lengths)


def _common(columns, others):
    """What coefficients of variance 1 of these columns give two sets of rows in common."""
    return 0.0 if columns is None else _rows(columns) @ _rows(others).T


def _rows(columns):
    return columns.reshape(len(columns), -1).T


class Dense:
    """The joint Gaussian process of all nodes, and of coefficients of these columns, written out."""

    def __init__(self, prior, seen, columns=None):
        self.prior, self.seen, self.columns = prior, seen, columns
        self.sums = seen.tree.add_up(np.eye(len(seen.sizes)))
        known = np.isfinite(seen.noise)
        self.rows = np.repeat(known, seen.blocks.clock.size)
        noise = np.repeat(np.where(known, seen.noise, 1.0), seen.blocks.clock.size)
        nugget = np.diag(NUGGET * seen.blocks.weight**2 * seen.blocks.lengths)
        whole = self.covariance(seen.blocks, seen.blocks) + self.of_own(nugget) + np.diag(noise)
        whole += _common(columns, columns)
        self.measured = whole[np.ix_(self.rows, self.rows)]
        self.values = seen.residuals.ravel()[self.rows]

    def of_own(self, part):
        return np.kron(self.sums @ np.diag(self.seen.sizes**2) @ self.sums.T, part)

    def covariance(self, rows, columns):
        weights = self.sums @ self.seen.sizes
        shared, own = (by_hand(self.prior, rows, columns, which) for which in (0, 1))
        return np.kron(np.outer(weights, weights), shared) + self.of_own(own)

    def across(self, steps, columns):
        whole = self.covariance(steps, self.seen.blocks) + _common(columns, self.columns)
        return whole[:, self.rows]

    def at(self, steps, columns=None):
        means = self.across(steps, columns) @ np.linalg.solve(self.measured, self.values)
        variances = np.diag(self.spread(steps, columns))
        return means.reshape(len(self.sums), -1), variances.reshape(len(self.sums), -1)

    def spread(self, steps, columns=None):
        across = self.across(steps, columns)
        own = self.covariance(steps, steps) + _common(columns, columns)
        return own - across @ np.linalg.solve(self.measured, across.T)

    @property
    def log_likelihood(self):
        quadratic = self.values @ np.linalg.solve(self.measured, self.values)
        return -0.5 * (quadratic + np.linalg.slogdet(self.measured)[1])
