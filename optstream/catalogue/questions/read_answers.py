"""Answers that are published beside the data, read and checked."""

import hashlib
from collections.abc import Iterator
from datetime import date

import polars as pl

from optstream.catalogue.backends import Location, Readable, Storage, open_storage
from optstream.catalogue.index import Catalogue
from optstream.catalogue.layout import ANSWERS_INDEX, CATALOGUE, LARGEST_ANSWERS, QUESTIONS, answers_file
from optstream.catalogue.questions.answers_index import LARGEST_INDEX, DayAnswers, find_index, parse_index
from optstream.catalogue.questions.from_folder import dated
from optstream.catalogue.questions.window_answers import SCHEMA
from optstream.catalogue.reading.read import catalogue_reader
from optstream.catalogue.signing import GivenKeys, check_signature, read_public_keys
from optstream.errors import ParameterError, PublicationError
from optstream.storage.parquet_limits import Limits
from optstream.storage.parquet_table import decode_table

LIMITS = Limits(rows=2**26, columns=len(SCHEMA), group_rows=2**26, group_bytes=2**34)


def read_answers(
    folder: Location | str,
    first: date | None = None,
    last: date | None = None,
    *,
    public_key: GivenKeys | None = None,
) -> pl.DataFrame:
    """Return the answers that are published beside the data (docs/data/questions.md).

    Only those of the releases that the catalogue lists: where a day was published again since, its answers
    and those that reach it are missing until its publisher has made them anew.

    Args:
        folder: A path, or the URL of a folder in an object store.
        first: The first local day on which windows end; None for the first.
        last: The last one; None for the last.
        public_key: The publisher's, as for `read_published`; then the index must be signed, too.

    Returns:
        Columns date, question, step, timestamp (UTC), node, level, answer, happened (null for a sum), the
        answer's standard errors of the noise alone and of the whole error (null where not known), the most
        that these can be (likewise).

    Raises:
        ParameterError: The URL or a public key cannot be one, or nothing is asked in this folder.
        PublicationError: As for `read_published`; or a file is missing or altered.
    """
    storage = open_storage(folder)
    catalogue = catalogue_reader(storage, public_key)()
    try:
        data = storage.read(ANSWERS_INDEX, LARGEST_INDEX)
    except FileNotFoundError as error:
        raise ParameterError(
            f"this folder answers no questions: its publisher asks none; `optstream ask {folder}` does"
        ) from error
    if public_key is not None:
        check_signature(storage, ANSWERS_INDEX, data, read_public_keys(public_key))
    index = parse_index(data).still_right(catalogue)
    days = [day for day in sorted(index.days) if (first or date.min) <= day <= (last or date.max)]
    return dated((day, _rows(_file(storage, day, index.days[day]))) for day in days)


def _rows(data: bytes) -> pl.DataFrame:
    """Return the rows of a file of answers. Raises PublicationError for what is none, or claims too much."""
    rows, _ = decode_table(data, LIMITS, "a file of answers")
    if dict(rows.schema) != SCHEMA:
        raise PublicationError("a file of answers has other columns than answers have")
    return rows


def _file(storage: Readable, day: date, one: DayAnswers) -> bytes:
    name = answers_file(day, one.file_hash)
    remedy = f"`optstream report` of its publisher, once {name} is removed, makes it anew"
    try:
        data = storage.read(name, LARGEST_ANSWERS)
    except FileNotFoundError as error:
        raise PublicationError(f"{name} is missing; {remedy}") from error
    if hashlib.sha256(data).hexdigest() != one.file_hash:
        raise PublicationError(f"{name} differs from its hash in {ANSWERS_INDEX}; {remedy}")
    return data


def check_answers(storage: Storage, catalogue: Catalogue) -> Iterator[str]:
    """Yield what is wrong with files of answers: missing, altered, of other releases, or not listed."""
    names = frozenset(storage.names_below(QUESTIONS))
    try:
        index = find_index(storage)
    except PublicationError as error:
        yield str(error)
        return
    right = None if index is None else index.still_right(catalogue)
    for day, one in sorted({} if index is None else index.days.items()):
        if right is not None and day not in right.days:
            yield (
                f"{answers_file(day, one.file_hash)} answers of other releases than {CATALOGUE} lists; "
                "`optstream report` makes it anew"
            )
        try:
            _file(storage, day, one)
        except PublicationError as error:
            yield str(error)
    for name in sorted(names - (frozenset() if index is None else index.files)):
        yield f"{name!r} is not listed in {ANSWERS_INDEX}; `optstream report` removes it"
