"""Dumps read in a process of its own: a file that ends its reader costs its own day, never the run.

A decoder may believe a length that a damaged file names, and a library whose allocation fails ends the whole
process: nothing could be caught. What such a process says last may hold a reading, so nobody hears it.
"""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from multiprocessing import Pipe
from multiprocessing.connection import Connection as End

from optstream.errors import DumpError, OptStreamError
from tasks.core_dumps import forbid_core_dumps
from tasks.failures import is_failure, unexpected
from tasks.ingest import Dump, IngestedDay, Reader
from tasks.ingest.days import ReadDay, read_days, sealed
from tasks.ingest.discover import PREFIX
from tasks.ingest.spread import without_ledger
from tasks.settings import Settings


@contextmanager
def reading_apart() -> Iterator[Reader]:
    """Give a reader whose process begins with the first dump, and is begun anew if it died.

    The reader raises DumpError where its process died over these dumps, naming the file if they are of one
    day, and OptStreamError, without a library's words, where it raised. Its process waits for the next
    reader of this one: a month of a backfill need not begin its own.
    """
    known: list[_Process] = []

    def ask(settings: Settings, dumps: Sequence[Dump]) -> list[ReadDay]:
        process = known.pop() if known else _idle() or _Process()
        try:
            answer = process.ask(settings, dumps)
        except (EOFError, OSError):
            raise _DiedError(process.end()) from None
        except BaseException:
            # whoever asks it next would be given the answer to this
            process.kill()
            raise
        known.append(process)
        if isinstance(answer, str):
            raise OptStreamError(answer)
        if [day.day for day in answer] != [dump.day for dump in dumps]:
            raise OptStreamError(f"{dumps[0].day}: other days were read than were asked for; run again")
        return answer

    def read(settings: Settings, dumps: Sequence[Dump]) -> list[IngestedDay]:
        apart = without_ledger(settings)
        try:
            return [sealed(day, settings) for day in ask(apart, dumps)]
        except _DiedError as death:
            how = str(death)
        place = str(dumps[0].day)
        for only, file in _one_by_one(dumps[0], settings) if len(dumps) == 1 else ():
            try:
                ask(apart, [only])
            except _DiedError:
                place = file
                break
        raise DumpError(
            f"{place}: the process that reads dumps ended over this ({how}): it is damaged, made to do harm, "
            "or too large for the memory; look at where it came from, and deliver it anew"
        )

    try:
        yield read
    finally:
        IDLE.extend(known)


def _idle() -> "_Process | None":
    """A process that nobody asks now, if one lives; those of a process that this one was forked from are not
    its own.
    """
    while IDLE:
        process = IDLE.pop()
        if process.owner == os.getpid() and process.lives:
            return process
    return None


class _DiedError(Exception):
    """The process that reads is gone. How, as `subprocess` counts it."""

    def __str__(self) -> str:
        (code,) = self.args
        return signal.Signals(-code).name if code < 0 else f"exit code {code}"


def _one_by_one(dump: Dump, settings: Settings) -> Iterator[tuple[Dump, str]]:
    """The dump as if each of its files were its only one, with that file's place in the input folder."""
    for leaf, paths in enumerate(dump.files):
        for path in paths:
            files = tuple((path,) if number == leaf else () for number in range(len(dump.files)))
            place = f"{PREFIX}{settings.tree.leaves[leaf]}/date={dump.day}/{path.name!r:.80}"
            yield replace(dump, files=files), place


class _Process:
    """This module as a program at the other end of a pair of sockets. It ends when this end is closed."""

    def __init__(self) -> None:
        self.owner = os.getpid()
        self._end, theirs = Pipe()
        # the present folder is no place to import from
        command = [sys.executable, "-P", "-m", __name__, str(theirs.fileno())]
        silent = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        self._process = subprocess.Popen(command, pass_fds=[theirs.fileno()], **silent)
        # else its death would not be heard here
        theirs.close()

    @property
    def lives(self) -> bool:
        return self._process.poll() is None

    def ask(self, settings: Settings, dumps: Sequence[Dump]) -> list[ReadDay] | str:
        """What it read, or in words why it could not. Raises EOFError or OSError if it is gone."""
        self._end.send((settings, list(dumps)))
        answer: list[ReadDay] | str = self._end.recv()
        return answer

    def end(self) -> int:
        """Let it end by itself; how it ended, as `subprocess` counts it."""
        self._end.close()
        return self._process.wait()

    def kill(self) -> None:
        self._process.kill()
        self.end()


IDLE: list[_Process] = []
"""Those that wait."""


def serve(end: End) -> None:
    """A process's life: read what is asked for, until the asker is gone."""
    # what lies in memory is raw
    forbid_core_dumps()
    while True:
        try:
            settings, dumps = end.recv()
        except EOFError:
            return
        answer: list[ReadDay] | str
        try:
            answer = read_days(settings, dumps)
        except BaseException as error:  # a library's text may hold a reading
            if not is_failure(error):
                raise
            answer = unexpected(error)
        try:
            end.send(answer)
        except BrokenPipeError:
            return


if __name__ == "__main__":
    with End(int(sys.argv[1])) as asker:
        serve(asker)
    # threads of a library may be at work still
    os._exit(0)
