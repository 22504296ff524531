"""Releases and pages are put, read, replaced and withdrawn, in every kind of place."""

import fcntl
import json
import os
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial

import pytest

import optstream
from optstream.catalogue import check_files, find_catalogue, read_catalogue, read_published, stage
from optstream.catalogue.about import About, put_about
from optstream.catalogue.backends import ObjectTransaction
from optstream.catalogue.index import catalogue_time
from optstream.catalogue.layout import CATALOGUE, LARGEST, LOCK, PAGE, signature_file
from optstream.catalogue.metadata import BLANK, replace_page
from optstream.catalogue.publication import publish, withdraw
from optstream.catalogue.rows import schema
from optstream.catalogue.standard_errors import read_sum
from optstream.errors import LedgerError, ParameterError, PublicationError
from tests.optstream.catalogue.conftest import days_in, make_rows, make_statement, put, put_days, take_back
from tests.optstream.catalogue.folders import DAY, KINDS, NEXT, SIGNER, STREAM, local_folder, make_page

EVERYWHERE = pytest.mark.parametrize("published", KINDS, indirect=True)
"""By day too: what is put, replaced, moved and removed. The rest is of the catalogue, whatever its place."""
FIVE = [DAY + timedelta(days=number) for number in range(5)]


@EVERYWHERE
def test_the_layout_and_its_bytes_are_the_same_everywhere(published, tmp_path):
    entry = put(published.name, DAY).entry
    again = put(published.name, DAY, head="h2")
    assert (again.changed, again.entry) == (False, entry)
    put(tmp_path / "local", DAY)
    there = local_folder(tmp_path / "local").files()
    assert published.files() == there
    assert sorted(there) == [
        "catalogue.json",
        f"data/date=2016-02-01/release-{entry.file_hash}.parquet",
        f"manifests/release-{entry.file_hash}.json",
    ]
    assert json.loads(there[entry.manifest]) == {
        "format": "optstream.manifest/1",
        "file": entry.file,
        "file_hash": entry.file_hash,
        "rows_hash": entry.rows_hash,
        "statement": make_statement(DAY).to_json(),
    }


def test_what_was_published_is_read(published):
    put(published.name, NEXT, head="later")
    put(published.name, DAY, head="earlier")
    frame = read_published(published.name, verify=True)
    assert dict(frame.schema) == schema("load_mw")
    assert frame["date"].to_list() == [DAY] * 12 + [NEXT] * 12
    assert frame["load_mw"].sum() == 2 * make_rows(DAY)["load_mw"].sum()
    assert optstream.read_published(str(published.name)).equals(frame)
    assert check_files(published.name) == []
    assert read_catalogue(published.name).ledger_heads == {"later", "earlier"}
    assert put_days(published.name) == ()


@EVERYWHERE
def test_a_place_without_a_catalogue_and_one_that_is_a_file(published, tmp_path):
    assert find_catalogue(published.name) is None
    sum_of_a_day = partial(read_sum, nodes=["1"], first=DAY, last=DAY)
    for reader in (read_published, read_catalogue, check_files, sum_of_a_day):
        with pytest.raises(PublicationError, match=r"there is no catalogue\.json in it; check"):
            reader(published.name)
    (tmp_path / "taken").write_text("a file")
    with pytest.raises(PublicationError, match=r"cannot be (written|read)"):
        put(tmp_path / "taken", DAY)


@pytest.mark.parametrize("newer", [(1, 2), (2, 1)])
def test_a_newer_vintage_or_revision_takes_the_place(published, newer):
    old = put(published.name, DAY).entry
    new = put(published.name, DAY, *newer, head="h2").entry
    assert read_catalogue(published.name).entries == (new,)
    assert read_catalogue(published.name).ledger_head == "h2"
    kept = published.files()
    assert old.file not in kept
    assert old.file.replace("data/", "superseded/", 1) in kept
    assert old.manifest in kept
    with pytest.raises(PublicationError, match="earlier"):
        put(published.name, DAY)
    assert published.files() == kept
    assert check_files(published.name) == []


def refuse(*known):
    raise LedgerError(f"does not contain {known[-1]}")


def another_file(name):
    staged = replace(stage(make_rows(NEXT), make_statement(NEXT)), attachments={"0" * 64: b"another"})
    publish(name, [staged], lambda _: "h2")


@pytest.mark.parametrize(
    ("work", "rule"),
    [
        (lambda name: put_days(name, DAY + timedelta(days=9), DAY, shift=1.0), "other bytes"),
        (lambda name: put_days(name, DAY, DAY), "two releases of one period"),
        (lambda name: put(name, DAY, vintage=2, head=refuse), "does not contain h1"),
        (lambda name: put(name, DAY, vintage=2, head="a/b"), "ledger_head"),
        (lambda name: put(name, DAY, stream="another"), "belongs to another stream"),
        (lambda name: put(name, NEXT, simulated=True), "simulated"),
        (another_file, "differ from their hashes in its statement"),
        (lambda name: withdraw(name, DAY, lambda *_: "h2", stream="another"), "belongs to another stream"),
        (lambda name: withdraw(name, DAY, lambda *_: "", stream=STREAM), "ledger_head"),
        (lambda name: withdraw(name, DAY, refuse, stream=STREAM), "does not contain h1"),
    ],
)
def test_what_is_refused_changes_nothing(published, work, rule):
    for revision in (0, 1):
        put(published.name, DAY, revision)
    before = published.files()
    with pytest.raises((LedgerError, ParameterError, PublicationError), match=rule):
        work(published.name)
    assert published.files() == before


