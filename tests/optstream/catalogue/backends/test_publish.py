"""Releases are read, whole, from every kind of place: local, file://, memory:// and S3."""

import fcntl
import json
from dataclasses import replace
from datetime import timedelta
from functools import partial

import pytest

import optstream
from optstream.catalogue import (
    check_files,
    find_catalogue,
    publish,
    read_catalogue,
    read_published,
    replace_page,
    stage,
    withdraw,
)
from optstream.catalogue.layout import CATALOGUE, LARGEST, LOCK, PAGE
from optstream.catalogue.rows import schema
from optstream.catalogue.standard_errors import read_sum
from optstream.errors import LedgerError, ParameterError, PublicationError
from tests.optstream.catalogue.conftest import make_rows, make_statement, put, put_days
from tests.optstream.catalogue.folders import (
    DAY,
    KINDS,
    NEXT,
    STREAM,
    answer_head,
    days_in,
    make_page,
    take_back,
)

EVERYWHERE = pytest.mark.parametrize("published", KINDS, indirect=True)
"""By day too: what is put, replaced, moved and removed. The rest is of the catalogue, whatever its place."""
FIVE = [DAY + timedelta(days=number) for number in range(5)]


@EVERYWHERE
def test_the_layout_and_its_bytes_are_the_same_everywhere(published, tmp_path):
    entry = put(published.name, DAY).entry
    again = put(published.name, DAY, head="h2")
    assert (again.changed, again.entry) == (False, entry)
    put(tmp_path / "local", DAY)
    there = {
        path.relative_to(tmp_path / "local").as_posix(): path.read_bytes()
        for path in (tmp_path / "local").rglob("*")
        if path.is_file() and path.name != ".lock"
    }
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
def test_a_place_without_a_catalogue(published):
    assert find_catalogue(published.name) is None
    for reader in (
        read_published,
        read_catalogue,
        check_files,
        partial(read_sum, nodes=["1"], first=DAY, last=DAY),
    ):
        with pytest.raises(
            PublicationError, match=r"no published folder: there is no catalogue\.json in it; check"
        ):
            reader(published.name)


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


def refuse(known):
    raise LedgerError(f"does not contain {known}")


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
        (lambda name: withdraw(name, DAY, answer_head("h2"), stream="another"), "belongs to another stream"),
        (lambda name: withdraw(name, DAY, answer_head(""), stream=STREAM), "ledger_head"),
        (
            lambda name: withdraw(name, DAY, lambda _, known: refuse(known), stream=STREAM),
            "does not contain h1",
        ),
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
def test_an_existing_name_is_never_overwritten(published):
    entry = put(published.name, DAY).entry
    published.write(entry.file, b"tampered")
    with pytest.raises(PublicationError, match="never overwritten"):
        put(published.name, DAY)
    assert published.read(entry.file) == b"tampered"


def test_a_lost_file_is_put_back(published):
    entry = put(published.name, DAY).entry
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
    manifest = json.loads(published.read(tombstone.manifest))
    assert manifest["statement"]["epsilon_own"] == "2/3"
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


def test_catalogue_and_page_have_a_largest_size(published, monkeypatch):
    put(published.name, DAY)
    replace_page(published.name, make_page)
    monkeypatch.setitem(LARGEST, PAGE, 10)
    (line,) = check_files(published.name)
    assert line.startswith("index.html is larger than 10 bytes")
    monkeypatch.setitem(LARGEST, CATALOGUE, 100)
    with pytest.raises(PublicationError, match="larger than 100 bytes"):
        read_catalogue(published.name)


def test_cut_altered_and_stray_files_are_found(published):
    cut, altered, said = (put(published.name, day).entry for day in FIVE[:3])
    put(published.name, FIVE[4])
    published.write(cut.file, published.read(cut.file)[:-20])
    whole = published.read(altered.file)
    published.write(altered.file, whole[:40] + bytes([whole[40] ^ 1]) + whole[41:])
    published.write(said.manifest, published.read(said.manifest).replace(b'plan": "1"', b'plan": "1/2"'))
    published.write("data/stray.parquet", b"")
    problems = check_files(published.name)
    assert [line.split(":")[0] for line in problems[:3]] == [str(day) for day in FIVE[:3]]
    assert "stray.parquet" in problems[3]
    assert len(problems) == 4


def test_what_cannot_be_written_is_an_error_of_ours(tmp_path):
    (tmp_path / "published").write_text("a file")
    with pytest.raises(PublicationError, match=r"cannot be (written|read)"):
        put(tmp_path / "published", DAY)
