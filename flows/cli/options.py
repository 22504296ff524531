"""Options that several commands share, dates, and one command for several streams."""

from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from csv import reader
from datetime import date
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import Annotated, Any, NamedTuple, NoReturn

import typer

from flows.cli.output import Terminal, work
from optstream.errors import ConfigurationError, OptStreamError, ParameterError
from optstream.stream import Hour, days_from, period_from
from tasks.config import Settings, load_settings, stream_files
from tasks.release.outcomes import OneOfStreams, Streams


def new_app(help: str | None = None) -> typer.Typer:
    """The commands of a module; help: of a group of commands."""
    return typer.Typer(
        help=help, no_args_is_help=help is not None, add_completion=False, rich_markup_mode="markdown"
    )


def examples(*commands: str) -> str:
    """The text below a command's options: commands that can be typed."""
    return "\n\n".join(["Examples:", *(f"`{command}`" for command in commands)])


class WordsError(typer.BadParameter):
    """Options that do not go together, or one that is missing: no single one has an invalid value."""

    def format_message(self) -> str:
        return self.message


def names_in(text: str | None) -> tuple[str, ...]:
    """The names of a list with commas between; one that holds a comma itself stands in double quotes."""
    return tuple(next(reader([" ".join(text.splitlines())], skipinitialspace=True))) if text else ()


def parse_period(text: str) -> date:
    """The day or the hour. Raises typer.BadParameter unless it is one as 2016-02-01 or 2016-02-01T13."""
    try:
        period = period_from(text)
    except ValueError:
        raise typer.BadParameter(
            f"a date looks like 2016-02-01, an hour like 2016-02-01T13, and is in the calendar; got {text!r}"
        ) from None
    if not 1970 <= period.year <= 2199:
        raise typer.BadParameter(f"a date lies between 1970 and 2199; got {text!r}")
    return period


def parse_day(text: str) -> date:
    """The date. Raises typer.BadParameter unless it is one as 2016-02-01, between 1970 and 2199."""
    if "T" in text:
        raise typer.BadParameter(
            f"a date looks like 2016-02-01, which stands for all its hours; got {text!r}"
        )
    return parse_period(text)


def periods_asked(settings: Settings, asked: Collection[date]) -> list[date]:
    """Return the periods of days and hours, rising; WordsError for one that the stream does not have."""
    calendar, found = settings.calendar, set[date]()
    try:
        for one in asked:
            periods = () if isinstance(one, Hour) else calendar.periods_of(one)
            for period in periods or (one,):
                calendar.check_period(period)
                found.add(period)
    except ParameterError as error:
        raise WordsError(str(error)) from None
    return sorted(found)


def periods_of_span(settings: Settings, span: list[date]) -> list[date]:
    """The periods of a span, rising, but of days that are left out. Raises WordsError where each is."""
    return periods_asked(settings, [day for day in span if not settings.calendar.leaves_out(day)] or span)


def days_between(first: date, last: date) -> list[date]:
    """All days from the first to the last. Raises WordsError if they are the wrong way round."""
    if last < first:
        raise WordsError(f"--to {last} is before --from {first}")
    return days_from(first, last)


def day_option(name: str, help: str) -> Any:
    return typer.Option(name, parser=parse_day, metavar="DATE", help=help)


def period_option(name: str, help: str) -> Any:
    return typer.Option(name, parser=parse_period, metavar="DATE", help=help)


def flag(name: str, help: str) -> Any:
    return typer.Option(name, help=help)


def asks(metavar: str, help: str, **others: Any) -> Any:
    return typer.Option(metavar=metavar, help=help, **others)


def config_option(help: str, metavar: str | None = None, show_default: bool | str = True) -> Any:
    return typer.Option("--config", "-c", metavar=metavar, help=help, show_default=show_default)


def public_key_option(more: str = "") -> Any:
    text = f"The publisher's public key (PEM); may be repeated.{more}"
    return typer.Option("--public-key", metavar="FILE", help=text)


