"""What runs are called on the orchestrator's pages: stream and days, so that a list of runs can be read."""

from pathlib import Path
from typing import Any

from prefect.runtime import flow_run

from optstream.errors import OptStreamError
from tasks.config import load_settings

TAG = "optstream"


def tags_of(stream: str) -> tuple[str, ...]:
    """The tags of a stream's runs: to list those of one stream, or all of OptStream's."""
    return (TAG, f"stream:{stream}")


def release_name() -> str:
    """ "french-load 2016-02-01", or with the first and the last of several days."""
    parameters = flow_run.parameters
    return f"{_stream(parameters)} {span_of(parameters.get('days') or [])}".strip()


def backfill_name() -> str:
    """ "french-load backfill 2016-02-01 to 2016-03-31"."""
    parameters = flow_run.parameters
    return f"{_stream(parameters)} backfill {span_of([parameters['first'], parameters['last']])}"


def night_name() -> str:
    """ "french-load night": which days it takes up, it sees for itself; its subflows are called by them."""
    return f"{_stream(flow_run.parameters)} night"


def nights_name() -> str:
    """ "electricity, gas night": of several streams; each has a run of its own below it."""
    streams = ", ".join(map(stream_of, flow_run.parameters["configs"]))
    return f"{streams} night"


def span_of(days: list[str]) -> str:
    """One day, or the first and the last."""
    if not days:
        return ""
    first, last = min(days), max(days)
    return first if first == last else f"{first} to {last}"


def _stream(parameters: dict[str, Any]) -> str:
    """The stream's name, by the run's tag, else by the configuration; if that fails, the run says why."""
    prefix = "stream:"
    for tag in flow_run.tags:
        if tag.startswith(prefix):
            return str(tag.removeprefix(prefix))
    return stream_of(parameters["config"])


def stream_of(config: str) -> str:
    """The stream's name, by its configuration; "optstream" if that cannot be read."""
    try:
        return load_settings(Path(config)).stream.name
    except OptStreamError:
        return "optstream"
