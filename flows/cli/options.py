"""Options that several commands share, and how dates are read."""

from collections.abc import Callable, Collection
from csv import reader
from datetime import date
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any

import typer

from optstream.errors import ParameterError
from optstream.privacy.exact import exact
from optstream.stream import Hour, days_from, period_from
from tasks.config import Settings


def new_app(help: str | None = None) -> typer.Typer:
    """The commands of a module; help: what they are, where they are a group of their own."""
    return typer.Typer(
        help=help, no_args_is_help=help is not None, add_completion=False, rich_markup_mode="markdown"
    )


def examples(*commands: str) -> str:
    """What stands below a command's options: commands that can be typed."""
    return "\n\n".join(["Examples:", *(f"`{command}`" for command in commands)])


class WordsError(typer.BadParameter):
    """Options that do not go together, or one that is missing: no single one has an invalid value."""

    def format_message(self) -> str:
        """The message alone."""
        return self.message


def names_in(text: str | None) -> tuple[str, ...]:
    """The names of a list with commas between; one that holds a comma itself stands in double quotes."""
    return tuple(next(reader([" ".join(text.splitlines())], skipinitialspace=True))) if text else ()


def parse_day(text: str) -> date:
    """The date. Raises typer.BadParameter unless it is one as 2016-02-01, between 1970 and 2199."""
    try:
        day = date.fromisoformat(text)
    except ValueError:
        hint = ", which stands for all its hours" if "T" in text else ""
        raise typer.BadParameter(
            f"a date looks like 2016-02-01{hint}, and is in the calendar; got {text!r}"
        ) from None
    return _in_range(day, text)


def parse_period(text: str) -> date:
    """The day or the hour. Raises typer.BadParameter unless it is one as 2016-02-01 or 2016-02-01T13."""
    try:
        period = period_from(text)
    except ValueError:
        raise typer.BadParameter(
            f"a date looks like 2016-02-01, an hour like 2016-02-01T13, and is in the calendar; got {text!r}"
        ) from None
    return _in_range(period, text)


def _in_range(period: date, text: str) -> date:
    if not 1970 <= period.year <= 2199:
        raise typer.BadParameter(f"a date lies between 1970 and 2199; got {text!r}")
    return period


def periods_asked(settings: Settings, asked: Collection[date]) -> list[date]:
    """The periods of the stream that were asked for, rising: where they are hours, a day stands for its own.

    Raises WordsError for an hour where periods are days, one that its day does not have, and days of which
    the zone skipped each.
    """
    found = set[date]()
    try:
        for one in asked:
            own = [one] if isinstance(one, Hour) else settings.calendar.periods_of(one)
            for period in own:
                settings.calendar.check_period(period)
            found.update(own)
        for one in asked if not found else ():
            settings.calendar.check_period(one)
    except ParameterError as error:
        raise WordsError(str(error)) from None
    return sorted(found)


def parse_exactly(name: str) -> Callable[[str], Fraction]:
    """What reads a number, exactly. It raises typer.BadParameter, which names it so, unless it is one."""

    def parse(text: str) -> Fraction:
        try:
            return exact(text, name)
        except ParameterError as error:
            raise typer.BadParameter(str(error)) from None

    return parse


def days_between(first: date, last: date) -> list[date]:
    """All days from the first to the last. Raises WordsError if they are the wrong way round."""
    if last < first:
        raise WordsError(f"--to {last} is before --from {first}")
    return days_from(first, last)


def day_option(name: str, help: str) -> Any:
    """An option that takes a date."""
    return typer.Option(name, parser=parse_day, metavar="DATE", help=help)


def period_option(name: str, help: str) -> Any:
    """An option that takes a date, or an hour of one."""
    return typer.Option(name, parser=parse_period, metavar="DATE", help=help)


def flag(name: str, help: str) -> Any:
    """An option that is given or not."""
    return typer.Option(name, help=help)


def asks(metavar: str, help: str) -> Any:
    """An option that takes what its help calls so."""
    return typer.Option(metavar=metavar, help=help)


DEFAULT_CONFIG = Path("optstream.toml")
REASON = typer.Option("--reason", help="Why, in a few words without any value; it is kept permanently.")
Config = Annotated[
    Path, typer.Option("--config", "-c", help="The configuration file (TOML).", show_default=True)
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document for machines, nothing else.")]
PublicKeys = Annotated[
    list[Path] | None,
    typer.Option("--public-key", metavar="FILE", help="The publisher's public key (PEM); may be repeated."),
]
Reason = Annotated[str, REASON]
Days = Annotated[list[date], period_option("--date", "Day, or hour such as 2016-02-01T13; may be repeated.")]
First = Annotated[date, day_option("--from", "First day.")]
Last = Annotated[date, day_option("--to", "Last day.")]
