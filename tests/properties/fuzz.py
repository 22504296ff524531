"""Feeds hostile inputs, by coverage with atheris, to every reader of what others write: `make fuzz`."""

import argparse
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[2]
NAMES = ("configuration", "hierarchy", "dumps", "catalogue", "measurements")
MOST_SECONDS = 60
"""For one input."""
MOST_MEMORY = 16 * 2**30
"""Bytes of address space: what asks for more has no bound."""
LARGEST_INPUT = 2**14
"""Bytes."""


def main() -> None:
    """Fuzz each input in a process of its own, print a line each; exit with 1 for a crash or a spend."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--runs", type=int, default=10_000)
    arguments.add_argument("--seed", type=int, default=1)
    arguments.add_argument("--only", choices=NAMES, help="this input, in this process")
    arguments.add_argument("--found", type=Path, default=ROOT / "fuzz-found", help="where crashes are kept")
    given = arguments.parse_args()
    given.found.mkdir(exist_ok=True)
    if given.only:
        fuzz(given.only, given.runs, given.seed, given.found)
        return
    # A library's panic prints its frames, whose names Rust would look up first.
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "RUST_BACKTRACE": "0"}
    environment.pop("OPTSTREAM_LEDGER_URL", None)
    bad = 0
    for name in NAMES:
        command = [sys.executable, __file__, "--only", name, "--runs", str(given.runs)]
        command += ["--seed", str(given.seed), "--found", str(given.found)]
        with tempfile.TemporaryDirectory() as folder, (given.found / f"{name}.log").open("wb") as log:
            own = {**environment, "TMPDIR": folder}
            code = subprocess.run(command, env=own, stdout=log, stderr=log, cwd=folder).returncode
        bad += code != 0
        print(f"{name}: {f'ended with {code}; see {log.name}' if code else 'sound'}", flush=True)
    sys.exit(bad > 0)


def fuzz(name: str, runs: int, seed: int, found: Path) -> None:
    """Read `runs` inputs; the first that crashes or spends is written to a file and ends the process."""
    resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))
    import atheris

    with atheris.instrument_imports(include=["tasks", "optstream", "data_contracts", "tomllib"]):
        from tests.properties.inputs import INPUTS
        from tests.properties.world import World
    source = next(known for known in INPUTS if known.name == name)
    read = source.read_bytes or source.read
    world, corpus = World(Path(tempfile.mkdtemp())), Path(tempfile.mkdtemp())
    for number, content in enumerate(source.seeds()):
        (corpus / str(number)).write_bytes(content)

    def run(data: bytes) -> None:
        read(world, source.from_bytes(data))
        assert world.n_spends == 0

    options = [f"-runs={runs}", f"-seed={seed}", f"-max_len={LARGEST_INPUT}", f"-timeout={MOST_SECONDS}"]
    options += ["-rss_limit_mb=0", f"-artifact_prefix={found}/{name}-"]
    atheris.Setup(["fuzz", *options, str(corpus)], run)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
