"""`optstream` for the documents' commands: the real one, in forks of a process that has imported it."""

import atexit
import gc
import json
import os
import socket
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date, timedelta
from importlib import import_module
from pathlib import Path
from socketserver import BaseRequestHandler, ForkingMixIn, UnixStreamServer

from tests.cheap_days import warm_libraries

CHECKOUT = Path(__file__).parents[2]
LONGEST_CALL = 2**20
WARM = (
    "optstream.catalogue",
    "optstream.ledger",
    "prefect.artifacts",
    "prefect.events",
    "prefect.flow_engine",
    "prefect.task_engine",
    "pyarrow.dataset",
    "scipy.sparse",
    "tasks.config",
    "typer",
)
"""What takes long to import."""
CALLER = """\
#!{python} -ISE
import array, json, os, socket, sys
call = socket.socket(socket.AF_UNIX)
call.connect({socket!r})
said = json.dumps([sys.argv[1:], os.getcwd(), dict(os.environ)]).encode()
streams = array.array("i", [0, 1, 2])
call.sendmsg([len(said).to_bytes(4, "big")], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, streams)])
call.sendall(said)
sys.exit(int.from_bytes(call.recv(1) or b"\\x7f", "big"))
"""


@contextmanager
def warm_optstream(folder: Path, environment: dict[str, str]) -> Iterator[Path]:
    """A folder for the head of PATH, with an `optstream` that starts at once; gone afterwards."""
    address = str(folder / "socket")
    caller = folder / "bin" / "optstream"
    caller.parent.mkdir()
    caller.write_text(CALLER.format(python=sys.executable, socket=address), encoding="utf-8")
    caller.chmod(0o755)
    command = [sys.executable, "-m", "tests.docs.warm", address]
    process = subprocess.Popen(command, cwd=CHECKOUT, env=environment, stdout=subprocess.PIPE)
    try:
        assert process.stdout
        assert process.stdout.readline() == b"ready\n"
        yield caller.parent
    finally:
        process.kill()
        process.communicate()


def _serve(address: str) -> None:
    for name in WARM:
        import_module(name)
    warm_libraries()
    _plan_the_example()
    gc.freeze()  # present objects stay; no child scans them again
    with Server(address, Call) as server:
        print("ready", flush=True)
        server.serve_forever()


def _plan_the_example() -> None:
    """Plan what most pages begin with, for all commands; spans of a year look at 13 months in place of 36."""
    from optstream.stream import days_from
    from tasks.config import load_settings
    from tasks.config.templates import EXAMPLE
    from tasks.release import mechanism

    mechanism.days_from = lambda first, _: days_from(first, first + timedelta(days=395))
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "optstream.toml")
        file.write_text(EXAMPLE, encoding="utf-8")
        mechanism.long_spans_of(load_settings(file), date(2016, 2, 1), 0)


class Server(ForkingMixIn, UnixStreamServer):
    """Handles each call in a fork."""


class Call(BaseRequestHandler):
    def handle(self) -> None:
        """Fork the command itself, wait for it, and say how it ended."""
        first, streams, _, _ = socket.recv_fds(self.request, 4, 3)
        said = b""
        while len(said) < int.from_bytes(first, "big"):
            said += self.request.recv(LONGEST_CALL)
        command = os.fork()
        if command == 0:
            _become(streams, *json.loads(said))
        _, status = os.waitpid(command, 0)
        self.request.sendall(bytes([os.waitstatus_to_exitcode(status) & 0xFF]))


def _become(streams: list[int], words: list[str], folder: str, environ: dict) -> None:
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environ)
    sys.argv = ["optstream", *words]
    sys.modules["__main__"].__package__ = None  # help names the program by it
    code = _run()
    # no more of an end than this: taking down the libraries that it was born with takes a second. So SQLite's
    # log may stay next to the ledger, as after a kill; the next command reads it
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def _run() -> int:
    from flows.cli.main import main

    try:
        main()
    except SystemExit as ended:
        return ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    except BaseException:  # noqa: BLE001 - as Python itself: the traceback, and 1
        traceback.print_exc()
        return 1
    return 0


if __name__ == "__main__":
    _serve(sys.argv[1])
