"""Where months of a backfill run and dumps are read: processes of this machine, or a Dask cluster."""

import os
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from functools import partial
from multiprocessing import get_context
from typing import Any

import polars as pl

from optstream.errors import ConfigurationError, OptStreamError
from tasks.config import Settings
from tasks.config.paths import ledger_database
from tasks.ingest import Reader, ingest
from tasks.ingest.sandbox.process import reading_apart
from tasks.ingest.schema import UNREADABLE
from tasks.ingest.spread import Spread
from tasks.processes.orphans import end_with_parent
from tasks.storage.failures import unexpected


def check_cluster(settings: Settings) -> None:
    """Raise ConfigurationError unless workers elsewhere can reach the ledger and the orchestrator."""
    if ledger_database(settings.ledger_url) is not None:
        raise ConfigurationError(
            "--dask needs a ledger that all workers reach: set ledger.url to a PostgreSQL database; an "
            "SQLite file is for processes of one machine (--workers)"
        )
    if "PREFECT_API_URL" not in os.environ:
        raise ConfigurationError(
            "--dask needs a Prefect server that all workers reach: start one (`prefect server start`) and "
            "set PREFECT_API_URL"
        )


def task_runner(n_workers: int, dask: str | None) -> Any:
    """Prefect's task runner for so many processes, or for the cluster at an address; None for one, here.

    Without a server, a pool of Python's own for so many. Imports prefect. Raises ConfigurationError where the
    cluster's package is not installed.
    """
    if dask is not None:
        try:
            from prefect_dask.task_runners import DaskTaskRunner
        except ImportError:
            raise ConfigurationError(
                "--dask needs the package prefect-dask: install optstream[dask]"
            ) from None
        return DaskTaskRunner(address=dask)
    if n_workers > 1:
        from prefect.settings import PREFECT_API_URL
        from prefect.task_runners import ProcessPoolTaskRunner

        if not PREFECT_API_URL.value():
            return ProcessPoolExecutor(n_workers, get_context("spawn"), begin_worker)
        return ProcessPoolTaskRunner(max_workers=n_workers, initializer=begin_worker)
    return None


def begin_worker() -> None:
    """Have this process, one of a pool's, end with its parent, and by Ctrl-C without an exception.

    A terminal's Ctrl-C reaches workers too. A worker's KeyboardInterrupt would be sent back as its result and
    raised in the thread by which the pool hears of results (Prefect 3.8 catches Exception there): that thread
    ends, and whoever asked waits without end. A pool that has lost a process says so at once. Polars is
    imported above, and must be: it takes Ctrl-C over on import, and would swallow it from then on.
    """
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    end_with_parent()


@contextmanager
def reader_of(settings: Settings) -> Iterator[Reader]:
    """What reads dumps for a run: the workers of a cluster, or one process beside this one."""
    spread = over_cluster(settings)
    if spread is not None:
        yield partial(ingest, spread=spread)
        return
    with reading_apart() as read:
        yield read


def over_cluster(settings: Settings) -> Spread | None:
    """On a worker of a Dask cluster, metered dumps are read by all workers, a leaf each; None elsewhere.

    Aggregated dumps are too small to be worth the way. None too on a worker that may spill: what it holds
    would lie on its disk, outside of the trusted folder.
    """
    if not settings.metered or "distributed" not in sys.modules:
        return None
    import dask
    from distributed import get_worker, worker_client

    try:
        get_worker()
    except ValueError:
        return None
    if dask.config.get("distributed.worker.memory.spill", True) is not False:
        return None

    def spread(work: Callable[[Any], Any], items: Sequence[Any]) -> list[Any]:
        # the task that waits here gives its place on the worker to the others
        with worker_client() as client:
            # not pure: the same file may hold other rows by now
            answers = client.gather(client.map(partial(quietly, work), items, pure=False))
        return [_sound(answer) for answer in answers]

    return spread


def quietly(work: Callable[[Any], Any], item: Any) -> tuple[Any, ...] | str:
    """The result in a tuple, or words of our own: Dask logs what is raised, and a library's text may hold a
    reading.
    """
    try:
        return (work(item),)
    except OptStreamError as error:
        return str(error)
    except UNREADABLE:
        return ""
    except Exception as error:  # noqa: BLE001 - as above
        return unexpected(error)


def _sound(answer: tuple[Any, ...] | str) -> Any:
    if answer == "":
        raise pl.exceptions.ComputeError("a worker could not read a file")
    if isinstance(answer, str):
        raise ConfigurationError(f"a worker of the cluster failed: {answer}")
    return answer[0]
