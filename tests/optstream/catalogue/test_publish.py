"""Publishing: immutable files, one release a period, nothing lost."""

import fcntl
import json
import threading
from datetime import date, timedelta
from importlib import import_module

import pytest

from optstream.catalogue import check_files, publish, read_catalogue, read_published, stage
from optstream.catalogue.index import Catalogue
from optstream.catalogue.layout import LOCK
from optstream.errors import LedgerError, PublicationError

DAY = date(2016, 2, 1)


def files(folder):
    found = {
        path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()
    }
    return {name: data for name, data in found.items() if name != ".lock"}


def test_the_layout(tmp_path, put):
    entry = put(tmp_path / "a" / "published", DAY).entry
    assert sorted(files(tmp_path / "a" / "published")) == [
        "catalogue.json",
        f"data/date=2016-02-01/release-{entry.file_hash}.parquet",
        f"manifests/release-{entry.file_hash}.json",
    ]


def test_manifest_and_footer_state_the_same(tmp_path, put, statement):
    entry = put(tmp_path, DAY).entry
    manifest = json.loads((tmp_path / entry.manifest).read_text())
    assert manifest == {
        "format": "optstream.manifest/1",
        "file": entry.file,
        "file_hash": entry.file_hash,
        "rows_hash": entry.rows_hash,
        "statement": statement(DAY).to_document(),
    }
    assert check_files(tmp_path) == []


def test_published_files_can_be_read_by_others(tmp_path, put):
    """A temporary file's private mode must not reach the public zone."""
    entry = put(tmp_path, DAY).entry
    (tmp_path / "probe").touch()
    for name in (entry.file, entry.manifest, "catalogue.json"):
        assert (tmp_path / name).stat().st_mode == (tmp_path / "probe").stat().st_mode


def test_publishing_again_changes_nothing_and_says_so(tmp_path, put):
    first = put(tmp_path, DAY)
    before = files(tmp_path)
    again = put(tmp_path, DAY, head="h2")
    assert (first.changed, again.changed) == (True, False)
    assert again.entry == first.entry
    assert "nothing changed" in again.in_words()
    assert files(tmp_path) == before


def test_two_publishers_build_the_same_folder(tmp_path, put):
    for folder in (tmp_path / "one", tmp_path / "two"):
        put(folder, DAY)
        put(folder, DAY, vintage=2)
    assert files(tmp_path / "one") == files(tmp_path / "two")


@pytest.mark.parametrize("newer", [(1, 2), (2, 1)])
def test_a_newer_vintage_or_revision_takes_the_place(tmp_path, put, newer):
    old = put(tmp_path, DAY).entry
    new = put(tmp_path, DAY, *newer, head="h2").entry
    catalogue = read_catalogue(tmp_path)
    assert catalogue.entries == (new,)
    assert catalogue.ledger_head == "h2"
    assert not (tmp_path / old.file).exists()
    assert (tmp_path / old.file.replace("data/", "superseded/", 1)).exists()
    assert (tmp_path / old.manifest).exists()
    assert read_published(tmp_path)["vintage"].unique().to_list() == [newer[1]]
    with pytest.raises(PublicationError, match="earlier"):
        put(tmp_path, DAY)
    assert check_files(tmp_path) == []


def test_simulated_noise_is_refused(tmp_path, rows, statement):
    stated = statement(DAY, simulated=True)
    with pytest.raises(PublicationError, match="simulated"):
        publish(tmp_path, [(stage(rows(DAY), stated), stated)], lambda _: "h1")
    # nor can a true statement carry simulated bytes
    with pytest.raises(PublicationError, match="differs"):
        publish(tmp_path, [(stage(rows(DAY), stated), statement(DAY))], lambda _: "h1")
    assert files(tmp_path) == {}


def test_the_same_revision_with_other_values_is_refused(tmp_path, put):
    put(tmp_path, DAY)
    before = files(tmp_path)
    with pytest.raises(PublicationError, match="other bytes"):
        put(tmp_path, DAY, shift=1.0)
    assert files(tmp_path) == before


def test_an_existing_path_is_never_overwritten(tmp_path, put):
    path = tmp_path / put(tmp_path, DAY).entry.file
    path.write_bytes(b"tampered")
    with pytest.raises(PublicationError, match="never overwritten"):
        put(tmp_path, DAY)
    assert path.read_bytes() == b"tampered"


def test_a_lost_file_is_put_back(tmp_path, put):
    entry = put(tmp_path, DAY).entry
    (tmp_path / entry.file).unlink()
    assert put(tmp_path, DAY).changed
    assert check_files(tmp_path) == []


def test_a_folder_holds_one_stream(tmp_path, put, rows, statement):
    put(tmp_path, DAY)
    other = statement(DAY, stream="another")
    with pytest.raises(PublicationError, match="another stream"):
        publish(tmp_path, [(stage(rows(DAY), other), other)], lambda _: "h1")


