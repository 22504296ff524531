"""The page of the published folder: replaced whole, never by an older one, gone with a day that it showed."""

from datetime import timedelta
from functools import partial

from optstream.catalogue import (
    PAGE,
    check_files,
    digest_of,
    read_catalogue,
    read_published,
    replace_page,
)
from optstream.catalogue.backends.object_store import ObjectTransaction
from optstream.catalogue.page import BLANK, MARKER, put_curves
from tests.optstream.catalogue.folders import DAY, NEXT, take_back


def made(_place, catalogue):
    """A page that names its days."""
    days = " ".join(str(entry.period) for entry in catalogue.entries if not entry.withdrawn)
    return f'<meta name="{MARKER}" content="{digest_of(catalogue)}">{days}'.encode()


def test_a_page_is_put_and_is_no_finding_and_no_data(published, put):
    put(published.name, DAY)
    rows = read_published(published.name)
    assert replace_page(published.name, made)
    assert published.read(PAGE) == made(None, read_catalogue(published.name))
    assert check_files(published.name) == []
    assert read_published(published.name).equals(rows)
    assert not replace_page(published.name, made), "the same page is not written twice"


def with_curves(folder, place, catalogue):
    """A page that loads one file of figures a day."""
    days = [str(entry.period).encode() for entry in catalogue.entries if not entry.withdrawn]
    named = b"".join(f'"curves/{digest}.bin"'.encode() for digest in put_curves(folder, days))
    return made(place, catalogue) + named


def curves_in(published):
    return {name: published.read(name) for name in published.files() if name.startswith("curves/")}


def test_the_figures_of_a_page_go_with_it_and_are_no_strays(published, put):
    """They are there as long as the page names them, and one of a withdrawn day is gone with the page."""
    put(published.name, DAY)
    put(published.name, NEXT)
    replace_page(published.name, partial(with_curves, published.name))
    assert sorted(curves_in(published).values()) == [b"2016-02-01", b"2016-02-02"]
    assert check_files(published.name) == []
    take_back(published.name, NEXT, head="withdrawn")
    assert curves_in(published) == {}
    replace_page(published.name, partial(with_curves, published.name))
    assert list(curves_in(published).values()) == [b"2016-02-01"]
    replace_page(published.name, made)
    assert curves_in(published) == {}, "what the page before named goes"
    assert check_files(published.name) == []


def test_figures_that_are_lost_altered_or_of_no_page_are_named(published, put):
    put(published.name, DAY)
    replace_page(published.name, partial(with_curves, published.name))
    (name,) = curves_in(published)
    published.write(name, b"something else")
    stray = f"curves/{'0' * 64}.bin"
    published.write(stray, b"a stray")
    lines = check_files(published.name)
    assert [line.split()[0] for line in lines] == [name, f"{stray!r}"]


def test_figures_that_a_crash_left_are_removed_by_the_next_page(published, put):
    """In an object store too: nothing else ever did."""
    put(published.name, DAY)
    put_curves(published.name, [b"of a run that died"])
    replace_page(published.name, partial(with_curves, published.name))
    assert list(curves_in(published).values()) == [b"2016-02-01"]
    put_curves(published.name, [b"of another"])
    assert not replace_page(published.name, partial(with_curves, published.name))
    assert check_files(published.name) == []


def test_figures_of_a_page_that_came_meanwhile_are_there_again(in_store, put, monkeypatch):
    """Between listing and removal another run puts its page; the removal takes figures that it loads."""
    put(in_store.name, DAY)
    put_curves(in_store.name, [b"2016-02-02"])  # of a run that is about to put its page
    real, raced = ObjectTransaction.remove, []

    def racing(transaction, folder, names):
        if not raced:
            raced.append(names)
            put(in_store.name, NEXT)
            replace_page(in_store.name, partial(with_curves, in_store.name))
        real(transaction, folder, names)

    monkeypatch.setattr(ObjectTransaction, "remove", racing)
    replace_page(in_store.name, partial(with_curves, in_store.name))
    assert raced
    assert sorted(curves_in(in_store).values()) == [b"2016-02-01", b"2016-02-02"]
    assert check_files(in_store.name) == []


def test_a_page_whose_figures_are_gone_is_made_again_not_put(published, put):
    """Between making and putting another page may have removed them."""
    put(published.name, DAY)
    calls = []

    def torn(place, catalogue):
        calls.append(1)
        page = with_curves(published.name, place, catalogue)
        if len(calls) == 1:
            replace_page(published.name, made)
            take_back(published.name, head="withdrawn")
            put(published.name, NEXT)
        return page

    replace_page(published.name, torn)
    assert len(calls) == 2
    assert list(curves_in(published).values()) == [b"2016-02-02"]
    assert check_files(published.name) == []


def test_the_next_publication_makes_it_old_and_the_next_page_new(published, put):
    put(published.name, DAY)
    replace_page(published.name, made)
    put(published.name, NEXT)
    (line,) = check_files(published.name)
    assert line == "index.html is not of the days that catalogue.json lists; `optstream report` makes it anew"
    assert replace_page(published.name, made)
    assert check_files(published.name) == []


def test_a_withdrawal_takes_the_page_away_with_the_day(published, put_all):
    put_all(published.name, DAY, NEXT)
    replace_page(published.name, made)
    take_back(published.name, last_revision=1)
    assert published.read(PAGE) == BLANK
    assert str(DAY).encode() not in published.read(PAGE)
    assert "`optstream report`" in " ".join(check_files(published.name))
    assert replace_page(published.name, made)
    assert str(DAY).encode() not in published.read(PAGE)
    before = published.read(PAGE)
    take_back(published.name, head="h3", last_revision=1)
    if not published.in_store:  # there a withdrawal always replaces the catalogue
        assert published.read(PAGE) == before, "a page without the day stays"


def test_one_that_is_overtaken_while_it_is_made_is_made_again(published, put):
    put(published.name, DAY)
    calls = []

    def slow(place, catalogue):
        calls.append(len(catalogue.entries))
        if len(calls) == 1:
            put(published.name, NEXT)
            replace_page(published.name, made)
        return made(place, catalogue)

    replace_page(published.name, slow)
    assert calls == [1, 2]
    assert str(NEXT).encode() in published.read(PAGE)
    assert check_files(published.name) == []


def test_an_older_page_never_takes_a_newer_one_s_place_in_a_store(in_store, put, monkeypatch):
    """Between look and put another publishes, and puts its page: the put is refused."""
    from optstream.catalogue import page as module

    put(in_store.name, DAY)
    replace_page(in_store.name, made)
    put(in_store.name, NEXT)
    real, raced = module.find_catalogue, []

    def racing(where):
        found = real(where)
        if hasattr(where, "mark") and not raced:
            raced.append(True)
            put(in_store.name, NEXT + timedelta(days=1))
            replace_page(in_store.name, made)
        return found

    seen = []
    real_put = ObjectTransaction.replace_marked

    def watched(turn, name, data, mark):
        real_put(turn, name, data, mark)
        seen.append(in_store.read(PAGE).count(b"2016-"))

    monkeypatch.setattr(ObjectTransaction, "replace_marked", watched)
    monkeypatch.setattr(module, "find_catalogue", racing)
    replace_page(in_store.name, made)
    assert raced
    assert seen == sorted(seen), "days are only ever added"
    assert str(NEXT + timedelta(days=1)).encode() in in_store.read(PAGE)
    assert check_files(in_store.name) == []
