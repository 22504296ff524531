"""The long form: every fault at every point on both databases, random kills, and the table of what came out.

`make faults`, or `python -m tests.faults.campaign --kills 200 --flows 20 --seed 1`. Exit code 1 if anything
is broken. The same seed kills after the same times; how far a process has come by then is the machine's.
Rows that are done are kept: a campaign that was stopped goes on, of the same code only.
"""

import argparse
import os
import random
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache, partial
from pathlib import Path

from tests.faults.bench import Bench, open_bench
from tests.faults.flow.flow_kills import kill_flows
from tests.faults.judge import Judge
from tests.faults.kept import Kept
from tests.faults.points import scenarios
from tests.faults.points.acts import REFUSALS
from tests.faults.points.attacks import AT_ONCE, Tally, kill_at_each, refusable, refuse_at_each
from tests.prefect_server import running_server
from tests.temporary_memory import keep_in_memory
from tests.temporary_postgresql import find_binaries, temporary_cluster

Row = tuple[str, str, Tally]
Attack = tuple[str, Callable[[], Tally]]
WAIT_FOR_A_DEAD_RUN = 1.0
"""Hours, more than a lease, between a kill and the next run."""


def random_kills(bench: Bench, kills: int, seed: int) -> Tally:
    """Kill a run after a random time, and one time in three the run that follows it too."""
    chance, tally = random.Random(seed), Tally()
    longest = _seconds_of_a_night(bench)
    while tally.tried < kills:
        worlds = [(Judge(bench.world()), chance.choice([1, 1, 2])) for _ in range(AT_ONCE)]
        for turn in range(2):
            alive = [judge for judge, times in worlds if times > turn]
            hours = turn * WAIT_FOR_A_DEAD_RUN
            started = [bench.fork_server.start(bench.night(judge.world, hours=hours)) for judge in alive]
            waits = sorted((chance.uniform(0, longest * len(alive)), number) for number in range(len(alive)))
            begun = time.monotonic()
            for wait, number in waits:
                time.sleep(max(0.0, begun + wait - time.monotonic()))
                started[number].kill()
            ends = [process.wait() for process in started]
            tally.tried += ends.count("killed")
            tally.broken += [line for judge in alive for line in judge.look()]
        judges = [judge for judge, _ in worlds]
        tally.add(judges, bench.rerun(judges, hours=3 * WAIT_FOR_A_DEAD_RUN), 0)
    return tally


def _seconds_of_a_night(bench: Bench) -> float:
    """How long one takes here and now, the second one, which is usual."""
    bench.run(bench.world())
    begun = time.monotonic()
    bench.run(bench.world())
    return time.monotonic() - begun


def on_one_database(bench: Bench, kills: int, flows: int, seed: int, api: str | None) -> Iterator[Attack]:
    """Everything to try, by name, to be done when called."""
    for scenario in scenarios.ALL:
        yield from _at_the_points_of(bench, scenario)
    yield "SIGKILL at random times", lambda: random_kills(bench, kills, seed)
    if api and flows:
        yield "SIGKILL at random times, real flow", lambda: kill_flows(bench, flows, seed, api)


def _at_the_points_of(bench: Bench, scenario: scenarios.Scenario) -> Iterator[Attack]:
    said = cache(lambda: scenarios.record(bench, scenario))
    first = scenario is scenarios.FIRST

    def refuse(refusals: list[str]) -> Tally:
        return refuse_at_each(bench, refusable(said().points), refusals, scenario)

    if first:
        for refusal in REFUSALS:
            yield f"{refusal} at each point, {scenario.name}", partial(refuse, [refusal])
    else:
        yield f"refused at each point, {scenario.name}", partial(refuse, list(REFUSALS))
    yield (
        f"SIGKILL at each point, {scenario.name}",
        lambda: kill_at_each(bench, said().points if first else said().moments, scenario),
    )


@contextmanager
def both_databases(folder: Path) -> Iterator[list[tuple[str, Bench]]]:
    """A bench on SQLite and, where its server is installed, one on PostgreSQL."""
    (folder / "sqlite").mkdir()
    (folder / "postgresql").mkdir()
    with open_bench(folder / "sqlite") as sqlite:
        binaries = find_binaries()
        if binaries is None:
            print("PostgreSQL is not installed: only SQLite is tried", file=sys.stderr)
            yield [("sqlite", sqlite)]
            return
        with (
            temporary_cluster(binaries) as cluster,
            open_bench(folder / "postgresql", cluster.new_url) as other,
        ):
            yield [("sqlite", sqlite), ("postgresql", other)]


def table(rows: list[Row]) -> str:
    """Faults and counts."""
    lines = [
        f"{'database':11}{'fault':90}{'tried':>6}{'checked':>9}{'void':>6}{'double':>8}{'lost':>6}{'broken':>8}"
    ]
    everything = Tally()
    for database, name, tally in rows:
        lines.append(f"{database:11}{name:90}{_counts(tally)}")
        everything.tried += tally.tried
        everything.releases_checked += tally.releases_checked
        everything.voids += tally.voids
        everything.broken += tally.broken
    return "\n".join([*lines, f"{'both':11}{'all':90}{_counts(everything)}"])


def _counts(tally: Tally) -> str:
    return (
        f"{tally.tried:6}{tally.releases_checked:9}{tally.voids:6}{tally.double_spends:8}{tally.lost:6}"
        f"{len(tally.broken):8}"
    )


def run(kills: int, flows: int, seed: int | None, kept: Kept, say: Callable[[str], None] = print) -> bool:
    """Try everything that is not kept already; whether nothing was broken."""
    first_seed = kept.begin(kills, flows, seed)
    say(f"seed {first_seed}, {kills} random kills and {flows} through the real flow on each database")

    def tried(number: int, database: str, bench: Bench, api: str) -> list[Row]:
        rows: list[Row] = []
        for fault, attack in on_one_database(bench, kills, flows, first_seed + number, api):
            tally = kept.row(database, fault) or attack()
            kept.keep(database, fault, tally)
            rows.append((database, fault, tally))
            say("\n  ".join([f"{database:11}{fault:90}{_counts(tally)}", *tally.broken]))
        return rows

    with tempfile.TemporaryDirectory(prefix="optstream-faults-") as name:
        folder = Path(name)
        with both_databases(folder) as benches, running_server(folder / "prefect") as api:
            os.environ["PREFECT_API_URL"] = api
            # both at once: each waits for its processes and for disks
            with ThreadPoolExecutor(len(benches)) as pool:
                under_way = [pool.submit(tried, number, *one, api) for number, one in enumerate(benches)]
                rows = [row for one in under_way for row in one.result()]
    say("\n" + table(rows))
    return not any(tally.broken for _, _, tally in rows)


if __name__ == "__main__":
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--kills", type=int, default=200)
    asked.add_argument("--flows", type=int, default=20)
    asked.add_argument("--seed", type=int, default=None)
    asked.add_argument("--into", type=Path, default=Path("faults"), help="where rows that are done are kept")
    given = asked.parse_args()
    keep_in_memory()
    sys.exit(0 if run(given.kills, given.flows, given.seed, Kept(given.into / "rows.json")) else 1)
