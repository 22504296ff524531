"""In an object store: others who publish, at every request, and stores that cannot keep publishers apart."""

from contextlib import suppress
from datetime import timedelta
from importlib import import_module
from itertools import permutations
from typing import ClassVar

import pytest

from optstream.catalogue import check_files, read_catalogue, read_published
from optstream.catalogue.backends import ObjectTransaction
from optstream.errors import LedgerError, PublicationError
from optstream.storage.store import KINDS as KINDS_OF_STORES
from optstream.storage.store import S3Store, Store
from tests.failing import at_each
from tests.memory_store import Literal, MemoryStore
from tests.optstream.catalogue.conftest import days_in, put, take_back
from tests.optstream.catalogue.folders import DAY, NEXT, copied, make_folder, memory_folder

REQUESTS = ("get", "names_below", "put_new", "put_instead", "delete")
OTHERS = {
    "another day": lambda name: put(name, NEXT, head="other"),
    "the same release": lambda name: put(name, DAY, revision=2, head="other"),
    "a newer revision": lambda name: put(name, DAY, revision=3, head="other"),
    "a withdrawal": lambda name: take_back(name, head="other", last_revision=2),
}


def publish_interrupted(name, others, places):
    """Publish a day while others come; whether all came, the catalogues that they left, and the refusal."""
    points, waiting, left, refused = [], [*zip(places, others, strict=True)], [], None

    def act(_moment, point):
        points.append(point)
        if waiting and len(points) > waiting[0][0]:
            _, other = waiting.pop(0)
            with suppress(PublicationError):
                OTHERS[other](name)
            left.append(read_catalogue(name))

    with at_each([(kind, REQUESTS) for kind in (S3Store, MemoryStore)], act):
        try:
            put(name, DAY, revision=2, head="mine")
        except PublicationError as error:
            refused = error
    return not waiting, left, refused


def judge_each_place(request, kind, others, listed, apart=1):
    """Nothing is undone and no day lost, wherever the first other comes, and the second so far after it."""
    folder, n_tried = make_folder(kind, request), 0
    put(folder.below("before"), NEXT + timedelta(days=9))
    if listed:
        put(folder.below("before"), DAY)
    for first in range(100):
        for second in range(first + 1, 200, apart) if others[1:] else [None]:
            places, name = (first, second)[: len(others)], copied(folder, f"{first}-{second}")
            all_came, left, refused = publish_interrupted(name, others, places)
            if not all_came:
                break
            judge_after(name, left, refused)
            n_tried += 1
        if not left:
            return n_tried
    raise AssertionError("the publication never came through")


def judge_after(name, left, refused):
    """What the others saw when they were done is still so, or has gone further."""
    read_published(name, verify=True)
    assert check_files(name) == []
    now = read_catalogue(name)
    for other in left:
        assert {entry.period for entry in other.entries} <= {entry.period for entry in now.entries}
        for entry in other.entries:
            later = now.entry(entry.period)
            assert later.revision >= entry.revision
            assert later.revision > 1 or later.withdrawn >= entry.withdrawn
    mine = now.entry(DAY)
    if refused is None:
        assert mine.revision >= 2
    else:
        assert mine.revision > 2 or mine.withdrawn
        assert "earlier" in str(refused) or "withdrawn" in str(refused)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "other", "listed"),
    [
        *(("memory", other, listed) for other in OTHERS for listed in (True, False)),
        pytest.param("s3", "a newer revision", True, marks=pytest.mark.nightly),
        pytest.param("s3", "a withdrawal", False, marks=pytest.mark.nightly),
    ],
)
def test_another_publisher_between_any_two_requests(request, kind, other, listed):
    assert judge_each_place(request, kind, [other], listed) > 8


@pytest.mark.slow
@pytest.mark.parametrize(
    ("others", "apart"),
    [
        (("a newer revision", "a withdrawal"), 43),
        *(pytest.param(two, 3, marks=pytest.mark.nightly) for two in permutations(OTHERS, 2)),
    ],
    ids=str,
)
def test_two_others_at_any_two_requests(request, others, apart):
    assert judge_each_place(request, "memory", others, True, apart) > 8


def put_without_condition(turn, data):
    turn._store.filesystem.pipe_file(turn._store.path("catalogue.json"), data)


