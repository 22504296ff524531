"""The prior's parameters, learned from noisy measurements alone by marginal likelihood."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from optstream.history.blocks import LagTables
from optstream.history.posterior import Seen, TreePosterior
from optstream.history.prior import TemporalPrior

Floats = NDArray[np.float64]

STRENGTH_DEVIATION, LENGTH_DEVIATION = 0.7, 0.4
"""Standard deviations of the logarithms of strengths and lengths around their prior medians."""
MOST_ITERATIONS = 30
ENOUGH = 0.02
"""Of the log likelihood: an iteration that gains less is the last."""
STEP = 1e-4
"""Of a logarithm, for the derivative of a kernel by a length."""


PARTS_OF_DAY, FEWEST_PARTS = 24, 4
HOUR_DEVIATION, NEIGHBOURS_DEVIATION = 0.7, 0.3
"""Of the logarithm of an hour's strength around 0, and around that of the hour before."""


def learn(start: TemporalPrior, seen: Seen, most_iterations: int = MOST_ITERATIONS) -> TemporalPrior:
    """Return the prior whose parameters make the measurements, and themselves, most likely.

    Maximises log p(measured | parameters) + log p(parameters), the latter normal around the medians of the
    components and hours that are alike, by L-BFGS from `start`. The likelihood is that of Gaussian noise.
    Where it finds nothing better, `start` is returned.
    """
    medians = TemporalPrior.broad(start.steps_per_day, start.components).logs
    n_parts = min(PARTS_OF_DAY, start.steps_per_day)
    n_hours = n_parts if n_parts >= FEWEST_PARTS else 0
    hours = start.hours if start.hours.size == n_hours else np.ones(n_hours)
    start = replace(start, hours=hours)
    deviations = np.concatenate(
        [[STRENGTH_DEVIATION] * 2 + [LENGTH_DEVIATION] * len(one.lengths) for one in start.components]
    )
    tables = LagTables.between(seen.blocks, seen.blocks, start.steps_per_day)

    def prior_of(values: Floats) -> TemporalPrior:
        return replace(start, logs=values[: medians.size], hours=np.exp(values[medians.size :]))

    def objective(values: Floats) -> tuple[float, Floats]:
        try:
            posterior = TreePosterior(prior_of(values), seen)
        except (ValueError, ArithmeticError):
            return 1e300, np.zeros_like(values)
        off, of_hours = (values[: medians.size] - medians) / deviations, values[medians.size :]
        steps = (of_hours - np.roll(of_hours, 1)) / NEIGHBOURS_DEVIATION
        far = of_hours / HOUR_DEVIATION
        value = -posterior.log_likelihood + 0.5 * float(off @ off + steps @ steps + far @ far)
        slopes = (steps - np.roll(steps, -1)) / NEIGHBOURS_DEVIATION + far / HOUR_DEVIATION
        return value, np.append(off / deviations, slopes) - likelihood_gradient(posterior, tables)

    first = np.append(start.logs, np.log(hours))
    before = objective(first)[0]
    options = {"maxiter": most_iterations, "ftol": ENOUGH / max(abs(before), 1.0)}
    found = minimize(objective, first, jac=True, method="L-BFGS-B", options=options)
    better = np.isfinite(found.fun) and found.fun <= before
    return prior_of(np.asarray(found.x)) if better else start


def likelihood_gradient(posterior: TreePosterior, tables: LagTables) -> Floats:
    """Return the derivative of the log likelihood by each of the prior's `logs`, then by those of `hours`.

    With covariance Sigma and a = Sigma^-1 y it is (a' dSigma a - tr(Sigma^-1 dSigma)) / 2, and every part
    of Sigma^-1 that is needed is known in the eigenbasis. tables: of the posterior's own blocks.
    """
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
            of_hours += np.bincount(prior.parts_of_day(seen.blocks), of_blocks, of_hours.size)
    return np.append(gradient, of_hours)
