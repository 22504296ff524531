"""Measures what a margin is worth: the French load by region and made-up sector, errors of every level.

    python -m studies.benchmarks.history.load_by_sector --data FOLDER [--epsilon 1] [--alpha 1] [--days 10]

12 regions x 3 sectors by half-hours, w = 48; root mean square errors in MW of nation, regions, sectors and
cells, by Laplace noise and by Gaussian noise at delta 1e-6. Two peers in plain numpy, as tables are often
published: all of the budget for the cells, which are added up; and a table for each level with an equal part
of its own, which do not agree. Beside them `Hierarchical` on the tree of regions and cells, equal shares,
sectors added up from cells; and with the sectors as a margin. Noise is simulated; no lower bound.
"""

from collections.abc import Iterator, Sequence
from datetime import date

import numpy as np
from numpy.typing import NDArray

from optstream import PrivacyModel, simulated_noise
from optstream.mechanisms import Gaussian, Hierarchical, Laplace
from optstream.stream import AggregationTree, Lattice
from studies.benchmarks.harness.measure import command, parser, show, table
from studies.benchmarks.inputs.public_data import load_of_days
from studies.benchmarks.inputs.sectors import SECTORS, by_sector

Values = NDArray[np.float64]
FIRST = date(2016, 2, 1)
LEVELS = ("nation", "region", "cell", "sector")
DELTA = "1e-6"


def lattice_of(regions: Sequence[str]) -> Lattice:
    """Return the nation, these regions and their cells, with the sectors as a margin."""
    parents: dict[str, str | None] = {"FR": None, **dict.fromkeys(regions, "FR")}
    parents |= {f"{region}-{sector}": region for region in regions for sector in SECTORS}
    cells = {sector: [f"{region}-{sector}" for region in regions] for sector in SECTORS}
    return Lattice.of_tree(AggregationTree.from_parents(parents), "sector", cells)


def by_peers(cells: Values, lattice: Lattice, model: PrivacyModel, seed: int) -> Iterator[tuple[str, Values]]:
    """Yield each way's nodes, (n_nodes, n_steps)."""
    generator, units = np.random.default_rng(seed), float(model.alpha) * model.window_length

    def noise(share: float, n_nodes: int) -> Values:
        shape = n_nodes, cells.shape[1]
        if model.rho is None:
            return generator.laplace(0.0, units / (share * float(model.epsilon)), shape)
        deviation = float(model.alpha) * np.sqrt(model.window_length / (2.0 * share * float(model.rho)))
        return generator.normal(0.0, deviation, shape)

    yield "cells alone, added up (peer)", lattice.add_up(cells + noise(1.0, len(cells)))
    part = 1.0 / lattice.n_levels
    yield "a table a level, none agree (peer)", lattice.add_up(cells) + noise(part, len(lattice.nodes))


def by_us(
    cells: Values, lattice: Lattice, model: PrivacyModel, seed: int, step: int
) -> Iterator[tuple[str, Values]]:
    """Yield the same without and with the margin."""
    pattern = Laplace(model) if model.rho is None else Gaussian(model)
    for way, tree in (("regions and cells", lattice.tree), ("with the margin", lattice)):
        shares = [f"1/{tree.n_levels}"] * tree.n_levels
        made = Hierarchical(pattern, tree, shares, lower_bound=None)
        release = made.release(cells, noise=simulated_noise(seed), first_step=step)
        leaves = [tree.nodes.index(leaf) for leaf in tree.leaves]
        yield way, lattice.add_up(release.values[leaves])


def main(arguments: Sequence[str] | None = None) -> None:
    """Release the days by every way, and print."""
    options = parser(__doc__, data=True, epsilon="1", days=10)
    options.add_argument("--alpha", default="1", help="MW")
    given = options.parse_args(arguments)
    regions, load = load_of_days(given.data, FIRST, given.days)
    days, lattice = by_sector(np.array(load)), lattice_of(regions)
    rows = table(["noise", "way"], [f"{name}, MW" for name in LEVELS])
    sizes = lattice.add_up(days).mean(axis=(0, 2))
    rows.add_row("", "mean load", *(f"{sizes[one.start : one.stop].mean():,.0f}" for one in lattice.levels))
    for delta in ("0", DELTA):
        model = PrivacyModel(given.epsilon, 48, given.alpha, delta=delta)
        squares: dict[str, list[Values]] = {}
        for number, cells in enumerate(days):
            ours = by_us(cells, lattice, model, number, 48 * number)
            for way, nodes in (*by_peers(cells, lattice, model, number), *ours):
                missed = (nodes - lattice.add_up(cells)) ** 2
                squares.setdefault(way, []).append(
                    np.array([missed[one.start : one.stop].mean() for one in lattice.levels])
                )
        for way, found in squares.items():
            errors = np.sqrt(np.mean(found, axis=0))
            rows.add_row("Gaussian" if model.rho else "Laplace", way, *(f"{one:,.0f}" for one in errors))
    show(rows)


if __name__ == "__main__":
    command(main)