def test_a_link_out_of_the_folder_is_not_followed(tmp_path, put):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "published").mkdir()
    (tmp_path / "published" / "data").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(PublicationError, match="outside"):
        put(tmp_path / "published", DAY)
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_what_cannot_be_written_is_an_error_of_ours(tmp_path, put):
    (tmp_path / "published").write_text("a file")
    with pytest.raises(PublicationError, match=r"cannot be (written|read)"):
        put(tmp_path / "published", DAY)


def test_a_bad_ledger_head_is_refused(tmp_path, put):
    with pytest.raises(PublicationError, match="ledger head"):
        put(tmp_path, DAY, head="a/b")


def test_the_ledger_is_asked_about_the_catalogues_head_in_its_lock(tmp_path, rows, statement):
    """The new head is read after the old one was found: so heads stand in the ledger's order."""
    asked = []

    def head_after(known):
        with (tmp_path / LOCK).open("rb") as lock, pytest.raises(BlockingIOError):
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        asked.append(known)
        return f"head {len(asked)}".replace(" ", "-")

    for vintage in (1, 2):
        stated = statement(DAY, 1, vintage)
        publish(tmp_path, [(stage(rows(DAY, 1, vintage), stated), stated)], head_after)
    assert asked == [None, "head-1"]
    assert read_catalogue(tmp_path).ledger_head == "head-2"


def test_a_ledger_that_does_not_know_the_catalogue_publishes_nothing(tmp_path, put, rows, statement):
    put(tmp_path, DAY)
    before, stated = files(tmp_path), statement(DAY, 1, 2)

    def head_after(known):
        raise LedgerError(f"does not contain {known}")

    with pytest.raises(LedgerError, match="does not contain h1"):
        publish(tmp_path, [(stage(rows(DAY, 1, 2), stated), stated)], head_after)
    assert files(tmp_path) == before


def test_a_withdrawn_period_waits_for_a_higher_revision(tmp_path, put):
    kept = put(tmp_path, DAY + timedelta(days=1)).entry
    entry = put(tmp_path, DAY).entry
    known = read_catalogue(tmp_path)
    tombstone = type(entry)(**{**entry.__dict__, "withdrawn": True})
    (tmp_path / "catalogue.json").write_bytes(known.with_entries([tombstone]).to_bytes())
    (tmp_path / entry.file).unlink()
    assert read_catalogue(tmp_path).entries == (tombstone, kept)
    assert read_published(tmp_path)["date"].unique().to_list() == [kept.period]
    assert check_files(tmp_path) == []
    for vintage in (1, 2):
        with pytest.raises(PublicationError, match="withdrawn"):
            put(tmp_path, DAY, vintage=vintage)
    put(tmp_path, DAY, revision=2)
    assert read_published(tmp_path)["date"].n_unique() == 2


@pytest.mark.slow
def test_publishers_at_once_lose_no_entry(tmp_path, put):
    days = [DAY + timedelta(days=number) for number in range(24)]
    failures = []

    def work(share):
        try:
            for day in share:
                put(tmp_path, day)
        except PublicationError as error:
            failures.append(error)

    # every day is published by two threads
    threads = [threading.Thread(target=work, args=(days[start::4],)) for start in (0, 1, 2, 3, 0, 1, 2, 3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert [entry.period for entry in read_catalogue(tmp_path).entries] == days
    assert check_files(tmp_path) == []


def test_heads_of_all_entries_are_known(tmp_path, put):
    put(tmp_path, DAY, head="later")
    put(tmp_path, DAY + timedelta(days=1), head="earlier")
    catalogue = read_catalogue(tmp_path)
    assert isinstance(catalogue, Catalogue)
    assert catalogue.ledger_heads == {"later", "earlier"}


def test_many_days_are_one_replacement_of_the_catalogue(tmp_path, put_all, monkeypatch):
    replaced = []
    local_module = import_module("optstream.catalogue.backends.local")
    genuine = local_module.replace
    monkeypatch.setattr(local_module, "replace", lambda *given: replaced.append(given) or genuine(*given))
    days = [DAY + timedelta(days=number) for number in range(5)]
    publications = put_all(tmp_path, *days)
    assert len(replaced) == 1
    assert [publication.entry.period for publication in publications] == days
    assert [entry.period for entry in read_catalogue(tmp_path).entries] == days
    assert check_files(tmp_path) == []
    assert not any(publication.changed for publication in put_all(tmp_path, *days))
    assert len(replaced) == 1


def test_of_days_published_at_once_all_are_listed_or_none(tmp_path, put, put_all):
    put(tmp_path, DAY)
    before = files(tmp_path)
    with pytest.raises(PublicationError, match="other bytes"):
        put_all(tmp_path, DAY + timedelta(days=1), DAY, shift=1.0)
    assert files(tmp_path) == before
    with pytest.raises(PublicationError, match="two releases of one period"):
        put_all(tmp_path, DAY, DAY)
    assert put_all(tmp_path) == ()
    assert files(tmp_path) == before
