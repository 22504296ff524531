"""What happened to a day, in order: its dump's files, its runs, its suites, and the ledger's events."""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from tasks.ui.day_facts import DayFacts
from tasks.ui.runs import RunLink, StreamRun
from tasks.ui.views.dump_rows import when_written

KINDS = {
    "reserved": "Its plan was charged to the privacy budget",
    "taken over": "Another run took it over, for the one before had died",
    "adopted": "Another run took up the finished draw",
    "draw begun": "The draw of noise began",
    "draw called off": "The draw was called off before the first sample",
    "drawn": "It was measured with noise, once",
    "staged": "Its rows were staged",
    "published": "It was published",
    "lease released": "The run gave it back",
    "void": "It became void, and stays charged",
    "withdrawn": "It was withdrawn",
    "compromised": "Its noise was declared known to others",
    "vintage staged": "A new estimate was staged",
    "vintage published": "A new estimate was published",
}
"""The ledger's events in words."""


@dataclass(frozen=True)
class Happening:
    """Something that happened at a time. runs: those that it names, each followed by the one that started
    it. doc: the file of Great Expectations' page of it; "" without one.
    """

    at: datetime
    words: str
    runs: tuple[RunLink, ...] = ()
    doc: str = ""


def happened(
    facts: DayFacts, runs: Sequence[StreamRun], docs: Collection[str], called: Callable[[str], str] = str
) -> tuple[Happening, ...]:
    """Return what happened to a day, by time. Pure.

    docs: the files of Great Expectations' pages that can be shown. called: what a person is told of a region.
    """
    return tuple(sorted(_happened(facts, runs, docs, called), key=lambda one: one.at))


def _happened(
    facts: DayFacts, runs: Sequence[StreamRun], docs: Collection[str], called: Callable[[str], str]
) -> Iterator[Happening]:
    for run in runs:
        started_by = () if run.parent is None else (run.parent,)
        yield Happening(run.begins, "A run of it began", (run.link, *started_by))
        if run.ends is not None:
            yield Happening(run.ends, f"A run of it ended, {run.state.lower()}", (run.link,))
    for at, words in when_written(facts, called):
        yield Happening(at, words)
    many = len(facts.records) > 1
    for event in facts.events:
        words = KINDS.get(event.kind, event.kind.capitalize())
        yield Happening(event.at, f"{words} (revision {event.revision})" if many else words)
    for result in reversed(facts.results):
        doc = result.path.with_suffix(".html").name
        told = f"The suite {result.suite or 'of contracts'} judged it"
        if result.path.name in facts.objected:
            others = "" if result.first == result.last else " or to another day of its run"
            told += f", and objects to it{others}"
        yield Happening(result.at, told, doc=doc if doc in docs else "")
