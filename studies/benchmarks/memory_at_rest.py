"""Memory of a running `optstream serve` and its server, worker and pages: each one's share (PSS), in MB.

`python -m studies.benchmarks.memory_at_rest demo/trusted`
"""

import sys
from collections.abc import Iterator
from pathlib import Path

PROC = Path("/proc")


def family(process: str) -> Iterator[str]:
    """Yield a process, and all that it or they started."""
    yield process
    for children in (PROC / process / "task").glob("*/children"):
        for child in children.read_text().split():
            yield from family(child)


def share(process: str) -> int:
    """Return the memory of a process in kB; shared pages count in equal parts for those who have them."""
    lines = (PROC / process / "smaps_rollup").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("Pss:"))


def main(trusted_folder: str) -> None:
    """Print a line a process, and their sum."""
    total = 0
    for process in family((Path(trusted_folder) / "serve/server.lock").read_text().strip()):
        own = share(process)
        total += own
        words = (PROC / process / "cmdline").read_text().split("\0")
        print(f"{own / 1024:6.0f} MB  {' '.join(words[1:6])}")
    print(f"{total / 1024:6.0f} MB  in all")


if __name__ == "__main__":
    main(*sys.argv[1:])
