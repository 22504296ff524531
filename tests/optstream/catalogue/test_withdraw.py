"""Withdrawing: out of the catalogue and the folder, with a tombstone and a manifest that tell the cost."""

import fcntl

import pytest

from optstream.catalogue import check_files, read, withdraw
from optstream.errors import LedgerError, ParameterError, PublicationError
from tests.optstream.catalogue.folders import DAY, NEXT, STREAM, days_in, take_back, told


def test_bytes_that_a_dead_publisher_left_are_removed_too(tmp_path, put):
    entry = put(tmp_path, DAY).entry
    (tmp_path / ".incoming" / entry.file.rpartition("/")[2]).write_bytes(b"half of it")
    take_back(tmp_path)
    assert list((tmp_path / ".incoming").iterdir()) == []


@pytest.mark.parametrize(
    ("changes", "rule"),
    [
        ({"stream": "another"}, "belongs to another stream"),
        ({"tell_ledger": told("")}, "ledger_head"),
    ],
)
def test_what_was_not_meant_is_refused_and_changes_nothing(tmp_path, put, changes, rule):
    put(tmp_path, DAY)
    put(tmp_path, DAY, revision=2)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    meant = {"period": DAY, "tell_ledger": told("h2"), "stream": STREAM, **changes}
    with pytest.raises((ParameterError, PublicationError), match=rule):
        withdraw(tmp_path, **meant)
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


def test_the_ledger_is_told_under_the_lock_what_is_listed(tmp_path, put):
    heard = []

    def tell(entry, known):
        with (tmp_path / ".lock").open() as other, pytest.raises(BlockingIOError):
            fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
        heard.append((entry and entry.revision, known))
        return "h2"

    done = withdraw(tmp_path, DAY, tell, stream=STREAM)
    assert (done.entry, done.changed) == (None, False)
    assert "given up before it was published" in done.in_words()
    assert not (tmp_path / "catalogue.json").exists()
    put(tmp_path, NEXT, head="h1")
    assert withdraw(tmp_path, DAY, tell, stream=STREAM).entry is None
    put(tmp_path, DAY, head="h1")
    assert withdraw(tmp_path, DAY, tell, stream=STREAM).changed
    assert heard == [(None, None), (None, "h1"), (1, "h1")]


def test_a_ledger_that_refuses_leaves_the_day_where_it_is(tmp_path, put):
    put(tmp_path, DAY)

    def tell(_entry, _known):
        raise LedgerError("no")

    with pytest.raises(LedgerError):
        withdraw(tmp_path, DAY, tell, stream=STREAM)
    assert days_in(tmp_path) == [DAY]


def test_only_a_higher_revision_takes_the_tombstones_place(tmp_path, put):
    put(tmp_path, DAY)
    take_back(tmp_path)
    for vintage in (1, 2):
        with pytest.raises(PublicationError, match="was withdrawn; only a higher revision"):
            put(tmp_path, DAY, vintage=vintage, head="h3")
    assert days_in(tmp_path) == []
    put(tmp_path, DAY, revision=2, head="h4")
    assert days_in(tmp_path) == [DAY]
    take_back(tmp_path, head="h5")
    assert days_in(tmp_path) == []
    assert check_files(tmp_path) == []


def test_what_is_left_of_a_withdrawn_day_is_found(tmp_path, put):
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


def test_a_superseded_file_is_what_its_name_says(tmp_path, put):
    put(tmp_path, DAY)
    put(tmp_path, DAY, revision=2)
    (path,) = (tmp_path / "superseded").rglob("*.parquet")
    path.write_bytes(path.read_bytes()[:-1])
    (problem,) = check_files(tmp_path)
    assert f"{path.name}' is not what its name says; restore" in problem


def test_a_reader_that_is_overtaken_leaves_the_day_out(tmp_path, put, monkeypatch):
    """The race, made certain: the withdrawal lands between the catalogue and its files."""
    put(tmp_path, DAY)
    put(tmp_path, NEXT)
    genuine, calls = read.read_catalogue, []

    def overtaken(folder):
        catalogue = genuine(folder)
        if not calls:
            calls.append(folder)
            take_back(tmp_path)
        return catalogue

    monkeypatch.setattr(read, "read_catalogue", overtaken)
    assert days_in(tmp_path) == [NEXT]


def test_a_store_without_a_catalogue_asks_for_the_column_before_the_ledger_is_told(in_store):
    asked = []
    with pytest.raises(PublicationError, match="name its value column"):
        withdraw(in_store.name, DAY, lambda *known: asked.append(known) or "h1", stream=STREAM)
    assert asked == []


def test_answers_of_an_older_version_go_with_a_withdrawn_day(tmp_path, put):
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
