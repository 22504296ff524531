"""Exactly one draw: owners that raise, die, stall or wake up, and ledgers that are away or forgot."""

import errno
import hashlib
import os
import signal
import threading
from contextlib import closing
from datetime import UTC, date, datetime, timedelta
from fractions import Fraction

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from optstream.catalogue import read_catalogue
from optstream.catalogue.statement import decode
from optstream.errors import LedgerError, LedgerUnavailableError
from optstream.ledger import Key, ReleaseState, open_ledger
from optstream.noise import secure_noise
from tasks.ingest import validate
from tasks.operate.doctor import noise_library
from tasks.release import draw as draw_module
from tasks.release import pipeline as steps
from tasks.release import run as release
from tasks.release import statement
from tasks.release.lineage import record_of_draw
from tasks.release.run import Status, let_go, release_lease
from tasks.trusted import files as private_files
from tasks.trusted.files import NAMED, DrawingFile
from tests.by_night import few
from tests.failing import Death, NoiseMeanwhile, death_at, failing_noise, no_noise, raising
from tests.tasks.two_regions import RESERVED, STEPS, assert_ended

DAY, NEXT, THIRD = date(2016, 6, 1), date(2016, 6, 2), date(2016, 6, 3)
failing = raising(LedgerError("the ledger cannot be reached"))
read_only = raising(OSError(errno.EROFS, "Read-only file system"))


def measurements(installation):
    """The drawn file, by the hash in its name, whichever token it has."""
    found = installation.files("trusted/measurements")
    return {path.name.partition("-")[2]: data for path, data in found.items() if "-" in path.name}


@pytest.mark.parametrize("error", [MemoryError("71234"), ValueError("71234"), None], ids=str)
def test_an_exception_after_the_first_sample_voids_and_stays_charged(installation, monkeypatch, error):
    with monkeypatch.context() as patch:
        if error is None:
            patch.setattr(type(installation.ledger), "record_drawn", failing)
        message = installation.outcome(DAY, noise=failing_noise(error) if error else secure_noise()).message
    assert "71234" not in message
    assert error is None or "void, and stays charged" in message
    record = installation.record(DAY)
    assert record.state is ReleaseState.VOID
    assert record.spends
    assert installation.files("trusted/measurements") == {}
    assert installation.spent > Fraction(9, 10)


def test_a_stop_signal_in_the_draw_waits_until_it_is_durable(installation):
    noise = NoiseMeanwhile(lambda: signal.raise_signal(signal.SIGTERM), at="each")
    before = signal.signal(signal.SIGTERM, raising(Death))
    try:
        with pytest.raises(Death):
            installation.release(DAY, noise=noise)
    finally:
        signal.signal(signal.SIGTERM, before)
    assert installation.record(DAY).state is ReleaseState.DRAWN
    installation.later(hours=1)
    assert installation.status(DAY) is Status.PUBLISHED


def die_while_drawing(installation, owner):
    """Reserve, begin the draw, leave orphan bytes, and be gone: what a killed process leaves behind."""
    reservation = installation.release(DAY, steps=RESERVED, owner=owner)[DAY].reservation
    installation.ledger.begin_draw(reservation, installation.now)
    folder = installation.folder / f"trusted/measurements/two-regions/{DAY}-r0"
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("{}.drawing", f"{{}}-{'ab' * 16}"):
        (folder / name.format(reservation.fencing_token)).write_bytes(b"orphan")
    installation.later(hours=1)
    return reservation


@pytest.mark.quick
def test_a_dead_draw_is_drawn_afresh_and_its_orphan_bytes_are_destroyed(installation):
    assert die_while_drawing(installation, "first").redraws == 0
    assert die_while_drawing(installation, "second").redraws == 1
    assert installation.status(DAY, owner="third") is Status.PUBLISHED
    assert installation.record(DAY).redraws == 2
    (kept,) = installation.files("trusted/measurements").values()
    assert kept != b"orphan"


