"""Answers beside the data: put there after the releases, and taken back with them.

Lemma: answers only move forward, as pages do (`optstream.catalogue.page`). In one transaction the mark of the
index is taken before the catalogue is read, and the index is only put where that catalogue is the one that
the answers were made of. Files lie under the hash of their bytes, are put before the index that names them,
and removed after it.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from datetime import date, timedelta
from functools import partial
from itertools import groupby, islice

import polars as pl

from optstream.catalogue.backends import Location, Storage, Transaction, change_folder, open_storage
from optstream.catalogue.index import Catalogue
from optstream.catalogue.layout import ANSWERS_INDEX, QUESTIONS, answers_file, folder_of
from optstream.catalogue.questions.answers_index import (
    LARGEST_INDEX,
    AnswersIndex,
    DayAnswers,
    find_index,
    listed_days,
    parse_index,
)
from optstream.catalogue.questions.from_folder import answers_of_days
from optstream.catalogue.questions.question import MOST_WINDOW_MINUTES, Question
from optstream.catalogue.questions.window_answers import SCHEMA
from optstream.catalogue.reading.catalogue import find_catalogue, read_catalogue
from optstream.catalogue.signing import Signer
from optstream.catalogue.times import settle_answers_time
from optstream.errors import PublicationError
from optstream.storage.parquet_table import encode_table
from optstream.stream.period import day_of

MOST_TRIES = 20
MOST_AT_ONCE = 200
"""Days whose answers are held in memory until their index is put."""
MOST_DAYS_AFTER = MOST_WINDOW_MINUTES // (22 * 60) + 1
"""Days whose windows may reach a day."""


def put_answers(
    folder: Location | str,
    questions: Sequence[Question],
    step_minutes: int,
    signer: Signer | None = None,
) -> bool:
    """Answer questions for every listed day that has no answers of its releases yet; costs no privacy.

    Days whose file, or that of a day which windows reach, is missing or damaged have no answers. Where
    nothing is asked and nothing ever was, no file is made. questions: all that is asked. signer: signs the
    index, if one of its keys signed the catalogue. Returns whether anything changed. Raises ParameterError
    for a URL that cannot be one, or as `ask`; PublicationError where the folder cannot be read or written, or
    others publish all the time.
    """
    storage, changed, tries = open_storage(folder), False, 0
    while tries < MOST_TRIES:
        there = _index_there(storage)
        if there is None and not questions:
            return False
        catalogue = find_catalogue(storage)
        if catalogue is None:
            return False
        names = frozenset(storage.names_below(QUESTIONS))
        index = _begun(catalogue, there, names, questions, step_minutes)
        files = _missing(folder, catalogue, index)
        given = {
            day: DayAnswers(hashlib.sha256(data).hexdigest(), made) for day, (data, made) in files.items()
        }
        whole = replace(index, days={**index.days, **given})
        contents = {answers_file(day, given[day].file_hash): data for day, (data, _) in files.items()}
        work = partial(_put, made=catalogue, index=whole, files=contents, before=names, signer=signer)
        put = change_folder(storage, work, ANSWERS_INDEX, "mend it and run `optstream report`")
        changed |= bool(put)
        is_whole = whole.files <= frozenset(storage.names_below(QUESTIONS))
        if put is not None and is_whole and read_catalogue(storage) == catalogue:
            if len(files) < MOST_AT_ONCE:
                return changed
            continue  # the next days of a long series
        tries += 1
    raise PublicationError(
        f"others publish all the time, and {ANSWERS_INDEX} is behind; run `optstream report` later"
    )


def _index_there(storage: Storage) -> AnswersIndex | None:
    """Return the index that is there; an empty one in the place of one that was damaged."""
    try:
        return find_index(storage)
    except PublicationError:
        return AnswersIndex("", "", 1, (), {})


def _begun(
    catalogue: Catalogue,
    there: AnswersIndex | None,
    names: frozenset[str],
    questions: Sequence[Question],
    step_minutes: int,
) -> AnswersIndex:
    """Return the index of the answers that are there and right."""
    facts = catalogue.stream, catalogue.value_column, step_minutes, tuple(questions)
    index = AnswersIndex(*facts, there.days if there else {}).still_right(catalogue)
    found = {day: one for day, one in index.days.items() if answers_file(day, one.file_hash) in names}
    return replace(index, days=found if questions else {})


def _missing(
    folder: Location | str, catalogue: Catalogue, index: AnswersIndex
) -> dict[date, tuple[bytes, str]]:
    """Return the next files that the index lacks, each with what it is made of."""
    listed = listed_days(catalogue)
    wanted = [day for day in listed if index.questions and day not in index.days]
    found = {}
    given = answers_of_days(open_storage(folder), catalogue, index.questions, wanted)
    whole = ((day, rows) for day, rows in given if isinstance(rows, pl.DataFrame))
    for day, rows in islice(whole, MOST_AT_ONCE):
        made_of = index.made_of(listed, day)
        assert made_of is not None  # the day is listed
        found[day] = encode_table(rows.select(*SCHEMA), {}), made_of
    return found


def _put(
    transaction: Transaction,
    made: Catalogue,
    index: AnswersIndex,
    files: dict[str, bytes],
    before: frozenset[str],
    signer: Signer | None,
) -> bool | None:
    """Return whether anything changed; None where another catalogue is there by now."""
    mark = transaction.mark(ANSWERS_INDEX)
    if find_catalogue(transaction) != made:
        return None
    transaction.prepare()
    for name, data in files.items():
        transaction.create_new(name, data)
    changed = _replace(transaction, made, index, mark, signer)
    strays = sorted(name for name in before - index.files if name.count("/") == 2)
    for above, several in groupby(strays, key=lambda name: name.rpartition("/")[0]):
        transaction.remove(above, [name.rpartition("/")[2] for name in several])
    settle_answers_time(transaction, made, sorted(index.days), sorted(index.files))
    return changed or bool(strays)


def _replace(
    transaction: Transaction,
    catalogue: Catalogue,
    index: AnswersIndex,
    mark: str | None,
    signer: Signer | None,
) -> bool:
    data = index.to_bytes()
    if signer is not None and signer.has_signed(transaction, catalogue, **signer.earlier):
        signer.sign(transaction, data)
    if mark is not None and transaction.read(ANSWERS_INDEX, LARGEST_INDEX) == data:
        return False
    transaction.replace_marked(ANSWERS_INDEX, data, mark)
    return True


def withdraw_answers(
    transaction: Transaction, catalogue: Catalogue, period: date, signer: Signer | None
) -> bool:
    """Take the answers back that a withdrawn day is in: its own, and those of days whose windows reach it.

    catalogue: as it is now, the day a tombstone, or not in it. Returns whether there were any.
    """
    mark = transaction.mark(ANSWERS_INDEX)
    found, kept, days = False, frozenset[str](), list[date]()
    if mark is not None:
        try:
            index = parse_index(transaction.read(ANSWERS_INDEX, LARGEST_INDEX))
        except PublicationError:
            # whoever damaged it: nothing says what is in it
            index = AnswersIndex(catalogue.stream, catalogue.value_column, 1, (), {})
        right = index.still_right(catalogue)
        found, kept = _replace(transaction, catalogue, right, mark, signer), right.files
        days = sorted(right.days)
    for after in range(MOST_DAYS_AFTER + 1):
        above = folder_of(QUESTIONS, day_of(period) + timedelta(days=after))
        gone = [name for name in transaction.names_in(above) if f"{above}/{name}" not in kept]
        found |= bool(gone)
        if gone:
            transaction.remove(above, gone)
    settle_answers_time(transaction, catalogue, days, sorted(kept))
    return found
