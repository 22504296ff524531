"""Prefect's own command line, for the server and the worker: without Dask, which only a run needs (20 MB)."""

import sys


def main() -> None:
    """Run it; of the collections that are installed, that of Dask counts as one that cannot be imported."""
    sys.modules["prefect_dask"] = None  # type: ignore[assignment]  # as Python's import system marks it
    from prefect.cli import app

    app()


if __name__ == "__main__":
    main()
