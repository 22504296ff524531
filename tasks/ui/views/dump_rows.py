"""The dumps of a day: a row for each region, and when the first and the last file was written."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime

from tasks.monitor.facts import Suspect
from tasks.ui.day_facts import DayFacts
from tasks.ui.words import size_in_words


@dataclass(frozen=True)
class DumpRow:
    """What is there of a region's dump. size: "" and written: None where nothing is, or the folder does not
    say; written: of the file that was written last. replaced: which shares of its readings were clamped,
    absent or doubled when the day was judged; None where that is not known.
    """

    region: str
    words: str
    is_complete: bool = False
    size: str = ""
    written: datetime | None = None
    replaced: Suspect | None = None


def dump_rows(
    facts: DayFacts,
    parts: tuple[str, ...],
    called: Callable[[str], str] = str,
    suspect: Mapping[str, Suspect] | None = None,
) -> Iterator[DumpRow]:
    """Yield a row for each part of a day's dump, those that are not complete first; none where the input
    folder does not tell. Pure.

    called: what a person is told of a region. suspect: by region, shares of its readings.
    """
    shares = suspect or {}
    arrival = facts.arrival
    if arrival is None:
        return
    for part in sorted(parts, key=lambda one: one in arrival.files):
        named, known = called(part) if part else "all", facts.files.get(part, ())
        if part not in arrival.files:
            told = arrival.broken.get(part) or arrival.waiting.get(part) or "not there"
            yield DumpRow(named, told, replaced=shares.get(part))
            continue
        size = size_in_words(sum(one.size for one in known)) if known else ""
        times = [one.written for one in known if one.written is not None]
        words, newest = f"complete, {_files(len(arrival.files[part]))}", max(times, default=None)
        yield DumpRow(named, words, True, size, newest, shares.get(part))


def when_written(facts: DayFacts, called: Callable[[str], str] = str) -> Iterator[tuple[datetime, str]]:
    """Yield when files of the dump were written, the first and the last of them, in words. Pure."""
    found = [
        (one.written, called(part) if part else "all regions")
        for part, own in facts.files.items()
        for one in own
        if one.written is not None
    ]
    if not found:
        return
    size = size_in_words(sum(one.size for own in facts.files.values() for one in own))
    n_files = sum(len(own) for own in facts.files.values())
    if len(found) > 1:
        at, part = min(found)
        yield at, f"The first file of its dump was written, of {part}"
    at, part = max(found)
    last = "The last file" if len(found) > 1 else "The file"
    yield at, f"{last} of its dump was written, of {part}: {_files(n_files)}, {size}"


def _files(number: int) -> str:
    return f"{number} file{'' if number == 1 else 's'}"
