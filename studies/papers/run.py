"""Run what is missing, keep every finished cell, write tidy results."""

import io
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from typing import Any

import polars as pl

from studies.evaluation import Cell, CellResult, Experiment, StudyData, run_cells, unique_cells
from studies.papers.store import Store

Progress = Callable[[int, int], None]
"""Told how many trials are done, and how many there are."""

SCHEMA = {
    "experiment": pl.Int64,
    "study": pl.String,
    "mechanism": pl.String,
    "calibration": pl.String,
    "epsilon": pl.String,
    "alpha": pl.String,
    "n_samples": pl.Int64,
    "threshold": pl.String,
    "span": pl.String,
    "trial": pl.Int64,
    "metric": pl.String,
    "value": pl.Float64,
    "epsilon_plan": pl.Float64,
    "epsilon_drawn": pl.Float64,
    "epsilon_drawn_aligned": pl.Float64,
    "code": pl.String,
    "seed": pl.Int64,
    "data": pl.String,
}
"""One row a trial and metric. epsilon: asked; epsilon_plan, epsilon_drawn: what the accountant says."""


def evaluate(
    experiments: Sequence[Experiment],
    data: StudyData,
    store: Store,
    *,
    processes: int,
    progress: Progress | None = None,
) -> pl.DataFrame:
    """Run the experiments' missing cells, keep each as it is finished, and write `results.parquet`
    and each cell. Return the tidy frame.

    Stopped at any time, it goes on from the finished cells. Raises ParameterError as the engine.
    """
    cells = unique_cells(experiments)
    results = store.finished(cells)
    total, done = _trials(cells), _trials(results)
    missing = sorted((cell for cell in cells if cell not in results), key=_slowest_first)
    if progress:
        progress(done, total)
    for result in run_cells(missing, data, seed=store.terms.seed, processes=processes):
        store.keep(result)
        results[result.cell] = result
        done += _trials([result.cell])
        if progress:
            progress(done, total)
    frame = tidy(experiments, results, store)
    buffer = io.BytesIO()
    frame.write_parquet(buffer)
    store.write_bytes("results.parquet", buffer.getvalue())
    return frame


def tidy(experiments: Iterable[Experiment], results: dict[Cell, CellResult], store: Store) -> pl.DataFrame:
    """One row an experiment, cell, trial and metric; a cell that experiments share is there for each."""
    terms, rows = store.terms, []
    for experiment in experiments:
        for cell in experiment.cells():
            result = results[cell]
            what = {
                "experiment": experiment.number,
                "study": cell.study,
                "mechanism": cell.mechanism,
                "calibration": cell.calibration,
                **asdict(cell.point),
                "span": cell.span,
                "epsilon_plan": _float(result.epsilon_plan),
                "code": terms.code,
                "seed": terms.seed,
                "data": terms.data,
            }
            rows += [
                what | {
                    "trial": one.trial, "metric": metric, "value": value,
                    "epsilon_drawn": _float(one.drawn), "epsilon_drawn_aligned": _float(one.drawn_aligned),
                }
                for one in result.trials
                for metric, value in one.metrics.items()
            ]  # fmt: skip
    return pl.DataFrame(rows, schema=SCHEMA)


def _trials(cells: Iterable[Cell]) -> int:
    return sum(cell.trials[1] - cell.trials[0] for cell in cells)


def _slowest_first(cell: Cell) -> tuple[int, str]:
    """Forecasts and trees last longest: begun first, so that no process waits at the end."""
    order = {"stream": 0, "unusual": 1, "forecast": 2, "hierarchy": 3, "regions": 4, "counts": 5}
    return order[cell.study], cell.key


def _float(epsilon: Any) -> float | None:
    return None if epsilon is None else float(epsilon)
