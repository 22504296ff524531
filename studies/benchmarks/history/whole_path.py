"""Times a night of HistoryInformed on its whole path, from dump to published file, revisions included.

    python -m studies.benchmarks.history.whole_path [--nodes 13 270] [--epsilon 1] [--days 31] [--fills 2]
        [--nights 2]

A nation, regions of 30 leaves (one level of leaves up to 13 nodes), made-up load in half-hours, w = 48, alpha
1 MW, equal shares. So many days are filled in at once, with a new estimate of each and of the 14 before them,
as in a backfill of one month; then nights follow one by one, each with its 14 new estimates. One process
without a Prefect server; processor seconds of it and of its children by step. Imports, the choice of blocks
and all else that is worked out once is paid by the first fill.
"""

import flows  # noqa: F401  before numpy: one thread for linear algebra, as commands have it

# isort: split
import resource
import tempfile
from collections.abc import Sequence
from datetime import date, timedelta
from pathlib import Path

import numpy as np
import polars as pl

from flows.orchestration.environment import connect
from studies.benchmarks.harness.measure import command, parser, processor, show, table
from studies.benchmarks.harness.step_watch import StepWatch
from studies.benchmarks.history_cost import LEAF_MW, load_of
from studies.benchmarks.inputs.configuration_text import configuration, equal_shares
from studies.benchmarks.inputs.fixture import dump_of_all, hierarchy_file, stamps_of, stream, tree_of
from tasks.config import Settings

FIRST = date(2025, 1, 6)


def prepared(folder: Path, n_nodes: int, epsilon: str, days: Sequence[date]) -> Settings:
    """Write hierarchy, configuration and the dumps of these days; return the settings."""
    tree = tree_of(n_nodes)
    parents = (tree.nodes[parent] if parent >= 0 else "" for parent in tree.parents)
    hierarchy_file(folder, dict(zip(tree.nodes, parents, strict=True)))
    text = configuration(
        stream={"time_zone": "UTC"},
        mechanism={"name": "HistoryInformed", "scale": LEAF_MW},
        privacy={"epsilon": epsilon, "resolution": "0.001", "lower_bound": "0"},
        hierarchy={"file": "hierarchy.csv"},
        budget={"levels": equal_shares(tree.n_levels)},
        input={"region": "region"},
    )
    settings = stream(folder, text)
    for number, day in enumerate(days):
        stamps = stamps_of(settings, day)
        columns = {
            "region": np.repeat(np.array(tree.leaves), len(stamps)),
            "timestamp": pl.concat([stamps] * len(tree.leaves)),
            "load_mw": load_of(tree, number).ravel(),
        }
        dump_of_all(settings, day, [pl.DataFrame(columns)])
    return settings


def measured(
    n_nodes: int, epsilon: str, n_days: int, n_fills: int, n_nights: int
) -> dict[str, dict[str, float]]:
    """Return seconds by step: of a day of each fill, and of each night after these."""
    from flows.orchestration.release import run_days

    n_filled = n_days * n_fills
    days = [FIRST + timedelta(days=number) for number in range(n_filled + n_nights)]
    with tempfile.TemporaryDirectory() as folder:
        settings = prepared(Path(folder), n_nodes, epsilon, days)
        connect(settings.trusted_folder)
        columns: dict[str, dict[str, float]] = {}
        fills = [days[first : first + n_days] for first in range(0, n_filled, n_days)]
        nights = {f"a day of fill {number + 1}": own for number, own in enumerate(fills)}
        nights |= {f"night {number + 1}": [day] for number, day in enumerate(days[n_filled:])}
        for name, asked in nights.items():
            watch, began = StepWatch(), processor()
            ended = run_days(settings, asked, watch)
            assert all(day.outcome.status == "published" for day in ended), ended
            whole = processor() - began
            rest = whole - sum(watch.seconds.values())
            steps = {**watch.seconds, "pages and the rest": rest, "whole": whole}
            columns[name] = {step: seconds / len(asked) for step, seconds in steps.items()}
    return columns


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure each number of nodes and print a table for it."""
    options = parser(__doc__, nodes=[13, 270], epsilon="1", nights=2)
    options.add_argument("--days", type=int, default=31, help="filled in at once (default: 31)")
    options.add_argument("--fills", type=int, default=2, help="one after the other (default: 2)")
    given = options.parse_args(arguments)
    for n_nodes in given.nodes:
        columns = measured(n_nodes, given.epsilon, given.days, given.fills, given.nights)
        rows = table(["processor seconds"], columns)
        for step in next(reversed(columns.values())):
            rows.add_row(step, *(f"{column.get(step, 0.0):.3f}" for column in columns.values()))
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        show(f"{n_nodes} nodes, epsilon {given.epsilon}; at most {memory:.2f} GiB so far:", rows)


if __name__ == "__main__":
    command(main)