@EVERYWHERE
def test_an_existing_name_is_never_overwritten_and_a_lost_file_is_put_back(published):
    entry = put(published.name, DAY).entry
    published.write(entry.file, b"tampered")
    with pytest.raises(PublicationError, match="never overwritten"):
        put(published.name, DAY)
    assert published.read(entry.file) == b"tampered"
    published.remove(entry.file)
    with pytest.raises(PublicationError, match=f"{entry.file} is missing; .*`optstream publish {DAY}`"):
        read_published(published.name)
    (line,) = check_files(published.name)
    assert f"{entry.file} is missing" in line
    assert put(published.name, DAY).changed
    assert check_files(published.name) == []


@EVERYWHERE
def test_a_withdrawn_day_is_gone_and_says_what_it_cost(published):
    put(published.name, DAY)
    last = put(published.name, DAY, revision=2).entry
    put(published.name, NEXT)
    done = take_back(published.name)
    assert done.changed
    assert done.in_words().startswith("withdrawn 2016-02-01 revision 2: its files are deleted")
    assert days_in(published.name) == [NEXT]
    assert not [name for name in published.files() if "date=2016-02-01" in name]
    tombstone = read_catalogue(published.name).entry(DAY)
    assert tombstone == done.entry
    assert (tombstone.withdrawn, tombstone.file_hash, tombstone.ledger_head) == (True, last.file_hash, "h2")
    assert json.loads(published.read(tombstone.manifest))["statement"]["epsilon_own"] == "2/3"
    assert check_files(published.name) == []
    before = published.files()
    again = take_back(published.name)
    assert not again.changed
    assert "withdrawn already" in again.in_words()
    assert published.files() == before
    for revision, vintage in ((1, 1), (2, 2)):
        with pytest.raises(PublicationError, match="was withdrawn; only a higher revision"):
            put(published.name, DAY, revision, vintage, head="h3")
    put(published.name, DAY, revision=3, head="h4")
    assert days_in(published.name) == [DAY, NEXT]
    assert check_files(published.name) == []


def test_once_more_under_a_later_head_only_a_stores_catalogue_is_replaced(published):
    """There somebody may be publishing the day, and has to meet a conflict; a folder has its lock."""
    put(published.name, DAY)
    take_back(published.name)
    before, known = published.files(), read_catalogue(published.name)
    again = take_back(published.name, head="h3")
    assert (again.changed, again.entry.ledger_head) == (False, "h2")
    found = read_catalogue(published.name)
    assert found.entries == known.entries
    assert found.ledger_head == ("h3" if published.in_store else "h2")
    changed = {name for name, data in published.files().items() if before.get(name) != data}
    assert changed == ({"catalogue.json"} if published.in_store else set())


def test_heads_stand_in_the_ledgers_order(tmp_path):
    """The list is passed to the ledger under the lock, and the new head is read after the old one."""
    heard = []

    def under_the_lock(*known):
        with (tmp_path / LOCK).open("rb") as lock, pytest.raises(BlockingIOError):
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        heard.append(known)
        return f"h{len(heard)}"

    def tell(entry, known):
        return under_the_lock(entry and entry.revision, known)

    def taken_back():
        return withdraw(tmp_path, DAY, tell, stream=STREAM)

    done = taken_back()
    assert (done.entry, done.changed) == (None, False)
    assert "given up before it was published" in done.in_words()
    assert not (tmp_path / "catalogue.json").exists()
    put(tmp_path, NEXT, head=under_the_lock)
    assert taken_back().entry is None
    for vintage in (1, 2):
        put(tmp_path, DAY, vintage=vintage, head=under_the_lock)
    assert taken_back().changed
    assert heard == [(None, None), (None,), (None, "h2"), ("h2",), ("h4",), (1, "h5")]
    assert read_catalogue(tmp_path).ledger_head == "h6"


