"""Answers computed from a published folder, as its publisher and anybody else can."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import date, timedelta

import polars as pl

from optstream.catalogue.backends import Location, Storage, open_storage
from optstream.catalogue.index import Catalogue, Entry
from optstream.catalogue.questions.answers_index import days_reached, listed_days
from optstream.catalogue.questions.figures import DayFigures, figures_of
from optstream.catalogue.questions.question import MOST_WINDOW_MINUTES, Question
from optstream.catalogue.questions.window_answers import SCHEMA, answers
from optstream.catalogue.reading.columns import read_statement
from optstream.catalogue.reading.read import catalogue_reader, read_rows
from optstream.catalogue.signing import GivenKeys
from optstream.catalogue.statements.statement import ReleaseStatement
from optstream.catalogue.sums.read_sum import read_errors
from optstream.errors import ParameterError, PublicationError
from optstream.stream.period import Hour

Read = tuple[DayFigures, ReleaseStatement]


def ask(
    folder: Location | str,
    questions: Sequence[Question],
    first: date | None = None,
    last: date | None = None,
    *,
    public_key: GivenKeys | None = None,
) -> pl.DataFrame:
    """Return the answers to questions of a published folder, whoever published it; costs no privacy.

    Args:
        folder: A path, or the URL of a folder in an object store.
        questions: What is asked.
        first: The first local day on which windows end; None for the first that is published.
        last: The last one; None for the last that is published.
        public_key: The publisher's, as for `read_published`.

    Returns:
        A column date, and those of `SCHEMA`.

    Raises:
        ParameterError: No day of the span is published, no published day has a node that is asked, a window
            is longer than 31 days, or values are too large for exact sums.
        PublicationError: As for `read_published`.
    """
    storage = open_storage(folder)
    catalogue = catalogue_reader(storage, public_key)()
    days = [day for day in listed_days(catalogue) if (first or date.min) <= day <= (last or date.max)]
    if not days:
        raise ParameterError("no day of this span is published; see catalogue.json for those that are")
    found = []
    for day, rows in answers_of_days(storage, catalogue, questions, days):
        if isinstance(rows, PublicationError):
            raise rows
        found.append((day, rows))
    _check_known(storage, catalogue, days[-1], questions)
    return dated(found)


def answers_of_days(
    storage: Storage,
    catalogue: Catalogue,
    questions: Sequence[Question],
    days: Iterable[date],
) -> Iterator[tuple[date, pl.DataFrame | PublicationError]]:
    """Yield the answers of the windows that end on each of these listed days; what windows reach is read
    once.

    The day with columns of `SCHEMA`, or with why there are none: a file of the day, or of one that its
    windows reach, is missing or altered. Raises ParameterError as `ask`.
    """
    known: dict[Entry, Read] = {}
    listed = listed_days(catalogue)
    for day in days:
        own = listed.get(day, ())
        try:
            known |= {one: _read(storage, catalogue, one) for one in own if one not in known}
            minutes = known[own[-1]][1].step_minutes
            _check_windows(questions, minutes)
            reached = [one for each in days_reached(listed, day, questions, minutes) for one in listed[each]]
            known = {one: known.get(one) or _read(storage, catalogue, one) for one in reached}
        except PublicationError as error:
            yield day, error
            continue
        yield day, _answered(questions, [known[one] for one in reached], len(own))


def _answered(questions: Sequence[Question], reached: Sequence[Read], n_own: int) -> pl.DataFrame:
    """Return the answers of the windows that end in the last releases: the day's only one, or its hours."""
    parts = [pl.DataFrame(schema=SCHEMA)]
    begins = 0  # of the releases that follow one another without a gap
    for number, (figures, statement) in enumerate(reached):
        if number and not _follows(reached[number - 1], reached[number]):
            begins = number
        if number >= len(reached) - n_own and figures.steps.size:
            together = [one for one, _ in reached[begins : number + 1] if one.steps.size]
            parts.append(answers(questions, together, statement.model.resolution))
    if n_own == 1:
        return pl.concat(parts)
    numbers = {question.name: number for number, question in enumerate(questions)}
    order = pl.col("question").replace_strict(numbers, return_dtype=pl.Int64)
    return pl.concat(parts).sort(order, "node", "step")


def _follows(before: Read, after: Read) -> bool:
    """Return whether a release begins where the one before it ends; listed days that are reached do."""
    (one, stated), (next_one, _) = before, after
    if not isinstance(stated.period, Hour):
        return True
    if one.day == next_one.day:
        return next_one.first_step == one.end_step
    step = timedelta(minutes=stated.step_minutes)
    # a day whose clock changes has fewer or more steps than others, and each of them a time
    is_whole = one.end_step * step == timedelta(days=1) or [*one.timestamps.tail(1) + step] == [
        *next_one.timestamps.head(1)
    ]
    return next_one.first_step == 0 and is_whole


def step_minutes_of(storage: Storage, catalogue: Catalogue) -> int:
    """Return the length of a step as the newest listed release states it.

    Raises ParameterError where no day is listed, PublicationError where its file is missing or altered.
    """
    if not catalogue.listed:
        raise ParameterError("no day is published in this folder; see catalogue.json")
    return read_statement(storage, catalogue.listed[-1]).step_minutes


def dated(frames: Iterable[tuple[date, pl.DataFrame]]) -> pl.DataFrame:
    """Return the answers of several days under one another: a column date, and those of `SCHEMA`."""
    parts = [pl.DataFrame(schema={"date": pl.Date(), **SCHEMA})]
    parts += [rows.select(pl.lit(day, dtype=pl.Date()).alias("date"), pl.all()) for day, rows in frames]
    return pl.concat(parts)


def _check_windows(questions: Sequence[Question], minutes: int) -> None:
    """Raise ParameterError for a window that is too long."""
    for question in questions:
        if question.window * minutes > MOST_WINDOW_MINUTES:
            raise ParameterError(f"a window must be at most 31 days long; got {question.window} steps")


def _read(storage: Storage, catalogue: Catalogue, entry: Entry) -> Read:
    statement = read_statement(storage, entry)
    rows = read_rows(storage, catalogue, entry, verify=True)
    errors = read_errors(storage, entry, statement, rows)
    return figures_of(rows, catalogue.value_column, statement.model.resolution, errors), statement


def _check_known(storage: Storage, catalogue: Catalogue, day: date, questions: Sequence[Question]) -> None:
    """Raise ParameterError for a question to nodes that the last day does not have."""
    rows = read_rows(storage, catalogue, listed_days(catalogue)[day][-1], verify=False)
    levels = dict(rows.select("node", "level").unique().iter_rows())
    for question in questions:
        if unknown := [node for node in question.nodes if node not in levels]:
            raise ParameterError(f"{day} has no node {unknown[0]!r:.80}; names are as in the files")
        if not any(question.asks(node, level) for node, level in levels.items()):
            raise ParameterError(
                f"{day} has no level {question.level}; the deepest is {max(levels.values())}"
            )
