"""Days are staged, then published whole."""

import fcntl
import hashlib
import itertools
import json
import subprocess
import sys
from datetime import UTC, date, datetime, timedelta
from importlib import import_module

import polars as pl
import pytest

from optstream.catalogue import check_files, publish, read_catalogue, read_staged, stage
from optstream.catalogue.index import Catalogue
from optstream.catalogue.layout import LOCK
from optstream.catalogue.rows import hash_rows, holds_each_once, ordered_rows, schema
from optstream.catalogue.stage import Footer, decode, encode
from optstream.errors import ParameterError, PublicationError
from tests.optstream.catalogue.folders import DAY

STATED = "load_mw", {"date": DAY, "revision": 1, "vintage": 1}, True


def test_same_rows_and_statement_give_the_same_bytes(rows, statement):
    first = stage(rows(DAY), statement(DAY))
    shuffled = rows(DAY).sample(fraction=1.0, shuffle=True, seed=3)
    chunked = pl.concat([shuffled[:5], shuffled[5:]], rechunk=False).select(reversed(shuffled.columns))
    assert stage(chunked, statement(DAY)) == first
    assert first.file_hash == hashlib.sha256(first.data).hexdigest()
    assert first.name == f"release-{first.file_hash}.parquet"


@pytest.mark.slow
def test_another_process_gives_the_same_bytes(rows, statement, request):
    """String hashing and dictionary order differ between processes; the bytes may not."""
    code = (
        "import sys, datetime; sys.path.insert(0, sys.argv[1]); import conftest; "
        "from optstream.catalogue import stage; "
        "day = datetime.date(2016, 2, 1); "
        "print(stage(conftest.make_rows(day), conftest.make_statement(day)).file_hash)"
    )
    folder = str(request.path.parent)
    other = subprocess.run([sys.executable, "-c", code, folder], capture_output=True, text=True, check=True)
    assert other.stdout.strip() == stage(rows(DAY), statement(DAY)).file_hash


def test_a_changed_value_or_statement_changes_the_hashes_it_should(rows, statement):
    first = stage(rows(DAY), statement(DAY))
    value = stage(rows(DAY, shift=0.001), statement(DAY))
    words = stage(rows(DAY), statement(DAY, code_version="0.1.1"))
    assert value.rows_hash != first.rows_hash
    assert value.file_hash != first.file_hash
    assert words.rows_hash == first.rows_hash
    assert words.file_hash != first.file_hash


def test_the_footer_says_what_the_release_is(rows, statement):
    staged = stage(rows(DAY), statement(DAY))
    _, footer = decode(staged.data)
    assert footer.rows_hash == staged.rows_hash
    assert footer.statement == statement(DAY).to_json()
    assert read_staged(staged.data) == (staged, statement(DAY))


def test_rows_hash_sees_every_cell(rows):
    """Change each column at one row: a hash that skipped a column or a null would not move."""
    ordered = ordered_rows(rows(DAY), *STATED)
    changes = {
        "date": date(2016, 2, 2),
        "step": 3,
        "timestamp": datetime(2016, 2, 1, 13, tzinfo=UTC),
        "node": "FQ",
        "parent": "84",
        "level": 7,
        "load_mw": 0.125,
        "load_mw_noise_se": 0.125,
        "load_mw_se": 0.125,
        "revision": 2,
        "vintage": 2,
    }
    hashes = {hash_rows(ordered)}
    for name, value in changes.items():
        cell = pl.lit(value, dtype=schema("load_mw")[name])
        changed = ordered.with_row_index("i").with_columns(
            pl.when(pl.col("i") == 4).then(cell).otherwise(pl.col(name)).alias(name)
        )
        hashes.add(hash_rows(changed.drop("i")))
    assert len(hashes) == 1 + len(changes)


def test_rows_hash_tells_null_from_empty_and_moved_letters():
    def hashed(*names):
        return hash_rows(pl.DataFrame({"node": pl.Series(names, dtype=pl.String)}))

    names = (("", "a"), (None, "a"), ("a", ""), ("ab", "c"), ("a", "bc"))
    assert len({hashed(*two) for two in names}) == len(names)


@pytest.mark.parametrize(
    ("spoil", "rule"),
    [
        (lambda rows: rows.drop("parent"), "columns"),
        (lambda rows: rows.with_columns(extra=1), "columns"),
        (lambda rows: rows.with_columns(pl.col("load_mw").cast(pl.String)), "column load_mw"),
        (lambda rows: rows.with_columns(pl.col("timestamp").dt.replace_time_zone(None)), "column timestamp"),
        (lambda rows: rows.with_columns(step=pl.lit(2**40)), "32 bits"),
        (lambda rows: rows.with_columns(node=pl.lit(None, dtype=pl.String)), "column node .* null"),
        (lambda rows: rows.with_columns(load_mw=pl.lit(None, dtype=pl.Float64)), "column load_mw .* null"),
        (lambda rows: rows.with_columns(pl.col("date") + timedelta(days=1)), "column date"),
        (lambda rows: rows.with_columns(revision=2), "column revision"),
        (lambda rows: rows.with_columns(vintage=2), "column vintage"),
        (lambda rows: rows[:-1], "exactly once"),
        (lambda rows: pl.concat([rows[:-1], rows[:1]]), "exactly once"),
        (lambda rows: rows[:0], "exactly once"),
    ],
)
def test_what_is_not_a_whole_period_is_refused(rows, statement, spoil, rule):
    with pytest.raises(PublicationError, match=rule):
        stage(spoil(rows(DAY)), statement(DAY))


def test_each_node_once_at_each_step_is_told_as_by_counting():
    """All frames of up to four rows over two steps and two nodes, in any order."""
    cells = list(itertools.product((0, 1), ("a", "b")))
    n_whole = 0
    for size in range(5):
        for chosen in itertools.product(cells, repeat=size):
            rows = pl.DataFrame(list(chosen), schema={"step": pl.Int32, "node": pl.String}, orient="row")
            steps, nodes = {step for step, _ in chosen}, {node for _, node in chosen}
            is_whole = size > 0 and sorted(chosen) == sorted(itertools.product(steps, nodes))
            assert holds_each_once(rows) == is_whole, chosen
            n_whole += is_whole
    assert n_whole == 4 + 4 * 2 + 24


def test_a_whole_number_overflow_and_a_null_show_no_value(rows, statement):
    with pytest.raises(PublicationError) as caught:
        stage(rows(DAY).with_columns(step=pl.lit(1234567890123)), statement(DAY))
    assert "1234567890123" not in str(caught.value)


def test_a_file_without_the_footer_or_with_other_rows_is_refused(rows, statement, tmp_path):
    rows(DAY).write_parquet(tmp_path / "plain.parquet")
    with pytest.raises(PublicationError, match="footer"):
        read_staged((tmp_path / "plain.parquet").read_bytes())
    ordered = ordered_rows(rows(DAY), *STATED)
    lying = encode(ordered, Footer(hash_rows(ordered[::-1]), statement(DAY).to_json()))
    with pytest.raises(PublicationError, match="hash in its footer"):
        read_staged(lying)


@pytest.mark.parametrize("cut", [0, 3, 200, -1])
def test_bytes_that_are_not_a_staged_release_are_refused(rows, statement, cut):
    data = stage(rows(DAY), statement(DAY)).data
    with pytest.raises(PublicationError, match="whole Parquet"):
        read_staged(data[:cut])


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
