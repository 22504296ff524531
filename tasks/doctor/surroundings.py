"""The environment: telemetry, the Prefect server, variables that reach into a run."""

import json
from collections.abc import Callable, Iterator, Mapping
from ipaddress import ip_address
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import ProxyHandler, build_opener

from tasks.config import Settings
from tasks.doctor.finding import Finding, note, warning, wrong
from tasks.operations.permissions import OTHERS, mode_of, quoted

# as Prefect and pydantic take them
TRUE, FALSE = {"1", "true", "t", "yes", "y", "on"}, {"0", "false", "f", "no", "n", "off", ""}
DEFAULT_PORT = 4200
SECONDS = 3
LISTENING = "0A"

Ask = Callable[[str], Mapping[str, Any] | None]
"""A server's settings, asked without credentials at its API's address; None if it does not tell."""


def surroundings(settings: Settings, environment: Mapping[str, str], ask: Ask) -> Iterator[Finding]:
    """Findings about variables and the server that they name."""
    yield from _telemetry(environment)
    yield from _home(environment)
    yield from _own_server(environment)
    if environment.get("PREFECT_API_URL"):
        yield from _named_server(environment, environment["PREFECT_API_URL"].rstrip("/"), ask)
    yield from _ledger(settings, environment)


def _telemetry(environment: Mapping[str, str]) -> Iterator[Finding]:
    rule = "telemetry is asked for; OptStream turns it off in its own runs, a server of yours would send it"
    for name in ("PREFECT_SERVER_ANALYTICS_ENABLED", "GX_ANALYTICS_ENABLED"):
        if environment.get(name, "").lower() in TRUE:
            yield wrong(name, rule, f"set {name}=false")
    if "DO_NOT_TRACK" in environment and environment["DO_NOT_TRACK"].lower() in FALSE:
        yield wrong("DO_NOT_TRACK", rule, "set DO_NOT_TRACK=1")
    if environment.get("PREFECT_RESULTS_PERSIST_BY_DEFAULT", "").lower() in TRUE:
        yield warning(
            "PREFECT_RESULTS_PERSIST_BY_DEFAULT",
            "results would be written to disk; OptStream's never are, those of other flows may be",
            "set PREFECT_RESULTS_PERSIST_BY_DEFAULT=false",
        )


def _home(environment: Mapping[str, str]) -> Iterator[Finding]:
    """Prefect's own folder, where the operator chose it; else it is in the trusted one."""
    home = Path(environment.get("PREFECT_HOME", ""))
    mode = mode_of(home) if "PREFECT_HOME" in environment else None
    if mode is not None and mode & OTHERS:
        yield wrong(
            home,
            f"Prefect keeps flow parameters, logs and errors here, and its mode is {mode:04o}",
            f"chmod 700 {quoted(home)}",
        )


def _own_server(environment: Mapping[str, str]) -> Iterator[Finding]:
    """What `prefect server start` would do in this environment."""
    host = environment.get("PREFECT_SERVER_API_HOST", "")
    if host and not is_loopback(host) and not environment.get("PREFECT_SERVER_API_AUTH_STRING"):
        yield wrong(
            "PREFECT_SERVER_API_HOST",
            f"a server on {host} is open to the network without a password: flow parameters, logs and errors",
            "set it to 127.0.0.1, or set PREFECT_SERVER_API_AUTH_STRING as well",
        )


def _named_server(environment: Mapping[str, str], url: str, ask: Ask) -> Iterator[Finding]:
    host, near = urlsplit(url).hostname or "", is_loopback(urlsplit(url).hostname or "")
    if host.rstrip(".").endswith("prefect.cloud"):
        yield wrong(
            "PREFECT_API_URL",
            "flow parameters, logs and error messages would leave your own machines",
            "name a server of your own, or none",
        )
        return
    if not near and urlsplit(url).scheme != "https":
        yield wrong("PREFECT_API_URL", f"what is said to {host} goes over the network in clear", "use https")
    told = ask(url)
    if told is None:
        return
    wide = not near or listens_beyond_loopback(urlsplit(url).port or DEFAULT_PORT)
    if wide:
        yield wrong(
            "PREFECT_API_URL",
            "the server answers anybody on the network: flow parameters, logs, errors; and it takes orders",
            "start it with --host 127.0.0.1, or with PREFECT_SERVER_API_AUTH_STRING (and "
            "PREFECT_API_AUTH_STRING here)",
        )
    else:
        yield note(
            "PREFECT_API_URL",
            "every user of this machine may ask the server: it has no password",
            "set PREFECT_SERVER_API_AUTH_STRING for it, and PREFECT_API_AUTH_STRING here",
        )
    if dict(told.get("server") or {}).get("analytics_enabled"):
        yield wrong(
            "PREFECT_API_URL",
            "the server sends telemetry",
            "start it with PREFECT_SERVER_ANALYTICS_ENABLED=false",
        )


def _ledger(settings: Settings, environment: Mapping[str, str]) -> Iterator[Finding]:
    if environment.get("OPTSTREAM_LEDGER_URL"):
        yield note(
            "OPTSTREAM_LEDGER_URL",
            "it replaces [ledger] url of the configuration: who runs without it meets another ledger",
            "set it wherever the stream is run, or nowhere",
        )
    url = settings.ledger_url
    over_network = url.get_backend_name() == "postgresql" and not is_loopback(url.host or "localhost")
    if over_network and url.query.get("sslmode") not in ("require", "verify-ca", "verify-full"):
        yield warning(
            "ledger.url",
            "the database is on another machine, and its connection need not be encrypted",
            "add ?sslmode=verify-full to the URL",
        )


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches a server there; a name other than localhost may be anything."""
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost" or host.startswith("/")


def listens_beyond_loopback(port: int, tables: Path = Path("/proc/net")) -> bool:
    """Whether something here listens on this port at an address of the network. False where Linux is not."""
    for name in ("tcp", "tcp6"):
        try:
            lines = (tables / name).read_text().splitlines()[1:]
        except OSError:
            continue
        for line in lines:
            local, state = line.split()[1], line.split()[3]
            address, number = local.split(":")
            if state == LISTENING and int(number, 16) == port and not _is_loopback_entry(address):
                return True
    return False


def _is_loopback_entry(address: str) -> bool:
    """Of the kernel's table: words of four bytes, each in the machine's order (little-endian)."""
    words = [bytes.fromhex(address[start : start + 8])[::-1] for start in range(0, len(address), 8)]
    found = ip_address(b"".join(words))
    mapped = getattr(found, "ipv4_mapped", None)
    return bool((mapped or found).is_loopback)


def ask_server(url: str) -> Mapping[str, Any] | None:
    """Ask for the settings, past the proxy for loopback, without credentials."""
    opener = build_opener(ProxyHandler({})) if is_loopback(urlsplit(url).hostname or "") else build_opener()
    try:
        with opener.open(f"{url}/admin/settings", timeout=SECONDS) as answer:
            told = json.load(answer)
    except HTTPError as error:
        # 404: an open server that tells of no settings; 401 and 403: a closed one
        return {} if error.code not in (401, 403) else None
    except (OSError, ValueError):
        return None
    return told if isinstance(told, dict) else {}