@pytest.mark.parametrize("disk_is_full", [False, True])
def test_an_owner_that_raised_and_could_not_say_so_is_not_dead(installation, monkeypatch, disk_is_full):
    """The ledger is away, and the trusted folder may be full: a rename still leaves the word."""
    write = private_files._write

    def full(path, *arguments):
        if "measurements" in path.parts:
            raise OSError(errno.ENOSPC, "No space left on device")
        write(path, *arguments)

    monkeypatch.setattr(type(installation.ledger), "void", failing)
    if disk_is_full:
        monkeypatch.setattr(private_files, "_write", full)
    installation.release(DAY, noise=failing_noise(MemoryError()))
    assert installation.record(DAY).state is ReleaseState.RESERVED
    assert installation.record(DAY).drawing
    monkeypatch.undo()
    installation.later(hours=1)
    assert not installation.status(DAY).is_good
    assert installation.record(DAY).state is ReleaseState.VOID
    assert not (installation.folder / "published").exists()


@pytest.mark.parametrize(("raw_stays", "answers"), [(True, True), (False, False), (True, False)])
def test_without_renames_the_ledger_or_a_person_keeps_the_word(installation, monkeypatch, raw_stays, answers):
    monkeypatch.setattr(DrawingFile, "mark_raised", read_only)
    if raw_stays:
        monkeypatch.setattr(release, "destroy_raw", read_only)
    if not answers:
        monkeypatch.setattr(type(installation.ledger), "void", failing)
    outcome = installation.outcome(DAY, noise=failing_noise(MemoryError()))
    assert not outcome.status.is_good
    if answers:
        assert installation.record(DAY).state is ReleaseState.VOID
    else:
        assert "do not run it again before a person has made it VOID" in outcome.message


def test_a_day_that_is_drawn_is_not_given_up_for_a_mark_that_cannot_be_removed(installation, monkeypatch):
    monkeypatch.setattr(DrawingFile, "settle", read_only)
    assert installation.status(DAY) is Status.PUBLISHED


@pytest.mark.parametrize("mechanism", few(["BudgetAbsorption", "BudgetDistribution", "Fast"], 1))
@pytest.mark.parametrize("deaths", few([1, 2], 1))
def test_the_charged_plan_is_drawn_though_later_days_were_released(installation, mechanism, deaths):
    """Their plans look at what was spent around: what came after the death was judged with the plan in it."""
    installation.change_mechanism(mechanism)
    installation.simulate(DAY, NEXT, THIRD)
    installation.released(DAY)
    for _ in range(deaths):
        run, works = installation.through(RESERVED, NEXT)
        run.ledger.begin_draw(works[0].reservation, installation.now)
        installation.later(minutes=1)
        after = installation.release(NEXT, THIRD)
        assert after[NEXT].status is Status.BUSY
        assert after[THIRD].status in (Status.PUBLISHED, Status.UNCHANGED)
        installation.later(hours=1)
    assert installation.status(NEXT) is Status.PUBLISHED
    record = installation.record(NEXT)
    assert (record.state, record.redraws) == (ReleaseState.PUBLISHED, deaths)
    assert installation.spent <= 1
    assert installation.problems() == []


def test_terms_that_change_while_a_run_is_under_way_are_noticed(installation):
    run, works = installation.through(STEPS[:4], DAY)
    installation.configure('alpha = "1"', 'alpha = "10"')
    installation.run()
    (work,) = steps.reserve_budget(run, works)
    assert "changed while this run was under way" in work.message
    assert installation.record(DAY) is None


def away(ledger, monkeypatch, times):
    genuine, calls = type(ledger).record_drawn, []

    def record_drawn(*arguments):
        calls.append(1)
        if len(calls) <= times:
            raise LedgerUnavailableError("the database is away")
        return genuine(*arguments)

    monkeypatch.setattr(type(ledger), "record_drawn", record_drawn)
    monkeypatch.setattr(draw_module, "PAUSE", timedelta(milliseconds=1))
    return calls


def die_unrecorded(installation, monkeypatch, **changes):
    """A run draws the day, and ends while the database is away."""
    away(installation.ledger, monkeypatch, 10**6)
    works = installation.release(DAY, **{"patience": timedelta(0), **changes})
    monkeypatch.undo()
    return works


def test_a_database_that_comes_back_has_the_draw_recorded(either, monkeypatch):
    calls = away(either.ledger, monkeypatch, 3)
    assert either.status(DAY) is Status.PUBLISHED
    assert len(calls) == 4
    assert either.record(DAY).redraws == 0


