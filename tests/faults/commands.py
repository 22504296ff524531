"""Nights as real command lines, each a process in a session of its own; and a reader who looks all along."""

import hashlib
import io
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event, Thread

import polars as pl
import psutil

from optstream.catalogue import find_catalogue, read_published
from optstream.errors import OptStreamError
from tests.faults.hook import ARM, CHECKOUT, armed
from tests.faults.judge import LIVE, PUBLIC_KEY, Seen, judge_remains, judge_sightings, read_books
from tests.faults.life import AFTER_THE_LEASE, MECHANISMS, Bench, Life, Meanwhile, make_dumps, struck
from tests.faults.night import ENDS, LastWords, Night, is_stopped
from tests.faults.world import DAYS, World, make_world
from tests.servers import die_with_parent, find_binaries, temporary_cluster, without_prefect

KEY = ["date", "revision", "vintage"]
SECONDS_BETWEEN_LOOKS = 0.3


def digest_of(rows: pl.DataFrame) -> str:
    """Of the values, by column and row."""
    return hashlib.sha256(rows.sort(["step", "node"]).write_csv().encode()).hexdigest()


def look(where: Path, seen: set[Seen], public_key: Path | None = None) -> None:
    """Once: with OptStream's reader, which asks for signatures where there is a key, and past it."""
    catalogue = find_catalogue(where)
    if catalogue is None:
        return
    try:
        rows = read_published(where, verify=True, public_key=public_key)
        for (day, revision, vintage), part in rows.partition_by(KEY, as_dict=True).items():
            seen.add(("read_published", str(day), revision, vintage, digest_of(part)))
    except OptStreamError as error:
        seen.add(("error", f"read_published: {error}"))
    for entry in catalogue.entries:
        if entry.withdrawn:
            continue
        key = (str(entry.period), entry.revision, entry.vintage)
        try:
            data = (where / entry.file).read_bytes()
        except FileNotFoundError:
            continue  # superseded or withdrawn since the catalogue was read
        seen.add(("bytes", *key, hashlib.sha256(data).hexdigest()))
        try:
            seen.add(("plain polars", *key, digest_of(pl.read_parquet(io.BytesIO(data)))))
        except pl.exceptions.PolarsError as error:
            seen.add(("error", f"polars cannot read {entry.file}: {error}"))


@contextmanager
def reading(where: Path, public_key: Path | None) -> Iterator[set[Seen]]:
    """What is seen while the block runs."""
    seen, over = set[Seen](), Event()

    def watch() -> None:
        while not over.wait(SECONDS_BETWEEN_LOOKS):
            try:
                look(where, seen, public_key)
            except Exception as error:  # noqa: BLE001 - whatever a reader meets is to be known
                seen.add(("error", f"{type(error).__name__}: {error}"))

    thread = Thread(target=watch)
    thread.start()
    try:
        yield seen
    finally:
        over.set()
        thread.join()


OPTSTREAM = Path(sys.executable).parent / "optstream"
HOOKED = r"bin/optstream|spawn_main"
"""The command, and a backfill's workers."""
NO_FLAG, NO_MORE = Path("none"), dict[str, str]()
MARK = "OPTSTREAM_FAULTS_WORLD"
"""A variable of the environment that everything started in a world has inherited."""
SECONDS_TO_END, LONGEST_SECONDS, SECONDS_OF_A_LOOK = 30, 1800.0, 3.0
"""For processes whose parent was killed; for a command; for the reader."""
LEASE_SECONDS = 8
SITE = f"""
if "{MARK}" in os.environ and re.search(r"{HOOKED}", " ".join(sys.orig_argv)):
    from datetime import timedelta
    from tasks.release import run
    run.LEASE = timedelta(seconds={LEASE_SECONDS})
"""
"""Leases of seconds, where those of minutes would have to be waited for."""
SIGNED = """
signing_key = "trusted/signing.pem"
[published.about]
publisher = "Two Regions"
region = "FR"
[trusted]"""
WORDS = {
    "run": ("run",),
    "backfill": ("backfill", "--workers", "2"),
    "restate": ("run", "--restate"),
    "withdraw": ("withdraw", "--reason", "a fault is tried"),
    "publish": ("publish",),
}


