"""Worlds for faults of processes: what each is, from the seed, and everything real that it stands on."""

import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import date, timedelta
from functools import cached_property
from pathlib import Path
from typing import Any

from tasks.config import Settings, load_settings
from tests.faults.fork_server import die_with_parent
from tests.faults.judge import PUBLIC_KEY
from tests.faults.processes.commands import OPTSTREAM
from tests.faults.processes.machine import Machine, without_preload
from tests.faults.world import CONFIGURATION, SAMPLING, World, deliver
from tests.temporary_postgresql import Cluster, find_binaries, temporary_cluster
from tests.temporary_s3 import Server, filesystem

FIRST, N_DAYS = date(2016, 5, 27), 12
DAYS = tuple(FIRST + timedelta(days=number) for number in range(N_DAYS))
"""Two months: a backfill divides them among its workers."""
MECHANISMS = ("PeGaSus", "HistoryInformed", "OptStream")
CHECKOUT = Path(__file__).parents[3]
LOOPBACK = "127.0.0.1"
SECONDS_TO_START = 300.0
"""For a scheduler, on a machine that does much else."""
SIGNED = """
signing_key = "trusted/signing.pem"
[published.about]
publisher = "Two Regions"
region = "FR"
"""


@dataclass(frozen=True)
class Spec:
    """One world of a campaign. place: of the published folder, "disk" or "s3". dask: backfills run there.
    server: its commands are runs of a Prefect server. signed: the folder is, and it says whose it is.
    """

    seed: int
    number: int
    database: str
    mechanism: str
    place: str = "disk"
    dask: bool = False
    server: bool = False
    signed: bool = False

    @property
    def name(self) -> str:
        traits = {"dask": self.dask, "server": self.server, "signed": self.signed}
        where = ", ".join([self.place, *(trait for trait, has in traits.items() if has)])
        return f"{self.database}, {self.mechanism}, {where}"

    def chance(self) -> random.Random:
        """Decides everything that happens in the world."""
        return random.Random(f"{self.seed} {self.number}")


