"""Servers of the tests' own: Prefect, PostgreSQL in a temporary folder, S3 by moto; gone when they end."""

import ctypes
import importlib.util
import os
import pwd
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.parse import quote
from urllib.request import OpenerDirector, ProxyHandler, build_opener

from flows.orchestration.environment import environment

LOOPBACK = "127.0.0.1"
START_SECONDS = 300  # two cores that also run whole suites have needed 100 s
STOP_SECONDS = 10


@contextmanager
def running_server(home: Path, port: int | None = None) -> Iterator[str]:
    """Run a server with the project's defaults, whose database is in `home`; yield its API's address."""
    port = port or free_port()
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    inherited = without_prefect()
    command = [sys.executable, "-m", "prefect", "server", "start", "--no-ui"]
    url = f"http://{LOOPBACK}:{port}/api"
    with (home / "server.log").open("ab") as log:
        server = subprocess.Popen(
            [*command, "--host", LOOPBACK, "--port", str(port)],
            env=inherited | environment(home, inherited) | {"PREFECT_HOME": str(home)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=log,
            start_new_session=True,
        )
    deadline, opener = time.monotonic() + START_SECONDS, build_opener(ProxyHandler({}))
    try:
        while not _answers(opener, f"{url}/health"):
            if server.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"the server did not start: see {home / 'server.log'}")
            time.sleep(0.05)
        yield url
    finally:
        server.terminate()
        with suppress(subprocess.TimeoutExpired):
            server.wait(STOP_SECONDS)
        with suppress(ProcessLookupError):
            os.killpg(server.pid, signal.SIGKILL)
        server.wait()


def _answers(opener: OpenerDirector, url: str) -> bool:
    with suppress(URLError), opener.open(url, timeout=5):
        return True
    return False


def without_prefect() -> dict[str, str]:
    """This process's environment, as of a terminal that knows of no server."""
    return {name: value for name, value in os.environ.items() if not name.startswith("PREFECT_")}


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind((LOOPBACK, 0))
        return int(probe.getsockname()[1])


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
    numbers: Iterator[int] = field(default_factory=count)

    def new_url(self, *settings: str) -> str:
        """The URL of an empty place: a schema, quicker made than a database. settings: "name=value"."""
        schema = f"fresh_{next(self.numbers)}"
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
    ctypes.CDLL(None).prctl(1, number)  # PR_SET_PDEATHSIG


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


SERVE = """
from io import BytesIO
from threading import Lock
from moto.server import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import make_server
from werkzeug.wsgi import get_input_stream
moto, lock = DomainDispatcherApplication(create_backend_app), Lock()
def one_at_a_time(environ, start_response):
    # moto looks at a condition, and puts, in two steps. A client that stands still while it sends or receives
    # holds up nobody else: its request is whole before its turn comes
    environ["wsgi.input"] = BytesIO(get_input_stream(environ).read())
    with lock:
        return [b"".join(moto(environ, start_response))]
server = make_server("127.0.0.1", 0, one_at_a_time, threaded=True)
print(server.server_port, flush=True)
server.serve_forever()
"""


@dataclass
class S3:
    """address: its URL. Buckets are made on demand and never emptied."""

    address: str

    @property
    def environment(self) -> dict[str, str]:
        """What makes fsspec, botocore and polars go there, and nowhere else."""
        return {
            "AWS_ENDPOINT_URL": self.address,
            "AWS_ACCESS_KEY_ID": "testing",
            "AWS_SECRET_ACCESS_KEY": "only-for-tests",
            "AWS_DEFAULT_REGION": "us-east-1",
            "AWS_CONFIG_FILE": os.devnull,
            "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
            "AWS_EC2_METADATA_DISABLED": "true",
        }

    def new_bucket(self) -> str:
        """The name of an empty one. The environment must be the server's."""
        name = f"bucket-{secrets.token_hex(6)}"
        filesystem().call_s3("create_bucket", Bucket=name)
        return name


def filesystem() -> Any:
    import fsspec

    return fsspec.filesystem("s3", use_listings_cache=False)


def has_s3() -> bool:
    return all(importlib.util.find_spec(name) for name in ("moto", "flask", "s3fs"))


@contextmanager
def temporary_s3() -> Iterator[S3]:
    """A server, stopped afterwards; or the one that OPTSTREAM_TEST_S3 names."""
    if given := os.environ.get("OPTSTREAM_TEST_S3"):
        yield S3(given)
        return
    with subprocess.Popen(
        [sys.executable, "-c", SERVE],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        cwd=Path(__file__).parent,
        text=True,
    ) as process:
        try:
            assert process.stdout is not None
            yield S3(f"http://127.0.0.1:{int(process.stdout.readline())}")
        finally:
            process.kill()
