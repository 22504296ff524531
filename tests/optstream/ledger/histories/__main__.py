"""The long form: `python -m tests.optstream.ledger.histories --histories 2000 --seed 1 [--currency rho]`."""

import argparse
import sys
import tempfile
from collections import Counter
from contextlib import ExitStack

from tests.optstream.ledger.histories.choices import BY_CURRENCY
from tests.optstream.ledger.histories.machine import run
from tests.temporary_postgresql import find_binaries, temporary_cluster

AT_ONCE = 100
"""Histories of one of the generator's seeds."""


def main():
    """Print the counts of each database."""
    told = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    told.add_argument("--histories", type=int, default=2000)
    told.add_argument("--seed", type=int, default=1)
    told.add_argument("--database", choices=["sqlite", "postgresql"], help="only this one")
    told.add_argument("--currency", choices=sorted(BY_CURRENCY), default="epsilon", help="of all guarantees")
    asked = told.parse_args()
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="optstream-histories-"))
        urls = {"sqlite": f"sqlite:///{folder}/ledger.sqlite"}
        binaries = find_binaries()
        if binaries is None:
            print("PostgreSQL is not installed: only SQLite is tried", file=sys.stderr)
        else:
            urls["postgresql"] = stack.enter_context(temporary_cluster(binaries)).new_url()
        for database, url in urls.items():
            if asked.database not in (None, database):
                continue
            total = Counter()
            for batch in range(-(-asked.histories // AT_ONCE)):
                number = AT_ONCE * asked.seed + batch
                total.update(run(url, min(AT_ONCE, asked.histories), number, currency=asked.currency))
                print(f"{database}, seed {asked.seed}: {dict(total)}", flush=True)


if __name__ == "__main__":
    main()
