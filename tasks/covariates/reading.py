"""Covariates are read in processes of their own: a file that ends one costs its covariate, not the night."""

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, timedelta
from resource import RLIMIT_AS, RLIMIT_CPU, setrlimit
from threading import Timer
from typing import Any

import numpy as np

from optstream.errors import DumpError
from optstream.stream.calendar import ORIGIN
from optstream.stream.covariate import Covariate
from tasks.config import Settings
from tasks.config.paths import absolute
from tasks.covariates.private_zones import private_zones
from tasks.covariates.public_series import LONGEST_PAST, Asked, covariate_of
from tasks.storage.failures import is_failure

MOST_MEMORY = 2**33
"""Bytes of address space; threads reserve more than they use."""
MOST_SECONDS = 120
"""Of the clock on the wall, and of a processor."""
LARGEST_ANSWER = 2**26
"""Bytes; the most nodes over the longest past take less than half of it."""


@dataclass(frozen=True)
class Unread:
    """A covariate that nights go without, and why: the place, the rule and the remedy."""

    name: str
    why: str


@dataclass(frozen=True)
class Covariates:
    """What was read, and what could not be."""

    read: tuple[Covariate, ...]
    unread: tuple[Unread, ...]


def read_covariates(
    settings: Settings, until: date, read: Callable[[Asked], Covariate] | None = None
) -> Covariates:
    """Return the configured covariates up to a day, and those whose files cannot be used.

    A file under an input or trusted folder is not read, links followed (`private_zones`). Raises nothing over
    any file. read: how; None for in a process of its own.
    """
    found, unread = [], []
    for given in settings.covariates.given:
        place = absolute(given.path, settings.folder)
        asked = Asked(
            given=given,
            place=place,
            private=private_zones(settings, place),
            time_zone=settings.stream.time_zone,
            parents=settings.tree_of(until).parents_by_name(),
            until=until,
        )
        try:
            found.append((read or _read_apart)(asked))
        except DumpError as error:
            unread.append(Unread(given.name, f"covariate {given.name}: {error}"))
    return Covariates(tuple(found), tuple(unread))


def _read_apart(asked: Asked) -> Covariate:
    """Return what a process of its own reads. Raises DumpError in its words, or where it gave no answer."""
    try:
        found = _heard(json.loads(_said_by_a_process(asked)), asked)
    except BaseException as error:
        if not is_failure(error):
            raise
        raise DumpError(
            f"{asked.given.path} cannot be read: the process that reads it ended over it or took longer than "
            f"{MOST_SECONDS} seconds; it is damaged, made to do harm, or too large: deliver it anew"
        ) from None
    if isinstance(found, str):
        raise DumpError(found)
    return found


def _said_by_a_process(asked: Asked) -> bytes:
    # the present folder is no place to import from
    command, pipe = [sys.executable, "-P", "-m", __name__], subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        timer = Timer(MOST_SECONDS, process.kill)
        timer.start()
        try:
            process.stdin.write(asked.model_dump_json().encode())
            process.stdin.close()
            return process.stdout.read(LARGEST_ANSWER)
        finally:
            timer.cancel()
            process.kill()


def _heard(said: Any, asked: Asked) -> Covariate | str:
    """Return what a process said, which decoded files that others made: nothing is taken for granted. Raises
    ValueError and others where it is no answer to what was asked.
    """
    if "why" in said:
        return f"{said['why']:.500}"
    given, first = asked.given, ORIGIN + timedelta(days=said["first_day"])
    if type(said["first_day"]) is not int:  # columns are counted from it
        raise ValueError
    values = np.array(said["values"], dtype=np.float64)
    past = asked.until - first - timedelta(days=values.shape[1] - 1)
    if len(values) not in (1, len(asked.parents)) or not timedelta(0) <= past <= timedelta(LONGEST_PAST):
        raise ValueError
    return Covariate(given.name, said["first_day"], values, given.publication_lag_days, given.level)


def read_here(asked: Asked) -> Covariate:
    """Return the covariate. Raises DumpError, which repeats nothing that a library says of a file."""
    try:
        return covariate_of(asked)
    except DumpError:
        raise
    except BaseException as error:
        if not is_failure(error):
            raise
        said = error.strerror if isinstance(error, OSError) else None
        why = f" ({said})" if said else " as a table"
        raise DumpError(
            f"{asked.given.path} cannot be read{why}: mend it, or have it delivered anew"
        ) from None


def _answer() -> dict[str, Any]:
    """Return what this process is asked for, as a document, or why there is none."""
    try:
        return read_here(Asked.model_validate_json(sys.stdin.buffer.read())).to_document()
    except DumpError as error:
        return {"why": str(error)}


if __name__ == "__main__":
    setrlimit(RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))
    setrlimit(RLIMIT_CPU, (MOST_SECONDS, MOST_SECONDS))
    sys.stdout.write(json.dumps(_answer(), allow_nan=False))
