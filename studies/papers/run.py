"""Run what is missing, keep every finished cell, write tidy results."""

import io
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from importlib.util import find_spec
from typing import Any

import polars as pl

from optstream.errors import ParameterError
from studies.evaluation import Cell, CellResult, Experiment, StudyData, run_cells, unique_cells
from studies.papers.store import FORMAT, Store, machine

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
    """Run the experiments' missing cells, keep each as it is finished, and write `results.parquet`,
    `results.json` and each cell. Return the tidy frame.

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
    store.write("results.json", document_of(experiments, results, frame, store))
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


def check_installed(cells: Iterable[Cell], *, page: bool) -> None:
    """Raise ParameterError before anything runs if what the cells or the page need is not installed."""
    wanted = ["statsmodels"] if any(cell.study == "forecast" for cell in cells) else []
    missing = [name for name in (*wanted, *(("altair",) if page else ())) if find_spec(name) is None]
    if missing:
        raise ParameterError(f"{' and '.join(missing)} not installed: pip install 'optstream[studies]'")


KEYS = ("experiment", "study", "mechanism", "calibration", "epsilon", "alpha", "n_samples", "threshold",
        "span", "metric")  # fmt: skip


def summary(frame: pl.DataFrame) -> pl.DataFrame:
    """Mean over trials, its standard error (null for one trial), number of trials, largest epsilons."""
    return frame.group_by(KEYS, maintain_order=True).agg(
        mean=pl.col("value").mean(),
        standard_error=pl.col("value").std() / pl.len().sqrt(),
        trials=pl.len(),
        epsilon_plan=pl.col("epsilon_plan").max(),
        epsilon_drawn=pl.col("epsilon_drawn").max(),
        epsilon_drawn_aligned=pl.col("epsilon_drawn_aligned").max(),
    )


def document_of(
    experiments: Iterable[Experiment], results: dict[Cell, CellResult], frame: pl.DataFrame, store: Store
) -> dict[str, Any]:
    """`results.json`: terms, machine, where the seconds went, and the means. Seconds are shared among the
    experiments that share a cell.
    """
    chosen = list(experiments)
    users = Counter(cell for experiment in chosen for cell in experiment.cells())
    return {
        "format": FORMAT,
        "code": store.terms.code,
        "seed": store.terms.seed,
        "data": store.terms.data,
        "public": store.terms.public,
        "machine": machine(),
        "seconds": {
            str(one.number): sum(results[cell].seconds / users[cell] for cell in one.cells())
            for one in chosen
        },
        "means": summary(frame).to_dicts(),
    }


def _trials(cells: Iterable[Cell]) -> int:
    return sum(cell.trials[1] - cell.trials[0] for cell in cells)


def _slowest_first(cell: Cell) -> tuple[int, str]:
    """Forecasts and trees last longest: begun first, so that no process waits at the end."""
    order = {"stream": 0, "unusual": 1, "forecast": 2, "hierarchy": 3, "regions": 4, "counts": 5}
    return order[cell.study], cell.key


def _float(epsilon: Any) -> float | None:
    return None if epsilon is None else float(epsilon)