def test_cut_altered_and_stray_files_are_found(published):
    cut, altered, said, superseded = (put(published.name, day).entry for day in FIVE[:4])
    put(published.name, FIVE[3], revision=2)
    put(published.name, FIVE[4])
    published.write(cut.file, published.read(cut.file)[:-20])
    whole = published.read(altered.file)
    published.write(altered.file, whole[:40] + bytes([whole[40] ^ 1]) + whole[41:])
    published.write(said.manifest, published.read(said.manifest).replace(b'plan": "1"', b'plan": "1/2"'))
    published.write("data/stray.parquet", b"")
    published.write(superseded.file.replace("data/", "superseded/", 1), b"")
    *problems, stray, replaced = check_files(published.name)
    assert [line.split(":")[0] for line in problems] == [str(day) for day in FIVE[:3]]
    assert "stray.parquet" in stray
    assert f"{superseded.file_hash}.parquet' differs from the hash in its name; restore" in replaced


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
    for rule, line in zip(("says other", "not listed", "withdrawn"), check_files(tmp_path), strict=True):
        assert rule in line
    manifest.unlink()
    assert "is missing; a withdrawn day keeps it" in check_files(tmp_path)[0]
    manifest.write_text(text)
    assert take_back(tmp_path).changed
    assert check_files(tmp_path) == []


def test_a_store_without_a_catalogue_asks_for_the_column_before_the_ledger_is_changed(in_store):
    asked = []
    with pytest.raises(PublicationError, match="name its value column"):
        withdraw(in_store.name, DAY, lambda *known: asked.append(known) or "h1", stream=STREAM)
    assert asked == []


def test_a_page_is_put_gets_old_with_the_next_release_and_goes_with_a_withdrawn_day(published, monkeypatch):
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
    # page and catalogue have a largest size
    replace_page(published.name, make_page)
    monkeypatch.setitem(LARGEST, PAGE, 10)
    (line,) = check_files(published.name)
    assert line.startswith("index.html is larger than 10 bytes")
    monkeypatch.setitem(LARGEST, CATALOGUE, 100)
    with pytest.raises(PublicationError, match="larger than 100 bytes"):
        read_catalogue(published.name)


def test_answers_and_figures_of_earlier_versions_go_with_a_withdrawn_day_or_the_next_page(published):
    """Answers reach the day, and nothing makes them again."""
    put(published.name, DAY)
    put(published.name, NEXT)
    for name in ("questions.json", *(f"questions/date={day}/answers-1.parquet" for day in (DAY, NEXT))):
        published.write(name, b"{}")
    assert check_files(published.name) == []
    for come in (lambda: replace_page(published.name, make_page), lambda: take_back(published.name, NEXT)):
        published.write(f"curves/{'0' * 64}.bin", b"figures")
        come()
        assert not [name for name in published.files() if name.startswith("curves/")]
    assert not [name for name in published.files() if name.startswith("questions")]
    assert published.in_store or not published.filesystem.exists(f"{published.root}/questions")


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


def times(folder):
    """The modification time of everything, also of what only a copy of the whole folder carries along."""
    return {
        path.relative_to(folder).as_posix(): datetime.fromtimestamp(path.stat().st_mtime, UTC)
        for path in [folder, *folder.rglob("*")]
    }


def of_a_run(folder):
    return {name for name, time in times(folder).items() if time.year > DAY.year}


@pytest.mark.parametrize("name", ["catalogue.json", "."])
def test_what_another_owner_made_keeps_its_time_and_stops_nothing(tmp_path, monkeypatch, name):
    real = os.utime

    def refuse(path, times=None, **rest):
        if name == ("." if isinstance(path, int) else path):
            raise PermissionError(1, "Operation not permitted")
        real(path, times, **rest)

    monkeypatch.setattr("os.utime", refuse)
    entry = put(tmp_path, DAY).entry
    assert times(tmp_path)[entry.file] == datetime(2016, 2, 2, tzinfo=UTC)


@pytest.mark.parametrize("signer", [None, SIGNER], ids=["unsigned", "signed"])
def test_no_file_has_the_time_of_a_run_and_the_catalogue_s_rises_with_every_change(tmp_path, signer):
    """For caches; a copy carries all along, also lock, half-written files, superseded ones and signatures."""
    seen = [datetime.min.replace(tzinfo=UTC)]
    for work in (
        lambda: put(tmp_path, DAY, revision=0, vintage=0, signer=signer),
        lambda: put(tmp_path, DAY, revision=0, vintage=1, signer=signer),
        lambda: put(tmp_path, DAY - timedelta(days=30), signer=signer),
        lambda: put(tmp_path, DAY, revision=1, vintage=1, signer=signer),
        lambda: put(tmp_path, NEXT, signer=signer),
        lambda: take_back(tmp_path, signer=signer),
    ):
        work()
        assert of_a_run(tmp_path) == set()
        seen.append(times(tmp_path)["catalogue.json"])
        assert seen[-1] == catalogue_time(read_catalogue(tmp_path))
        replace_page(tmp_path, make_page)
        assert of_a_run(tmp_path) == set()
    assert seen == sorted(set(seen))
    if signer:
        # of a file whose signature was written just before a crash, putting it again sets the time
        about = About(publisher="Example Grid")
        put_about(tmp_path, about, signer)
        (tmp_path / signature_file(about.to_bytes(), signer.name)).touch()
        before = of_a_run(tmp_path)
        put_about(tmp_path, about, signer)
        assert of_a_run(tmp_path) < before
