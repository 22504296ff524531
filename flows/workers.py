"""Where the months of a backfill run: here, in processes of this machine, or on a Dask cluster."""

import os
import sys
from collections.abc import Callable, Sequence
from typing import Any

from optstream.errors import ConfigurationError
from tasks.ingest.spread import Spread
from tasks.settings import Settings
from tasks.settings.paths import ledger_database


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
            from prefect_dask import DaskTaskRunner
        except ImportError:
            raise ConfigurationError(
                "--dask needs the package prefect-dask: install optstream[dask]"
            ) from None
        return DaskTaskRunner(address=dask)
    if n_workers > 1:
        from prefect.task_runners import ProcessPoolTaskRunner

        return ProcessPoolTaskRunner(max_workers=n_workers)
    return None


def over_cluster(settings: Settings) -> Spread | None:
    """On a worker of a Dask cluster, metered dumps are read by all workers, a leaf each; None elsewhere.

    Aggregated dumps are too small to be worth the way.
    """
    if not settings.metered or "distributed" not in sys.modules:
        return None
    from distributed import get_worker, worker_client

    try:
        get_worker()
    except ValueError:
        return None

    def spread(work: Callable[[Any], Any], items: Sequence[Any]) -> list[Any]:
        # the task that waits here gives its place on the worker to the others
        with worker_client() as client:
            # not pure: the same file may hold other rows by now
            found: list[Any] = client.gather(client.map(work, items, pure=False))
        return found

    return spread