def spec(seed: int, number: int) -> Spec:
    """Databases and mechanisms in turn; every fourth world publishes into an object store, and every fourth
    has a Dask cluster: not PeGaSus, whose months wait for each other and run in one process. Every second
    has a Prefect server, every second has signatures.
    """
    database = ("sqlite", "postgresql")[number % 2]
    mechanism = MECHANISMS[number // 2 % len(MECHANISMS)]
    place = "s3" if number % 8 in (2, 7) else "disk"
    dask = number % 8 in (3, 7)
    if dask and mechanism == "PeGaSus":
        mechanism = "OptStream"
    server, signed = number % 8 in (1, 2, 4, 7), number % 8 in (0, 2, 3, 5)
    return Spec(seed, number, database, mechanism, place, dask, server, signed)


class _Copied:
    """Settings whose published folder is a copy."""

    def __init__(self, settings: Settings, copy: Path) -> None:
        self._settings, self.published_folder = settings, copy

    def __getattr__(self, name: str) -> Any:
        return getattr(self._settings, name)


class StoreWorld(World):
    """Its published folder lies in a store; whoever judges it reads a copy, made by `fetch`."""

    @property
    def copy(self) -> Path:
        return self.folder.parent / "copy"

    @cached_property
    def settings(self) -> Any:
        return _Copied(load_settings(self.configuration), self.copy)

    def fetch(self, bucket: str) -> None:
        """Make the copy anew."""
        for path in sorted(self.copy.rglob("*"), reverse=True):
            path.rmdir() if path.is_dir() else path.unlink()
        store = filesystem()
        for name in store.find(f"{bucket}/published"):
            path = self.copy / name.removeprefix(f"{bucket}/published/")
            path.parent.mkdir(parents=True, exist_ok=True)
            with suppress(FileNotFoundError):
                path.write_bytes(store.cat_file(name))


@dataclass
class Stage:
    """A world and what it stands on. environment: whole, for its command lines."""

    spec: Spec
    world: World
    machine: Machine
    environment: dict[str, str]
    published: str
    cluster: Cluster | None = None
    bucket: str | None = None
    dask: "DaskCluster | None" = None

    def refresh(self) -> None:
        """Bring the judge's view up to date, where it is a copy."""
        if isinstance(self.world, StoreWorld) and self.bucket:
            self.world.fetch(self.bucket)

    @property
    def logs(self) -> Path:
        return self.world.folder.parent / "logs"

    @property
    def temporary(self) -> Path:
        """The world's own folder for temporary files."""
        return self.world.folder.parent / "tmp"


@contextmanager
def open_stage(spec: Spec, api: str, s3: str | None) -> Iterator[Stage]:
    """A world in which nothing has happened. api: of a Prefect server; s3: address of a store's server."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="optstream-processes-")))
        folder.chmod(0o711)  # PostgreSQL's user has to find the machine's control file
        for name in ("world", "tmp", "logs", "copy", "machine"):
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
        bucket, published = None, str(folder / "world" / "published")
        if spec.place == "s3":
            assert s3 is not None
            server = Server(s3)
            os.environ.update(server.environment)
            environment |= server.environment
            bucket = server.new_bucket()
            published = f"s3://{bucket}/published"
        world = (StoreWorld if bucket else World)(folder / "world")
        _configure(world, spec, url, published)
        dask = None
        if spec.dask:
            dask = stack.enter_context(DaskCluster(folder / "dask", environment).running())
        yield Stage(spec, world, machine, environment, published, cluster, bucket, dask)


def _environment(folder: Path, api: str | None, machine: Machine) -> dict[str, str]:
    own = without_preload()
    # else each command compiles all of OptStream anew
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


def _configure(world: World, spec: Spec, ledger: str, published: str) -> None:
    """Three regions, windows of two days, a share for restatements."""
    text = CONFIGURATION.format(
        mechanism=spec.mechanism,
        sampling=SAMPLING if spec.mechanism == "OptStream" else "",
        dumps=world.folder.parent / "dumps",
        ledger=ledger,
    )
    changes = {
        "window = 24": "window = 48",
        '11 = "FR"': '11 = "FR"\n93 = "FR"',
        "[budget]": '[budget]\nrestatement_share = "1/10"',
        'folder = "published"': f'folder = "{published}"',
    }
    if spec.signed:
        changes["[trusted]"] = f"{SIGNED}[trusted]"
    for old, new in changes.items():
        assert old in text
        text = text.replace(old, new)
    world.configuration.write_text(text)
    settings = world.settings
    deliver(settings, DAYS)


@dataclass
class DaskCluster:
    """A scheduler and two workers, real processes of Dask's own command line."""

    folder: Path
    environment: dict[str, str]
    address: str = ""
    workers: "list[subprocess.Popen[bytes]]" = field(default_factory=list)

    @contextmanager
    def running(self) -> Iterator["DaskCluster"]:
        self.folder.mkdir()
        file = self.folder / "scheduler.json"
        options = ["--host", LOOPBACK, "--port", "0", "--no-dashboard", "--scheduler-file", str(file)]
        scheduler = self._start("scheduler", *options)
        try:
            self.address = _address(file)
            self.workers = [self._worker() for _ in range(2)]
            yield self
        finally:
            for process in [*self.workers, scheduler]:
                process.kill()
                process.wait()

    def kill_worker(self, chance: random.Random) -> None:
        """SIGKILL for one; another takes its place."""
        number = chance.randrange(len(self.workers))
        self.workers[number].kill()
        self.workers[number].wait()
        self.workers[number] = self._worker()

    def _worker(self) -> "subprocess.Popen[bytes]":
        options = ["--host", LOOPBACK, "--nthreads", "1", "--no-nanny", "--no-dashboard"]
        return self._start("worker", self.address, *options, "--local-directory", str(self.folder))

    def _start(self, *arguments: str) -> "subprocess.Popen[bytes]":
        spill = {f"DASK_DISTRIBUTED__WORKER__MEMORY__{name}": "False" for name in ("SPILL", "TARGET")}
        with (self.folder / "log").open("ab") as log:
            return subprocess.Popen(
                [str(OPTSTREAM.parent / "dask"), *arguments],
                cwd=self.folder,
                env=self.environment | spill | {"TMPDIR": str(self.folder)},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                preexec_fn=die_with_parent,
            )


def _address(file: Path) -> str:
    deadline = time.monotonic() + SECONDS_TO_START
    while time.monotonic() < deadline:
        with suppress(OSError, ValueError, KeyError):
            return str(json.loads(file.read_text())["address"])
        time.sleep(0.05)
    raise RuntimeError(f"Dask's scheduler did not start: see {file.parent / 'log'}")


def start_reader(stage: Stage, notes: Path) -> "subprocess.Popen[bytes]":
    """A process that reads the published folder all the time; it ends when its standard input is closed."""
    environment = {**without_preload(), "PYTHONPATH": str(CHECKOUT), "POLARS_MAX_THREADS": "1"}
    key = [str(stage.world.folder / PUBLIC_KEY)] if stage.spec.signed else []
    return subprocess.Popen(
        [sys.executable, "-m", "tests.faults.processes.reader", stage.published, str(notes), *key],
        env=environment | {name: value for name, value in stage.environment.items() if "AWS" in name},
        stdin=subprocess.PIPE,
    )
