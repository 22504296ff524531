"""What HistoryInformed costs: a night by number of nodes, and a backfilled year.

    python -m benchmarks.history_cost [--nodes 13 125 250 500 1000] [--epsilon 0.1] [--year]

A nation, regions of 30 leaves (one level of leaves up to 13 nodes), made-up load, half-hours, w = 48, alpha
1 MW, equal shares. A night: with six weeks of history, measured, estimated, its standard errors; and a night
that learns too, as every 28th does. Beside it OptStream (ten points, the paper's day parts), the peer.
--year: 365 nights of 13 nodes from the first day on. CPU seconds of one process; the memory is the process's
largest so far, so sizes are run from small to large. Noise is simulated.
"""

import argparse
import resource
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from optstream import AggregationTree, EquallySpaced, Feature, OptStream, PrivacyModel, simulated_noise
from optstream.mechanisms import HistoryInformed, HistoryInformedTree
from optstream.stream.public_days import PublicDays

SLOTS, HISTORY, SEED = 48, 42, 1
LEAVES_A_REGION, FLAT_UP_TO = 30, 13
LEAF_MW = 500.0


@dataclass(frozen=True)
class Night:
    """CPU seconds of an ordinary night, of one that learns, of the peer's; largest memory so far, in MB."""

    nodes: int
    ordinary: float
    learning: float
    peer: float
    memory: float


def tree_of(n_nodes: int) -> AggregationTree:
    """A tree of about so many nodes."""
    parents: dict[str, str | None] = {"nation": None}
    if n_nodes <= FLAT_UP_TO:
        return AggregationTree.from_parents(parents | {f"{n}": "nation" for n in range(n_nodes - 1)})
    n_regions = max(2, round((n_nodes - 1) / (LEAVES_A_REGION + 1)))
    parents |= {f"r{n}": "nation" for n in range(n_regions)}
    leaves = n_nodes - 1 - n_regions
    return AggregationTree.from_parents(parents | {f"l{n}": f"r{n % n_regions}" for n in range(leaves)})


def load_of(tree: AggregationTree, day: int) -> np.ndarray:
    """A made-up day of the leaves, MW."""
    generator = np.random.default_rng([SEED, day])
    sizes = LEAF_MW * np.random.default_rng(SEED).uniform(0.3, 2.0, len(tree.leaves))[:, None]
    shape = 1 + 0.2 * np.sin((np.arange(SLOTS) - 16) * np.pi / 24)
    week = 0.9 if day % 7 > 4 else 1.0
    own = 1 + np.cumsum(generator.normal(0, 0.002, (len(sizes), SLOTS)), axis=1)
    return np.round(sizes * shape * week * own, 3)


def mechanism_of(tree: AggregationTree, epsilon: str) -> HistoryInformedTree:
    """Equal shares of epsilon, a week, the public size of a leaf."""
    pattern = HistoryInformed(PrivacyModel(epsilon, SLOTS, 1), scale=LEAF_MW, days=PublicDays(SLOTS, 0))
    return HistoryInformedTree(pattern, tree, [f"1/{tree.n_levels}"] * tree.n_levels)


def night(n_nodes: int, epsilon: str) -> Night:
    """Measure one number of nodes."""
    tree = tree_of(n_nodes)
    mechanism = mechanism_of(tree, epsilon)
    never: Any = replace(mechanism.pattern, relearn_days=0)
    waiting = HistoryInformedTree(never, tree, mechanism.level_shares)
    state = None
    for day in range(HISTORY):  # a history, without what is made of it
        drawn = waiting.measure(
            load_of(tree, day), noise=simulated_noise([SEED, day]), first_step=day * SLOTS, state=state
        )
        state = drawn.state
    learning, after = _released(mechanism, tree, HISTORY, state)
    ordinary, _ = _released(mechanism, tree, HISTORY + 1, after)
    peer = OptStream(
        mechanism.model, tree, sampling=EquallySpaced(10), features=Feature.day_parts(SLOTS),
        level_shares=mechanism.level_shares,
    )  # fmt: skip
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return Night(len(tree.nodes), ordinary, learning, _released(peer, tree, HISTORY + 1, None)[0], memory)


def _released(mechanism: Any, tree: AggregationTree, day: int, state: Any) -> tuple[float, Any]:
    load, noise = load_of(tree, day), simulated_noise([SEED, day])
    started = time.process_time()
    release = mechanism.release(load, noise=noise, first_step=day * SLOTS, state=state)
    return time.process_time() - started, release.state


def year(epsilon: str, n_nights: int = 365) -> tuple[float, float]:
    """CPU seconds of so many nights of 13 nodes, and of the peer's."""
    tree = tree_of(FLAT_UP_TO)
    mechanism = mechanism_of(tree, epsilon)
    peer = OptStream(
        mechanism.model, tree, sampling=EquallySpaced(10), features=Feature.day_parts(SLOTS),
        level_shares=mechanism.level_shares,
    )  # fmt: skip
    found = []
    for one in (mechanism, peer):
        seconds, state = 0.0, None
        for day in range(n_nights):
            taken, state = _released(one, tree, day, state)
            seconds += taken
        found.append(seconds)
    return found[0], found[1]


def table_of(nights: Sequence[Night]) -> Table:
    """A row for each number of nodes."""
    table = Table(box=None, pad_edge=False)
    names = ("nodes", "CPU s a night", "a night that learns", "OptStream, CPU s", "ms a node", "memory, MB")
    for name in names:
        table.add_column(name, justify="right")
    for one in nights:
        table.add_row(
            str(one.nodes), f"{one.ordinary:.2f}", f"{one.learning:.2f}", f"{one.peer:.3f}",
            f"{1000 * one.ordinary / one.nodes:.1f}", f"{one.memory:.0f}",
        )  # fmt: skip
    return table


def main(arguments: Sequence[str] | None = None) -> None:
    """Read the arguments, run, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--nodes", type=int, nargs="*", default=[13, 125, 250, 500, 1000])
    parser.add_argument("--epsilon", default="0.1")
    parser.add_argument("--year", action="store_true")
    given = parser.parse_args(arguments)
    if any(count < 3 for count in given.nodes):
        parser.error("--nodes must be at least 3: a nation and two leaves")
    console = Console(width=110, highlight=False)
    if given.nodes:
        console.print(table_of([night(count, given.epsilon) for count in sorted(given.nodes)]))
    if given.year:
        ours, peer = year(given.epsilon)
        console.print(f"a year of 13 nodes: {ours:.1f} CPU s; OptStream {peer:.1f}")


if __name__ == "__main__":
    main()
