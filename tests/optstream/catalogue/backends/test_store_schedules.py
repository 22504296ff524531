"""Publishers, a withdrawal and a reader in one store, request by request in orders that a seed draws."""

import random
import threading
from collections.abc import Callable
from importlib import import_module

import pytest

from optstream.catalogue import check_files, find_catalogue, publish, read_published, stage, withdraw
from optstream.catalogue.backends import ObjectTransaction
from optstream.errors import LedgerError, OptStreamError, PublicationError
from tests.by_night import few
from tests.memory_store import MemoryStore
from tests.optstream.catalogue.conftest import make_rows, make_statement
from tests.optstream.catalogue.folders import DAY, NEXT, STREAM, memory_folder

REQUESTS = ("get", "names_below", "put_new", "put_instead", "delete")
FOR_A_CONTROL = 400


class Schedule:
    """Lets one actor at a time make its next request; `after` is called when it was made."""

    def __init__(self, seed: int, after: Callable[[], None]) -> None:
        self._choose, self._after = random.Random(seed), after
        self._go: dict[int, threading.Semaphore] = {}
        self._back = threading.Semaphore(0)

    def request(self, genuine):
        def call(store, *rest):
            own = self._go.get(threading.get_ident())
            if own is not None:
                self._back.release()
                own.acquire()
            return genuine(store, *rest)

        return call

    def run(self, actors) -> None:
        threads = [threading.Thread(target=self._act, args=(actor,)) for actor in actors]
        waiting = []
        for thread in threads:
            thread.start()
            self._back.acquire()
            waiting.append(thread)
        while waiting:
            thread = self._choose.choice(waiting)
            self._go[thread.ident].release()
            self._back.acquire()
            if not self._go.get(thread.ident):
                thread.join()
                waiting.remove(thread)
            self._after()

    def _act(self, actor) -> None:
        own = self._go[threading.get_ident()] = threading.Semaphore(0)
        self._back.release()
        own.acquire()
        try:
            actor()
        finally:
            self._go[threading.get_ident()] = None
            self._back.release()


class Book:
    """A ledger's word: a head that moves on with every question, and revisions of DAY that are given up."""

    def __init__(self) -> None:
        self.head, self.given_up = 0, 0

    def head_after(self, period, revision, known):
        if period == DAY and revision <= self.given_up:
            raise LedgerError("void")
        return self._next(known)

    def withdraw(self, _entry, known):
        self.given_up = 2
        return self._next(known)

    def _next(self, known):
        assert int((known or "h0")[1:]) <= self.head
        self.head += 1
        return f"h{self.head}"


STAGED = {
    (period, revision): stage(make_rows(period, revision), make_statement(period, revision))
    for period in (DAY, NEXT)
    for revision in (1, 2, 3)
}


class Installation:
    """A folder, its ledger, and what everybody has seen so far."""

    def __init__(self) -> None:
        self.folder, self.book = memory_folder(), Book()
        self.broken: list[str] = []
        self.heads = [0]
        self.refused: list[OptStreamError] = []

    def publisher(self, *releases):
        def act():
            def head_after(known):
                return [self.book.head_after(*release, known) for release in releases][-1]

            self._refusable(
                lambda: publish(self.folder.name, [STAGED[release] for release in releases], head_after)
            )

        return act

    def withdrawal(self):
        self._refusable(
            lambda: withdraw(
                self.folder.name,
                DAY,
                self.book.withdraw,
                stream=STREAM,
                value_column="load_mw",
                last_revision=2,
            )
        )

    def _refusable(self, work):
        try:
            work()
        except (LedgerError, PublicationError) as error:
            self.refused.append(error)

    def look(self):
        """After every request: whole days only, and heads in the ledger's order."""
        catalogue = find_catalogue(self.folder.name)
        if catalogue is None:
            return
        head = int(catalogue.ledger_head[1:])
        if head == self.heads[-1] and self.heads[-1:] != [0]:
            missing = [
                entry.file
                for entry in catalogue.entries
                if not entry.withdrawn
                and not self.folder.filesystem.exists(f"{self.folder.root}/{entry.file}")
            ]
            self.broken += [f"missing {name}" for name in missing]
            return
        if head < self.heads[-1]:
            self.broken.append("the heads went back")
        self.heads.append(head)
        try:
            read_published(self.folder.name, verify=True)
        except PublicationError as error:
            self.broken.append(str(error))

    def judge(self, actors):
        """At the end, and after everybody has tried again."""
        self.look()
        self._listed()
        for actor in actors:
            actor()
        self._listed()
        self.broken += check_files(self.folder.name)

    def _listed(self):
        entry = find_catalogue(self.folder.name).entry(DAY)
        if entry and not entry.withdrawn and entry.revision <= self.book.given_up:
            self.broken.append("a day that the ledger gave up is listed")


def scenarios(installation):
    first, second, third = (installation.publisher((DAY, revision)) for revision in (1, 2, 3))
    both = installation.publisher((DAY, 2), (NEXT, 1))
    return {
        "revisions": [first, second, second, third],
        "withdrawal": [second, both, installation.withdrawal, installation.publisher((NEXT, 1))],
        "withdrawal and restatement": [first, second, installation.withdrawal, third],
    }


def play(monkeypatch, name, seed):
    """One schedule: what it broke."""
    installation = Installation()
    actors = scenarios(installation)[name]
    if seed % 2:
        installation.publisher((DAY, 1))()
    schedule = Schedule(seed, installation.look)
    with monkeypatch.context() as patch:
        for method in REQUESTS:
            patch.setattr(MemoryStore, method, schedule.request(getattr(MemoryStore, method)))
        schedule.run(actors)
    installation.judge(actors)
    return installation.broken


@pytest.mark.slow
@pytest.mark.parametrize("n_schedules", few([40, 120], 1))
@pytest.mark.parametrize("name", few(["withdrawal and restatement", "withdrawal", "revisions"], 1))
def test_in_no_order_is_a_listed_day_not_whole(monkeypatch, name, n_schedules):
    for seed in range(n_schedules):
        assert play(monkeypatch, name, seed) == [], seed


def reported_in_some_order(monkeypatch, name, what):
    """Whether one of the orders breaks something in these words."""
    return any(what in line for seed in range(FOR_A_CONTROL) for line in play(monkeypatch, name, seed))


def test_a_sweep_that_spares_nothing_is_caught(monkeypatch):
    monkeypatch.setattr(import_module("optstream.catalogue.publication"), "_is_dead", lambda *_: True)
    assert reported_in_some_order(monkeypatch, "revisions", "missing")


@pytest.mark.slow
def test_a_withdrawal_that_leaves_the_catalogue_is_caught(monkeypatch):
    """So that nobody overtakes the publisher of the day."""
    module = import_module("optstream.catalogue.publication")
    monkeypatch.setattr(module, "_relist", lambda *given: given[1])
    assert reported_in_some_order(monkeypatch, "withdrawal", "a day that the ledger gave up is listed")


@pytest.mark.slow
def test_a_replacement_without_its_condition_is_caught(monkeypatch):
    def replace_catalogue(turn, data):
        turn._store.filesystem.pipe_file(turn._store.path("catalogue.json"), data)

    monkeypatch.setattr(ObjectTransaction, "replace_catalogue", replace_catalogue)
    assert reported_in_some_order(monkeypatch, "revisions", "heads went back")