def test_a_database_that_stays_away_loses_nothing(either, monkeypatch):
    """The next run takes the same bytes up, though the dump is gone and another plan is configured."""
    works = die_unrecorded(either, monkeypatch, patience=timedelta(milliseconds=3))
    assert_ended(works[DAY], Status.FAILED, "Nothing is lost")
    assert either.record(DAY).state is ReleaseState.RESERVED
    drawn = measurements(either)
    let_go(either.run(), works.values())
    assert either.status(DAY, owner="at once") is Status.BUSY
    for dump in (either.folder / "dumps").rglob(f"date={DAY}"):
        dump.rename(dump.with_name("moved"))
    either.configure("n_samples = 10", "n_samples = 12")
    either.later(hours=1)
    assert either.status(DAY, noise=no_noise()) is Status.PUBLISHED
    record = either.record(DAY)
    assert (record.state, record.redraws, measurements(either)) == (ReleaseState.PUBLISHED, 0, drawn)
    assert record_of_draw(either.settings, DAY, 0, record.measurements_hash).inputs()
    assert either.ledger.verify() == []


def test_measurements_that_are_not_whole_are_drawn_afresh(either, monkeypatch):
    """Cut short after their name was durable, as no file system should: their own hash tells."""
    die_unrecorded(either, monkeypatch)
    (path,) = (either.folder / "trusted/measurements").rglob("1-*")
    path.write_bytes(path.read_bytes()[:-1])
    either.later(hours=1)
    assert either.status(DAY) is Status.PUBLISHED
    assert either.record(DAY).redraws == 1


@pytest.mark.parametrize("ledger_answers", [True, False])
def test_the_word_of_an_owner_that_was_fenced_off_voids_nothing(either, monkeypatch, ledger_answers):
    taken = {}

    def asleep():
        either.later(hours=1)
        taken.update(either.release(DAY, steps=RESERVED, owner="successor"))
        if not ledger_answers:
            for method in ("void", "find"):
                unreachable = raising(LedgerUnavailableError("the database is away"))
                monkeypatch.setattr(type(either.ledger), method, unreachable)
        raise MemoryError

    either.release(DAY, noise=NoiseMeanwhile(asleep, at=3), owner="sleeper")
    monkeypatch.undo()
    run = either.run(owner="successor")
    works = list(taken.values())
    for step in STEPS[5:]:
        works = step(run, works)
    assert works[0].status is Status.PUBLISHED
    assert either.record(DAY).state is ReleaseState.PUBLISHED


@pytest.mark.parametrize("taken_up", [False, True], ids=["drew it", "took it up"])
def test_what_was_whole_when_a_person_ended_the_lease_is_the_release(either, monkeypatch, taken_up):
    if taken_up:
        die_unrecorded(either, monkeypatch, owner="dead")
        either.later(hours=1)
    drawn = {}
    genuine = type(either.ledger).record_drawn

    def record_drawn(*arguments):
        monkeypatch.undo()
        drawn.update(measurements(either))
        release_lease(either.settings, either.ledger, DAY, "it seemed dead", either.now)
        return genuine(*arguments)

    monkeypatch.setattr(type(either.ledger), "record_drawn", record_drawn)
    assert "taken over" in either.outcome(DAY, owner="alive").message
    assert drawn
    assert measurements(either) == drawn
    assert either.status(DAY, noise=no_noise(), owner="next") is Status.PUBLISHED
    assert (either.record(DAY).redraws, measurements(either)) == (0, drawn)
    assert either.ledger.verify() == []


def test_who_is_fenced_off_before_the_draw_leaves_nothing_that_looks_like_one(either, monkeypatch):
    genuine = DrawingFile.preallocate

    def preallocate(*arguments):
        monkeypatch.undo()
        either.later(hours=1)
        assert either.status(DAY, owner="alive") is Status.PUBLISHED
        return genuine(*arguments)

    monkeypatch.setattr(DrawingFile, "preallocate", preallocate)
    assert "taken over" in either.outcome(DAY, owner="sleeper").message
    folder, digest = either.settings.measurements_of(DAY, 0), either.record(DAY).measurements_hash
    assert [path.name.split("-")[-1] for path in folder.iterdir()] == [digest[:NAMED]]


