"""The long form of power cuts, restored backups and copied machines, and the table of what came out.

`make powercuts`, or `python -m tests.faults.disk.campaign --cuts 200 --restores 200 --seed 1`. Exit code 1
if anything is broken. The first history is cut at every durable step; the rest of the cuts fall by chance on
all histories. A control comes first: a disk that forgets what it was told to keep must be found out.
"""

import argparse
import random
import secrets
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path

from tests.faults.bench import Bench
from tests.faults.campaign import Row, both_databases, table
from tests.faults.disk import backups, two_machines
from tests.faults.disk.cuts import (
    FIRST,
    SERVER,
    CutBench,
    Recorded,
    at_every_step,
    by_chance,
    open_cuts,
)
from tests.faults.disk.model import Rules
from tests.faults.disk.mount import why_not
from tests.faults.points.attacks import Tally

CONTROLS = ("/trusted/ledger.sqlite", f"/{SERVER}/pg_wal")
Say = Callable[[str], None]


def cut_everywhere(cuts: CutBench, n_cuts: int, seed: int, say: Say) -> Iterator[tuple[str, Tally]]:
    """A row for each history: the first at every durable step, all by chance."""
    chance = random.Random(seed)
    each = -(-n_cuts // len(cuts.histories))
    for history in cuts.histories:
        recorded = cuts.record(history)
        places = list(islice(by_chance(recorded, chance), each))
        if history is FIRST:
            yield "control: the ledger's syncs do nothing", _control(cuts, recorded)
            places = [*at_every_step(recorded)][:n_cuts] + places
        tally = Tally()
        for at, remains in places:
            one = cuts.cut(recorded, at, remains, chance.randrange(2**31))
            tally.tried += 1
            tally.releases_checked += one.releases_checked
            tally.voids += one.voids
            tally.broken += one.broken
            for line in one.broken:
                say(f"  {line}")
        yield f"power cut, {history.name}", tally


def _control(cuts: CutBench, recorded: Recorded) -> Tally:
    rules = Rules(syncs_names=cuts.rules.syncs_names, deaf=CONTROLS)
    found = cuts.cut(recorded, recorded.ends[-1], "all unsynced lost", 1, rules)
    missed = [] if found.double_spends else ["MISSED: a disk that forgets the ledger was not found out"]
    return Tally(tried=1, releases_checked=found.releases_checked, broken=missed)


def copied_machines(bench: Bench) -> Iterator[tuple[str, Tally]]:
    """Both kinds of published folder, in every order: readers are never shown two releases of a day."""
    for shared in (True, False):
        for name, order in two_machines.ORDERS.items():
            pair = two_machines.make_pair(bench, shared)
            outcome = order(bench, pair)
            where = "one published folder" if shared else "two published folders"
            broken = []
            if outcome.is_double and not pair.blind:
                broken.append("DOUBLE SPEND: two releases of one day were shown")
            if pair.shared_ledger and outcome.draws > 1:
                broken.append("DOUBLE SPEND: one ledger, and the day was drawn on both machines")
            seen = "" if not pair.blind else " (nothing to tell)"
            yield f"copied machine, {where}, {name}{seen}", Tally(1, len(outcome.shown), 0, broken)
            two_machines.remove(pair)


def run(n_cuts: int, histories: Sequence[int], seed: int, say: Say = print, only: str | None = None) -> bool:
    """Try everything; whether nothing was broken but what nothing left could tell of.

    histories: whose restores are tried. only: a database.
    """
    rows: list[Row] = []
    n_restores = backups.OF_A_HISTORY * len(histories)
    say(f"seed {seed}, {n_cuts} power cuts and {n_restores} restores on each database")

    def row(database: str, fault: str, tally: Tally) -> None:
        rows.append((database, fault, tally))
        say(table([rows[-1]]).splitlines()[1])

    with (
        tempfile.TemporaryDirectory(prefix="optstream-faults-") as name,
        both_databases(Path(name)) as benches,
    ):
        for database, bench in benches:
            if only not in (None, database):
                continue
            if why_not() is not None:
                say(f"no power cuts here: {why_not()}")
            elif n_cuts:
                binaries = bench.binaries if database == "postgresql" else None
                with open_cuts(bench, binaries) as cuts:
                    for fault, tally in cut_everywhere(cuts, n_cuts, seed, say):
                        row(database, fault, tally)
            for fault, tally in sorted(backups.campaign(bench, seed, histories, say).items()):
                row(database, f"restored: {fault}", tally)
            for fault, tally in copied_machines(bench):
                row(database, fault, tally)
    say("\n" + table(rows))
    return not any(tally.broken for _, fault, tally in rows if backups.UNKNOWABLE not in fault)


if __name__ == "__main__":
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--cuts", type=int, default=200)
    asked.add_argument("--restores", type=int, default=200)
    asked.add_argument("--seed", type=int, default=None)
    asked.add_argument("--only", choices=("sqlite", "postgresql"), default=None)
    asked.add_argument("--history", type=int, help="no restores but those of this one")
    given = asked.parse_args()
    chosen = secrets.randbelow(2**31) if given.seed is None else given.seed
    wanted = range(-(-given.restores // backups.OF_A_HISTORY)) if given.history is None else [given.history]
    sys.exit(0 if run(given.cuts, wanted, chosen, only=given.only) else 1)
