"""Dumps read in a limited process: a bad file costs its own day alone. Its last words may hold a reading,
so nothing keeps them; its answers are data, from which no code can come.
"""

import json
import math
import os
import resource
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import date
from io import BytesIO
from multiprocessing import Pipe, parent_process
from multiprocessing.connection import Connection as End
from pathlib import Path
from threading import Timer

import numpy as np
import polars as pl
from pydantic import BaseModel

from optstream.errors import DumpError, OptStreamError
from optstream.storage.store import Location, StoreUrl
from optstream.stream import period_from
from tasks.config import Settings
from tasks.config.fields import step_minutes
from tasks.ingest import Dump, IngestedDay, discover
from tasks.ingest.arrivals import parts_of, quoted_name_of
from tasks.ingest.clock import foresee, unsure_ends
from tasks.ingest.formats import UNREADABLE, facts_of
from tasks.ingest.rows import Place
from tasks.ingest.sums import Unsealed, read_days, sealed
from tasks.trusted.files import forbid_core_dumps, is_failure, unexpected

# What the process that reads dumps is asked and answers: JSON and Arrow, data and no code.

UNITS = "units"


def request(settings: Settings, dumps: Sequence[Dump], *, footers: bool = False) -> bytes:
    """The dumps, and of the settings what reading needs: no ledger, no mechanism's keys, no other folder."""
    known = settings.model_dump(mode="json", by_alias=True, exclude={"mechanism", "ledger", "folder", "file"})
    known["input"]["folder"] = str(settings.input_folder)
    rest = {"mechanism": {"name": settings.mechanism.name}, "ledger": {"url": ""}, "folder": ".", "file": "."}
    days = [
        (dump.day.isoformat(), [[(str(one), dump.hashes.get(one, "")) for one in own] for own in dump.files])
        for dump in dumps
    ]
    return json.dumps({"settings": known | rest, "dumps": days, "footers": footers}).encode()


def requested(message: bytes) -> tuple[Settings, list[Dump], bool]:
    """Return the parts of a `request`."""
    given = json.loads(message)
    dumps = []
    for day, parts in given["dumps"]:
        files = tuple(tuple(_located(file) for file, _ in own) for own in parts)
        hashes = {_located(file): tag for own in parts for file, tag in own if tag}
        dumps.append(Dump(period_from(day), files, hashes))
    return Settings.model_validate_json(json.dumps(given["settings"])), dumps, given["footers"]


def _located(text: str) -> Location:
    # of a path pathlib makes no text with "//"
    return StoreUrl(text) if "://" in text else Path(text)


class _DayRead(BaseModel):
    day: str
    sound: bool
    fits_clock: bool
    places: list[tuple[str, str, Place]]


class _Answer(BaseModel):
    """The first message; each day's metrics follow, and a sound day's raw sums."""

    error: str | None = None
    days: list[_DayRead] = []


def answer(read: Sequence[Unsealed] | str) -> Iterator[bytes]:
    """The days that were read, or in words why not, in several messages: raw sums are among them."""
    found = () if isinstance(read, str) else read
    days = [
        _DayRead(
            day=day.day.isoformat(),
            sound=units is not None,
            fits_clock=day.fits_clock,
            places=[(*key, place) for key, place in day.places.items()],
        )
        for day, units in found
    ]
    yield _Answer(error=read if isinstance(read, str) else None, days=days).model_dump_json().encode()
    for day, units in found:
        yield _arrow(day.metrics)
        if units is not None:
            yield _arrow(pl.DataFrame({UNITS: units.ravel()}))


def answered(messages: Iterable[bytes], settings: Settings, dumps: Sequence[Dump]) -> list[Unsealed] | str:
    """Return the days of an `answer`. The process has decoded files of others, so nothing is taken for
    granted: raises OptStreamError, repeating none of it, where it is no answer to this request.
    """
    source = iter(messages)
    try:
        given = _Answer.model_validate_json(next(source))
        if given.error is not None:
            return given.error
        if [one.day for one in given.days] != [dump.day.isoformat() for dump in dumps]:
            raise ValueError
        pairs = zip(dumps, given.days, strict=True)
        return [_day(dump.day, one, source, settings) for dump, one in pairs]
    except OSError:
        raise  # it is gone
    except (ValueError, KeyError, TypeError, StopIteration, *UNREADABLE):
        raise OptStreamError(
            f"{dumps[0].day}: the process that reads dumps gave no answer; run again"
        ) from None