DEFAULT_CONFIG = Path("optstream.toml")
REASON = typer.Option("--reason", help="Why, in a few words without any value; it is kept permanently.")
FOLDER = typer.Argument(help="A path, or a URL such as s3://bucket/published.")
Config = Annotated[Path, config_option("The configuration file (TOML).")]
Configs = Annotated[
    list[Path] | None,
    config_option(
        "The configuration file (TOML), or a population's, for all of its streams; may be repeated.",
        "FILE",
        str(DEFAULT_CONFIG),
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document for machines, nothing else.")]
PublicKeys = Annotated[list[Path] | None, public_key_option()]
Reason = Annotated[str, REASON]
Days = Annotated[list[date], period_option("--date", "Day, or hour such as 2016-02-01T13; may be repeated.")]
First = Annotated[date, day_option("--from", "First day.")]
Last = Annotated[date, day_option("--to", "Last day.")]


# One command for several streams: each in turn, always in the same order; one that fails stops no other.

LOOK, NOT_BEGUN = 1, 2


class Done(NamedTuple):
    """How a command ended for one stream: its exit code, and a few words for the summary."""

    code: int
    words: str = ""


def each_stream(
    configs: Sequence[Path] | None, as_json: bool, command: Callable[[Settings, Terminal], Done]
) -> NoReturn:
    """Call a command for each stream, and exit with 0 if all are well, 2 if none could begin, else 1."""
    files = files_of(configs)
    if len(files) == 1:
        with work(f"read {files[0]}"):
            settings = load_settings(files[0])
        with work(f"work on {settings.stream.name}"):
            raise typer.Exit(command(settings, Terminal(as_json)).code)
    streams, broken = read_streams(files)
    terminal, found, lines = Terminal(as_json, gathers=True), list[OneOfStreams](), [""]
    for settings in streams:
        name = settings.stream.name
        terminal.say(f"== {name}")
        with work(f"work on {name}"):
            try:
                code, words = command(settings, terminal)
            except (OptStreamError, OSError) as error:
                why = str(error)
                if isinstance(error, OSError):
                    why = f"{error.strerror or error}: {error.filename or ''}"
                terminal.say(f"error: {why}")
                code, words = NOT_BEGUN, f"error: {why.splitlines()[0]}"
        document = terminal.documents.pop() if terminal.documents else None
        found.append(OneOfStreams(stream=name, exit_code=code, summary=words, document=document))
        lines.append(f"{name}: {words}")
    for file, why in broken.items():
        found.append(OneOfStreams(stream=None, exit_code=NOT_BEGUN, summary=why))
        lines.append(f"{file}: error: {why}")
    for line in lines:
        terminal.say(line)
    Terminal(as_json).document(Streams(streams=tuple(found)))
    codes = {one.exit_code for one in found}
    raise typer.Exit(codes.pop() if len(codes) == 1 else LOOK)


def files_of(configs: Sequence[Path] | None) -> list[Path]:
    """Return the configurations of the streams that are named. Raises ConfigurationError."""
    return stream_files(configs or [DEFAULT_CONFIG])


def read_streams(files: Sequence[Path]) -> tuple[list[Settings], dict[Path, str]]:
    """Return the streams by name, publishers of covariates before their readers; and why other files fail."""
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
    publishers = {
        place.resolve(): name
        for name, one in streams.items()
        if isinstance(place := one.published_folder, Path)
    }
    order = TopologicalSorter(dict.fromkeys(sorted(streams), ()))
    for name in sorted(streams):
        settings = streams[name]
        places = {(settings.folder / given.path).resolve() for given in settings.covariates}
        order.add(name, *sorted({publishers[one] for one in places & publishers.keys()} - {name}))
    with suppress(CycleError):
        return [streams[name] for name in order.static_order()], broken
    return [streams[name] for name in sorted(streams)], broken


def every_stream(files: Sequence[Path]) -> list[Settings]:
    """Return the streams in their order. Raises ConfigurationError if one cannot be read."""
    streams, broken = read_streams(files)
    for why in broken.values():
        raise ConfigurationError(why)
    return streams