@pytest.mark.parametrize("behind", [timedelta(hours=1), timedelta(0)], ids=["behind", "right"])
def test_a_machine_whose_clock_is_behind_takes_a_draw_up(installation, postgresql_url, monkeypatch, behind):
    """By the server the lease is over; by the machine's clock the owner would still be alive."""
    installation.configure("sqlite:///trusted/ledger.sqlite", postgresql_url)
    installation.now = datetime.now(UTC)
    with closing(open_ledger(installation.settings.ledger_url, database_time=True)) as server:
        die_unrecorded(installation, monkeypatch, ledger=server, lease=timedelta(seconds=1), owner="dead")
        drawn = measurements(installation)
        while server.find(Key("two-regions", DAY.isoformat())).lease_until >= datetime.now(UTC):
            pass
        installation.now = datetime.now(UTC) - behind
        assert installation.status(DAY, noise=no_noise(), ledger=server, owner="next") is Status.PUBLISHED
        assert (installation.record(DAY).redraws, measurements(installation)) == (0, drawn)


@pytest.mark.parametrize("fails", ["bear_witness", "destroy_orphans", "noise"])
def test_what_fails_before_the_first_sample_is_no_death(either, monkeypatch, fails):
    """Witness, folder or library fail for as many nights as deaths would void a day."""
    missing = NoiseMeanwhile(raising(ImportError("71234")), at="each")
    for _ in range(4):
        if fails == "noise":
            works, words = either.release(DAY, noise=missing), "nothing was"
        else:
            target, words = draw_module if fails == "bear_witness" else DrawingFile, "away"
            monkeypatch.setattr(target, fails, raising(LedgerError("the witness is away")))
            works = either.release(DAY)
            monkeypatch.undo()
        assert words in works[DAY].message
        assert "71234" not in works[DAY].message
        let_go(either.run(), works.values())
        assert not either.record(DAY).drawing
        either.later(minutes=1)
    assert either.status(DAY) is Status.PUBLISHED
    assert either.record(DAY).redraws == 0
    assert either.ledger.verify() == []


def test_the_doctor_tries_the_noise():
    missing = NoiseMeanwhile(raising(ImportError("71234")), at="each")
    assert [severity for severity, *_ in noise_library(missing)] == ["wrong"]
    assert list(noise_library(secure_noise())) == []


@pytest.mark.nightly
def test_the_lease_of_a_long_draw_does_not_end(either):
    refused, lease = threading.Event(), timedelta(seconds=2)
    real = {"clock": lambda: datetime.now(UTC), "lease": lease}

    def slow():
        began = datetime.now(UTC)
        while datetime.now(UTC) < began + 3 * lease:
            refused.wait(0.05)
        assert either.status(DAY, owner="other", **real) is Status.BUSY
        refused.set()

    assert either.status(DAY, noise=NoiseMeanwhile(slow), **real) is Status.PUBLISHED
    assert refused.is_set()
    assert either.record(DAY).redraws == 0


@pytest.mark.parametrize("drawn", [True, False], ids=["whole", "not drawn"])
def test_a_lease_of_a_clock_that_ran_ahead_is_ended_by_a_person(either, monkeypatch, drawn):
    either.later(days=3650)
    if drawn:
        die_unrecorded(either, monkeypatch, owner="ahead")
    else:
        either.release(DAY, steps=RESERVED, owner="ahead")
    either.later(days=-3650)
    before = measurements(either)
    either.ends(DAY, Status.BUSY, "release-lease")
    release_lease(either.settings, either.ledger, DAY, "its clock ran ahead", either.now)
    with pytest.raises(LedgerError, match="held by no run"):
        release_lease(either.settings, either.ledger, DAY, "once more", either.now)
    assert either.status(DAY) is Status.PUBLISHED
    assert either.record(DAY).redraws == 0
    assert not drawn or measurements(either) == before
    assert either.ledger.verify() == []


def test_days_that_are_listed_are_not_called_unpublished(either, monkeypatch):
    """Once the catalogue lists the days, no sync of the published folder's own names succeeds."""
    either.simulate(THIRD)
    either.release(THIRD)
    real, folder = os.fsync, either.folder / "published"

    def fsync(descriptor):
        if os.fstat(descriptor).st_ino == folder.stat().st_ino and read_catalogue(folder).entry(DAY):
            raise OSError(5, "Input/output error")
        real(descriptor)

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", fsync)
        done = either.release(DAY, NEXT)
    for day, work in done.items():
        assert_ended(work, Status.FAILED, "it is listed and readers have it")
        assert work.file == either.entry(day).file
        assert either.record(day).state is ReleaseState.DRAWN
    either.later(hours=1)
    assert either.statuses(DAY, NEXT) == {Status.PUBLISHED}
    assert either.problems() == []


