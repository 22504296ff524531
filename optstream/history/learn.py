"""The prior's parameters, learned from noisy measurements alone by marginal likelihood."""

from dataclasses import replace
from typing import get_args

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from optstream.history.blocks import Gate, LagTables
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


def learn(start: TemporalPrior, seen: Seen, most_iterations: int = MOST_ITERATIONS) -> TemporalPrior:
    """Return the prior whose parameters make the measurements, and themselves, most likely.

    Maximises log p(measured | parameters) + log p(parameters), the latter normal around the medians of the
    components, by L-BFGS from `start`. The likelihood is that of Gaussian noise. Where it finds nothing
    better, `start` is returned.
    """
    medians = TemporalPrior.broad(start.steps_per_day, start.components).logs
    deviations = np.concatenate(
        [[STRENGTH_DEVIATION] * 2 + [LENGTH_DEVIATION] * len(one.lengths) for one in start.components]
    )
    tables = LagTables.between(seen.blocks, seen.blocks, start.steps_per_day)

    def objective(logs: Floats) -> tuple[float, Floats]:
        prior = replace(start, logs=logs)
        try:
            posterior = TreePosterior(prior, seen)
        except (ValueError, ArithmeticError):
            return 1e300, np.zeros_like(logs)
        off = (logs - medians) / deviations
        value = -posterior.log_likelihood + 0.5 * float(off @ off)
        return value, off / deviations - likelihood_gradient(posterior, tables)

    first = objective(start.logs)[0]
    options = {"maxiter": most_iterations, "ftol": ENOUGH / max(abs(first), 1.0)}
    found = minimize(objective, start.logs, jac=True, method="L-BFGS-B", options=options)
    better = np.isfinite(found.fun) and found.fun <= first
    return replace(start, logs=np.asarray(found.x)) if better else start


def likelihood_gradient(posterior: TreePosterior, tables: LagTables) -> Floats:
    """Return the derivative of the log likelihood by each of the prior's `logs`.

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
    counts = {
        (name, gate): tables.scattered(weights, gate)
        for name, weights in (("shared", shared), ("own", own))
        for gate in get_args(Gate)
    }
    for one, at, of_shared, of_own, lengths in prior.parameters:
        first, second = counts["shared", one.gate], counts["own", one.gate]
        kernel = one.kernel(tables.days, lengths)
        gradient[at] = 2.0 * of_shared * float(first @ kernel)
        gradient[at + 1] = 2.0 * of_own * float(second @ kernel)
        both = of_shared * first + of_own * second
        for number in range(len(lengths)):
            longer = np.array(lengths)
            longer[number] *= np.exp(STEP)
            slope = (one.kernel(tables.days, longer) - kernel) / STEP
            gradient[at + 2 + number] = float(both @ slope)
    return gradient
