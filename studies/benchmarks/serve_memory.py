"""Memory of `optstream serve` over many looks: `python -m studies.benchmarks.serve_memory FOLDER [LOOKS]`.

A stream by the hour whose dumps are released, so that each look finds nothing; the next begins as soon as one
has ended. Prints the resident memory of each process every 25 looks, its growth, and what 2,000 looks give.
"""

import os
import sys
import time
from pathlib import Path
from urllib.error import HTTPError

import numpy as np

from tasks.config import load_settings
from tests.faults.world import configured
from tests.flows.served import ask, descendants, serving, until

EVERY, BEFORE = 25, 50
"""Looks between two samples, and before the first that counts: modules are loaded, caches filled."""
LONG = 2_000
DONE = {"COMPLETED", "FAILED", "CRASHED", "CANCELLED"}
PARTS = {
    "server": b"flows.orchestration.listening",
    "worker": b"prefect\0worker",
    "pages": b"flows.cli.main\0ui",
}


def resident(process: int) -> dict[str, float]:
    """MB of each process of `serve`, by its name, and of itself."""
    found = {"serve": _of(process)}
    for child in descendants(process):
        try:
            words = Path(f"/proc/{child}/cmdline").read_bytes()
        except OSError:
            continue
        for name, part in PARTS.items():
            if part in words:
                found.setdefault(name, _of(child))
    return found


def _of(process: int) -> float:
    pages = int(Path(f"/proc/{process}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def _made(url: str, user: str, deployment: str) -> str | None:
    """A new look's run; none where the server's database is locked."""
    try:
        return str(ask(url, user, f"deployments/{deployment}/create_flow_run", {})["id"])
    except HTTPError as error:
        print(f"      {error}", flush=True)
        return None


def growth(samples: list[tuple[int, dict[str, float]]]) -> dict[str, float]:
    """MB a 1,000 looks of each process, by the least squares line of the samples that count."""
    counted = [one for one in samples if one[0] >= BEFORE]
    looks = [n_looks for n_looks, _ in counted]
    return {
        name: 1_000 * float(np.polyfit(looks, [found[name] for _, found in counted], 1)[0])
        for name in counted[0][1]
    }


def measure(folder: Path, n_looks: int) -> list[tuple[int, dict[str, float]]]:
    """Run so many looks; return the samples, and print them."""
    (folder / "here").mkdir(parents=True)
    file = folder / "here" / "optstream.toml"
    text = configured(mechanism="PeGaSus").replace("two-regions", "memory")
    file.write_text(
        text.replace('step = "1h"', 'step = "1h"\nperiod = "hour"')
        + '[schedule]\ncron = "59 * * * *"\nwatch_cron = "* * * * *"\n'
    )
    settings, samples = load_settings(file), []
    with serving(settings, PREFECT_WORKER_QUERY_SECONDS="1") as served:
        url = served.says("dashboard: ")
        served.says("Ctrl-C")
        begun = time.monotonic()
        user = served.password
        deployment = ask(url, user, "deployments/filter", {})[0]["id"]
        for number in range(n_looks + 1):
            if number % EVERY == 0:
                samples.append((number, resident(served.process.pid)))
                size = (settings.serve_folder / "prefect.db").stat().st_size / 2**20
                row = "  ".join(f"{name} {mb:6.1f}" for name, mb in sorted(samples[-1][1].items()))
                print(
                    f"{number:5} looks  {row}  database {size:6.1f} MB  {time.monotonic() - begun:5.0f} s",
                    flush=True,
                )
            run = until("a look is made", lambda: _made(url, user, deployment), 120)

            def over(run: str = run) -> bool:
                found = ask(url, user, "flow_runs/filter", {"flow_runs": {"id": {"any_": [run]}}})
                return found[0]["state_type"] in DONE

            until(f"look {number} is over", over, 120)
    return samples


if __name__ == "__main__":
    found = measure(Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 250)
    last = found[-1][1]
    for name, mb in growth(found).items():
        print(f"{name}: {mb:.1f} MB a 1,000 looks; after {LONG:,} {last[name] + mb * LONG / 1_000:.0f} MB")
