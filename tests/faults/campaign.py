"""The long form, on both databases: every fault at every point, and power cuts; a table of what came out.

`make faults`, or `python -m tests.faults.campaign --cuts 200 --seed 1`. Exit code 1 if anything is broken.
The seed decides where the disk is cut, and what a cut leaves.
"""

import argparse
import random
import secrets
import sys
import tempfile
from collections.abc import Iterator
from functools import partial
from itertools import islice
from pathlib import Path

from tests.faults.bench import Bench, make_bench
from tests.faults.disk.cuts import DEAF, CutBench, Recorded, at_every_step, by_chance, open_cuts
from tests.faults.disk.model import Rules
from tests.faults.disk.mount import why_not
from tests.faults.histories import AT_POINTS, FIRST
from tests.faults.points.acts import REFUSALS
from tests.faults.points.attacks import Tally, kill_at_each, record, refusable, refuse_at_each
from tests.temporary_memory import keep_in_memory
from tests.temporary_postgresql import find_binaries, temporary_cluster


def at_the_points(bench: Bench) -> Iterator[tuple[str, Tally]]:
    for history in AT_POINTS:
        found = record(bench, history)
        refuse = partial(refuse_at_each, bench, refusable(found.points), history=history)
        if history is FIRST:
            for refusal in REFUSALS:
                yield f"{refusal} at each point, {history.name}", refuse(refusals=[refusal])
            yield f"SIGKILL at each point, {history.name}", kill_at_each(bench, found.points, history)
        else:
            yield f"refused at each point, {history.name}", refuse(refusals=list(REFUSALS))
            yield f"SIGKILL at each moment, {history.name}", kill_at_each(bench, found.moments, history)


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
            places = [*at_every_step(recorded)][:n_cuts] + places
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


def run(n_cuts: int, seed: int) -> bool:
    """Try everything; whether nothing was broken."""
    print(f"seed {seed}, {n_cuts} power cuts on each database")
    print(f"{'database':11}{'fault':90}{'tried':>6}{'void':>6}{'broken':>8}")
    good, binaries = True, find_binaries()

    def show(database: str, rows: Iterator[tuple[str, Tally]]) -> None:
        nonlocal good
        for name, tally in rows:
            good = good and not tally.broken
            counts = f"{tally.tried:6}{tally.voids:6}{len(tally.broken):8}"
            print("\n  ".join([f"{database:11}{name:90}{counts}", *tally.broken]))

    def on(database: str, bench: Bench) -> None:
        show(database, at_the_points(bench))
        if n_cuts and why_not() is None:
            with open_cuts(bench, binaries if database == "postgresql" else None) as cuts:
                show(database, cut_everywhere(cuts, n_cuts, seed))

    with tempfile.TemporaryDirectory(prefix="optstream-faults-") as name:
        for database in ("sqlite", "postgresql"):
            (Path(name) / database).mkdir()
        on("sqlite", make_bench(Path(name) / "sqlite"))
        if binaries is not None:
            with temporary_cluster(binaries) as cluster:
                on("postgresql", make_bench(Path(name) / "postgresql", cluster.new_url))
    return good


if __name__ == "__main__":
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--cuts", type=int, default=200)
    asked.add_argument("--seed", type=int, default=secrets.randbelow(2**31))
    given = asked.parse_args()
    keep_in_memory()
    sys.exit(0 if run(given.cuts, given.seed) else 1)
