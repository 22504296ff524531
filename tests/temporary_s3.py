"""S3 for tests: moto in a process of its own, or the server that OPTSTREAM_TEST_S3 names."""

import importlib.util
import os
import secrets
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

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
REQUIRED = ("moto", "flask", "s3fs")


@dataclass
class Server:
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


def is_installed() -> bool:
    return all(importlib.util.find_spec(name) for name in REQUIRED)


@contextmanager
def temporary_s3() -> Iterator[Server]:
    """A server, stopped afterwards; or the one that OPTSTREAM_TEST_S3 names."""
    if given := os.environ.get("OPTSTREAM_TEST_S3"):
        yield Server(given)
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
            yield Server(f"http://127.0.0.1:{int(process.stdout.readline())}")
        finally:
            process.kill()
