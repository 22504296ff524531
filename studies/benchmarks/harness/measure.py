"""Times and prints: what every benchmark shares besides the streams of `fixture`."""

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from rich.console import Console
from rich.progress import track
from rich.table import Table

from optstream.errors import OptStreamError

WIDTH = 140
"""Of what is printed, also where the output is a file."""
T = TypeVar("T")


class Taken(NamedTuple):
    """Seconds on the wall, and of this process's processor: the latter hold on a busy machine too."""

    wall: float
    processor: float


def processor() -> float:
    """Return the processor seconds of this process and of its children, those that live included (Linux)."""
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + ended.ru_utime + ended.ru_stime + sum(map(_seconds, living_children()))


def living_children() -> list[str]:
    """Return the process ids of this process's children (Linux)."""
    found = []
    for task in Path("/proc/self/task").iterdir():
        with suppress(FileNotFoundError, ProcessLookupError):  # a thread that ended meanwhile
            found += (task / "children").read_text(encoding="ascii").split()
    return found


def _seconds(process: str) -> float:
    _, _, fields = Path(f"/proc/{process}/stat").read_text(encoding="utf-8").rpartition(")")
    return sum(map(int, fields.split()[11:13])) / os.sysconf("SC_CLK_TCK")


def timed(work: Callable[[], T]) -> tuple[Taken, T]:
    """Return what a call takes, and its result."""
    wall, processor = time.perf_counter(), time.process_time()
    result = work()
    return Taken(time.perf_counter() - wall, time.process_time() - processor), result


def fastest(work: Callable[[], T], times: int) -> tuple[Taken, T]:
    """Return the least that one of so many calls takes, on either clock, and the last result."""
    runs, result = zip(*(timed(work) for _ in range(times)), strict=True)
    return Taken(*map(min, zip(*runs, strict=True))), result[-1]


def in_process(*words: str, codes: Sequence[int] = (0,), **environment: str) -> tuple[Any, float]:
    """Run `python WORDS` in a process of its own; return the JSON that it printed, if any, and its seconds.

    The seconds are the wall's, start of Python included. Raises RuntimeError, with what the process wrote to
    its standard error, for an exit code that is not among `codes`.
    """
    started = time.perf_counter()
    done = subprocess.run(
        [sys.executable, *words], env=os.environ | environment, capture_output=True, text=True, check=False
    )
    seconds = time.perf_counter() - started
    if done.returncode not in codes:
        raise RuntimeError(done.stderr)
    return json.loads(done.stdout or "null"), seconds


def in_words(seconds: float) -> str:
    """Return seconds, or milliseconds or microseconds where they are few, with their unit."""
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= size:
            return f"{seconds / size:.2f} {unit}"
    return f"{seconds * 1e6:.2f} µs"


def table(texts: Iterable[str], numbers: Iterable[str], title: str | None = None) -> Table:
    """Return a table without rows, with columns of text and, after them, columns of numbers."""
    made = Table(title=title, title_justify="left", box=None, pad_edge=False)
    for name in texts:
        made.add_column(name, no_wrap=True)
    for name in numbers:
        made.add_column(name, justify="right", no_wrap=True)
    return made


def show(*lines: str | Table) -> None:
    """Print lines and tables as wide as they are."""
    console = Console(highlight=False, soft_wrap=True)
    console.width = max(console.width, WIDTH)
    for line in lines:
        console.print(line)


def parser(document: str | None, *, data: bool | None = None, **usual: Any) -> argparse.ArgumentParser:
    """Return a parser whose help is a module's docstring.

    data: whether it has --data, the folder of public series, and needs it; the environment's OPTSTREAM_DATA
    stands in for it. usual: further options with their defaults; False is a flag, a list takes several.
    """
    made = argparse.ArgumentParser(
        description=document, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    if data is not None:
        given = os.environ.get("OPTSTREAM_DATA")
        made.add_argument(
            "--data", type=Path, metavar="FOLDER", default=Path(given) if given else None,
            required=data and given is None,
            help="the folder of the public series (default: the environment's OPTSTREAM_DATA)",
        )  # fmt: skip
    for name, default in usual.items():
        told: dict[str, Any] = {"default": default, "help": "(default: %(default)s)"}
        if default is False:
            made.add_argument(f"--{name}", action="store_true")
        elif isinstance(default, list):
            made.add_argument(f"--{name}", nargs="+", type=type(default[0]), **told)
        else:
            made.add_argument(f"--{name}", type=type(default), **told)
    return made


def tracked(items: Iterable[T], what: str = "Working...") -> Iterable[T]:
    """Return the items, with a bar on standard error of how many are done."""
    return track(items, what, console=Console(stderr=True))


def command(main: Callable[[], None]) -> None:
    """Run a benchmark's `main`; say an error of OptStream in one line and exit with 2."""
    try:
        main()
    except OptStreamError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)
