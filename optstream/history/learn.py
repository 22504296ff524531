"""The prior's parameters, learned from noisy measurements alone by marginal likelihood."""

from collections.abc import Iterable
from dataclasses import replace
from typing import get_args

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from optstream.history.blocks import BlockHistory, Blocks, Gate, LagTables
from optstream.history.posterior import event_numbers
from optstream.history.prior import TemporalPrior
from optstream.history.tree import NoiseGroups, Seen, TreePosterior
from optstream.stream import AggregationTree
from optstream.stream.public_days import PublicDays

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
    components, by L-BFGS from `start`. The likelihood is that of Gaussian noise of the measurements'
    variance. Where it finds nothing better, `start` is returned.
    """
    medians = TemporalPrior.broad(start.steps_per_day, start.components).logs
    deviations = deviations_of(start)
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


def deviations_of(prior: TemporalPrior) -> Floats:
    """Return how far each logarithm may lie from its median, as `logs`."""
    deviations = [
        deviation
        for one in prior.components
        for deviation in (STRENGTH_DEVIATION, STRENGTH_DEVIATION, *(LENGTH_DEVIATION for _ in one.lengths))
    ]
    return np.array(deviations)


def likelihood_gradient(posterior: TreePosterior, tables: LagTables) -> Floats:
    """Return the derivative of the log likelihood by each of the prior's `logs`.

    With covariance Sigma and a = Sigma^-1 y it is (a' dSigma a - tr(Sigma^-1 dSigma)) / 2, and every part
    of Sigma^-1 that is needed is known in the eigenbasis. tables: of the posterior's own blocks.
    """
    shared, own = _weights(posterior)
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


def _weights(posterior: TreePosterior) -> tuple[Floats, Floats]:
    """Return the derivative of the log likelihood by the shared and by the own covariance, (n, n) each."""
    seen, basis = posterior.seen, posterior.basis
    leaves, sizes = seen.tree.leaf_indices, seen.sizes[:, None]
    pulls = posterior.own_pull()[leaves] / sizes
    loads = posterior.own_loads()[leaves] / sizes
    precision = (posterior.own_precision()[leaves] / sizes**2).sum(axis=0)
    joint = posterior.shared_pull
    shared = 0.5 * (np.outer(joint, joint) - posterior.shared_precision)
    own = 0.5 * (pulls.T @ pulls - np.diag(precision) + posterior.kept * (loads.T @ loads))
    return basis @ shared @ basis.T, basis @ own @ basis.T


# From the blocks of the last weeks to the measurements of each series, relative to its size.

SCALE_DEVIATION = 0.5
"""How far, relative, a series may lie from the public scale that was given for it."""
LEAST_NOISE = 1e-10
"""Variance of the noise, relative to a size squared, below which it is taken for this: for the numerics."""


def star(n_series: int) -> AggregationTree:
    """Return a tree of series side by side, under a root that nobody measures."""
    return AggregationTree(("", *map(str, range(n_series))), (-1, *([0] * n_series)))


def step_blocks(steps: range, days: PublicDays, events: Iterable[int] = ()) -> Blocks:
    """Return single steps of one period as blocks, given the event days."""
    running = np.arange(steps.start, steps.stop)
    return run_blocks(running, np.ones_like(running), days, events)


def run_blocks(
    starts: NDArray[np.int64], lengths: NDArray[np.int64], days: PublicDays, events: Iterable[int] = ()
) -> Blocks:
    """Return sums over so many steps from these on, each within a day, as blocks."""
    clock = days.clock(starts)
    kinds, numbers = days.kinds(clock), event_numbers(clock, events, days)
    return Blocks.at(clock, lengths, kinds=kinds, events=numbers)


def seen_series(
    history: BlockHistory,
    days: PublicDays,
    scale: float | None,
    events: Iterable[int] = (),
    weights: Floats | None = None,
) -> tuple[Seen, Floats]:
    """Return the measurements of plain series, and their prior means a step, (n_series,), in units.

    Blocks are weighted so that all have the noise of the latest one: `weight` is its scale over the block's,
    over the longest block's steps; or by `weights`, (n,), where other series have these: then all are taken
    to have the mean of their noise. A series' prior mean is that of its blocks, joined with the public scale
    where there is one; its size the root of their mean square, less the noise.
    """
    reference, longest = history.scales[-1], int(history.lengths.max())
    weight = reference / history.scales / longest
    noise = 2.0 * (reference / longest) ** 2
    if weights is not None:
        weight = weights / longest
        noise = float(np.mean(2.0 * (history.scales * weight) ** 2))
    values, steps = history.sums * weight, history.lengths * weight
    precision, pulled = float(steps @ steps) / noise, values @ steps / noise
    if scale is not None:
        variance = (SCALE_DEVIATION * scale) ** 2
        precision, pulled = precision + 1.0 / variance, pulled + scale / variance
    means = pulled / precision
    square = ((values**2).sum(axis=1) - steps.size * noise) / float(steps @ steps)
    sizes = np.sqrt(np.maximum(np.maximum(square, means**2), 1.0 / precision))
    clock = days.clock(history.starts)
    blocks = Blocks.at(
        clock,
        history.lengths,
        kinds=days.kinds(clock),
        events=event_numbers(clock, events, days),
        weight=weight,
    )
    residuals = np.vstack([np.zeros(steps.size), values - means[:, None] * steps])
    noises = np.maximum(noise, LEAST_NOISE * sizes**2)
    tree = star(len(means))
    groups = noise_groups(history, np.arange(len(tree.nodes)) > 0)
    return Seen(tree, blocks, residuals, np.concatenate([[np.inf], noises]), sizes, groups), means


def noise_groups(history: BlockHistory, nodes: NDArray[np.bool_]) -> NoiseGroups | None:
    """Return which blocks share joint noise at these nodes, (n_nodes,); None where none do."""
    if not (history.group_sizes > 1).any():
        return None
    return NoiseGroups(history.groups, np.where(nodes[:, None], history.group_sizes, 1))
