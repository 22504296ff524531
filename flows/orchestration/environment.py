"""How a flow meets Prefect. Call `connect` before anything imports prefect: it reads settings on import."""

import base64
import fcntl
import json
import os
import re
import secrets
import ssl
import subprocess
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import cached_property
from http.client import HTTPException
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import HTTPSHandler, OpenerDirector, Request, build_opener

from optstream.errors import ConfigurationError, OptStreamError
from tasks.trusted.files import make_private_folder, write_private

ALWAYS = {
    "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
    "DO_NOT_TRACK": "1",
    "GX_ANALYTICS_ENABLED": "false",
    "PREFECT_RESULTS_PERSIST_BY_DEFAULT": "false",  # a result on disk would be a pickle of readings
}
HEARTBEAT, HEARTBEAT_SECONDS = "PREFECT_FLOWS_HEARTBEAT_FREQUENCY", 60
"""Between two heartbeats of a scheduled run, where the operator does not set it."""
ANSWER_SECONDS = 10  # for a server to say that it is there
DEFAULTS = {
    HEARTBEAT: str(HEARTBEAT_SECONDS),
    "PREFECT_SERVER_ALLOW_EPHEMERAL_MODE": "false",  # no server is started that nobody asked for
    "PREFECT_LOGGING_LOG_PRINTS": "false",
    "PREFECT_TASKS_DEFAULT_RETRIES": "0",  # a repeat could draw noise again
    "PREFECT_FLOWS_DEFAULT_RETRIES": "0",
    # One at a time, task runs are recorded slower than they run, and a server that stops drops the rest.
    "PREFECT_SERVER_SERVICES_TASK_RUN_RECORDER_BATCH_SIZE": "5000",
    "PREFECT_SERVER_SERVICES_TASK_RUN_RECORDER_FLUSH_INTERVAL": "1",
    "PREFECT_SERVER_UI_V2_ENABLED": "false",  # the new pages fetch from third parties
    "PREFECT_SERVER_UI_SHOW_PROMOTIONAL_CONTENT": "false",
}
CONSOLE = "PREFECT_LOGGING_HANDLERS_CONSOLE_LEVEL"
LOOPBACK = "127.0.0.1"
STATE = Path("serve", "server.json")
"""Where in a trusted folder the address of the server of `optstream serve` is; locked while that runs."""
TAG = "optstream"


def tags_of(stream: str) -> tuple[str, ...]:
    """The tags of a stream's runs: to list those of one stream, or all of OptStream's."""
    return (TAG, f"stream:{stream}")


class NoServerError(ConfigurationError):
    """No server answers at PREFECT_API_URL."""


def connect(trusted_folder: Path) -> str | None:
    """Set the environment that prefect, imported here, reads; return the address of its server, if any."""
    # where it is imported already, it has read all but what its child processes will
    is_read = "prefect" in sys.modules
    found = {} if is_read or "PREFECT_API_URL" in os.environ else served(trusted_folder)
    before = dict(os.environ)
    os.environ.update(found)
    os.environ.update(ALWAYS if is_read else environment(trusted_folder, os.environ))
    make_private_folder(trusted_folder)  # where Prefect makes its home on import
    url = import_prefect()
    if url is not None:
        check_address(url)
        if not api_of_settings().answers():
            if found:  # nobody asked for it: go on without
                for name in found:
                    os.environ.pop(name)
                os.environ.update(before)
                return import_prefect(again=True)
            raise NoServerError(
                "no server answers at PREFECT_API_URL: start it (`prefect server start`), or unset the "
                "variable to run without one"
            )
    return url


