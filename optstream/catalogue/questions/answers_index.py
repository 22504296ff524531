"""`questions.json`: what is asked, and which file answers it for which day. What is read is not trusted.

Answers belong to the state of the whole folder, not to one release: a window reaches into the days before. So
the index states for each day the hash of what its answers are made of, the questions and the files of the
days that windows reach; where the catalogue lists others by now, the answers are not the day's any more.
"""

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from itertools import groupby
from typing import Any

from optstream.catalogue.backends import Readable
from optstream.catalogue.index import Catalogue, Entry
from optstream.catalogue.layout import ANSWERS_INDEX, answers_file, is_hash
from optstream.catalogue.questions.question import MOST_WINDOW_MINUTES, Question
from optstream.errors import OptStreamError, PublicationError
from optstream.stream.period import day_of

FORMAT = "optstream.questions/1"
Listed = Mapping[date, Sequence[Entry]]
LARGEST_INDEX = 2**28
"""Bytes."""
SHORTEST_DAY_MINUTES = 22 * 60
"""No zone's clock goes forward by more than two hours at once."""
IN_WORDS = (
    "Answers are functions of what is published: they cost no privacy, and the guarantee of the releases is "
    "that of the answers. Sums and differences are of published values; whether an event happened is decided "
    "on them, not on the readings. Standard errors are of the sum or the difference."
)


@dataclass(frozen=True)
class DayAnswers:
    """The answers of one day.

    Attributes:
        file_hash: SHA-256 of their file.
        made_of: SHA-256 of what they are made of (`made_of`).
    """

    file_hash: str
    made_of: str


@dataclass(frozen=True)
class AnswersIndex:
    """What is asked of a stream, and which file answers it for which day.

    Attributes:
        stream: Name of the stream.
        value_column: Name of the published values.
        step_minutes: Length of a step.
        questions: In the order of the configuration.
        days: By local day.
    """

    stream: str
    value_column: str
    step_minutes: int
    questions: tuple[Question, ...]
    days: Mapping[date, DayAnswers]

    @property
    def files(self) -> frozenset[str]:
        """The files of answers, relative to the published folder."""
        return frozenset(answers_file(day, one.file_hash) for day, one in self.days.items())

    def made_of(self, listed: Listed, day: date) -> str | None:
        """Return the hash of what a day's answers are to be made of; None for a day that is not listed."""
        days = days_reached(listed, day, self.questions, self.step_minutes)
        if not days:
            return None
        asked = {question.name: question.to_document() for question in self.questions}
        files = [[one.period.isoformat(), one.file_hash] for day in days for one in listed[day]]
        facts = [FORMAT, self.step_minutes, asked, files]
        return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()

    def still_right(self, catalogue: Catalogue) -> "AnswersIndex":
        """Return the index without the days whose answers are of other releases than are listed: days that
        were withdrawn, changed, or reach one that was.
        """
        listed = listed_days(catalogue)
        kept = {day: one for day, one in self.days.items() if one.made_of == self.made_of(listed, day)}
        return replace(self, days=kept)

    def to_bytes(self) -> bytes:
        """Return the index as a file of UTF-8 text; the same index gives the same bytes."""
        document = {
            "format": FORMAT,
            "stream": self.stream,
            "value_column": self.value_column,
            "step_minutes": self.step_minutes,
            "in_words": IN_WORDS,
            "questions": {
                one.name: {
                    **one.to_document(),
                    "in_words": one.in_words(self.value_column, self.step_minutes),
                }
                for one in self.questions
            },
            "days": {
                day.isoformat(): {
                    "file": answers_file(day, one.file_hash),
                    "file_hash": one.file_hash,
                    "made_of": one.made_of,
                }
                for day, one in sorted(self.days.items())
            },
        }
        return (json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False) + "\n").encode()


def listed_days(catalogue: Catalogue) -> Listed:
    """Return what is listed of each local day, rising: its release, or those of its hours, rising."""
    by_day = groupby(catalogue.listed, key=lambda entry: day_of(entry.period))
    return {day: tuple(own) for day, own in by_day}


def days_reached(
    listed: Listed, day: date, questions: Sequence[Question], step_minutes: int
) -> tuple[date, ...]:
    """Return the listed days that windows which end on a day can reach, without a day between that is not.

    Rising, the day itself last; none where it is not listed.
    """
    before = max((question.window - 1 for question in questions), default=0) * step_minutes
    reached = math.ceil(before / SHORTEST_DAY_MINUTES)
    found: list[date] = []
    for back in range(reached + 1):
        one = day - timedelta(days=back)
        if one not in listed:
            break
        found.insert(0, one)
    return tuple(found)


def find_index(storage: Readable) -> AnswersIndex | None:
    """Return the index of a published folder; None where there is none.

    No path of it is ever followed, only those that its hashes give. Raises PublicationError where it cannot
    be read, or is not as OptStream writes it.
    """
    try:
        return parse_index(storage.read(ANSWERS_INDEX, LARGEST_INDEX))
    except FileNotFoundError:
        return None


def parse_index(data: bytes) -> AnswersIndex:
    """Read an index from bytes that anyone may have written. Raises PublicationError."""
    try:
        document = json.loads(data)
        if document["format"] != FORMAT:
            raise ValueError
        questions = tuple(Question.from_document(name, one) for name, one in document["questions"].items())
        days = {date.fromisoformat(day): _day(one) for day, one in document["days"].items()}
        minutes = document["step_minutes"]
        if type(minutes) is not int or not 1 <= minutes <= 24 * 60:
            raise ValueError
        if not all(isinstance(document[name], str) for name in ("stream", "value_column")):
            raise ValueError
        if any(question.window * minutes > MOST_WINDOW_MINUTES for question in questions):
            raise ValueError
        return AnswersIndex(document["stream"], document["value_column"], minutes, questions, days)
    except (
        OptStreamError,
        ValueError,
        KeyError,
        TypeError,
        AttributeError,
        ArithmeticError,
        RecursionError,
    ) as error:
        raise PublicationError(
            f"{ANSWERS_INDEX} is not {FORMAT} as OptStream writes it; `optstream report` makes it anew"
        ) from error


def _day(document: Mapping[str, Any]) -> DayAnswers:
    for name in ("file_hash", "made_of"):
        if not is_hash(document[name]):
            raise ValueError("a hash is a SHA-256 in lower-case hexadecimal")
    return DayAnswers(document["file_hash"], document["made_of"])
