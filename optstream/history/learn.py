"""The prior's parameters, learned from noisy measurements alone by marginal likelihood."""

from dataclasses import replace

import numpy as np
import scipy
from numpy.typing import NDArray

from optstream.history.blocks import LagTables
from optstream.history.posterior import Seen, TreePosterior
from optstream.history.prior import TemporalPrior, daily

Floats = NDArray[np.float64]

STRENGTH_DEVIATION, LENGTH_DEVIATION = 0.7, 0.4
"""Standard deviations of the logarithms of strengths and lengths around their prior medians."""
UPWARDS = 2.0 * STRENGTH_DEVIATION**2
"""Of a logarithm x: with exp(2 x), a density of this variance has its mass so much above x's."""
FARTHEST = 6.0
"""Of these deviations from the medians: beyond it numbers overflow, and the likelihood is none."""
MOST_ITERATIONS = 30
ENOUGH = 0.02  # of the log likelihood: an iteration that gains less is the last
STEP = 1e-4  # of a logarithm, for the derivative of a kernel by a length


PARTS_OF_DAY, FEWEST_PARTS = 24, 4
HOUR_DEVIATION, HOUR_LENGTH, HOUR_JITTER = 0.7, 0.5, 0.1
"""Of the logarithm of an hour's strength; how smooth it is, as the first length of `daily`; and the part of
the variance that hours do not share."""

FIRST_ITERATIONS, PROMISING = 4, 0.3
"""Iterations that show whether hours differ, and the part of the gain that they must have by then."""


def learn(start: TemporalPrior, seen: Seen) -> TemporalPrior:
    """Return the prior whose parameters make the measurements, and themselves, most likely, or `start`, with
    the `spread` around them. Hours differ in strength only where that gains more than its information
    criterion (Schwarz 1978)."""
    n_hours = min(PARTS_OF_DAY, start.steps_per_day)
    alike = replace(start, hours=np.ones(0), spread=np.zeros(0))
    alike, value = _most_likely(alike, seen, MOST_ITERATIONS)
    if n_hours < FEWEST_PARTS:
        return with_spread(alike, seen)
    hours = start.hours if start.hours.size == n_hours else np.ones(n_hours)
    least = 0.5 * n_hours * np.log(seen.blocks.clock.size)
    unlike, less = _most_likely(replace(alike, hours=hours), seen, FIRST_ITERATIONS)
    if value - less > PROMISING * least:
        unlike, less = _most_likely(unlike, seen, MOST_ITERATIONS)
    return with_spread(unlike if value - less > least else alike, seen)


def with_spread(prior: TemporalPrior, seen: Seen) -> TemporalPrior:
    """Return the likeliest prior with the variances of the logarithms of its shared strengths: of a normal
    posterior with the curvature of the likelihood over `UPWARDS`, where that is above 0, and the prior's. A
    strength that measurements hardly know counts by its mean square, not by the likeliest value, which is
    less."""
    places = np.array([place for _, place, *_ in prior.parameters])
    tables = LagTables.between(seen.blocks, seen.blocks, prior.steps_per_day)

    def slopes(logs: Floats) -> Floats:
        gradient = likelihood_gradient(TreePosterior(replace(prior, logs=logs), seen), tables)
        return np.asarray(gradient[places])

    moved = prior.logs + UPWARDS * np.eye(prior.logs.size)[places]
    try:
        curvature = (slopes(prior.logs) - np.array([slopes(one) for one in moved])) / UPWARDS
        precision, basis = np.linalg.eigh((curvature + curvature.T) / 2.0)
    except (ValueError, ArithmeticError):
        return prior
    return replace(prior, spread=basis**2 @ (1.0 / (np.maximum(precision, 0.0) + STRENGTH_DEVIATION**-2)))