def _day(day: date, read: _DayRead, source: Iterator[bytes], settings: Settings) -> Unsealed:
    leaves, units = settings.tree_of(day).leaves, None
    metrics = pl.read_ipc_stream(BytesIO(next(source)))
    if metrics["region"].to_list() != list(leaves):
        raise ValueError
    if read.sound:
        sums = pl.read_ipc_stream(BytesIO(next(source)))[UNITS]
        if sums.dtype != pl.Int64 or sums.null_count():
            raise ValueError
        n_columns = settings.calendar.n_steps(day) + settings.published.reporting
        units = sums.to_numpy().reshape(len(leaves), n_columns).astype(np.int64)
    places = {(region, rule): place for region, rule, place in read.places}
    return IngestedDay(day, None, metrics, places, read.fits_clock), units


def _arrow(frame: pl.DataFrame) -> bytes:
    buffer = BytesIO()
    frame.write_ipc_stream(buffer)
    return buffer.getvalue()


# Processes that end when the one that started them is gone, however it ended: SIGKILL runs no exit hook.
#
# Each waits for the closing of a pipe or socket whose other end its starter alone holds. Linux's own signal
# for this (PR_SET_PDEATHSIG) follows the thread that started a process, and pools start theirs in threads
# that end sooner; and it misses a starter that died before it was asked for, which a closed pipe does not.

GRACE_SECONDS = 10.0
"""After a polite stop, which a draw holds back (`tasks.trusted.files.deferred_stop`)."""


def end_with_peer(descriptor: int) -> None:
    """End this process, which holds raw values, as soon as the other end of a socket is closed."""

    def wait() -> None:
        poll = select.poll()
        poll.register(descriptor, select.POLLRDHUP)
        poll.poll()
        os._exit(1)

    _in_background(wait)


def end_with_parent() -> None:
    """End this process, one of a pool's, when its parent is gone: politely, and then at once."""
    parent = parent_process()
    if parent is None:
        return

    def wait() -> None:
        parent.join()
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(GRACE_SECONDS)
        os._exit(1)

    _in_background(wait)


def _in_background(wait: Callable[[], None]) -> None:
    threading.Thread(target=wait, name="ends with its starter", daemon=True).start()


LARGEST_MESSAGE = 2**34
"""Bytes; more the process that reads cannot make the one that asks hold."""
PATIENCE = 30.0
"""Seconds that a process has to end by itself."""


def read_apart(settings: Settings, dumps: Sequence[Dump]) -> list[IngestedDay]:
    """Read dumps in a process of its own, begun again if it died; DumpError if it dies or is slow."""
    limit = seconds_of(settings)
    try:
        return [sealed(*read, settings) for read in _ask(settings, dumps, limit * len(dumps))]
    except _DiedError as death:
        first = death
    place, until = str(dumps[0].day), time.monotonic() + limit
    # each file as if it were the dump's only one, to name it
    parts = parts_of(settings, dumps[0].day)
    files = [(number, path) for number, own in enumerate(dumps[0].files) for path in own]
    for number, path in files if len(dumps) == 1 else ():
        only = tuple((path,) if one == number else () for one in range(len(parts)))
        file = quoted_name_of(settings, path)
        try:
            _ask(settings, [replace(dumps[0], files=only)], max(until - time.monotonic(), 0.0))
        except _DiedError:
            place = file
            break
    raise DumpError(f"{place}: {first.in_words(settings)}")


def clock_before_ingest(settings: Settings, day: date) -> str | None:
    """Return what `foresee` says of a day's timestamps, by the footer of one file, if there is one."""
    fits, dump = True, discover(settings, [day])[day]
    if isinstance(dump, Dump):
        part = next(number for number, own in enumerate(dump.files) if own)
        files = tuple(own[:1] if number == part else () for number, own in enumerate(dump.files))
        with suppress(_DiedError, OptStreamError):
            first = replace(dump, files=files, hashes={})
            ((found, _),) = _ask(settings, [first], seconds_of(settings), footers=True)
            fits = found.fits_clock
    return foresee(settings.calendar, day, fits, ends=unsure_ends(settings, day))


def _ask(
    settings: Settings, dumps: Sequence[Dump], seconds: float, *, footers: bool = False
) -> list[Unsealed]:
    """Return what an idle process reads, or a new one. Raises OptStreamError, or _DiedError."""
    process = _idle() or _Process()
    try:
        found = process.ask(settings, dumps, seconds, footers=footers)
    except (EOFError, OSError):
        raise _DiedError(process.end(), process.late) from None
    except BaseException:
        # the next request would be given the answer to this
        process.kill()
        raise
    if process.late:
        process.end()
    else:
        IDLE.append(process)
    if isinstance(found, str):
        raise OptStreamError(found)
    return found


def seconds_of(settings: Settings) -> float:
    """How long the reading of one day's dump may take."""
    return 60.0 * step_minutes(settings.input.time_limit)