def test_a_day_without_its_lineage_is_published(installation, monkeypatch):
    """A run that dies before it records the day leaves its event, which is written twice as one."""
    full = raising(OSError(28, "No space left on device"))
    with monkeypatch.context() as patch:
        patch.setattr("tasks.release.lineage.append_lines", full)
        said = "it is published and recorded, and its lineage event could not be written"
        outcome = installation.ends(DAY, Status.FAILED, said)
    assert outcome.file == installation.entry(DAY).file
    assert installation.status(DAY) is Status.UNCHANGED
    with monkeypatch.context() as patch:  # the control: nothing was listed
        patch.setattr("optstream.catalogue.backends.write_new", full)
        outcome = installation.outcome(NEXT)
    assert (outcome.status, outcome.file) == (Status.FAILED, None)
    with death_at("tasks.release.publish.record_published", error=KeyboardInterrupt):
        installation.release(NEXT)
    installation.later(hours=1)
    assert installation.status(NEXT) is Status.PUBLISHED
    runs = [one["run"]["runId"] for one in installation.lineage() if str(NEXT) in one["outputs"][0]["name"]]
    assert (len(runs), len(set(runs))) == (2, 1)


PANICKING = {
    "ingest": (steps, "ingest", lambda settings, dumps, *_: [dump.day for dump in dumps]),
    "validate": (validate, "validate", lambda settings, days, **_: [one.day for one in days]),
    "estimate": (statement, "published_rows", lambda settings, day, *_: [day]),
    "look up": (release, "look_up", lambda run, work: [work.day]),
}


@pytest.mark.parametrize(("module", "name", "days_of"), PANICKING.values(), ids=list(PANICKING))
def test_a_panic_costs_its_own_day_and_its_text_is_withheld(installation, monkeypatch, module, name, days_of):
    real = getattr(module, name)

    def panics(*arguments, **more):
        if DAY in days_of(*arguments):
            raise pl.exceptions.PanicException("called `unwrap()` on an `Err` value: 71234.5 of Kq7Zx9")
        return real(*arguments, **more)

    monkeypatch.setattr(module, name, panics)
    works = installation.release(DAY, NEXT)
    assert_ended(works[DAY], Status.FAILED, "unexpected PanicException")
    assert "71234" not in works[DAY].message
    assert works[NEXT].status is Status.PUBLISHED


ABSURD = {
    "text for values": lambda rows: rows.with_columns(pl.col("load_mw").cast(pl.String)),
    "no node": lambda rows: rows.drop("node"),
    "numbers for nodes": lambda rows: rows.with_columns(pl.lit(3).alias("node")),
    "steps that a node lacks": lambda rows: rows.filter((pl.col("node") != "84") | (pl.col("step") > 3)),
    "no value": lambda rows: rows.with_columns(pl.lit(None, dtype=pl.Float64).alias("load_mw")),
    "infinite": lambda rows: rows.with_columns(pl.lit(float("inf")).alias("load_mw")),
    "nothing": lambda rows: rows.head(0),
}


def test_a_page_names_a_forged_file_as_damaged(installation):
    """A consistent file of other rows lies in the place of the day's, under its own statement."""
    installation.released(DAY)
    folder, entry = installation.folder / "published", installation.entry(DAY)
    data = (folder / entry.file).read_bytes()
    footer = pq.ParquetFile(pa.BufferReader(data)).metadata.metadata
    for name, change in {"control": lambda rows: rows, **ABSURD}.items():
        sink = pa.BufferOutputStream()
        pq.write_table(change(decode(data)[0]).to_arrow().replace_schema_metadata(footer), sink)
        made = sink.getvalue().to_pybytes()
        entry = entry.changed(file_hash=hashlib.sha256(made).hexdigest())
        (folder / entry.file).write_bytes(made)
        (folder / "catalogue.json").write_bytes(read_catalogue(folder).changed(periods=(entry,)).to_bytes())
        assert installation.write_pages() == (() if name == "control" else (DAY,)), name