@dataclass
class Command:
    """One `optstream …` on its way. flag: gets the id of the process that met the act as its suffix."""

    words: tuple[str, ...]
    log: Path
    process: "subprocess.Popen[bytes]"
    flag: Path
    struck: bool = False
    _gone_on: bool = False

    def strike(self, number: signal.Signals, *, group: bool = False) -> None:
        """A signal to it, or to its session's processes of its group; SIGCONT to all that stand still."""
        self.struck = self.struck or number != signal.SIGCONT
        with suppress(ProcessLookupError):
            if number == signal.SIGCONT:
                self._gone_on = True
                for pid in self._met:
                    os.kill(pid, number)
            else:
                (os.killpg if group else os.kill)(self.process.pid, number)

    @property
    def _met(self) -> list[int]:
        return [int(path.suffix[1:]) for path in self.flag.parent.glob(f"{self.flag.stem}.[0-9]*")]

    def wait(self) -> str:
        """As `Forked.wait`."""
        deadline = time.monotonic() + LONGEST_SECONDS
        while self.process.poll() is None:
            if not self._gone_on and any(map(is_stopped, self._met)):
                return "stopped"
            if time.monotonic() > deadline:
                self.strike(signal.SIGKILL, group=True)
                raise AssertionError(f"HANGS: {self.how}: {self.said()[-300:]!r}")
            time.sleep(0.01)
        return ENDS.get(self.process.returncode, "ended")

    def said(self) -> str:
        return self.log.read_text(errors="replace")

    @property
    def how(self) -> str:
        return f"optstream {' '.join(self.words)}: exit code {self.process.poll()}"

    def last_words(self) -> LastWords:
        """What the command's document says of each day; how long it takes is said before."""
        try:
            days = json.loads("{" + f"\n{self.said()}".partition("\n{")[2])["days"]
        except (ValueError, KeyError):
            return LastWords(error=f"{self.how}: {self.said()[-400:]}")
        outcomes = {day["date"]: day["status"] for day in days}
        messages = {day["date"]: day["message"] for day in days}
        return LastWords(outcomes, messages, None if self.process.returncode in (0, 1) else self.how)

    def undignified(self) -> list[str]:
        """Words that no person should be shown; a command that was struck may say what it likes."""
        said = self.said()
        if "Traceback (most recent call last)" in said and not self.struck:
            return [f"TRACEBACK: {self.how}: {said[-500:]!r}"]
        return []


@dataclass(kw_only=True)
class CommandBench(Bench):
    """One world and a reader of its published folder. environment: whole, of its commands."""

    environment: Mapping[str, str]
    chance: random.Random
    signed: bool
    commands: list[Command] = field(default_factory=list)
    seen: set[Seen] = field(default_factory=set)
    judged: int = 0
    hours: float = 0.0

    @property
    def meanwhile(self) -> Mapping[str, Meanwhile]:
        return {**super().meanwhile, **OF_COMMANDS}

    def world(self, mechanism: str = "OptStream") -> World:
        """Windows of two days."""
        url = self.cluster.new_url() if self.cluster else None
        more = {"window = 24": "window = 48", **({"[trusted]": SIGNED} if self.signed else {})}
        return make_world(self.folder / "world", self.folder / "dumps", url, mechanism, **more)

    def start(self, world: World, night: Night) -> Command:
        if night.verb == "backfill":
            days: Iterable[str] = ("--from", night.dates[0], "--to", night.dates[-1])
        else:
            days = (word for day in night.dates for word in ("--date", day))
        if night.hours > self.hours:
            time.sleep(LEASE_SECONDS)
        self.hours = night.hours
        flag = self.folder / "faults" / f"flag-{next(self.numbers)}"
        more = {} if night.act is None else armed(flag, world.folder, night.act, night.point, HOOKED)
        command = self.command(world, (*WORDS[night.verb], "--json", *days), flag, more)
        command.struck = night.act == "kill"
        return command

    def command(
        self, world: World, words: tuple[str, ...], flag: Path = NO_FLAG, more: Mapping[str, str] = NO_MORE
    ) -> Command:
        log = self.folder / "logs" / f"{len(self.commands):03}.log"
        with log.open("wb") as file:
            process = subprocess.Popen(
                [str(OPTSTREAM), *words],
                cwd=world.folder,
                env={**self.environment, MARK: str(world.folder), **more},
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                preexec_fn=_as_from_a_terminal,
            )
        self.commands.append(Command(words, log, process, flag))
        return self.commands[-1]

    def run(self, world: World, *words: str) -> Command:
        command = self.command(world, words)
        command.wait()
        return command

    def look(self, world: World) -> list[str]:
        """What lives on long after all commands have ended, and what they should not have said."""
        new, self.judged = self.commands[self.judged :], len(self.commands)
        return [*leftovers(world.folder), *(line for one in new for line in one.undignified())]

    def finish(self, life: Life, runs: int) -> LastWords | None:
        """A plain backfill brings every day out, also one that nobody asked for before."""
        life.asked |= set(range(len(DAYS)))
        life.happen(Night(life.days, "backfill", hours=AFTER_THE_LEASE))
        said = life.said
        if not (said and said.is_good):
            # a backfill does not say all of a day that is VOID
            life.happen(Night(life.days))
            said = life.said
        for day in sorted(life.given_up):
            life.happen(Night((day,), "withdraw"))
        self._publish(life)
        self.run(life.world, "purge")
        verify = self.run(life.world, "ledger", "verify")
        if verify.process.returncode != 0:
            life.broken.append(f"LEDGER: verify: {verify.said()[-600:]!r}")
        time.sleep(SECONDS_OF_A_LOOK)
        life.broken += judge_sightings({*self.seen}, read_books(life.world))
        life.broken += judge_remains(life.world, self.folder / "tmp")
        life.broken += [] if self.seen else ["HARNESS: nobody read"]
        return said

    def _publish(self, life: Life) -> None:
        """All days again: what readers have is whole, so nothing is written, drawn or charged."""
        before = read_books(life.world)
        live = {one.period for one in before.records if one.state in LIVE and one.withdrawn is None}
        life.happen(Night(tuple(day for day in life.days if DAYS[day].isoformat() in live), "publish"))
        said = life.said
        if said is None or said.error or not set(said.outcomes.values()) <= {"published already"}:
            life.broken.append(f"PUBLISH: {said}")
        if read_books(life.world).events != before.events:
            life.broken.append("PUBLISH: the ledger was changed")


