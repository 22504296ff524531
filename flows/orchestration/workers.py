"""Where months of a backfill run and dumps are read: processes of this machine, or a Dask cluster."""

import os
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from typing import Any

import polars as pl

from optstream.errors import ConfigurationError, OptStreamError
from tasks.config import Settings
from tasks.config.fields import ledger_database
from tasks.ingest import Dump, IngestedDay, Reader, ingest
from tasks.ingest.days import ReadDay, is_worth_spreading, read_days, sealed
from tasks.ingest.formats import UNREADABLE
from tasks.ingest.rows import Spread, without_ledger
from tasks.ingest.sandbox import answer, answered, end_with_parent, reading_apart
from tasks.trusted.failures import unexpected

CONNECT_SECONDS = 10
WORKER_SECONDS = 60
"""For which a scheduler without workers is waited for."""
NO_WARNING = {"distributed.admin.large-graph-warning-threshold": "1 TB"}
"""Settings with the hierarchy's names travel with each task: no advice on how a graph is better laid out."""
NO_DASK = "--dask needs the package prefect-dask: install optstream[dask]"
CLUSTER: ContextVar[str | None] = ContextVar("address of the Dask cluster that reads dumps", default=None)


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

    Imports prefect. Raises ConfigurationError where the cluster's package is not installed.
    """
    if dask is not None:
        try:
            from prefect_dask.task_runners import DaskTaskRunner
        except ImportError:
            raise ConfigurationError(NO_DASK) from None
        return DaskTaskRunner(address=dask)
    if n_workers > 1:
        from prefect.task_runners import ProcessPoolTaskRunner

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
    """What reads a run's dumps: a cluster's workers where that is worth it, else one process beside."""
    address, spread = CLUSTER.get(), over_cluster()
    with reading_apart() as apart:

        def read(settings: Settings, dumps: Sequence[Dump]) -> list[IngestedDay]:
            if not is_worth_spreading(settings, dumps):
                return apart(settings, dumps)
            if spread is not None:
                return ingest(settings, dumps, spread)
            assert address is not None
            return [sealed(day, settings) for day in _read_at(address, settings, dumps)]

        yield apart if spread is None and address is None else read


def over_cluster() -> Spread | None:
    """On a worker of a Dask cluster, what spreads work over all workers; None elsewhere.

    None too on a worker that may spill: what it holds would lie on its disk, outside of the trusted folder.
    """
    if "distributed" not in sys.modules:
        return None
    import dask
    from distributed import get_worker, worker_client

    try:
        get_worker()
    except ValueError:
        return None
    if may_spill():
        return None

    def spread(work: Callable[[Any], Any], items: Sequence[Any]) -> list[Any]:
        # the task that waits here gives its place on the worker to the others
        with dask.config.set(NO_WARNING), worker_client() as client:
            # not pure: the same file may hold other rows by now
            answers = client.gather(client.map(partial(on_worker, work), items, pure=False))
        return [_sound(answer) for answer in answers]

    return spread


def may_spill() -> bool:
    """Whether this worker may write to its disk what it holds: unless all of it is in a plain dict."""
    from distributed import get_worker

    return type(get_worker().data) is not dict


def _read_at(address: str, settings: Settings, dumps: Sequence[Dump]) -> list[ReadDay]:
    """Have a worker of a cluster read, spread over the others: no file is opened where it is drawn."""
    try:
        import dask
        from distributed import Client
    except ImportError:
        raise ConfigurationError(NO_DASK) from None
    connected: Any = Client  # it has no types
    try:
        client = connected(address, timeout=CONNECT_SECONDS, set_as_default=False)
    except (OSError, ValueError) as error:
        raise ConfigurationError(
            f"no scheduler of a Dask cluster answers at {address} ({type(error).__name__})"
        ) from None
    with client, dask.config.set(NO_WARNING):
        try:
            client.wait_for_workers(1, timeout=WORKER_SECONDS)
        except TimeoutError:
            raise ConfigurationError(
                f"the scheduler of the Dask cluster at {address} has no workers: start some (`dask worker`)"
            ) from None
        asked = without_ledger(settings), dumps
        messages = _sound(client.submit(on_worker, _read_here, asked, pure=False).result())
    found = answered(messages, settings, dumps)
    if isinstance(found, str):
        raise ConfigurationError(f"a worker of the cluster failed: {found}")
    return found


def _read_here(asked: tuple[Settings, Sequence[Dump]]) -> list[bytes]:
    """What was read, as the process that reads dumps would say it: it is looked at as such an answer is."""
    return list(answer(read_days(*asked, over_cluster())))


def on_worker(work: Callable[[Any], Any], item: Any) -> tuple[Any, ...] | str:
    """The result in a tuple, or words, as `quietly`; words too on a worker that may spill."""
    if may_spill():
        return (
            "it may write what it holds to its disk: set DASK_DISTRIBUTED__WORKER__MEMORY__TARGET=False and "
            "DASK_DISTRIBUTED__WORKER__MEMORY__SPILL=False for every worker"
        )
    return quietly(work, item)


def quietly(work: Callable[[Any], Any], item: Any) -> tuple[Any, ...] | str:
    """The result in a tuple, or words of ours: Dask logs what is raised, and that may hold a reading."""
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
