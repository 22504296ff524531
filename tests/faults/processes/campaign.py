"""The long form: worlds of random faults of processes until so many were tried, two worlds at a time.

`make process-faults FAULTS=1000 SEED=1`, or `python -m tests.faults.processes.campaign` with the same in
lower case. Exit code 1 if anything is broken. The seed decides worlds, commands, faults and when they come;
how far a process is by then is the machine's. Worlds that are done are kept: a campaign that was stopped goes
on, of the same code only. What is left of a broken world (its story, logs, ledger and folders) stays beside
the rows.
"""

import argparse
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from contextlib import contextmanager
from itertools import count
from multiprocessing import get_context
from pathlib import Path

from tests.faults.fork_server import die_with_parent
from tests.faults.kept import Kept
from tests.faults.points.attacks import Tally
from tests.faults.processes.faults import KINDS
from tests.faults.processes.lives import live
from tests.faults.processes.machine import why_not
from tests.faults.processes.true_time import signed_anew
from tests.faults.processes.worlds import Spec, spec
from tests.prefect_server import running_server
from tests.temporary_postgresql import find_binaries
from tests.temporary_s3 import temporary_s3

A_WORLD = 10
"""Faults, at least."""
ASKED_KINDS = tuple(KINDS)
ROW = "faults of processes"


def one(asked: Spec, faults: int, kinds: Sequence[str], api: str, s3: str, into: Path) -> Tally:
    """A world's life, in a process of its own; what the harness itself fails by is told too."""
    die_with_parent()
    try:
        return live(asked, faults, kinds, api, s3, into / f"world-{asked.number}")
    except Exception as error:  # noqa: BLE001 - the other worlds go on
        return Tally(broken=[f"HARNESS: {type(error).__name__}: {error}"])


@contextmanager
def standing_on() -> Iterator[tuple[str, str]]:
    """What all worlds share: the addresses of a Prefect server and of an object store's."""
    with (
        tempfile.TemporaryDirectory(prefix="optstream-campaign-") as name,
        running_server(Path(name) / "prefect") as api,
        temporary_s3() as store,
        signed_anew(store) as s3,
    ):
        yield api, s3.address


def lives(
    numbers: Iterator[int], kept: Kept, seed: int, at_once: int, enough: Callable[[], bool], into: Path
) -> Iterator[tuple[Spec, Tally]]:
    """Worlds and what each came to, as they end: those that are kept, and others until it is enough."""
    with (
        standing_on() as addresses,
        ProcessPoolExecutor(at_once, mp_context=get_context("spawn"), max_tasks_per_child=1) as pool,
    ):
        under_way: dict[Future[Tally], Spec] = {}
        while True:
            while len(under_way) < at_once and not enough() and (number := next(numbers, None)) is not None:
                asked = spec(seed, number)
                old = kept.row(str(number), ROW)
                if old is not None:
                    yield asked, old
                else:
                    under_way[pool.submit(one, asked, A_WORLD, ASKED_KINDS, *addresses, into)] = asked
            if not under_way:
                return
            done, _ = wait(under_way, return_when=FIRST_COMPLETED)
            for future in done:
                asked, tally = under_way.pop(future), future.result()
                kept.keep(str(asked.number), ROW, tally)
                yield asked, tally


def table(rows: Sequence[tuple[Spec, Tally]]) -> str:
    """Worlds by what they stand on, and faults by kind."""
    names = sorted({asked.name for asked, _ in rows})
    kinds = [*KINDS]
    lines = [
        f"{'worlds':36}{'':>4}"
        + "".join(f"{kind:>9}" for kind in kinds)
        + f"{'checked':>9}{'void':>6}{'broken':>8}"
    ]
    for name in [*names, "all"]:
        these = [tally for asked, tally in rows if name in (asked.name, "all")]
        tried: Counter[str] = Counter()
        for tally in these:
            tried.update(tally.kinds)
        lines.append(
            f"{name:36}{len(these):4}"
            + "".join(f"{tried[kind]:9}" for kind in kinds)
            + f"{sum(tally.releases_checked for tally in these):9}{sum(tally.voids for tally in these):6}"
            + f"{sum(len(tally.broken) for tally in these):8}"
        )
    return "\n".join(lines)


def run(
    faults: int,
    seed: int | None,
    into: Path,
    at_once: int = 2,
    only: int | None = None,
    say: Callable[[str], None] = print,
) -> bool:
    """Try so many faults, or one world; whether nothing was broken."""
    file = into / ("rows.json" if only is None else f"only-{only}.json")
    if only is not None:
        file.unlink(missing_ok=True)  # it is to be tried again
    kept = Kept(file)
    seed = kept.begin(faults, 0, seed)
    rows: list[tuple[Spec, Tally]] = []
    begun = time.monotonic()
    say(f"seed {seed}, {faults} faults")

    def enough() -> bool:
        return sum(tally.tried for _, tally in rows) >= faults

    numbers = count() if only is None else iter([only])
    for asked, tally in lives(numbers, kept, seed, at_once, enough, into):
        rows.append((asked, tally))
        told = ", ".join(f"{number} {kind}" for kind, number in sorted(tally.kinds.items()))
        minutes = (time.monotonic() - begun) / 60
        say(f"world {asked.number} ({asked.name}): {told}; {len(tally.broken)} broken, {minutes:.1f} min")
        for line in tally.broken:
            say(f"  {line}")
    tried = sum(tally.tried for _, tally in rows)
    say(f"\n{table(rows)}\n{tried} faults")
    return not any(tally.broken for _, tally in rows)


if __name__ == "__main__":
    asker = argparse.ArgumentParser(description=__doc__)
    asker.add_argument("--faults", type=int, default=1000)
    asker.add_argument("--seed", type=int, default=None)
    asker.add_argument("--at-once", type=int, default=2, help="worlds")
    asker.add_argument("--only", type=int, default=None, help="the number of one world, to try it again")
    asker.add_argument(
        "--into", type=Path, default=Path("faults/processes"), help="where rows that are done are kept"
    )
    given = asker.parse_args()
    if problem := why_not() or (None if find_binaries() else "no PostgreSQL server: install its package"):
        sys.exit(problem)
    sys.exit(0 if run(given.faults, given.seed, given.into, given.at_once, given.only) else 1)
