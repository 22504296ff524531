"""The faults: when each comes, its effect, and its repair before the world is judged."""

import random
import signal
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from threading import Thread
from typing import TYPE_CHECKING

import psycopg
from sqlalchemy.exc import OperationalError

from tests.faults.processes.commands import Command, kill_one
from tests.faults.processes.worlds import Stage
from tests.faults.systems import locked

if TYPE_CHECKING:
    from tests.faults.processes.lives import Life

TAKEOVER_SECONDS = 20 * 60
"""More than any lease."""
CLOCK_JUMPS = (-3600, -90, 90, 600, TAKEOVER_SECONDS, 86_400)
DECADE = 10 * 365 * 86_400
LONGEST_COMMAND = 1800.0
STEPS = ("look up", "ingest", "validate", "reserve", "draw", "estimate", "publish")


@dataclass(frozen=True)
class Fault:
    """It comes `delay` seconds after "start", a step's line, or "drawing", a new file of measurements.

    kind: a key of `KINDS`. seconds, number: what the kind makes of them.
    """

    kind: str
    after: str
    delay: float
    seconds: float = 0.0
    number: int = 0


def await_moment(life: "Life", fault: Fault) -> Command | None:
    """A command that runs when the fault is due; None if all ended before."""
    while any(command.runs for command in life.commands):
        if _has_come(life, fault.after):
            time.sleep(fault.delay)
            return next((command for command in life.commands if command.runs), None)
        time.sleep(0.002)
    return None


def _has_come(life: "Life", after: str) -> bool:
    if after == "start":
        return True
    if after == "drawing":
        return files_drawn(life.stage) > life.drawn_before
    return any(f"\n{after}" in command.said() or "published;" in command.said() for command in life.commands)


def files_drawn(stage: Stage) -> int:
    """How many files of measurements there are, also such as are being written."""
    return sum(1 for _ in (stage.world.folder / "trusted" / "measurements").glob("*/*/*"))


def kill(life: "Life", fault: Fault, target: Command) -> str:
    """SIGKILL for the command's own process, as the kernel does when memory is short."""
    target.strike(signal.SIGKILL)
    return "SIGKILL"


def end(life: "Life", fault: Fault, target: Command) -> str:
    """SIGTERM, or SIGINT to the whole group, as a terminal does."""
    if fault.number:
        target.strike(signal.SIGTERM)
        return "SIGTERM"
    target.strike(signal.SIGINT, group=True)
    return "SIGINT"


def stop(life: "Life", fault: Fault, target: Command) -> str:
    """Stand still for longer than a lease, while another run takes over; then go on."""
    target.strike(signal.SIGSTOP, group=True)
    try:
        machine = life.stage.machine
        machine.set_clock(machine.ahead_seconds + TAKEOVER_SECONDS)
        other = life.again()
        life.commands.append(other)
        other.wait(LONGEST_COMMAND)
    finally:
        target.strike(signal.SIGCONT, group=True)
    return other.how


def clock(life: "Life", fault: Fault, target: Command) -> str:
    """Set the machine's clock ahead or back; set it right again after a jump of ten years."""
    machine, before = life.stage.machine, life.stage.machine.ahead_seconds
    if fault.number == DECADE:
        machine.set_clock(before + DECADE)
        time.sleep(fault.seconds)
        machine.set_clock(before)
    else:
        machine.set_clock(before + fault.number)
    return f"{fault.number:+} s"


def restart(life: "Life", fault: Fault, target: Command) -> str:
    """PostgreSQL restarts, fast or immediately, and is away for a while."""
    cluster = life.stage.cluster
    assert cluster
    how = (signal.SIGINT, signal.SIGQUIT)[fault.number % 2]
    cluster.stop(how)
    time.sleep(fault.seconds)
    for _ in range(20):
        try:
            cluster.start()
            break
        except psycopg.OperationalError:
            time.sleep(0.5)  # its last processes hold the old server's memory still
    return f"{how.name}, away for {fault.seconds:.1f} s"


def lock(life: "Life", fault: Fault, target: Command) -> str:
    def hold() -> None:
        with suppress(OperationalError), locked(life.stage.world):
            time.sleep(fault.seconds)

    life.helpers.append(Thread(target=hold))
    life.helpers[-1].start()
    return f"for {fault.seconds:.0f} s"


def slow(life: "Life", fault: Fault, target: Command) -> str:
    """Every write and sync waits, until the turn is over."""
    life.stage.machine.slow_disk(fault.number)
    return f"{fault.number} ms"


def worker(life: "Life", fault: Fault, target: Command) -> str:
    return kill_one(life.stage.world.folder, target, life.chance) or ""


KINDS: dict[str, Callable[["Life", Fault, Command], str]] = {
    "kill": kill,
    "end": end,
    "stop": stop,
    "clock": clock,
    "restart": restart,
    "lock": lock,
    "slow": slow,
    "worker": worker,
}


def inflict(life: "Life", fault: Fault) -> bool:
    """Whether it came before all commands had ended."""
    target = await_moment(life, fault)
    if target is None:
        return False
    result = KINDS[fault.kind](life, fault, target)
    life.story.append(f"  {fault.kind} {fault.delay:.2f} s after {fault.after}: {result}")
    return True


def draw_fault(chance: random.Random, database: str, kinds: Sequence[str]) -> Fault:
    """One of the kinds that this database knows."""
    known = [kind for kind in kinds if kind != "restart" or database == "postgresql"]
    kind = chance.choice(known)
    after = chance.choice(["start", "drawing", "drawing", *chance.sample(STEPS, 2)])
    moment = after, chance.uniform(0, 9 if after == "start" else 0.3)
    match kind:
        case "clock":
            number = DECADE if chance.random() < 0.1 else chance.choice(CLOCK_JUMPS)
            return Fault(kind, *moment, chance.uniform(1, 5), number)
        case "restart":
            return Fault(kind, *moment, chance.choice([0.0, 0.5, 3.0]), chance.randrange(2))
        case "lock":
            return Fault(kind, *moment, chance.choice([2.0, 5.0, 5.0, 10.0, 40.0]))
        case "slow":
            return Fault(kind, *moment, number=chance.choice([5, 20, 60]))
        case _:
            return Fault(kind, *moment, number=chance.randrange(2))
