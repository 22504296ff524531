"""Times HistoryInformed: a night by number of nodes, and a backfilled year.

A nation, regions of 30 leaves (one level of leaves up to 13 nodes), made-up load, half-hours, w = 48, alpha
1 MW, equal shares. A night: with six weeks of history, measured, estimated, its standard errors; a night that
learns too, as every 28th does; and the ordinary night's file of replicates. The peer is OptStream (ten
points, the paper's day parts).
--year: 365 nights of 13 nodes from the first day on. CPU seconds of one process; the memory is the process's
largest so far, so sizes are run from small to large. Noise is simulated.
"""

import resource
from dataclasses import replace
from datetime import date
from typing import Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray

from optstream import AggregationTree, PrivacyModel, simulated_noise
from optstream.catalogue.standard_errors import Replicates, encode_replicates
from optstream.mechanisms import HistoryInformed, HistoryInformedTree, Release
from optstream.stream.public_days import PublicDays
from studies.benchmarks.measure import STEPS, optstream, show, table, timed

HISTORY, SEED = 42, 1
NODES = [13, 125, 250, 500, 1000]
LEAF_MW = 500.0


FLAT_UP_TO, LEAVES_A_REGION = 13, 30


def tree_of(n_nodes: int) -> AggregationTree:
    """Return a nation of so many nodes: leaves alone up to 13, beyond them regions of about 30 leaves."""
    parents: dict[str, str | None] = {"nation": None}
    if n_nodes <= FLAT_UP_TO:
        return AggregationTree.from_parents(parents | {f"{n}": "nation" for n in range(n_nodes - 1)})
    n_regions = max(2, round((n_nodes - 1) / (LEAVES_A_REGION + 1)))
    parents |= {f"r{n}": "nation" for n in range(n_regions)}
    leaves = n_nodes - 1 - n_regions
    return AggregationTree.from_parents(parents | {f"l{n}": f"r{n % n_regions}" for n in range(leaves)})


def load_of(tree: AggregationTree, day: int) -> NDArray[np.float64]:
    """Return a made-up day of the leaves, MW."""
    generator = np.random.default_rng([SEED, day])
    sizes = LEAF_MW * np.random.default_rng(SEED).uniform(0.3, 2.0, len(tree.leaves))[:, None]
    shape = 1 + 0.2 * np.sin((np.arange(STEPS) - 16) * np.pi / 24)
    week = 0.9 if day % 7 > 4 else 1.0
    own = 1 + np.cumsum(generator.normal(0, 0.002, (len(sizes), STEPS)), axis=1)
    load: NDArray[np.float64] = np.round(sizes * shape * week * own, 3)
    return load


def mechanism_of(tree: AggregationTree, epsilon: str) -> HistoryInformedTree:
    """Return HistoryInformed with equal shares of epsilon, the week known, the public size of a leaf."""
    pattern = HistoryInformed(PrivacyModel(epsilon, STEPS, 1), scale=LEAF_MW, days=PublicDays(STEPS, 0))
    return HistoryInformedTree(pattern, tree, [f"1/{tree.n_levels}"] * tree.n_levels)


def night(n_nodes: int, epsilon: str) -> tuple[str, ...]:
    """Return the row of one number of nodes."""
    tree = tree_of(n_nodes)
    mechanism = mechanism_of(tree, epsilon)
    never: Any = replace(mechanism.pattern, relearn_days=0)
    waiting = HistoryInformedTree(never, tree, mechanism.level_shares)
    state = None
    for day in range(HISTORY):  # a history, without its estimates
        noise = simulated_noise([SEED, day])
        state = waiting.measure(load_of(tree, day), noise=noise, first_step=day * STEPS, state=state).state
    learning, first = released(mechanism, tree, HISTORY, state)
    ordinary, second = released(mechanism, tree, HISTORY + 1, first.state)
    peer, _ = released(optstream(tree, epsilon), tree, HISTORY + 1, None)
    errors, data = timed(lambda: file_of_replicates(second))
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    each = 1000 * ordinary / len(tree.nodes)
    counts = (f"{ordinary:.2f}", f"{learning:.2f}", f"{peer:.3f}", f"{each:.1f}")
    measured = (f"{errors.processor:.2f}", f"{len(data) / 1e6:.2f}", f"{memory:.0f}")
    return str(len(tree.nodes)), *counts, *measured


def file_of_replicates(release: Release) -> bytes:
    """Return the file of replicates of a release."""
    drawn = release.replicates()
    assert drawn is not None
    assert release.tree is not None
    of, replicates = drawn
    day = date(2016, 2, 1)
    return encode_replicates(Replicates.labelled(day, of, release.tree.nodes, release.estimate, replicates))


def released(mechanism: Any, tree: AggregationTree, day: int, state: Any) -> tuple[float, Release]:
    """Release a day; return its CPU seconds and the release."""
    load, noise = load_of(tree, day), simulated_noise([SEED, day])
    taken, release = timed(lambda: mechanism.release(load, noise=noise, first_step=day * STEPS, state=state))
    return taken.processor, release


def year(epsilon: str, n_nights: int = 365) -> tuple[float, float]:
    """Return the CPU seconds of so many nights of 13 nodes, and of the peer's."""
    tree = tree_of(FLAT_UP_TO)
    found = []
    for mechanism in (mechanism_of(tree, epsilon), optstream(tree, epsilon)):
        seconds, state = 0.0, None
        for day in range(n_nights):
            taken, release = released(mechanism, tree, day, state)
            seconds, state = seconds + taken, release.state
        found.append(seconds)
    return found[0], found[1]


COLUMNS = (
    "nodes", "CPU s a night", "a night that learns", "OptStream, CPU s", "ms a node",
    "replicates, CPU s", "its MB", "memory, MB",
)  # fmt: skip


def main(
    nodes: Annotated[list[int], typer.Option(min=3, help="May be repeated.")] = NODES,
    epsilon: str = "0.1",
    year_too: Annotated[bool, typer.Option("--year", help="365 nights of 13 nodes too.")] = False,
) -> None:
    """Measure each size from small to large, and the year if it is asked for; print."""
    rows = table([], COLUMNS)
    for count in sorted(nodes):
        rows.add_row(*night(count, epsilon))
    show(rows)
    if year_too:
        ours, peer = year(epsilon)
        show(f"a year of 13 nodes: {ours:.1f} CPU s; OptStream {peer:.1f}")
