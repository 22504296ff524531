"""A pool's workers: Ctrl-C in one of them is told to whoever waits, as an error that can be caught."""

import os
import signal
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context

import pytest

from flows.orchestration.backfill import begin_worker

pytestmark = pytest.mark.slow

LONGEST_WAIT = 120.0


def interrupted():
    import polars as pl  # it takes Ctrl-C over

    pl.DataFrame({"a": [1]}).lazy().collect()
    signal.raise_signal(signal.SIGINT)
    return os.getpid()


def what_comes_back(pool):
    with pool:
        return type(pool.submit(interrupted).exception(LONGEST_WAIT))


def test_an_interrupted_worker_breaks_its_pool():
    pool = ProcessPoolExecutor(2, get_context("spawn"), begin_worker)
    assert what_comes_back(pool) is BrokenProcessPool


def listens():
    """As a terminal's processes do, also where a shell started the tests in the background."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


def test_control_else_an_exception_comes_back_that_nobody_catches():
    """KeyboardInterrupt is no Exception: in a callback of Prefect's it ends the thread that tells results."""
    assert what_comes_back(ProcessPoolExecutor(1, get_context("spawn"), listens)) is KeyboardInterrupt
