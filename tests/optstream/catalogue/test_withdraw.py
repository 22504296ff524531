"""A withdrawn day is gone, and so is the page that showed it."""

from datetime import timedelta

import pytest

from optstream.catalogue import PAGE, check_files, read_catalogue, read_published, replace_page, withdraw
from optstream.catalogue.backends import ObjectTransaction
from optstream.catalogue.metadata import BLANK
from optstream.errors import PublicationError
from tests.optstream.catalogue.conftest import put
from tests.optstream.catalogue.folders import DAY, NEXT, STREAM, make_page, take_back


def test_what_is_left_of_a_withdrawn_day_is_found(tmp_path):
    put(tmp_path, DAY)
    entry = put(tmp_path, DAY, revision=2).entry
    data = (tmp_path / entry.file).read_bytes()
    tombstone = take_back(tmp_path).entry
    for place in ("data", "superseded"):
        path = tmp_path / entry.file.replace("data", place, 1)
        path.parent.mkdir(parents=True)
        path.write_bytes(data)
    manifest = tmp_path / tombstone.manifest
    text = manifest.read_text()
    manifest.write_text(text.replace('"revision": 2', '"revision": 3'))
    problems = check_files(tmp_path)
    for rule, line in zip(("says other", "not listed", "withdrawn"), problems, strict=True):
        assert rule in line
    manifest.unlink()
    assert "is missing; a withdrawn day keeps it" in check_files(tmp_path)[0]
    manifest.write_text(text)
    assert take_back(tmp_path).changed
    assert check_files(tmp_path) == []


def test_a_superseded_file_is_what_its_name_says(tmp_path):
    put(tmp_path, DAY)
    put(tmp_path, DAY, revision=2)
    (path,) = (tmp_path / "superseded").rglob("*.parquet")
    path.write_bytes(path.read_bytes()[:-1])
    (problem,) = check_files(tmp_path)
    assert f"{path.name}' differs from the hash in its name; restore" in problem


def test_a_store_without_a_catalogue_asks_for_the_column_before_the_ledger_is_changed(in_store):
    asked = []
    with pytest.raises(PublicationError, match="name its value column"):
        withdraw(in_store.name, DAY, lambda *known: asked.append(known) or "h1", stream=STREAM)
    assert asked == []


def test_answers_of_an_older_version_go_with_a_withdrawn_day(tmp_path):
    """They reach the day, and nothing makes them again."""
    put(tmp_path, DAY)
    (tmp_path / "questions.json").write_text("{}")
    for day in (DAY, NEXT):
        folder = tmp_path / "questions" / f"date={day}"
        folder.mkdir(parents=True)
        (folder / "answers-1.parquet").write_bytes(b"sums")
    assert check_files(tmp_path) == []
    take_back(tmp_path)
    assert not (tmp_path / "questions.json").exists()
    assert not (tmp_path / "questions").exists()


def test_a_page_is_put_gets_old_with_the_next_publication_and_goes_with_a_withdrawn_day(published):
    put(published.name, DAY)
    rows = read_published(published.name)
    assert replace_page(published.name, make_page)
    assert published.read(PAGE) == make_page(None, read_catalogue(published.name))
    assert check_files(published.name) == []
    assert read_published(published.name).equals(rows)
    assert not replace_page(published.name, make_page), "the same page is not written twice"
    put(published.name, NEXT)
    (line,) = check_files(published.name)
    assert line == "index.html is not of the days that catalogue.json lists; `optstream report` rebuilds it"
    assert replace_page(published.name, make_page)
    assert check_files(published.name) == []
    take_back(published.name, last_revision=1)
    assert published.read(PAGE) == BLANK
    assert "`optstream report`" in " ".join(check_files(published.name))
    assert replace_page(published.name, make_page)
    before = published.read(PAGE)
    assert str(DAY).encode() not in before
    take_back(published.name, head="h3", last_revision=1)
    if not published.in_store:  # there a withdrawal always replaces the catalogue
        assert published.read(PAGE) == before, "a page without the day stays"


def test_figures_of_an_earlier_version_go_with_the_next_page_or_a_withdrawal(published):
    put(published.name, DAY)
    put(published.name, NEXT)
    for come in (lambda: replace_page(published.name, make_page), lambda: take_back(published.name, NEXT)):
        published.write(f"curves/{'0' * 64}.bin", b"figures")
        come()
        assert not [name for name in published.files() if name.startswith("curves/")]


def test_one_that_is_overtaken_while_it_is_made_is_made_again(published):
    put(published.name, DAY)
    calls = []

    def slow(place, catalogue):
        calls.append(len(catalogue.entries))
        if len(calls) == 1:
            put(published.name, NEXT)
            replace_page(published.name, make_page)
        return make_page(place, catalogue)

    replace_page(published.name, slow)
    assert calls == [1, 2]
    assert str(NEXT).encode() in published.read(PAGE)
    assert check_files(published.name) == []


def test_an_older_page_never_takes_a_newer_one_s_place_in_a_store(in_store, monkeypatch):
    """Between look and put another publishes, and puts its page: the put is refused."""
    from optstream.catalogue import metadata as module

    put(in_store.name, DAY)
    replace_page(in_store.name, make_page)
    put(in_store.name, NEXT)
    real, raced = module.find_catalogue, []

    def racing(where):
        found = real(where)
        if hasattr(where, "mark") and not raced:
            raced.append(True)
            put(in_store.name, NEXT + timedelta(days=1))
            replace_page(in_store.name, make_page)
        return found

    seen = []
    real_put = ObjectTransaction.replace_marked

    def watched(turn, name, data, mark):
        real_put(turn, name, data, mark)
        seen.append(in_store.read(PAGE).count(b"2016-"))

    monkeypatch.setattr(ObjectTransaction, "replace_marked", watched)
    monkeypatch.setattr(module, "find_catalogue", racing)
    replace_page(in_store.name, make_page)
    assert raced
    assert seen == sorted(seen), "days are only ever added"
    assert str(NEXT + timedelta(days=1)).encode() in in_store.read(PAGE)
    assert check_files(in_store.name) == []
