"""How a flow meets Prefect: quiet, offline, and with the orchestrator's memory inside the trusted zone.

Call `prepare` before anything imports prefect, which reads its settings on import; import the flow while
the server starts; call `wait`, then the flow:

    orchestrator = prepare(settings.trusted_folder)
    from flows.orchestration.release import run_days
    orchestrator.wait()

The operator's own PREFECT_… variables win, but for telemetry, which is always off.
"""

import atexit
import os
import secrets
import sys
from collections.abc import Mapping
from pathlib import Path

from flows.orchestration.server import Orchestrator, start_server
from optstream.errors import ConfigurationError
from tasks.storage.private_files import make_private_folder

ALWAYS = {
    "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
    "DO_NOT_TRACK": "1",
    "GX_ANALYTICS_ENABLED": "false",
    "PREFECT_RESULTS_PERSIST_BY_DEFAULT": "false",  # a result on disk would be a pickle of readings
}
HEARTBEAT = "PREFECT_FLOWS_HEARTBEAT_FREQUENCY"
HEARTBEAT_SECONDS, LEAST_HEARTBEAT_SECONDS = 60, 30
"""Between two heartbeats of a scheduled run; the least is Prefect's."""
DEFAULTS = {
    "PREFECT_LOGGING_LOG_PRINTS": "false",
    "PREFECT_TASKS_DEFAULT_RETRIES": "0",  # a repeat could draw noise again
    "PREFECT_FLOWS_DEFAULT_RETRIES": "0",
    # One at a time, task runs are recorded slower than they run, and a server that stops drops the rest.
    "PREFECT_SERVER_SERVICES_TASK_RUN_RECORDER_BATCH_SIZE": "5000",
    "PREFECT_SERVER_SERVICES_TASK_RUN_RECORDER_FLUSH_INTERVAL": "1",
    "PREFECT_SERVER_UI_V2_ENABLED": "false",  # the new pages fetch from third parties
    "PREFECT_SERVER_UI_SHOW_PROMOTIONAL_CONTENT": "false",
}


def prepare(trusted_folder: Path) -> Orchestrator:
    """Set the environment that prefect will read and, unless PREFECT_API_URL names a server, start one.

    Call it from the main thread: the end of the calling thread, however it comes, is the server's end too.
    Otherwise the server stops when Python exits, after Prefect has sent its last events: this exit hook is
    registered first, so it runs last. Raises RuntimeError if prefect was imported before and knows no server.
    """
    # a folder and a database that the operator chose are the operator's to clear
    bounded = not {"PREFECT_HOME", "PREFECT_API_DATABASE_CONNECTION_URL"} & set(os.environ)
    named = named_server(trusted_folder)
    if named is not None:
        return named
    if "prefect" in sys.modules:
        raise RuntimeError("call prepare before anything imports prefect: it has read its settings already")
    secret = f"optstream:{secrets.token_hex(16)}"
    orchestrator = start_server(Path(os.environ["PREFECT_HOME"]), secret, bounded=bounded)
    atexit.register(orchestrator.stop)
    return orchestrator


def named_server(trusted_folder: Path) -> Orchestrator | None:
    """Set the environment that prefect will read. Returns the server that it names, None without one."""
    if "prefect" in sys.modules:
        from prefect.settings import get_current_settings

        os.environ.update(ALWAYS)
        url = get_current_settings().api.url
    else:
        os.environ.update(environment(trusted_folder, os.environ))
        url = os.environ.get("PREFECT_API_URL")
        make_private_folder(trusted_folder)  # where Prefect makes its home on import
    return Orchestrator(url.rstrip("/")) if url else None


def environment(trusted_folder: Path, current: Mapping[str, str]) -> dict[str, str]:
    """The variables to set beside `current`, those of the operator.

    PREFECT_HOME goes into the trusted folder, for the database there holds flow parameters, log lines,
    artifacts and messages of exceptions. A database elsewhere is the operator's to choose, and to guard.
    """
    added = {name: value for name, value in DEFAULTS.items() if name not in current}
    if "PREFECT_HOME" not in current and "PREFECT_API_URL" not in current:
        added["PREFECT_HOME"] = str(trusted_folder.resolve() / "prefect")
    console = "PREFECT_LOGGING_HANDLERS_CONSOLE_LEVEL"
    if "PREFECT_LOGGING_LEVEL" not in current and console not in current:
        added[console] = "CRITICAL"  # the terminal shows what OptStream says; log lines stay in the database
    return added | ALWAYS


def heartbeat_seconds(current: Mapping[str, str]) -> int:
    """Between heartbeats, by the operator's variable. Raises ConfigurationError where Prefect refuses it."""
    given = current.get(HEARTBEAT) or str(HEARTBEAT_SECONDS)
    if not (given.isascii() and given.isdigit()) or int(given) < LEAST_HEARTBEAT_SECONDS:
        raise ConfigurationError(
            f"{HEARTBEAT} must be a whole number of seconds, at least {LEAST_HEARTBEAT_SECONDS}, or be unset "
            f"for {HEARTBEAT_SECONDS}; got {given!r:.20}"
        )
    return int(given)
