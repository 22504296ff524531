"""Run what is missing, keep every finished cell, write tidy results."""

import hashlib
import io
import json
import os
import platform
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from pydantic import TypeAdapter

import optstream
from optstream.errors import ParameterError
from studies.evaluation import Cell, CellResult, Experiment, StudyData, run_cells, unique_cells
from tasks.trusted.files import make_private_folder, write_private

# Where results lie: a file a finished cell, and what says under which code, seed and data it was made.

FORMAT = "optstream.evaluation/1"
DIGITS = 16
RESULT = TypeAdapter(CellResult)
"""How a finished cell is written and read: epsilons as exact text."""


@dataclass(frozen=True)
class Terms:
    """What makes two results comparable: the code, the seed, the data. Another of them starts afresh.

    public: whether the data were declared public; results of others are raw data.
    """

    code: str
    seed: int
    data: str
    data_digest: str
    public: bool

    @classmethod
    def of(cls, data: StudyData, *, name: str, seed: int, public: bool) -> "Terms":
        """The terms of a run that starts now."""
        return cls(code_version(), seed, name, digest_of(data), public)


class Store:
    """A folder of results. Private folders are its owner's alone; of public data anybody may read it.

    Raises ParameterError if the folder holds results of data that were not declared public while these are,
    or the reverse: the two must not mix.
    """

    def __init__(self, folder: Path, terms: Terms) -> None:
        self.folder, self.terms = folder, terms
        self._cells = folder / "cells"
        found = _read(folder / "run.json")
        if found is not None and found.get("terms", {}).get("public") != terms.public:
            there = "private" if terms.public else "public"
            raise ParameterError(f"{folder} holds results of {there} data; name another folder")
        if terms.public:
            self._cells.mkdir(parents=True, exist_ok=True)
        else:
            make_private_folder(self._cells)
        self.write("run.json", {"format": FORMAT, "terms": asdict(terms), "machine": machine()})

    def finished(self, cells: Iterable[Cell]) -> dict[Cell, CellResult]:
        """What is there already, made under the same terms; anything else will be made again."""
        found = {}
        for cell in cells:
            document = _read(self._cells / f"{cell.key}.json")
            if document is None or document.get("terms") != asdict(self.terms):
                continue
            result = RESULT.validate_python(document["result"])
            if result.cell == cell:
                found[cell] = result
        return found

    def keep(self, result: CellResult) -> None:
        """Keep one finished cell, whole or not at all."""
        document = RESULT.dump_python(result, mode="json")
        self.write(f"cells/{result.cell.key}.json", {"terms": asdict(self.terms), "result": document})

    def write(self, name: str, document: dict[str, Any]) -> None:
        """Write a JSON document."""
        self.write_bytes(name, (json.dumps(document, indent=1) + "\n").encode())

    def write_bytes(self, name: str, data: bytes) -> None:
        """Write a file: the old bytes or the new ones, whole."""
        path = self.folder / name
        if not self.terms.public:
            write_private(path, data)
            return
        aside = path.with_name(f".{path.name}.{os.getpid()}")
        aside.write_bytes(data)
        aside.replace(path)


NUMBERS = ("estimation", "evaluation", "measurement", "mechanisms", "noise", "privacy", "stream")
"""Packages in which results are computed."""


def code_version() -> str:
    """Version of the package and a digest of the science's sources: what the numbers depend on."""
    root = Path(optstream.__file__).parent
    digest = hashlib.sha256()
    for file in sorted(file for package in NUMBERS for file in (root / package).rglob("*.py")):
        digest.update(file.relative_to(root).as_posix().encode() + b"\0" + file.read_bytes())
    return f"{version('optstream')}+{digest.hexdigest()[:DIGITS]}"


def digest_of(data: StudyData) -> str:
    """Which data these are. Of private data it stays in the trusted zone with the results."""
    digest = hashlib.sha256(repr((data.load.regions, data.load.first_day, data.forecast_region)).encode())
    history = () if data.history is None else (data.history.values,)
    public = (one.values for one in data.load.covariates)
    for values in (data.load.values, *(one.values for one in data.counts.values()), *history, *public):
        digest.update(np.ascontiguousarray(values).tobytes())
    return digest.hexdigest()[:DIGITS]


@lru_cache(maxsize=1)
def machine() -> dict[str, Any]:
    """Where it ran, as far as numbers and seconds may depend on it."""
    return {
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "cores": os.cpu_count(),
        **{name: version(name) for name in ("numpy", "scipy", "polars")},
    }


def _read(path: Path) -> dict[str, Any] | None:
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return document if isinstance(document, dict) else None


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
