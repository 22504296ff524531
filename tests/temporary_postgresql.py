"""A PostgreSQL server of the tests' own: made in a temporary folder, gone when they end."""

import ctypes
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import count
from pathlib import Path
from urllib.parse import quote

START_SECONDS = 60
SET_PARENT_DEATH_SIGNAL = 1


def find_binaries() -> Path | None:
    """The folder of `initdb` and `postgres`, or None: Debian keeps them off the path."""
    folders = [*sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)]
    program = shutil.which("pg_config")
    if program:
        said = subprocess.run([program, "--bindir"], capture_output=True, text=True, check=True).stdout
        folders.insert(0, Path(said.strip()))
    whole = (folder for folder in folders if (folder / "initdb").exists() and (folder / "postgres").exists())
    return next(whole, None)


@dataclass
class Cluster:
    """A server on a socket in its own folder. user: who runs it; fsync: off where no machine crashes."""

    binaries: Path
    folder: Path
    user: str | None
    fsync: str = "off"
    process: "subprocess.Popen[bytes] | None" = None

    def __post_init__(self) -> None:
        self._numbers = count()

    def new_url(self, *settings: str) -> str:
        """The URL of an empty place: a schema, quicker made than a database. settings: "name=value"."""
        schema = f"fresh_{next(self._numbers)}"
        self.run_sql(f"CREATE SCHEMA {schema}")
        options = " ".join(f"-c{setting}" for setting in (f"search_path={schema}", *settings))
        return f"postgresql://owner@/postgres?host={self.folder}&options={quote(options)}"

    def run_sql(self, statement: str) -> None:
        import psycopg

        address = f"host={self.folder} user=owner dbname=postgres"
        with psycopg.connect(address, autocommit=True) as connection:
            connection.execute(statement)

    def start(self) -> None:
        import psycopg

        settings = ("listen_addresses=", f"unix_socket_directories={self.folder}", f"fsync={self.fsync}")
        options = [word for setting in settings for word in ("-c", setting)]
        command = [str(self.binaries / "postgres"), "-D", str(self.folder / "data"), *options]
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(
                command,
                stdout=log,
                stderr=log,
                user=self.user,
                cwd=self.folder,
                preexec_fn=partial(die_with_parent, signal.SIGQUIT),
            )
        deadline = time.monotonic() + START_SECONDS
        while True:
            try:
                return self.run_sql("SELECT 1")
            except psycopg.OperationalError:
                if self.process.poll() is not None or time.monotonic() > deadline:
                    raise
                time.sleep(0.05)

    def stop(self, how: signal.Signals = signal.SIGQUIT) -> None:
        """Stop the server as a power cut would: nobody is waited for. SIGINT: as `restart -m fast`."""
        if self.process is not None:
            self.process.send_signal(how)
            self.process.wait(START_SECONDS)
            self.process = None


def die_with_parent(number: int = signal.SIGKILL) -> None:
    """In a child: end by this signal when the parent ends, however that is."""
    ctypes.CDLL(None).prctl(SET_PARENT_DEATH_SIGNAL, number)


@contextmanager
def temporary_cluster(binaries: Path) -> Iterator[Cluster]:
    """A running cluster; stopped and removed at the end."""
    with made_cluster(binaries) as cluster:
        cluster.start()
        try:
            yield cluster
        finally:
            cluster.stop()


@contextmanager
def made_cluster(binaries: Path, *options: str) -> Iterator[Cluster]:
    """A cluster that does not run yet; removed at the end. options: of `initdb`."""
    user = "nobody" if os.geteuid() == 0 else None
    # not below pytest's folder: that one is root's alone, and a socket's path must be short
    folder = Path(tempfile.mkdtemp(prefix="optstream-postgresql-"))
    try:
        if user is not None:
            account = pwd.getpwnam(user)
            os.chown(folder, account.pw_uid, account.pw_gid)
        initdb = [str(binaries / "initdb"), "-D", str(folder / "data")]
        subprocess.run(
            [*initdb, *["-U", "owner", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync"], *options],
            user=user,
            cwd=folder,
            check=True,
            capture_output=True,
        )
        yield Cluster(binaries, folder, user)
    finally:
        shutil.rmtree(folder)
