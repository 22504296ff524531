"""Shows what a night of cells of two dimensions takes, beside the same cells in a tree alone.

    python -m studies.benchmarks.nights.two_dimensions [--regions 200] [--sectors 10] [--mechanism OptStream]

Made-up counts of regions times sectors, half-hours, dumps of all cells in one file with a column of regions
and one of sectors, `Laplace` or another mechanism, `OptStream` with ten points and day parts. Each night is a
process of its own that starts no Prefect server, reads the dump, releases it, publishes it and writes the
page; then the published folder is verified in another one. Seconds are those of the processor, children
included, which hold on a busy machine; the last rows are the clock's. The peer has the same regions and cells
and no margin.
"""

import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from studies.benchmarks.harness.measure import command, in_process, parser, processor, show, table
from studies.benchmarks.inputs.fixture import dump_of_all, hierarchy_file, stamps_of, stream
from studies.benchmarks.million import DAY, visits
from tasks.config import Settings

LIMIT = 10.0
"""Seconds of a whole night of 200 times 10 cells that were asked."""
VERIFY = "verify-published"
MARGIN = "with a margin"
PEER = "the tree alone"


def prepared(folder: Path, n_regions: int, n_sectors: int, mechanism: str, *, margin: bool) -> Settings:
    """Write hierarchy, configuration and the dump of one day; return the settings."""
    regions = [f"r{region}" for region in range(n_regions)]
    sectors = [f"s{sector}" for sector in range(n_sectors)]
    parents = {"all": ""} | dict.fromkeys(regions, "all")
    if margin:
        text = visits(
            mechanism,
            hierarchy={"margins": {"sector": sectors}},
            budget={"levels": ["1/4"] * 3, "margins": {"sector": "1/4"}},
            input={"margin": "sector"},
        )
    else:
        parents |= {f"{region}-{sector}": region for region in regions for sector in sectors}
        text = visits(mechanism, input={"region": "cell"})
    hierarchy_file(folder, parents)
    settings = stream(folder, text)
    stamps = stamps_of(settings, DAY)
    cells = pl.DataFrame({"region": regions}).join(pl.DataFrame({"sector": sectors}), how="cross")
    rows = cells.join(pl.DataFrame({"timestamp": stamps}), how="cross").with_columns(
        cell=pl.format("{}-{}", "region", "sector"),
        visits=pl.Series(np.random.default_rng(0).poisson(5.0, cells.height * len(stamps))),
    )
    dump_of_all(settings, DAY, [rows])
    return settings


def measured(n_regions: int, n_sectors: int, mechanism: str, *, margin: bool) -> dict[str, float]:
    """Return the seconds of each step of one night, of its verification, and of both clocks."""
    with tempfile.TemporaryDirectory() as folder:
        settings = prepared(Path(folder), n_regions, n_sectors, mechanism, margin=margin)
        night, clock = in_process("-m", "studies.benchmarks.million", "--night", str(settings.file))
        seconds: dict[str, float] = night["seconds"]
        began, started = time.perf_counter(), processor()
        in_process("-m", "flows.cli.main", "verify-published", "--json", str(settings.published_folder))
        verified = processor() - started
        clocks = {"clock: the night": clock, "clock: verify": time.perf_counter() - began}
        return {**seconds, "whole night": sum(seconds.values()), VERIFY: verified, **clocks}


def table_of(found: dict[str, dict[str, float]]) -> Any:
    """Return a row a step, a column for each night."""
    rows = table(["seconds"], [*found, "limit"])
    for name in dict.fromkeys(step for night in found.values() for step in night):
        limit = f"{LIMIT:g}" if name == "whole night" else ""
        rows.add_row(name, *(f"{night.get(name, 0.0):.2f}" for night in found.values()), limit)
    return rows


def main(arguments: Sequence[str] | None = None) -> None:
    """Release a night of each, and print the table."""
    given = parser(__doc__, regions=200, sectors=10, mechanism="Laplace").parse_args(arguments)
    size = given.regions, given.sectors, given.mechanism
    show(f"{given.regions:,} regions times {given.sectors:,} sectors, {given.mechanism}:")
    show(table_of({name: measured(*size, margin=name == MARGIN) for name in (MARGIN, PEER)}))


if __name__ == "__main__":
    command(main)
