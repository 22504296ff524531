"""Where months of a backfill run: processes of this machine, or a Dask cluster."""

import os
import signal
from typing import Any

from optstream.errors import ConfigurationError
from tasks.config import Settings
from tasks.config.fields import ledger_database
from tasks.ingest.sandbox import end_with_parent


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
            raise ConfigurationError(
                "--dask needs the package prefect-dask: install optstream[dask]"
            ) from None
        return DaskTaskRunner(address=dask)
    if n_workers > 1:
        from prefect.task_runners import ProcessPoolTaskRunner

        return ProcessPoolTaskRunner(max_workers=n_workers, initializer=begin_worker)
    return None


def begin_worker() -> None:
    """Have this process, one of a pool's, end with its parent, and by Ctrl-C without an exception.

    A terminal's Ctrl-C reaches workers too. A worker's KeyboardInterrupt would be sent back as its result and
    raised in the thread by which the pool hears of results (Prefect 3.8 catches Exception there): that thread
    ends, and whoever asked waits without end. A pool that has lost a process says so at once. Polars must
    be imported before, as it is with the sandbox: it takes Ctrl-C over, and would swallow it from then on.
    """
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    end_with_parent()
