"""Worlds for faults of processes: what each is, from the seed, and everything real that it stands on."""

import random
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path

from tests.faults.judge import PUBLIC_KEY
from tests.faults.processes.machine import Machine, without_preload
from tests.faults.world import World, configured, deliver
from tests.temporary_postgresql import Cluster, find_binaries, temporary_cluster

FIRST, N_DAYS = date(2016, 5, 27), 12
DAYS = tuple(FIRST + timedelta(days=number) for number in range(N_DAYS))
"""Two months: a backfill divides them among its workers."""
MECHANISMS = ("PeGaSus", "HistoryInformed", "OptStream")
CHECKOUT = Path(__file__).parents[3]
SIGNED = """
signing_key = "trusted/signing.pem"
[published.about]
publisher = "Two Regions"
region = "FR"
"""


@dataclass(frozen=True)
class Spec:
    """One world of a campaign. server: its commands are runs of a Prefect server. signed: the folder is."""

    seed: int
    number: int
    database: str
    mechanism: str
    server: bool = False
    signed: bool = False

    @property
    def name(self) -> str:
        traits = {"server": self.server, "signed": self.signed}
        return ", ".join([self.database, self.mechanism, *(trait for trait, has in traits.items() if has)])

    def chance(self) -> random.Random:
        """Decides everything that happens in the world."""
        return random.Random(f"{self.seed} {self.number}")


def spec(seed: int, number: int) -> Spec:
    """Databases and mechanisms in turn; every second world has a Prefect server, every second signs."""
    database = ("sqlite", "postgresql")[number % 2]
    mechanism = MECHANISMS[number // 2 % len(MECHANISMS)]
    server, signed = number // 2 % 2 == 1, number // 4 % 2 == 1
    return Spec(seed, number, database, mechanism, server, signed)


@dataclass
class Stage:
    """A world and what it stands on. environment: whole, for its command lines."""

    spec: Spec
    world: World
    machine: Machine
    environment: dict[str, str]
    published: str
    cluster: Cluster | None = None

    @property
    def logs(self) -> Path:
        return self.world.folder.parent / "logs"

    @property
    def temporary(self) -> Path:
        """The world's own folder for temporary files."""
        return self.world.folder.parent / "tmp"


@contextmanager
def open_stage(spec: Spec, api: str) -> Iterator[Stage]:
    """A world in which nothing has happened. api: of a Prefect server."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="optstream-processes-")))
        folder.chmod(0o711)  # PostgreSQL's user has to find the machine's control file
        for name in ("world", "tmp", "logs", "machine"):
            (folder / name).mkdir()
        (folder / "machine").chmod(0o755)
        machine = Machine(folder / "machine")
        environment = _environment(folder, api if spec.server else None, machine)
        cluster, url = None, "sqlite:///trusted/ledger.sqlite"
        if spec.database == "postgresql":
            binaries = find_binaries()
            assert binaries is not None
            cluster = stack.enter_context(temporary_cluster(binaries, machine.environment))
            url = cluster.new_url()
        world = World(folder / "world")
        _configure(world, spec, url)
        yield Stage(spec, world, machine, environment, str(folder / "world" / "published"), cluster)


def _environment(folder: Path, api: str | None, machine: Machine) -> dict[str, str]:
    own = without_preload()
    # else each command compiles all of OptStream again
    own.pop("PYTHONDONTWRITEBYTECODE", None)
    return {
        **own,
        **machine.environment,
        **({"PREFECT_API_URL": api} if api else {}),
        "PREFECT_HOME": str(folder / "prefect"),
        "PYTHONPATH": str(CHECKOUT),
        "TMPDIR": str(folder / "tmp"),
        # small days: more threads would only wait for each other
        "POLARS_MAX_THREADS": "1",
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
    }


def _configure(world: World, spec: Spec, ledger: str) -> None:
    """Three regions, windows of two days, a share for restatements."""
    changes = {
        "window = 24": "window = 48",
        '11 = "FR"': '11 = "FR"\n93 = "FR"',
        "[budget]": '[budget]\nrestatement_share = "1/10"',
    }
    if spec.signed:
        changes["[trusted]"] = f"{SIGNED}[trusted]"
    text = configured(ledger, spec.mechanism, world.folder.parent / "dumps", **changes)
    world.configuration.write_text(text)
    deliver(world.settings, DAYS)


def start_reader(stage: Stage, notes: Path) -> "subprocess.Popen[bytes]":
    """A process that reads the published folder all the time; it ends when its standard input is closed."""
    environment = {**without_preload(), "PYTHONPATH": str(CHECKOUT), "POLARS_MAX_THREADS": "1"}
    key = [str(stage.world.folder / PUBLIC_KEY)] if stage.spec.signed else []
    return subprocess.Popen(
        [sys.executable, "-m", "tests.faults.processes.reader", stage.published, str(notes), *key],
        env=environment,
        stdin=subprocess.PIPE,
    )