def _most_likely(start: TemporalPrior, seen: Seen, most_iterations: int) -> tuple[TemporalPrior, float]:
    """Return the parameters that minimise -log p(measured | parameters) - log p(parameters), and that, by
    L-BFGS from `start`. The latter is normal around the medians and alike hours; the likelihood is that of
    Gaussian noise."""
    medians = TemporalPrior.broad(start.steps_per_day, start.components).logs
    deviations = np.concatenate(
        [[STRENGTH_DEVIATION] * 2 + [LENGTH_DEVIATION] * len(one.lengths) for one in start.components]
    )
    hours = np.arange(start.hours.size) / max(start.hours.size, 1)
    alike = daily(hours[:, None] - hours, (HOUR_LENGTH, np.inf)) + HOUR_JITTER * np.eye(hours.size)
    root = scipy.linalg.block_diag(np.diag(deviations), HOUR_DEVIATION * np.linalg.cholesky(alike))
    tables = LagTables.between(seen.blocks, seen.blocks, start.steps_per_day)

    def prior_of(values: Floats) -> TemporalPrior:
        moved = root @ values
        return replace(start, logs=medians + moved[: medians.size], hours=np.exp(moved[medians.size :]))

    def objective(values: Floats) -> tuple[float, Floats]:
        try:
            posterior = TreePosterior(prior_of(values), seen)
        except (ValueError, ArithmeticError):
            return 1e300, np.zeros_like(values)
        value = -posterior.log_likelihood + 0.5 * float(values @ values)
        return value, values - root.T @ likelihood_gradient(posterior, tables)

    first = np.linalg.solve(root, np.append(start.logs - medians, np.log(start.hours)))
    known = {first.tobytes(): objective(first)}
    before = known[first.tobytes()][0]
    options = {"maxiter": most_iterations, "ftol": ENOUGH / max(abs(before), 1.0)}
    bounds = [(-FARTHEST, FARTHEST)] * first.size
    found = scipy.optimize.minimize(
        lambda values: known.get(values.tobytes()) or objective(values),
        first,
        jac=True,
        method="L-BFGS-B",
        bounds=bounds,
        options=options,
    )
    if np.isfinite(found.fun) and found.fun <= before:
        return prior_of(np.asarray(found.x)), float(found.fun)
    return start, before


def likelihood_gradient(posterior: TreePosterior, tables: LagTables) -> Floats:
    """Return the derivative of the log likelihood by each of the prior's `logs`, then by those of `hours`:
    with covariance Sigma and a = Sigma^-1 y, (a' dSigma a - tr(Sigma^-1 dSigma)) / 2. tables: of the
    posterior's own blocks."""
    seen, basis, joint = posterior.seen, posterior.basis, posterior.shared_pull
    leaves, sizes = seen.tree.leaf_indices, seen.sizes[:, None]
    pulls, loads = posterior.own_pull[leaves] / sizes, posterior.own_loads[leaves] / sizes
    precision = (posterior.own_precision[leaves] / sizes**2).sum(axis=0)
    # by the shared and by the own covariance, (n, n) each
    by_shared = 0.5 * (np.outer(joint, joint) - posterior.shared_precision)
    by_own = 0.5 * (pulls.T @ pulls - np.diag(precision) + posterior.kept * (loads.T @ loads))
    shared, own = basis @ by_shared @ basis.T, basis @ by_own @ basis.T
    prior, gradient = posterior.prior, np.zeros_like(posterior.prior.logs)
    of_hours = np.zeros(prior.hours.size)
    for (gate, by_hour), some in prior.alike.items():
        strengths = prior.strengths(seen.blocks) if by_hour else np.ones(1)
        within = np.outer(strengths, strengths)
        first, second = (tables.scattered(weights * within, gate) for weights in (shared, own))
        kernels = np.zeros((2, tables.days.size))
        for one, at, of_shared, of_own, lengths in some:
            kernel = one.kernel(tables.days, lengths)
            gradient[at] = 2.0 * of_shared * float(first @ kernel)
            gradient[at + 1] = 2.0 * of_own * float(second @ kernel)
            both = of_shared * first + of_own * second
            kernels += np.array([[of_shared], [of_own]]) * kernel
            for number in range(len(lengths)):
                longer = np.array(lengths)
                longer[number] *= np.exp(STEP)
                slope = (one.kernel(tables.days, longer) - kernel) / STEP
                gradient[at + 2 + number] = float(both @ slope)
        if by_hour:
            pairs = zip((shared, own), kernels, strict=True)
            moved = sum((weights * tables.gathered(kernel, gate) for weights, kernel in pairs), 0.0 * within)
            of_blocks = 2.0 * (moved * within).sum(axis=1)
            of_hours += of_blocks @ prior.parts_of_day(seen.blocks)
    return np.append(gradient, of_hours)
