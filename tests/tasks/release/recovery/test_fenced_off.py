"""A run that lost its lease, a panic, and a forged file change nothing that was published."""

import hashlib
from datetime import UTC, date, datetime, timedelta

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from optstream.catalogue import read_catalogue
from optstream.catalogue.stage import decode
from optstream.errors import LedgerError
from optstream.ledger import Key, open_ledger
from tasks.ingest import validate
from tasks.release import draw as draw_module
from tasks.release import pipeline as steps
from tasks.release import run as release
from tasks.release import statement
from tasks.release.run import Status, let_go, release_lease
from tasks.trusted import files as private_files
from tasks.trusted.files import NAMED
from tests.failing import raising
from tests.tasks.release.noises import no_noise
from tests.tasks.release.recovery.test_recording import die_unrecorded, measurements, status

DAY = date(2016, 6, 1)


def between(either, monkeypatch, what):
    """Do `what` when the next owner is about to record its durable measurements."""
    genuine = type(either.ledger).record_drawn

    def record_drawn(*arguments):
        monkeypatch.undo()
        what()
        return genuine(*arguments)

    monkeypatch.setattr(type(either.ledger), "record_drawn", record_drawn)


def end_lease(either):
    release_lease(either.settings, either.ledger, DAY, "it seemed dead", either.now)


@pytest.mark.parametrize("taken_up", [False, True], ids=["drew it", "took it up"])
def test_what_was_whole_when_a_person_ended_the_lease_is_the_release(either, monkeypatch, taken_up):
    if taken_up:
        die_unrecorded(either, monkeypatch, owner="dead")
        either.later(hours=1)
    drawn = {}

    def ended():
        drawn.update(measurements(either))
        end_lease(either)

    between(either, monkeypatch, ended)
    works = either.release(DAY, owner="alive")
    assert "taken over" in works[DAY].outcome.message
    assert drawn
    assert measurements(either) == drawn
    assert status(either.release(DAY, noise=no_noise(), owner="next")) is Status.PUBLISHED
    assert (either.record(DAY).redraws, measurements(either)) == (0, drawn)
    assert either.ledger.verify() == []


def test_who_is_fenced_off_before_the_draw_leaves_nothing_that_looks_like_one(either, monkeypatch):
    """It slept before it held disk space; another run drew and published meanwhile."""
    genuine = private_files.DrawingFile.preallocate

    def preallocate(*arguments):
        monkeypatch.undo()
        either.later(hours=1)
        assert status(either.release(DAY, owner="alive")) is Status.PUBLISHED
        return genuine(*arguments)

    monkeypatch.setattr(private_files.DrawingFile, "preallocate", preallocate)
    works = either.release(DAY, owner="sleeper")
    assert "taken over" in works[DAY].outcome.message
    folder = either.settings.measurements_of(DAY, 0)
    digest = either.record(DAY).measurements_hash
    assert [path.name.split("-")[-1] for path in folder.iterdir()] == [digest[:NAMED]]


@pytest.fixture
def served(installation, postgresql_url):
    """The small stream with its ledger on a database that has a clock of its own."""
    installation.configure("sqlite:///trusted/ledger.sqlite", postgresql_url)
    return installation


@pytest.mark.parametrize("behind", [timedelta(hours=1), timedelta(0)], ids=["behind", "right"])
def test_a_machine_whose_clock_is_behind_the_server_s_takes_a_whole_draw_up(served, monkeypatch, behind):
    """By the server the lease is over; by the machine's clock the owner would still be alive."""
    served.now = datetime.now(UTC)
    by_server = open_ledger(served.settings.ledger_url, database_time=True)
    die_unrecorded(served, monkeypatch, ledger=by_server, lease=timedelta(seconds=1), owner="dead")
    drawn = measurements(served)
    while by_server.find(Key("two-regions", DAY.isoformat())).lease_until >= datetime.now(UTC):
        pass
    served.now = datetime.now(UTC) - behind
    assert status(served.release(DAY, noise=no_noise(), ledger=by_server, owner="next")) is Status.PUBLISHED
    assert (served.record(DAY).redraws, measurements(served)) == (0, drawn)
    by_server.close()


def test_a_whole_draw_is_taken_up_though_the_dump_is_gone_and_the_plan_another(either, monkeypatch):
    die_unrecorded(either, monkeypatch, owner="dead")
    drawn = measurements(either)
    for dump in (either.folder / "dumps").rglob(f"date={DAY}"):
        dump.rename(dump.with_name("moved"))
    either.configure("n_samples = 10", "n_samples = 12")
    either.later(hours=1)
    assert status(either.release(DAY, noise=no_noise(), owner="next")) is Status.PUBLISHED
    assert (either.record(DAY).redraws, measurements(either)) == (0, drawn)
    assert either.ledger.verify() == []