def _idle() -> "_Process | None":
    """A process of this one's that lives and that nobody asks; not of one that it was forked from."""
    with suppress(IndexError):
        while True:
            process = IDLE.pop()
            if process.owner == os.getpid() and process.lives:
                return process
    return None


class _DiedError(Exception):
    """The process that reads is gone: how, as `subprocess` counts it, and whether it had taken too long."""

    def in_words(self, settings: Settings) -> str:
        """The meaning for the dump, and the remedy."""
        code, late = self.args
        if late or code in (-signal.SIGALRM, -signal.SIGXCPU):
            return (
                f"reading the dump took longer than input.time_limit, {settings.input.time_limit}, and was "
                "ended: look at where it came from, and deliver it again with fewer rows, or set a longer "
                "limit"
            )
        how = signal.Signals(-code).name if code < 0 else f"exit code {code}"
        return (
            f"the process that reads dumps ended over this ({how}): it is damaged, made to do harm, "
            "or too large for the memory; look at where it came from, and deliver it again"
        )


class _Process:
    """This module as a program at the other end of a pair of sockets; it ends when this end is closed."""

    def __init__(self) -> None:
        self.owner = os.getpid()
        self.late = False
        self._end, theirs = Pipe()
        # the present folder is no place to import from
        command = [sys.executable, "-P", "-m", __name__, str(theirs.fileno())]
        silent = subprocess.DEVNULL
        self._process = subprocess.Popen(
            command, pass_fds=[theirs.fileno()], stdin=silent, stdout=silent, stderr=silent
        )
        # else its death would not be heard here
        theirs.close()

    @property
    def lives(self) -> bool:
        return self._process.poll() is None

    def ask(
        self, settings: Settings, dumps: Sequence[Dump], seconds: float, *, footers: bool = False
    ) -> list[Unsealed] | str:
        """Return the read data, or why it failed; EOFError, OSError or OptStreamError without an answer."""
        timer = Timer(seconds, self._stop)
        timer.daemon = True
        timer.start()
        try:
            self._end.send_bytes(request(settings, dumps, footers=footers))
            return answered(iter(lambda: self._end.recv_bytes(LARGEST_MESSAGE), None), settings, dumps)
        finally:
            timer.cancel()
            timer.join()

    def _stop(self) -> None:
        self.late = True
        self._process.kill()

    def end(self) -> int:
        """Let it end by itself; how it ended, as `subprocess` counts it."""
        self._end.close()
        try:
            return self._process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self._process.kill()
            return self._process.wait()

    def kill(self) -> None:
        self._process.kill()
        self.end()


IDLE: list[_Process] = []
"""Those that wait."""


def _serve_until_alone(end: End) -> None:
    with end:
        end_with_peer(end.fileno())
        serve(end)
    # threads of a library may be at work still
    os._exit(0)


def _largest(dumps: Sequence[Dump]) -> int:
    """Bytes that reading may map: as many as the machine has memory, plus the present mappings, and files."""
    page, mapped = os.sysconf("SC_PAGE_SIZE"), 0
    with suppress(OSError):  # where the system does not say, no kernel limits it
        mapped = int(Path("/proc/self/statm").read_text().split()[0]) * page
    paths = (path for dump in dumps for own in dump.files for path in own if isinstance(path, Path))
    with suppress(OSError):
        mapped += sum(facts_of(path).size for path in paths)
    return os.sysconf("SC_PHYS_PAGES") * page + mapped


def limit(seconds: int, memory: int) -> None:
    """Have the kernel end this process after these seconds, and bound its memory; it may write no file."""
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    used = resource.getrusage(resource.RUSAGE_SELF)
    processor = math.ceil(used.ru_utime + used.ru_stime) + seconds * (os.cpu_count() or 1)
    limits = {resource.RLIMIT_CPU: processor, resource.RLIMIT_AS: memory, resource.RLIMIT_FSIZE: 0}
    for kind, most in limits.items():
        _, hard = resource.getrlimit(kind)
        resource.setrlimit(kind, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard))


def serve(end: End) -> None:
    """A process's life: read the requested files, until the parent is gone."""
    # memory holds raw readings
    forbid_core_dumps()
    while True:
        try:
            message = end.recv_bytes()
        except EOFError:
            return
        found: list[Unsealed] | str
        try:
            settings, dumps, footers = requested(message)
            limit(math.ceil(seconds_of(settings) * len(dumps)) + 1, _largest(dumps))
            found = read_days(settings, dumps, footers=footers)
        except BaseException as error:  # a library's text may hold a reading
            if not is_failure(error):
                raise
            found = unexpected(error)
        signal.setitimer(signal.ITIMER_REAL, 0)
        try:
            for part in answer(found):
                end.send_bytes(part)
        except BrokenPipeError:
            return


if __name__ == "__main__":
    _serve_until_alone(End(int(sys.argv[1])))