PUBLICATION = import_module("optstream.catalogue.publication")
TWINS = {
    "a sweep that spares nothing": (PUBLICATION, "_rank_of", lambda *_: (), "a newer revision", True),
    # so that nobody overtakes the publisher of the day
    "a withdrawal that leaves the catalogue": (
        PUBLICATION, "_relist", lambda *given: given[1], "a withdrawal", False
    ),
    "a replacement without its condition": (
        ObjectTransaction, "replace_catalogue", put_without_condition, "another day", True
    ),
}  # fmt: skip


@pytest.mark.parametrize(("owner", "broken", "twin", "other", "listed"), TWINS.values(), ids=TWINS)
def test_a_broken_twin_is_caught(request, monkeypatch, owner, broken, twin, other, listed):
    monkeypatch.setattr(owner, broken, twin)
    with pytest.raises((AssertionError, PublicationError), match=r"missing|not listed|assert"):
        judge_each_place(request, "memory", [other], listed)


def test_a_publisher_that_the_ledger_gave_up_meanwhile_is_not_listed(in_store):
    """The withdrawal of a day that was never listed overtakes who is publishing it."""
    dead = []

    def head_after(_known):
        if dead:
            raise LedgerError("void")
        # the ledger is updated right after the query
        dead.append(True)
        assert take_back(in_store.name, last_revision=1).entry is None
        return "h1"

    with pytest.raises(LedgerError, match="void"):
        put(in_store.name, DAY, head=head_after)
    assert read_catalogue(in_store.name).entries == ()
    assert read_published(in_store.name).is_empty()
    take_back(in_store.name, last_revision=1)
    assert check_files(in_store.name) == []
    put(in_store.name, NEXT)
    assert days_in(in_store.name) == [NEXT]


def overwrite(store, name, data, _tag=None):
    store.filesystem.pipe_file(store.path(name), data)
    return True


def overwrite_by_bare_tags(store, *given):
    return store.bare_tags and overwrite(store, *given)


def be_slower(*_):
    return False


def odd(kind=MemoryStore, **ways):
    return type("Odd", (kind,), ways)


IGNORED = "does not refuse a put whose condition fails.*use a store"
OVERTAKEN = "others replaced it every time"
REFUSED = {
    "it ignores all conditions": (odd(put_new=overwrite, put_instead=overwrite), IGNORED),
    "it ignores If-Match": (odd(put_instead=overwrite), IGNORED),
    "it ignores If-None-Match": (odd(put_new=overwrite), IGNORED),
    "it has no conditions": (Store, "no put here that fails.*local folder"),
    "another was always faster": (odd(put_instead=be_slower), OVERTAKEN),
    "it takes wrong tags without quotes": (odd(Literal, put_instead=overwrite_by_bare_tags), OVERTAKEN),
}


@pytest.mark.parametrize(("kind", "rule"), REFUSED.values(), ids=REFUSED)
def test_a_store_that_cannot_keep_publishers_apart_is_read_and_never_published_to(monkeypatch, kind, rule):
    folder, empty = memory_folder(), memory_folder()
    put(folder.name, DAY)
    before = folder.files()
    monkeypatch.setitem(KINDS_OF_STORES, "memory", kind)
    with pytest.raises(PublicationError, match=rule):
        put(folder.name, NEXT)
    assert days_in(folder.name) == [DAY]
    if rule != OVERTAKEN:
        assert folder.files() == before
        with pytest.raises(PublicationError, match=rule):
            put(empty.name, DAY)
        assert empty.files() == {}


class Fleeting(MemoryStore):
    """A store in which another's file of the same name is gone again when it is looked at."""

    refused: ClassVar[list[str]] = []

    def put_new(self, name, data):
        if name.startswith("data/") and name not in self.refused:
            self.refused.append(name)
            return False
        return super().put_new(name, data)


@pytest.mark.parametrize("kind", [Literal, Fleeting])
def test_a_store_of_its_own_ways_is_published_to(monkeypatch, kind):
    folder = memory_folder()
    monkeypatch.setitem(KINDS_OF_STORES, "memory", kind)
    put(folder.name, DAY)
    put(folder.name, NEXT)
    take_back(folder.name, last_revision=2)
    assert days_in(folder.name) == [NEXT]
    assert check_files(folder.name) == []
