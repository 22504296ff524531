"""Feeds hostile inputs, by hypothesis and by atheris, to every reader of what others write: `make fuzz`."""

import argparse
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
NAMES = ("configuration", "hierarchy", "dumps", "catalogue", "measurements")
GENERATORS = ("hypothesis", "atheris")
MOST_SECONDS = 60
"""For one input (a case of dumps is DAYS of them)."""
MOST_MEMORY = 16 * 2**30
"""Bytes of address space: what asks for more has no bound."""
LARGEST_INPUT = 2**14
"""Bytes of an input of atheris."""
DAYS = 10
THOROUGH = 10
"""Of so many cases one is read by the slower, more thorough reader, where there are two."""


@dataclass
class Tally:
    """Counts what happened so far; it is written down every now and then, for the process may die."""

    path: Path
    runs: int = 0
    spends: int = 0
    crashes: dict[str, int] = field(default_factory=dict)
    examples: dict[str, str] = field(default_factory=dict)
    started: float = field(default_factory=time.monotonic)

    def take(self, world: Any, read: Any, case: Any, size: int) -> None:
        """Read one case of `size` inputs; count it, and note what it raised and spent."""
        try:
            read(world, case)
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt):
                raise
            frames = [one for one in traceback.extract_tb(error.__traceback__) if str(ROOT) in one.filename]
            own = [one for one in frames if ".venv" not in one.filename][-1]
            key = f"{type(error).__name__} at {Path(own.filename).name}:{own.lineno}"
            self.crashes[key] = self.crashes.get(key, 0) + 1
            self.examples.setdefault(key, f"{error!r:.500}\n{case!r}\n")
        self.runs += size
        if spent := world.n_spends:
            self.spends += spent
            world.renew()
        if self.runs % (100 * size) == 0:
            self.write()

    def write(self) -> None:
        known = {**asdict(self), "path": str(self.path), "seconds": time.monotonic() - self.started}
        self.path.write_text(json.dumps(known))


def main() -> None:
    """Run each input with each generator, print a line each; exit with 1 for a crash or a spend."""
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--runs", type=int, default=10_000)
    arguments.add_argument("--seed", type=int, default=1)
    arguments.add_argument("--input", choices=NAMES, action="append")
    arguments.add_argument("--generator", choices=GENERATORS, action="append")
    arguments.add_argument("--found", type=Path, default=ROOT / "fuzz-found", help="where crashes are kept")
    arguments.add_argument("--tally", type=Path, help=argparse.SUPPRESS)
    given = arguments.parse_args()
    if given.tally:
        _one(given.input[0], given.generator[0], given.runs, given.seed, given.tally)
        return
    print(f"seed {given.seed}, {given.runs} inputs each")
    row = "{:<18} {:<11} {:>8} {:>8} {:>7} {:>8}".format
    print(row("input", "generator", "runs", "crashes", "spends", "seconds"), flush=True)
    bad = 0
    for name in given.input or NAMES:
        for generator in given.generator or GENERATORS:
            result = _in_a_process(name, generator, given.runs, given.seed, given.found)
            crashes = sum(result["crashes"].values())
            bad += crashes + result["spends"]
            print(row(name, generator, result["runs"], crashes, result["spends"], f"{result['seconds']:.0f}"))
            for key, count in result["crashes"].items():
                print(f"    {count} times {key}; see {given.found}")
            sys.stdout.flush()
    sys.exit(bad > 0)


def _in_a_process(name: str, generator: str, runs: int, seed: int, found: Path) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        tally, log = Path(folder) / "tally.json", Path(folder) / "log"
        command = [sys.executable, __file__, "--input", name, "--generator", generator]
        command += ["--runs", str(runs), "--seed", str(seed), "--tally", str(tally)]
        # A library's panic prints its frames, whose names Rust would look up first.
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "RUST_BACKTRACE": "0", "TMPDIR": folder}
        environment.pop("OPTSTREAM_LEDGER_URL", None)
        with log.open("wb") as file:
            code = subprocess.run(command, env=environment, stdout=file, stderr=file, cwd=folder).returncode
        empty = {"runs": 0, "crashes": {}, "spends": 0, "seconds": 0.0, "examples": {}}
        result: dict[str, Any] = json.loads(tally.read_text()) if tally.exists() else empty
        if code or result["runs"] < runs:
            result["crashes"][f"the process ended with {code}"] = 1
            result["examples"]["the process"] = log.read_text(errors="replace")[-5000:]
        if result["examples"]:
            found.mkdir(exist_ok=True)
            path = found / f"{name}-{generator}-{seed}.txt"
            path.write_text("\n".join(f"{key}\n{text}" for key, text in result["examples"].items()))
        return result


def _one(name: str, generator: str, runs: int, seed: int, tally: Path) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))
    (_by_grammar if generator == "hypothesis" else _by_coverage)(name, runs, seed, tally)


def _by_grammar(name: str, runs: int, seed: int, path: Path) -> None:
    import hypothesis

    from tests.properties.inputs import INPUTS, dumps_of
    from tests.properties.world import World

    source = next(known for known in (dumps_of(DAYS), *INPUTS) if known.name == name)
    world, tally = World(Path(tempfile.mkdtemp())), Tally(path)
    quick = source.read_bytes or source.read

    def too_long(_number: int, _frame: object) -> None:
        raise TimeoutError(f"no answer in {MOST_SECONDS} s")

    signal.signal(signal.SIGALRM, too_long)

    @hypothesis.seed(seed)
    @hypothesis.settings(
        max_examples=-(-runs // source.size),
        deadline=None,
        database=None,
        phases=[hypothesis.Phase.generate],
        suppress_health_check=list(hypothesis.HealthCheck),
    )
    @hypothesis.given(source.cases)
    def run(case: Any) -> None:
        signal.alarm(MOST_SECONDS)
        thorough = tally.runs // source.size % THOROUGH == 0
        tally.take(world, source.read if thorough else quick, case, source.size)
        signal.alarm(0)

    run()
    tally.write()


def _by_coverage(name: str, runs: int, seed: int, path: Path) -> None:
    import atheris

    with atheris.instrument_imports(include=["tasks", "optstream", "data_contracts", "tomllib"]):
        from tests.properties.inputs import INPUTS
        from tests.properties.world import World
    source = next(known for known in INPUTS if known.name == name)
    read = source.read_bytes or source.read
    world, tally = World(Path(tempfile.mkdtemp())), Tally(path)
    corpus = Path(tempfile.mkdtemp())
    for number, content in enumerate(source.seeds()):
        (corpus / str(number)).write_bytes(content)

    def run(data: bytes) -> None:
        tally.take(world, read, source.from_bytes(data), 1)
        if tally.runs >= runs:
            tally.write()
            os._exit(0)

    options = [f"-seed={seed}", f"-max_len={LARGEST_INPUT}", f"-timeout={MOST_SECONDS}", "-rss_limit_mb=0"]
    atheris.Setup(["fuzz", *options, str(corpus)], run)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