def _as_from_a_terminal() -> None:
    """Ctrl-C is heard, also where a shell started the campaign in the background, with SIGINT ignored."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    die_with_parent()


@contextmanager
def open_commands(seed: int, number: int, api: str) -> Iterator[Life]:
    """The life of a new world; seed and number decide all of it, and if it signs or has Prefect, at `api`."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="optstream-processes-")))
        for name in ("tmp", "logs", "faults"):
            (folder / name).mkdir()
        (folder / "faults" / "sitecustomize.py").write_text(ARM + SITE)
        cluster = None
        if number % 2:
            binaries = find_binaries()
            assert binaries is not None
            cluster = stack.enter_context(temporary_cluster(binaries))
        server = {"PREFECT_API_URL": api} if number // 2 % 2 else {}
        bench = CommandBench(
            folder,
            cluster,
            environment=_environment(folder) | server,
            chance=random.Random(f"{seed} {number}"),
            signed=number // 4 % 2 == 1,
        )
        make_dumps(folder)
        life = Life(bench, MECHANISMS[number // 2 % len(MECHANISMS)])
        if bench.signed and bench.run(life.world, "keys", "new").process.returncode != 0:
            raise RuntimeError(f"no key was made: {bench.commands[-1].said()}")
        key = life.world.folder / PUBLIC_KEY if bench.signed else None
        with reading(life.world.settings.published_folder, key) as bench.seen:
            try:
                yield life
            finally:
                leftovers(life.world.folder, 0)


def _environment(folder: Path) -> dict[str, str]:
    own = without_prefect()
    # else each command compiles all of OptStream again
    own.pop("PYTHONDONTWRITEBYTECODE", None)
    # small days: more threads would only wait for each other
    threads = dict.fromkeys(("POLARS_MAX_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
    places = {"PREFECT_HOME": str(folder / "prefect"), "TMPDIR": str(folder / "tmp")}
    return {**own, **threads, **places, "PYTHONPATH": f"{folder / 'faults'}{os.pathsep}{CHECKOUT}"}


def processes_of(folder: Path) -> dict[int, str]:
    """All that live and were started in a world: id and words of the command line."""
    return {
        one.pid: " ".join(one.info["cmdline"])
        for one in psutil.process_iter(["environ", "cmdline"])
        if (one.info["environ"] or {}).get(MARK) == str(folder)
        and one.info["cmdline"]  # else it is dead, and nobody has asked how it ended
    }


def leftovers(folder: Path, seconds: float = SECONDS_TO_END) -> list[str]:
    """What still runs so long after all commands have ended; it is killed."""
    deadline = time.monotonic() + seconds
    while (found := processes_of(folder)) and time.monotonic() < deadline:
        time.sleep(0.1)
    for pid in found:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    return [f"LEFT BEHIND: a process {words:.160}" for words in found.values()]


# What else happens to a command while a process of it stands still.


def _robbed(life: Life, _night: Night, process: Command) -> None:
    """SIGKILL for one of the processes that it has started, as the kernel does when memory is short."""
    others = [pid for pid, words in processes_of(life.world.folder).items() if str(OPTSTREAM) not in words]
    if others:
        process.struck = True
        with suppress(ProcessLookupError):
            os.kill(life.bench.chance.choice(sorted(others)), signal.SIGKILL)
    process.strike(signal.SIGCONT)


OF_COMMANDS = {"interrupted": struck(signal.SIGINT, group=True), "a child killed": _robbed}
