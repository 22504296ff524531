"""Publishing: immutable files, one release a period, nothing lost."""

import fcntl
import json
from datetime import timedelta
from importlib import import_module

import pytest

from optstream.catalogue import check_files, publish, read_catalogue, stage
from optstream.catalogue.index import Catalogue
from optstream.catalogue.layout import LOCK
from optstream.errors import ParameterError, PublicationError
from tests.optstream.catalogue.folders import DAY


def files(folder):
    found = {
        path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()
    }
    return {name: data for name, data in found.items() if name != ".lock"}


def test_manifest_and_footer_state_the_same(tmp_path, put, statement):
    entry = put(tmp_path, DAY).entry
    manifest = json.loads((tmp_path / entry.manifest).read_text())
    assert manifest == {
        "format": "optstream.manifest/1",
        "file": entry.file,
        "file_hash": entry.file_hash,
        "rows_hash": entry.rows_hash,
        "statement": statement(DAY).to_json(),
    }
    assert check_files(tmp_path) == []


def test_published_files_can_be_read_by_others(tmp_path, put):
    """A temporary file's private mode must not reach the public zone."""
    entry = put(tmp_path, DAY).entry
    (tmp_path / "probe").touch()
    for name in (entry.file, entry.manifest, "catalogue.json"):
        assert (tmp_path / name).stat().st_mode == (tmp_path / "probe").stat().st_mode


def test_simulated_noise_is_refused(tmp_path, put, rows, statement):
    stated = statement(DAY, simulated=True)
    with pytest.raises(PublicationError, match="simulated"):
        put(tmp_path, DAY, simulated=True)
    # nor can a true statement carry simulated bytes
    with pytest.raises(PublicationError, match="differs"):
        publish(tmp_path, [(stage(rows(DAY), stated), statement(DAY))], lambda _: "h1")
    assert files(tmp_path) == {}


def test_the_ledger_is_asked_about_the_catalogues_head_in_its_lock(tmp_path, put):
    """The new head is read after the old one was found: so heads stand in the ledger's order."""
    asked = []

    def head_after(known):
        with (tmp_path / LOCK).open("rb") as lock, pytest.raises(BlockingIOError):
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        asked.append(known)
        return f"head {len(asked)}".replace(" ", "-")

    for vintage in (1, 2):
        put(tmp_path, DAY, vintage=vintage, head=head_after)
    assert asked == [None, "head-1"]
    assert read_catalogue(tmp_path).ledger_head == "head-2"


def test_heads_of_all_entries_are_known(tmp_path, put):
    put(tmp_path, DAY, head="later")
    put(tmp_path, DAY + timedelta(days=1), head="earlier")
    catalogue = read_catalogue(tmp_path)
    assert isinstance(catalogue, Catalogue)
    assert catalogue.ledger_heads == {"later", "earlier"}


def test_many_days_are_one_replacement_of_the_catalogue(tmp_path, put_all, monkeypatch):
    replaced = []
    local_module = import_module("optstream.catalogue.backends")
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


def test_two_releases_of_one_period_are_refused_and_none_is_none(tmp_path, put, put_all):
    put(tmp_path, DAY)
    before = files(tmp_path)
    with pytest.raises(PublicationError, match="two releases of one period"):
        put_all(tmp_path, DAY, DAY)
    assert put_all(tmp_path) == ()
    assert files(tmp_path) == before


def test_what_cannot_be_written_is_an_error_of_ours(tmp_path, put):
    (tmp_path / "published").write_text("a file")
    with pytest.raises(PublicationError, match=r"cannot be (written|read)"):
        put(tmp_path / "published", DAY)


def test_a_bad_ledger_head_is_refused(tmp_path, put):
    with pytest.raises(ParameterError, match="ledger_head"):
        put(tmp_path, DAY, head="a/b")
