"""One command for several streams: each in turn, always in the same order; one that fails stops no other."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

from flows.cli.activity import work
from flows.cli.console import Terminal
from flows.cli.options import DEFAULT_CONFIG, WordsError
from optstream.errors import OptStreamError
from tasks.config import Settings, load_settings, stream_files
from tasks.planning.stream_order import in_order

Configs = Annotated[
    list[Path] | None,
    typer.Option(
        "--config",
        "-c",
        metavar="FILE",
        help="The configuration file (TOML), or a population's, for all of its streams; may be repeated.",
        show_default=str(DEFAULT_CONFIG),
    ),
]
ALL_WELL, LOOK, NOT_BEGUN = 0, 1, 2


class Done(NamedTuple):
    """How a command ended for one stream: its exit code, and a few words for the summary."""

    code: int
    words: str = ""


class Gathering(Terminal):
    """A terminal that keeps the documents of `--json`, to print them as one."""

    def __init__(self, as_json: bool) -> None:
        super().__init__(as_json)
        self.documents: list[dict[str, Any]] = []

    def document(self, document: dict[str, Any]) -> None:
        """Keep the document of a stream."""
        self.documents.append(document)


def each_stream(
    configs: Sequence[Path] | None, as_json: bool, command: Callable[[Settings, Terminal], Done]
) -> int:
    """Call a command for each stream, and return the exit code: for one stream its own.

    For several: 0 if all are well, 2 if none could begin, else 1; after the last a line for each stream, and
    with `--json` one document that holds each one's. An OptStreamError or OSError ends its stream alone.

    Raises WordsError where two files are of one stream.
    """
    files = files_of(configs)
    if len(files) == 1:
        with work(f"read {files[0]}"):
            settings = load_settings(files[0])
        with work(f"work on {settings.stream.name}"):
            return command(settings, Terminal(as_json)).code
    streams, broken = read_streams(files)
    terminal, ended = Gathering(as_json), dict[str, Done]()
    found = []
    for settings in streams:
        name = settings.stream.name
        terminal.say(f"== {name}")
        with work(f"work on {name}"):
            ended[name] = _tried(settings, terminal, command)
        found.append(
            {
                "stream": name,
                "exit_code": ended[name].code,
                "summary": ended[name].words,
                "document": terminal.documents.pop() if terminal.documents else None,
            }
        )
    for file, why in broken.items():
        ended[str(file)] = Done(NOT_BEGUN, f"error: {why}")
        found.append({"stream": None, "exit_code": NOT_BEGUN, "summary": why, "document": None})
    terminal.say("")
    for name, done in ended.items():
        terminal.say(f"{name}: {done.words}")
    Terminal(as_json).document({"format": "optstream.streams/1", "streams": found})
    codes = {done.code for done in ended.values()}
    return codes.pop() if len(codes) == 1 else LOOK


def files_of(configs: Sequence[Path] | None) -> list[Path]:
    """Return the configurations of the streams that were asked for. Raises ConfigurationError."""
    return stream_files(configs or [DEFAULT_CONFIG])


def read_streams(files: Sequence[Path]) -> tuple[list[Settings], dict[Path, str]]:
    """Return the streams in their order, whatever that of their files, and why other files cannot be used.

    Raises WordsError where two files are of one stream.
    """
    streams, broken = dict[str, Settings](), dict[Path, str]()
    for file in files:
        try:
            with work(f"read {file}"):
                settings = load_settings(file)
        except OptStreamError as error:
            broken[file] = str(error)
            continue
        name = settings.stream.name
        if name in streams:
            raise WordsError(f"{streams[name].file} and {settings.file} are both of stream {name}: name one")
        streams[name] = settings
    return in_order(list(streams.values())), broken


def _tried(settings: Settings, terminal: Terminal, command: Callable[[Settings, Terminal], Done]) -> Done:
    try:
        return command(settings, terminal)
    except OptStreamError as error:
        why = str(error)
    except OSError as error:
        why = f"{error.strerror or error}: {error.filename or ''}"
    terminal.say(f"error: {why}")
    return Done(NOT_BEGUN, f"error: {why.splitlines()[0]}")
