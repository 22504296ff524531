"""The long forms; exit code 1 if anything is broken. `make faults` and `make process-faults`.

`python -m tests.faults.campaign --cuts 200 --seed 1`: every fault at every point and power cuts, on both
databases; a table of what came out. `--commands 1000`: random faults of real command lines, two worlds at a
time; `--only 17` tries one world again. The seed decides what happens, and what a cut leaves.
"""

import argparse
import random
import secrets
import shutil
import sys
import tempfile
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import nullcontext
from functools import partial
from itertools import islice
from multiprocessing import get_context
from pathlib import Path

from tests.cheap_storage import keep_in_memory
from tests.faults.commands import WORDS, open_commands
from tests.faults.cuts import DEAF, CutBench, Recorded, by_chance, open_cuts
from tests.faults.disk import Rules, why_not
from tests.faults.hook import REFUSALS
from tests.faults.life import AT_POINTS, FIRST, Bench, Tally, make_bench, night_by, strike_at_each
from tests.servers import die_with_parent, find_binaries, running_server, temporary_cluster

A_WORLD = 10
"""Nights of real commands."""


def at_the_points(bench: Bench) -> Iterator[tuple[str, Tally]]:
    """Of a first day each refusal at each point, and else by turns; death at each, or where a write ended."""
    for history in AT_POINTS:
        points = history.points(bench)
        for refusals in [[one] for one in REFUSALS] if history is FIRST else [[*REFUSALS]]:
            tally = strike_at_each(bench, points, refusals, history)
            yield f"{', '.join(refusals)} at each point, {history.name}", tally
        some = points if history is FIRST else [one for one in points if not one.startswith("before")]
        yield f"SIGKILL at each point, {history.name}", strike_at_each(bench, some, ["kill"], history)


def cut_everywhere(cuts: CutBench, n_cuts: int, seed: int) -> Iterator[tuple[str, Tally]]:
    """A row for each history: the first at every durable step, all by chance; and the control."""
    chance = random.Random(seed)
    each = -(-n_cuts // len(cuts.histories))
    for history in cuts.histories:
        recorded = cuts.record(history)
        places = list(islice(by_chance(recorded, chance), each))
        if history is FIRST:
            for deaf in DEAF["postgresql" if cuts.cluster else "sqlite"]:
                yield f"control: syncs of {deaf} do nothing", _control(cuts, recorded, deaf)
            places = recorded.every_step[:n_cuts] + places
        tally = Tally()
        for at, remains in places:
            one = cuts.cut(recorded, at, remains, chance.randrange(2**31))
            tally.tried += 1
            tally.voids += one.voids
            tally.broken += one.broken
        yield f"power cut, {history.name}", tally


def _control(cuts: CutBench, recorded: Recorded, deaf: str) -> Tally:
    rules = Rules(syncs_names=cuts.rules.syncs_names, deaf=(deaf,))
    found = cuts.cut(recorded, recorded.ends[-1], "all unsynced lost", 1, rules)
    missed = [] if found.has_lost else [f"MISSED: a disk that forgets {deaf} was not found out"]
    return Tally(tried=1, broken=missed)


def everywhere(n_cuts: int, seed: int) -> Iterator[tuple[str, Tally]]:
    binaries = find_binaries()
    for database in ("sqlite", "postgresql") if binaries else ("sqlite",):
        server = temporary_cluster(binaries) if binaries and database == "postgresql" else nullcontext()
        with tempfile.TemporaryDirectory(prefix="optstream-faults-") as name, server as cluster:
            bench = make_bench(Path(name), cluster)
            yield from at_the_points(bench)
            if n_cuts and why_not() is None:
                with open_cuts(bench, binaries if cluster else None) as cuts:
                    yield from cut_everywhere(cuts, n_cuts, seed)


def of_commands(numbers: Iterable[int], seed: int, into: Path) -> Iterator[tuple[str, Tally]]:
    """Worlds by their numbers, two at a time."""
    if find_binaries() is None:
        sys.exit("no PostgreSQL: install its server's package")
    with (
        tempfile.TemporaryDirectory(prefix="optstream-campaign-") as name,
        running_server(Path(name) / "prefect") as api,
        ProcessPoolExecutor(2, mp_context=get_context("spawn"), max_tasks_per_child=1) as pool,
    ):
        yield from pool.map(partial(_world, seed, into, api), numbers)


def _world(seed: int, into: Path, api: str, number: int) -> tuple[str, Tally]:
    """A world's life, in a process of its own; failures of the harness itself are reported too."""
    die_with_parent()
    tally, title = Tally(A_WORLD), f"world {number}"
    try:
        with open_commands(seed, number, api) as life:
            bench, chance = life.bench, life.bench.chance
            for _ in range(A_WORLD):
                life.happen(night_by(chance, bench, [*WORDS]))
            tally.broken, tally.voids = life.end().broken, life.judge.voids()
            title += f", {life.world.settings.mechanism.name}, {' '.join(life.ends[:A_WORLD])}"
            if tally.broken:
                shutil.rmtree(into / f"world-{number}", ignore_errors=True)
                shutil.copytree(bench.folder, into / f"world-{number}", symlinks=True)
    except Exception as error:  # noqa: BLE001 - the other worlds go on
        tally.broken.append(f"HARNESS: {type(error).__name__}: {error}")
    return title, tally


def show(rows: Iterator[tuple[str, Tally]]) -> bool:
    """Print each; whether nothing was broken."""
    print(f"{'fault':100}{'tried':>6}{'void':>6}{'broken':>8}")
    good = True
    for title, tally in rows:
        good = good and not tally.broken
        counts = f"{tally.tried:6}{tally.voids:6}{len(tally.broken):8}"
        print("\n  ".join([f"{title:100}{counts}", *tally.broken]), flush=True)
    return good


if __name__ == "__main__":
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--cuts", type=int, default=200)
    asked.add_argument("--commands", type=int, default=0)
    asked.add_argument("--seed", type=int, default=secrets.randbelow(2**31))
    asked.add_argument("--only", type=int, default=None, help="the number of one world of commands")
    asked.add_argument("--into", type=Path, default=Path("faults/processes"), help="broken worlds")
    given = asked.parse_args()
    print(f"seed {given.seed}")
    if given.commands:
        numbers = range(-(-given.commands // A_WORLD)) if given.only is None else [given.only]
        sys.exit(0 if show(of_commands(numbers, given.seed, given.into)) else 1)
    keep_in_memory()
    sys.exit(0 if show(everywhere(given.cuts, given.seed)) else 1)
