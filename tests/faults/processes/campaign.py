"""Random faults of processes, two worlds at a time: `make process-faults FAULTS=1000 SEED=1`."""

import argparse
import secrets
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from itertools import count
from multiprocessing import get_context
from pathlib import Path

from tests.faults.points.attacks import Tally
from tests.faults.processes.faults import KINDS
from tests.faults.processes.lives import live
from tests.faults.processes.machine import why_not
from tests.faults.processes.worlds import Spec, spec
from tests.prefect_server import running_server
from tests.temporary_postgresql import die_with_parent, find_binaries

A_WORLD = 10
"""Faults, at least."""


def one(asked: Spec, faults: int, kinds: Sequence[str], api: str, into: Path) -> Tally:
    """A world's life, in a process of its own; failures of the harness itself are reported too."""
    die_with_parent()
    try:
        return live(asked, faults, kinds, api, into / f"world-{asked.number}")
    except Exception as error:  # noqa: BLE001 - the other worlds go on
        return Tally(broken=[f"HARNESS: {type(error).__name__}: {error}"])


def run(
    faults: int,
    seed: int,
    into: Path,
    numbers: Iterator[int],
    of_a_world: int = A_WORLD,
    kinds: Sequence[str] = tuple(KINDS),
    say: Callable[[str], None] = print,
) -> bool:
    """Try `faults` faults, in two worlds at a time; return whether none broke a guarantee."""
    say(f"seed {seed}, {faults} faults")
    tried: Counter[str] = Counter()
    good, under_way = True, dict[Future[Tally], Spec]()
    with (
        tempfile.TemporaryDirectory(prefix="optstream-campaign-") as name,
        running_server(Path(name) / "prefect") as api,
        ProcessPoolExecutor(2, mp_context=get_context("spawn"), max_tasks_per_child=1) as pool,
    ):
        while True:
            while (
                len(under_way) < 2 and tried.total() < faults and (number := next(numbers, None)) is not None
            ):
                asked = spec(seed, number)
                under_way[pool.submit(one, asked, of_a_world, kinds, api, into)] = asked
            if not under_way:
                break
            for future in wait(under_way, return_when=FIRST_COMPLETED).done:
                asked, tally = under_way.pop(future), future.result()
                tried.update(tally.kinds)
                good = good and not tally.broken
                counts = ", ".join(f"{n} {kind}" for kind, n in sorted(tally.kinds.items()))
                say(f"world {asked.number} ({asked.name}): {counts}; {len(tally.broken)} broken")
                for line in tally.broken:
                    say(f"  {line}")
    say(", ".join(f"{n} {kind}" for kind, n in sorted(tried.items())))
    return good


if __name__ == "__main__":
    asker = argparse.ArgumentParser(description=__doc__)
    asker.add_argument("--faults", type=int, default=1000)
    asker.add_argument("--seed", type=int, default=secrets.randbelow(2**31))
    asker.add_argument("--only", type=int, default=None, help="the number of one world, to try it again")
    asker.add_argument("--into", type=Path, default=Path("faults/processes"), help="broken worlds")
    given = asker.parse_args()
    if problem := why_not() or (None if find_binaries() else "no PostgreSQL server: install its package"):
        sys.exit(problem)
    worlds = count() if given.only is None else iter([given.only])
    sys.exit(0 if run(given.faults, given.seed, given.into, worlds) else 1)
