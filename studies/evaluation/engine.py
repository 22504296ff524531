"""The one engine: cells in, results out, on any number of processes, in any order, with the same numbers."""

import os
import threading
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from multiprocessing import get_context, parent_process

from studies.evaluation.data import StudyData
from studies.evaluation.experiments import Cell, CellResult
from studies.evaluation.studies import run_trial

_ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
"""The matrices are small, and the cores are taken by other cells."""

_DATA: StudyData | None = None
"""In a worker: what its pool was started with."""


def run_cell(cell: Cell, data: StudyData, seed: int) -> CellResult:
    """Run a cell's trials; with simulated noise, so the result is as private as the data.

    cell: what is run. data: what it is run on. seed: of all noise. Returns metrics of every trial, and what
    the accountant says. Raises ParameterError for a cell that cannot be run.
    """
    started = time.perf_counter()
    done = [run_trial(cell, data, seed, trial) for trial in range(*cell.trials)]
    plan = done[0][1] if done else None
    return CellResult(cell, plan, tuple(result for result, _ in done), time.perf_counter() - started)


def run_cells(
    cells: Iterable[Cell], data: StudyData, *, seed: int, processes: int = 1
) -> Iterator[CellResult]:
    """Run cells and give each result as it is finished; whoever keeps them can resume with the others.

    Every trial's noise is a function of the seed and of what is run, so that neither the number of processes
    nor the order changes a number.

    cells: what is run. data: what they are run on. seed: of all noise. processes: how many run at once.
    Returns each cell's result, in the order in which they finish. Raises ParameterError from a cell that
    cannot be run; the other cells that have not begun are then dropped.
    """
    waiting = list(cells)
    if processes == 1 or len(waiting) < 2:
        for cell in waiting:
            yield run_cell(cell, data, seed)
        return
    with _one_thread(), ProcessPoolExecutor(
        processes, mp_context=get_context("spawn"), initializer=_remember, initargs=(data,)
    ) as pool:  # fmt: skip
        try:
            jobs = [pool.submit(_in_worker, cell, seed) for cell in waiting]
            for job in as_completed(jobs):
                yield job.result()
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


@contextmanager
def _one_thread() -> Iterator[None]:
    """Set one thread a process: workers inherit the environment; afterwards it is as it was."""
    before = {name: os.environ.get(name) for name in _ONE_THREAD}
    os.environ.update(_ONE_THREAD)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def _remember(data: StudyData) -> None:
    global _DATA
    _DATA = data
    threading.Thread(target=_end_with_the_parent, daemon=True).start()


def _end_with_the_parent() -> None:
    """A parent that is killed leaves no worker behind: nobody would take what it still computes."""
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _in_worker(cell: Cell, seed: int) -> CellResult:
    assert _DATA is not None
    return run_cell(cell, _DATA, seed)
