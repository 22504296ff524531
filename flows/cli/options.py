"""Options that several commands share, and how dates are read."""

from datetime import date
from fractions import Fraction
from pathlib import Path
from typing import Annotated

import typer

from optstream.errors import ParameterError
from optstream.privacy.exact import exact
from optstream.stream import days_from

Config = Annotated[
    Path, typer.Option("--config", "-c", help="The configuration file (TOML).", show_default=True)
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document for machines, nothing else.")]
DEFAULT_CONFIG = Path("optstream.toml")


REASON = typer.Option("--reason", help="Why, in a few words without any value; it is kept permanently.")
Reason = Annotated[str, REASON]


def parse_day(text: str) -> date:
    try:
        day = date.fromisoformat(text)
    except ValueError:
        raise typer.BadParameter(f"a date looks like 2016-02-01; got {text!r}") from None
    if not 1970 <= day.year <= 2199:
        raise typer.BadParameter(f"a date lies between 1970 and 2199; got {text!r}")
    return day


def parse_delta(text: str) -> Fraction:
    try:
        return exact(text, "delta")
    except ParameterError as error:
        raise typer.BadParameter(str(error)) from None


Days = Annotated[
    list[date],
    typer.Option("--date", parser=parse_day, metavar="DATE", help="Day; may be repeated."),
]


def days_between(first: date, last: date) -> list[date]:
    if last < first:
        raise typer.BadParameter(f"--to {last} is before --from {first}")
    return days_from(first, last)