def served(trusted_folder: Path) -> dict[str, str]:
    """Return the variables for reaching a stream's running `optstream serve`; none without one."""
    with suppress(OSError), (trusted_folder / STATE).open("rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            state = json.load(file)
            secret = os.environ.get("PREFECT_API_AUTH_STRING", "")
            return reaching(state["api"], password_of(Path(state["home"])) if "home" in state else secret)
    return {}


def reaching(url: str, secret: str) -> dict[str, str]:
    """The variables with which this process and its children reach a server."""
    found = {"PREFECT_API_URL": url} | ({"PREFECT_API_AUTH_STRING": secret} if secret else {})
    if urlsplit(url).hostname == LOOPBACK:
        for name in ("NO_PROXY", "no_proxy"):
            found[name] = ",".join(filter(None, [os.environ.get(name), LOOPBACK]))
    return found


def password_of(home: Path) -> str:
    """User and password of the server, from the operator's environment or a file that stays."""
    named = os.environ.get("PREFECT_SERVER_API_AUTH_STRING")
    file = home / "password"
    if named:
        return named
    secret = file.read_text().strip() if file.exists() else ""
    if not secret:  # to Prefect an empty one is none at all
        secret = f"optstream:{secrets.token_urlsafe(24)}"
        write_private(file, f"{secret}\n".encode())
    return secret


def import_prefect(*, again: bool = False) -> str | None:
    """Have Prefect read its settings, again if it has them; return the address of its API, or None."""
    try:
        from prefect import flow  # noqa: F401 - which configures logging
        from prefect.context import refresh_global_settings_context
        from prefect.settings import get_current_settings

        if again:
            refresh_global_settings_context()
        api = get_current_settings().api
    except Exception as error:  # noqa: BLE001 - pydantic's, its settings', logging's, or a broken import
        raise ConfigurationError(_unusable(error)) from None
    if api.request_timeout <= 0:
        raise ConfigurationError("PREFECT_API_REQUEST_TIMEOUT must be above 0: correct it, or unset it")
    return api.url


def _unusable(error: Exception) -> str:
    from pydantic import ValidationError

    def variables(field: str) -> list[str]:
        return [
            name
            for name in sorted(os.environ)
            if name.startswith("PREFECT_") and name.lower().endswith(field.lower())
        ]

    problems = []
    if isinstance(error, ValidationError):
        for one in error.errors(include_input=False, include_url=False):
            field = "_".join(map(str, one["loc"]))
            # a validator of Prefect's own may quote the value, which may be a secret
            rule = "" if one["type"] in ("value_error", "assertion_error") else f": {one['msg']}"
            if one["type"] != "default_factory_not_called":  # which follows from another
                problems.append(f"{' or '.join(variables(field)) or f'{error.title}.{field}'}{rule}")
    if not problems:
        field = (re.findall(r'for field "(\w+)"', str(error)) or [""])[0]  # as pydantic's settings name it
        rarely = {*ALWAYS, *DEFAULTS, "PREFECT_HOME", CONSOLE}  # the operator's own
        named = " or ".join(name for name in variables(field) if name not in rarely)
        problems = [f"{named or 'one of its profile'} ({type(error).__name__})"]
    return f"Prefect cannot use a setting: {'; '.join(problems)}. Correct it, or unset it, and run again"


def check_address(url: str) -> None:
    """Raise ConfigurationError, which never shows the address, unless a Prefect API can be asked at it."""
    try:
        parts = urlsplit(url)
        bare = parts.username is None and parts.password is None
        sound = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        bare, sound = "@" not in url, False
    if not bare:
        raise ConfigurationError(
            "the address of --api or PREFECT_API_URL must name no user and no password: logs and lists of "
            "processes show it; give them as PREFECT_API_AUTH_STRING"
        )
    if not sound or not parts.path.strip("/"):
        raise ConfigurationError(
            "the address of --api or PREFECT_API_URL must be that of a Prefect API, with its path, such as "
            "http://127.0.0.1:4200/api: a dashboard's address and /api"
        )


def environment(trusted_folder: Path, current: Mapping[str, str]) -> dict[str, str]:
    """Return the variables to set; PREFECT_HOME is in the trusted folder, as the database holds log lines."""
    added = {name: value for name, value in DEFAULTS.items() if name not in current}
    if "PREFECT_HOME" not in current and "PREFECT_API_URL" not in current:
        added["PREFECT_HOME"] = str(trusted_folder.resolve() / "prefect")
    if "PREFECT_LOGGING_LEVEL" not in current and CONSOLE not in current:
        added[CONSOLE] = "CRITICAL"  # the terminal shows what OptStream says; log lines stay in the database
    return added | ALWAYS


@dataclass(frozen=True)
class Api:
    """A Prefect server as Prefect's own client reaches it; certificates: "" for those of the system."""

    url: str
    headers: Mapping[str, str]
    certificates: str = ""
    verify: bool = True

    def ask(self, path: str, document: Any = None) -> Any:
        """Return the answer to a GET, or to a POST of a document. Raises OSError or ValueError."""
        data = None if document is None else json.dumps(document).encode()
        request = Request(f"{self.url}/{path}", data, {"Content-Type": "application/json", **self.headers})
        with self._opener.open(request, timeout=ANSWER_SECONDS) as answer:
            return json.load(answer)

    @cached_property
    def _opener(self) -> OpenerDirector:
        if not self.url.startswith("https:"):
            return build_opener()
        context = ssl.create_default_context(cafile=self.certificates or None)
        if not self.verify:
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        return build_opener(HTTPSHandler(context=context))

    def runs(self, **wanted: Any) -> Any:
        """Return one run at most that a filter matches."""
        return self.ask("flow_runs/filter", wanted | {"limit": 1})

    def answers(self) -> bool:
        """Whether it replies, and lets this process in."""
        with suppress(OSError, HTTPException, ValueError):
            with suppress(json.JSONDecodeError, UnicodeDecodeError):  # whatever it says
                self.ask("health")
            return True
        return False


def api_of_settings() -> Api:
    """Return the server of Prefect's settings, with the headers of its own client; it is imported."""
    from prefect.settings import get_current_settings

    settings = get_current_settings()
    api, headers = settings.api, dict(settings.client.custom_headers)
    if api.auth_string is not None:
        user = base64.b64encode(api.auth_string.get_secret_value().encode()).decode()
        headers["Authorization"] = f"Basic {user}"
    elif api.key is not None:
        headers["Authorization"] = f"Bearer {api.key.get_secret_value()}"
    certificates = str(api.ssl_cert_file or "")
    return Api(str(api.url).rstrip("/"), headers, certificates, not api.tls_insecure_skip_verify)


def ask_apart(module: str, *words: str) -> Any:
    """Return what a module prints as a program (`print_answer`), whose imports end with it: Prefect's take
    65 MB. Raises ConfigurationError with its error.
    """
    command = [sys.executable, "-m", module, *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        said = done.stderr.strip().rpartition("\n")[2].removeprefix("error: ")
        raise ConfigurationError(said or "Prefect's settings cannot be read: run `prefect config view`")
    return json.loads(done.stdout.rpartition("\n")[2])


def print_answer(find: Callable[[], Any]) -> None:
    """Print an answer to `ask_apart`, or end with an error in words."""
    try:
        print(json.dumps(find()), end="")
    except OptStreamError as error:
        sys.exit(f"error: {error}")


if __name__ == "__main__":
    print_answer(lambda: connect(Path(sys.argv[1])) and asdict(api_of_settings()))
