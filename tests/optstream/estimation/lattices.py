"""Lattices for tests: complete products of every small size, and programs over them."""

import numpy as np

from optstream.estimation.problem import LeastSquares
from optstream.stream import AggregationTree, Lattice


def product(n_regions: int, n_sectors: int, n_zones: int = 0) -> Lattice:
    """Return regions times sectors, with or without zones above the regions."""
    parents: dict[str, str | None] = {"all": None}
    parents |= {f"zone {zone}": "all" for zone in range(n_zones)}
    parents |= {f"{one}": f"zone {one % n_zones}" if n_zones else "all" for one in range(n_regions)}
    cells = {f"s{two}": [f"{one}-s{two}" for one in range(n_regions)] for two in range(n_sectors)}
    parents |= {f"{one}-s{two}": f"{one}" for one in range(n_regions) for two in range(n_sectors)}
    return Lattice.of_tree(AggregationTree.from_parents(parents), "sector", cells)


def incomplete(seed: int) -> Lattice:
    """Return cells that are in any region and any sector: several in the same two, and none in others."""
    rng = np.random.default_rng(seed)
    regions = [0, 1, 2, *rng.integers(0, 3, 6).tolist()]
    members = [0, 1, *rng.integers(0, 2, 7).tolist()]
    parents: dict[str, str | None] = {"all": None, **{f"r{one}": "all" for one in range(3)}}
    parents |= {f"c{cell}": f"r{one}" for cell, one in enumerate(regions)}
    cells = {f"s{two}": [f"c{cell}" for cell, own in enumerate(members) if own == two] for two in range(2)}
    return Lattice.of_tree(AggregationTree.from_parents(parents), "sector", cells)


def random_program(seed: int, *, features: bool = False) -> tuple[LeastSquares, Lattice]:
    """Return a program of few counts, levels measured or derived; with features, of sums of parts too."""
    rng = np.random.default_rng(seed)
    if rng.uniform() < 0.3:
        lattice = incomplete(seed)
    else:
        lattice = product(*(int(rng.integers(1, most)) for most in (5, 4)), int(rng.choice([0, 1])))
    n_steps = 4 if features else int(rng.choice([1, 3]))
    halves = [[1.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 1.0], [1.0, 1.0, 1.0, 1.0]]
    rows = np.array([*np.eye(n_steps), *(halves if features else [])])
    truth = lattice.add_up(rng.poisson(0.5, (len(lattice.leaves), n_steps)).astype(float)) @ rows.T
    by_level = np.exp(rng.normal(0, 1, lattice.n_levels)) / 9
    weights = np.repeat(by_level[lattice.depths][:, None], len(rows), axis=1)
    if seed % 3 == 0:
        weights = weights * np.exp(rng.normal(0, 1, weights.shape))
    if seed % 3 == 1:  # plans that differ between levels
        weights = weights * np.exp(rng.normal(0, 1, (lattice.n_levels, len(rows))))[lattice.depths]
    derived = rng.uniform(size=lattice.n_levels) < 0.3
    derived[lattice.tree.n_levels - 1] = False
    weights[derived[lattice.depths]] = 0.0
    noise = rng.laplace(0, 1, weights.shape) / np.sqrt(2 * np.maximum(weights, 1e-300))
    return LeastSquares(rows, np.where(weights > 0, truth + noise, 0.0), weights), lattice
