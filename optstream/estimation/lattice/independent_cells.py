"""Independent cells of a lattice, sums of them measured with noise both ways: exact by one small system."""

import numpy as np
from numpy.typing import NDArray

from optstream.estimation.gaussian_process.tree_passes import Passed
from optstream.estimation.lattice.noise import noise_through_lattice
from optstream.estimation.lattice.system import System, parts_of
from optstream.stream import Lattice

Floats = NDArray[np.float64]

MOST_ENTRIES = 2**24
"""Of the systems of modes that are solved side by side: 128 MiB."""


def pass_over_lattice(
    lattice: Lattice, cell_variances: Floats, noise: Floats, seen: tuple[Floats, ...]
) -> Passed:
    """Condition independent Gaussian cells, and their sums, on noisy values of nodes: as `pass_over_tree`,
    with its arguments.

    A cell with its own measurement is N(u, D): D = d r / (d + r) and u = d y / (d + r), with d its prior
    variance and r its noise. The nodes above see A z, of covariance K = V + A D A' (`System`): they pull mu =
    K^-1 (y - A u), and a cell is u + D A' mu. Time linear in cells and modes. Costs no privacy.
    """
    n_modes, values = cell_variances.shape[1], np.stack(seen, axis=-1)
    at_once = max(1, MOST_ENTRIES // (len(lattice.nodes) - len(lattice.leaves)) ** 2)
    means, pulls = np.empty_like(values), np.empty_like(values)
    variances, log_density = np.empty(values.shape[:2]), 0.0
    for first in range(0, n_modes, at_once):
        modes = slice(first, first + at_once)
        found = _pass(lattice, cell_variances[:, modes], noise, values[:, modes])
        means[:, modes], pulls[:, modes], variances[:, modes] = found[:3]
        log_density += found[3]
    of_means, of_pulls = (tuple(np.moveaxis(part, -1, 0)) for part in (means, pulls))
    return Passed(of_means, of_pulls, variances, lattice.add_up(cell_variances), log_density)


def _pass(
    lattice: Lattice, own: Floats, noise: Floats, values: Floats
) -> tuple[Floats, Floats, Floats, float]:
    """Return means, pulls, variances and the density. own: d, (n_leaves, b). values: (n_nodes, b, c)."""
    parts, measured = parts_of(lattice), np.isfinite(noise)
    at, above = measured[parts.leaves], measured[parts.above]
    noises = np.where(measured, noise, 0.0)[:, None]
    worth = np.where(at[:, None], 1.0 / (own + noises[parts.leaves]), 0.0)
    free = np.where(at[:, None], own * noises[parts.leaves] * worth, own)
    precision = np.empty((len(lattice.nodes), own.shape[1], 1, 1))
    precision[parts.leaves, :, 0, 0] = 1.0 / free
    precision[parts.above, :, 0, 0] = np.where(above, 1.0 / noise[parts.above], 0.0)[:, None]
    system = System(parts, precision[parts.above], free[..., None, None])
    known = (own * worth)[..., None] * values[parts.leaves]
    right = np.where(above[:, None, None], values[parts.above] - parts.sums(known), 0.0)
    variances = np.broadcast_to(noises[parts.above][..., None, None], (*right.shape[:2], 1, 1))
    mu = system.refined(right[:, :, None], variances)[:, :, 0]
    pulled = parts.pulled(mu)
    means, pulls = np.empty_like(values), np.empty_like(values)
    means[parts.leaves] = known + free[..., None] * pulled
    means[parts.above] = parts.sums(means[parts.leaves])
    pulls[parts.leaves] = worth[..., None] * (values[parts.leaves] - own[..., None] * pulled)
    pulls[parts.above] = mu
    surprise = float((worth * values[parts.leaves, :, 0] ** 2).sum() + (right[..., 0] * mu[..., 0]).sum())
    spread = -float(np.log(worth[at]).sum() + np.log(system.gain[:, above[: parts.n_families]]).sum())
    spread += float(np.linalg.slogdet(system.matrix)[1].sum())
    rest = noise[parts.above][parts.n_families :]
    spread += own.shape[1] * float(np.log(rest[np.isfinite(rest)]).sum())
    through = noise_through_lattice(precision, precision, lattice)[..., 0]
    return means, pulls, through, -0.5 * (surprise + spread)
