"""What several benchmarks share: clocks, memory, the table that is printed, options, mechanism and stream."""

import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Annotated, Any, NamedTuple, TypeVar

import typer
from rich.console import Console
from rich.progress import track
from rich.table import Table

from flows.cli.output import Terminal
from optstream import AggregationTree, EquallySpaced, Feature, OptStream, PrivacyModel
from tasks.config import Settings, load_settings
from tasks.config.templates import EXAMPLE

WIDTH = 140
"""Width of the printed table, also where the output is a file."""
STEPS = 48
"""Half-hours of a day, and of the window, in every benchmark's stream."""
T = TypeVar("T")
Data = Annotated[
    Path, typer.Option(metavar="FOLDER", envvar="OPTSTREAM_DATA", help="The folder of the public series.")
]
Seed = Annotated[int, typer.Option(min=0, help="Of the simulated noise.")]


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


def in_process(*words: str) -> tuple[Any, float]:
    """Run `python WORDS` in a process of its own; return the JSON that it printed, and the wall's seconds."""
    started = time.perf_counter()
    done = subprocess.run([sys.executable, *words], capture_output=True, text=True, check=False)
    seconds = time.perf_counter() - started
    if done.returncode:
        raise RuntimeError(done.stderr)
    return json.loads(done.stdout or "null"), seconds


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


def tracked(items: Iterable[T], what: str = "Working...") -> Iterable[T]:
    """Return the items, with a bar on standard error of how many are done."""
    return track(items, what, console=Console(stderr=True))


class StepWatch(Terminal):
    """A terminal that adds up the processor seconds of steps of one name, and the most memory of each."""

    def __init__(self) -> None:
        super().__init__(as_json=True)
        self.seconds: dict[str, float] = {}
        self.gib: dict[str, float] = {}

    @contextmanager
    def step(self, label: str) -> Iterator[None]:
        """Measure one step; `label` is "name, n days"."""
        # the kernel starts to count the most memory again (Linux)
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
        began, name = processor(), label.partition(",")[0]
        yield
        self.seconds[name] = self.seconds.get(name, 0.0) + processor() - began
        self.gib[name] = max(self.gib.get(name, 0.0), peak())


def peak(process: str = "self") -> float:
    """Return the most memory of a process since the count last started, GiB (Linux)."""
    lines = Path(f"/proc/{process}/status").read_text(encoding="ascii").splitlines()
    kib = next(line.split()[1] for line in lines if line.startswith("VmHWM"))
    return int(kib) / 2**20


def optstream(tree: AggregationTree, epsilon: str = "1") -> OptStream:
    """Return the paper's mechanism at alpha 1: ten points of 48, its day parts, equal shares of levels."""
    return OptStream(
        PrivacyModel(epsilon, STEPS, 1),
        tree,
        sampling=EquallySpaced(10),
        features=Feature.day_parts(STEPS),
        level_shares=[f"1/{tree.n_levels}"] * tree.n_levels,
    )


def stream(folder: Path, text: str = EXAMPLE) -> Settings:
    """Write a configuration, `optstream init`'s unless another is given; return the settings."""
    file = folder / "optstream.toml"
    file.write_text(text, encoding="utf-8")
    return load_settings(file)
