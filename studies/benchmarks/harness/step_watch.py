"""A terminal that notes what each step of a night takes: processor seconds, and the most memory within it."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from flows.cli.output import Terminal
from studies.benchmarks.harness.measure import processor


class StepWatch(Terminal):
    """Takes the terminal's place, and adds up what steps of one name take."""

    def __init__(self) -> None:
        super().__init__(as_json=True)
        self.seconds: dict[str, float] = {}
        self.gib: dict[str, float] = {}

    @contextmanager
    def step(self, label: str) -> Iterator[None]:
        """Measure one step; `label` is "name, n days"."""
        # the kernel counts the most memory anew (Linux)
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
        began, name = processor(), label.partition(",")[0]
        yield
        self.seconds[name] = self.seconds.get(name, 0.0) + processor() - began
        self.gib[name] = max(self.gib.get(name, 0.0), peak())


def peak(process: str = "self") -> float:
    """Return the most memory of a process since it was last counted anew, GiB."""
    lines = Path(f"/proc/{process}/status").read_text(encoding="ascii").splitlines()
    kib = next(line.split()[1] for line in lines if line.startswith("VmHWM"))
    return int(kib) / 2**20