@pytest.mark.parametrize("fails", ["bear_witness", "destroy_orphans"])
def test_what_fails_between_the_event_and_the_first_sample_is_no_death(either, monkeypatch, fails):
    """The witness is away each time, for as many nights as deaths would void a day."""
    for _ in range(4):
        target = draw_module if fails == "bear_witness" else private_files.DrawingFile
        monkeypatch.setattr(target, fails, raising(LedgerError("the witness is away")))
        works = either.release(DAY)
        assert "away" in works[DAY].outcome.message
        monkeypatch.undo()
        let_go(either.run(), works.values())
        assert not either.record(DAY).drawing
        either.later(minutes=1)
    assert status(either.release(DAY)) is Status.PUBLISHED
    assert either.record(DAY).redraws == 0
    assert either.ledger.verify() == []


OTHER = DAY + timedelta(days=1)
TEXT = "called `Result::unwrap()` on an `Err` value: 71234.5 of Kq7Zx9"


def panics_on(day, real, days_of):
    def fails(*arguments, **more):
        if day in days_of(*arguments):
            raise pl.exceptions.PanicException(TEXT)
        return real(*arguments, **more)

    return fails


STEPS = {
    "ingest": (steps, "ingest", lambda settings, dumps, *_: [dump.day for dump in dumps]),
    "validate": (validate, "validate", lambda settings, days, **_: [one.day for one in days]),
    "estimate": (statement, "published_rows", lambda settings, day, *_: [day]),
    "look up": (release, "look_up", lambda run, work: [work.day]),
}


@pytest.mark.parametrize("step", STEPS)
def test_a_panic_costs_its_own_day_and_its_text_is_withheld(installation, monkeypatch, step):
    module, name, days_of = STEPS[step]
    monkeypatch.setattr(module, name, panics_on(DAY, getattr(module, name), days_of))
    works = installation.release(DAY, OTHER)
    assert works[DAY].outcome.status is Status.FAILED
    assert "unexpected PanicException" in works[DAY].outcome.message
    assert "71234" not in works[DAY].outcome.message
    assert works[OTHER].outcome.status is Status.PUBLISHED


ABSURD = {
    "text for values": lambda rows: rows.with_columns(pl.col("load_mw").cast(pl.String)),
    "no node": lambda rows: rows.drop("node"),
    "numbers for nodes": lambda rows: rows.with_columns(pl.lit(3).alias("node")),
    "steps that a node lacks": lambda rows: rows.filter((pl.col("node") != "84") | (pl.col("step") > 3)),
    "no value": lambda rows: rows.with_columns(pl.lit(None, dtype=pl.Float64).alias("load_mw")),
    "infinite": lambda rows: rows.with_columns(pl.lit(float("inf")).alias("load_mw")),
    "nothing": lambda rows: rows.head(0),
}


def forge(installation, change):
    """Put a consistent file of other rows in the place of the day's, under its own statement."""
    folder = installation.folder / "published"
    catalogue = read_catalogue(folder)
    (entry,) = catalogue.entries
    data = (folder / entry.file).read_bytes()
    footer = pq.ParquetFile(pa.BufferReader(data)).metadata.metadata
    sink = pa.BufferOutputStream()
    pq.write_table(change(decode(data)[0]).to_arrow().replace_schema_metadata(footer), sink)
    made = sink.getvalue().to_pybytes()
    entry = entry.changed(file_hash=hashlib.sha256(made).hexdigest())
    (folder / entry.file).write_bytes(made)
    (folder / "catalogue.json").write_bytes(catalogue.changed(periods=(entry,)).to_bytes())


@pytest.mark.parametrize("change", ABSURD.values(), ids=list(ABSURD))
def test_a_page_names_a_forged_file_as_damaged(installation, change):
    installation.released(DAY)
    forge(installation, change)
    written = installation.write_pages()
    assert (written.problem, written.lost) == (None, (DAY,))


@pytest.mark.parametrize("text", [b"\xff\xfe{", b"[" * 200_000, b'{"statement": ' + b"1" * 5000 + b"}"])
def test_a_forged_manifest_is_no_statement(installation, monkeypatch, text):
    """The file is lost, the staging purged, and the version another one."""
    installation.release(DAY)
    folder = installation.folder / "published"
    (entry,) = read_catalogue(folder).entries
    (folder / entry.file).unlink()
    (folder / entry.manifest).write_bytes(text)
    for path in installation.settings.staging_of(DAY, 0).iterdir():
        path.unlink()
    real = statement.statement_of
    monkeypatch.setattr(
        statement, "statement_of", lambda *facts, **files: real(*facts, **files).changed(code_version="9")
    )
    (outcome,) = installation.publish_again(DAY)
    assert outcome.status is Status.FAILED
    assert "bring trusted/staging or the published file back from a copy" in outcome.message
