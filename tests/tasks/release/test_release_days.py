"""From dumps to published rows, without an orchestrator: the protocol of DESIGN's section 6."""

import hashlib
import json
import signal
import stat
from datetime import date
from fractions import Fraction

import polars as pl
import pytest

from optstream import read_published
from optstream.catalogue import check_files, read_catalogue
from optstream.errors import LedgerError, PublicationError
from optstream.ledger import ReleaseState
from optstream.noise import secure_noise, simulated_noise
from tasks import chunk, publish, release
from tasks.report import budget_of, days_of
from tasks.trusted_store import DrawingFile
from tasks.work import Status

FIRST, SECOND = date(2016, 6, 1), date(2016, 6, 2)
BEFORE_ESTIMATE = chunk.STEPS[:6]


def status(works, day):
    assert works[day].outcome is not None
    return works[day].outcome.status


def test_a_day_is_published_for_every_node_consistent_and_charged(house):
    works = house.release(FIRST, SECOND)
    assert status(works, FIRST) is status(works, SECOND) is Status.PUBLISHED
    rows = read_published(house.folder / "published", verify=True)
    assert rows.height == 2 * 3 * 48
    assert rows["load_mw"].min() >= 0
    wide = rows.pivot(on="node", index=["date", "step"], values="load_mw")
    assert (wide["FR"] - wide["84"] - wide["11"]).abs().max() < 1e-9
    # In units of the resolution they add up exactly.
    units = wide.select((pl.col("FR", "84", "11") * 1000).round().cast(pl.Int64))
    assert (units["FR"] == units["84"] + units["11"]).all()
    spent = budget_of(house.settings, house.ledger)
    assert 1 - Fraction(1, 2**40) < spent.spent <= 1
    assert house.record(FIRST).state is ReleaseState.PUBLISHED
    assert house.ledger.contains_head(read_catalogue(house.folder / "published").ledger_head)
    assert [day.file for day in days_of(house.settings, house.ledger)] == [
        works[day].outcome.file for day in (FIRST, SECOND)
    ]


def test_a_second_run_changes_nothing_and_says_so(house):
    house.release(FIRST)
    before, head = house.files("published", "trusted/measurements"), house.ledger.head("two-regions")
    house.later(days=3)
    works = house.release(FIRST)
    assert status(works, FIRST) is Status.UNCHANGED
    assert "nothing spent" in works[FIRST].outcome.message
    assert house.files("published", "trusted/measurements") == before
    assert house.ledger.head("two-regions") == head


def test_clock_change_days_are_released_at_their_length(house):
    days = [date(2016, 3, 26), date(2016, 3, 27), date(2016, 3, 28), date(2016, 10, 30)]
    house.simulate(*days)
    works = house.release(*days)
    assert {status(works, day) for day in days} == {Status.PUBLISHED}
    rows = read_published(house.folder / "published")
    steps = rows.group_by("date").agg(pl.col("step").n_unique()).sort("date")["step"].to_list()
    assert steps == [48, 46, 48, 50]
    assert budget_of(house.settings, house.ledger).spent <= 1


def test_a_day_that_fails_stops_no_other(house):
    (house.folder / "dumps/region=84" / f"date={FIRST}" / "part-0.parquet").write_bytes(b"not parquet")
    works = house.release(FIRST, SECOND, date(2016, 6, 3))
    assert status(works, FIRST) is Status.REFUSED
    assert "region=84" in works[FIRST].outcome.message
    assert status(works, SECOND) is Status.PUBLISHED
    assert status(works, date(2016, 6, 3)) is Status.WAITING
    assert house.record(FIRST) is None
    assert house.record(date(2016, 6, 3)) is None


def test_a_full_window_is_refused_before_anything_is_drawn(house):
    house.release(FIRST)
    house.configure('epsilon = "1"', 'epsilon = "1"\ncalibration = "paper"')
    house.configure('"two-regions"', '"another-stream"')
    house.configure('folder = "published"', 'folder = "published-elsewhere"')
    works = house.release(SECOND)
    assert status(works, SECOND) is Status.REFUSED
    assert "would lose" in works[SECOND].outcome.message or "grant" in works[SECOND].outcome.message
    assert house.ledger.find("another-stream", SECOND.isoformat()) is None
    assert not list((house.folder / "trusted/measurements").rglob("another-stream/*"))


def test_a_renamed_stream_gets_no_fresh_grant(house):
    house.release(FIRST)
    house.configure('"two-regions"', '"renamed"')
    house.configure('folder = "published"', 'folder = "published-again"')
    works = house.release(FIRST)
    assert status(works, FIRST) is Status.REFUSED
    assert not (house.folder / "published-again").exists()


def test_changed_privacy_terms_are_refused(house):
    house.release(FIRST)
    house.configure('alpha = "1"', 'alpha = "2"')
    with pytest.raises(Exception, match="alpha"):
        house.run()


def test_after_drawn_the_measurements_are_the_release(house):
    """A run that dies after DRAWN is finished by the next one from the stored bytes, without the dumps."""
    house.release(FIRST, steps=BEFORE_ESTIMATE)
    drawn = house.files("trusted/measurements")
    assert house.record(FIRST).state is ReleaseState.DRAWN
    for path in (house.folder / "dumps").rglob("*.parquet"):
        path.unlink()
    house.later(hours=1)
    works = house.release(FIRST, noise=None)
    assert status(works, FIRST) is Status.PUBLISHED
    assert house.files("trusted/measurements") == drawn


def test_a_run_that_dies_after_staging_publishes_the_same_bytes(house, monkeypatch):
    house.release(FIRST, steps=chunk.STEPS[:7])
    staged = next(iter(house.files("trusted/staging").values()))
    house.later(hours=1)
    # Another version of the code would encode other bytes.
    monkeypatch.setattr(release, "published_rows", None)
    works = house.release(FIRST)
    assert status(works, FIRST) is Status.PUBLISHED
    assert (house.folder / "published" / works[FIRST].outcome.file).read_bytes() == staged


def test_a_live_owner_is_not_disturbed(house):
    house.release(FIRST, steps=chunk.STEPS[:5])
    works = house.release(FIRST, owner="another run")
    assert status(works, FIRST) is Status.FAILED
    assert "wait for it" in works[FIRST].outcome.message
    assert house.files("trusted/measurements") == {}


@pytest.mark.parametrize("damage", ["delete", "alter", "truncate"])
def test_measurements_that_are_gone_or_altered_void_the_day(house, damage):
    house.release(FIRST, steps=BEFORE_ESTIMATE)
    (path,) = (house.folder / f"trusted/measurements/two-regions/{FIRST}-r0").iterdir()
    data = path.read_bytes()
    path.unlink()
    if damage != "delete":
        path.write_bytes(
            data[:-1] if damage == "truncate" else data.replace(b'"simulated":false', b'"simulated":true ')
        )
    house.later(hours=1)
    works = house.release(FIRST)
    assert "void" in works[FIRST].outcome.message
    assert house.record(FIRST).state is ReleaseState.VOID
    assert budget_of(house.settings, house.ledger).spent > Fraction(9, 10)
    assert not (house.folder / "published").exists()
    house.later(hours=1)
    assert status(house.release(FIRST), FIRST) is Status.VOID


class FailingNoise:
    """Fails after the first samples were drawn: the fault being injected."""

    simulated = False

    def __init__(self, error):
        self.error, self.calls = error, 0

    def discrete_laplace(self, scale, size):
        self.calls += 1
        if self.calls > 2:
            raise self.error
        return secure_noise().discrete_laplace(scale, size)


@pytest.mark.parametrize("error", [MemoryError("71234"), OSError("71234"), ValueError("71234")], ids=str)
def test_an_exception_after_the_first_sample_voids_and_stays_charged(house, error):
    works = house.release(FIRST, noise=FailingNoise(error))
    assert not works[FIRST].outcome.status.is_good
    assert "71234" not in works[FIRST].outcome.message
    record = house.record(FIRST)
    assert record.state is ReleaseState.VOID
    assert record.spends
    assert house.files("trusted/measurements") == {}
    assert budget_of(house.settings, house.ledger).spent > Fraction(9, 10)


def test_a_stop_signal_in_the_draw_waits_until_it_is_durable(house):
    class Stopped(BaseException):
        pass

    def stop(number, frame):
        raise Stopped

    class StoppingNoise(FailingNoise):
        def discrete_laplace(self, scale, size):
            signal.raise_signal(signal.SIGTERM)
            return secure_noise().discrete_laplace(scale, size)

    before = signal.signal(signal.SIGTERM, stop)
    try:
        with pytest.raises(Stopped):
            house.release(FIRST, noise=StoppingNoise(None))
    finally:
        signal.signal(signal.SIGTERM, before)
    assert house.record(FIRST).state is ReleaseState.DRAWN
    house.later(hours=1)
    assert status(house.release(FIRST), FIRST) is Status.PUBLISHED


def die_while_drawing(house, owner):
    """Reserve, begin the draw, leave orphan bytes, and be gone: what a killed process leaves behind."""
    works = house.release(FIRST, steps=chunk.STEPS[:5], owner=owner)
    reservation = works[FIRST].reservation
    assert reservation is not None, works[FIRST].outcome
    house.ledger.begin_draw(reservation, house.now)
    folder = house.folder / f"trusted/measurements/two-regions/{FIRST}-r0"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{reservation.fencing_token}.drawing").write_bytes(b"orphan")
    (folder / f"{reservation.fencing_token}-{'ab' * 16}").write_bytes(b"orphan")
    house.later(hours=1)
    return reservation


def test_a_dead_draw_is_drawn_afresh_and_its_orphan_bytes_are_destroyed(house):
    assert die_while_drawing(house, "first").redraws == 0
    assert die_while_drawing(house, "second").redraws == 1
    works = house.release(FIRST, owner="third")
    assert status(works, FIRST) is Status.PUBLISHED
    assert house.record(FIRST).redraws == 2
    (kept,) = house.files("trusted/measurements").values()
    assert kept != b"orphan"


def test_the_third_redraw_voids_the_day(house):
    for owner in ("first", "second", "third"):
        die_while_drawing(house, owner)
    works = house.release(FIRST, owner="fourth")
    assert not works[FIRST].outcome.status.is_good
    assert house.record(FIRST).state is ReleaseState.VOID
    assert budget_of(house.settings, house.ledger).spent > Fraction(9, 10)


def failing(*_):
    raise LedgerError("the ledger cannot be reached")


def test_an_owner_that_raised_and_could_not_say_so_is_not_taken_for_dead(house, monkeypatch):
    """The draw raised and the ledger was away: the next run must void, not draw again."""
    run = house.run(noise=FailingNoise(MemoryError()))
    monkeypatch.setattr(type(run.ledger), "void", failing)
    works = house.release(FIRST, noise=FailingNoise(MemoryError()))
    assert house.record(FIRST).state is ReleaseState.RESERVED
    monkeypatch.undo()
    house.later(hours=1)
    works = house.release(FIRST)
    assert not works[FIRST].outcome.status.is_good
    assert house.record(FIRST).state is ReleaseState.VOID
    assert not (house.folder / "published").exists()


def test_what_was_drawn_is_destroyed_when_it_cannot_be_recorded(house, monkeypatch):
    monkeypatch.setattr(type(house.ledger), "record_drawn", failing)
    house.release(FIRST)
    monkeypatch.undo()
    assert house.record(FIRST).state is ReleaseState.VOID
    assert house.files("trusted/measurements") == {}


def test_an_owner_that_stalls_after_beginning_destroys_nothing_of_its_successor(house, monkeypatch):
    """It wakes between begin_draw and the sweep of orphans, when another run has drawn and published."""
    stall = DrawingFile.destroy_orphans

    def stalled(file):
        monkeypatch.setattr(DrawingFile, "destroy_orphans", stall)
        house.later(hours=1)
        assert status(house.release(FIRST, owner="successor"), FIRST) is Status.PUBLISHED
        stall(file)

    monkeypatch.setattr(DrawingFile, "destroy_orphans", stalled)
    works = house.release(FIRST, owner="sleeper")
    assert not works[FIRST].outcome.status.is_good
    record = house.record(FIRST)
    assert record.state is ReleaseState.PUBLISHED
    (kept,) = house.files("trusted/measurements").values()
    assert hashlib.sha256(kept).hexdigest() == record.measurements_hash


def test_terms_that_change_while_a_run_is_under_way_are_noticed(house):
    """Enrolled under alpha 1; before it reserves, the file says 10 and another run enrols."""
    run, works = house.run(), [release.Work(FIRST)]
    for step in chunk.STEPS[:4]:
        works = step.take(run, works)
    house.configure('alpha = "1"', 'alpha = "10"')
    house.run()
    (work,) = chunk.reserve_budget(run, works)
    assert "changed while this run was under way" in work.outcome.message
    assert house.record(FIRST) is None


@pytest.mark.parametrize("forgotten", [FIRST, SECOND], ids=["the first day", "the second day"])
def test_a_ledger_that_forgot_a_published_day_may_not_draw_it_again(house, forgotten):
    other = SECOND if forgotten == FIRST else FIRST
    house.release(other)
    backup = (house.folder / "trusted/ledger.sqlite").read_bytes()
    house.release(forgotten)
    for suffix in ("-wal", "-shm"):
        (house.folder / f"trusted/ledger.sqlite{suffix}").unlink(missing_ok=True)
    (house.folder / "trusted/ledger.sqlite").write_bytes(backup)
    drawn = house.files("trusted/measurements")
    works = house.release(forgotten)
    assert status(works, forgotten) is Status.FAILED
    assert house.files("trusted/measurements") == drawn


def test_a_lost_catalogue_stops_every_reservation(house):
    house.release(FIRST)
    (house.folder / "published/catalogue.json").unlink()
    works = house.release(SECOND)
    assert "holds data but no catalogue" in works[SECOND].outcome.message
    assert house.record(SECOND) is None


def test_a_void_release_is_not_published(house):
    house.release(FIRST, steps=chunk.STEPS[:7])
    run = house.run()
    works = [release.Work(FIRST)]
    for step in (chunk.STEPS[0], chunk.STEPS[6]):
        works = step.take(run, works)
    house.ledger.void("two-regions", FIRST.isoformat(), 0, "a person said so", house.now)
    (work,) = chunk.publish_releases(run, works)
    assert work.outcome.status is Status.FAILED
    assert not (house.folder / "published").exists()


def test_a_stale_owner_that_wakes_up_destroys_nothing(house):
    stale_run = house.run(owner="first")
    works = [release.Work(FIRST)]
    for step in chunk.STEPS[:5]:
        works = step.take(stale_run, works)
    house.later(hours=1)
    house.release(FIRST, owner="second")
    kept = house.files("trusted/measurements", "published")
    woken = chunk.draw_measurements(stale_run, works)[0]
    assert woken.outcome.status is Status.FAILED
    after = house.files("trusted/measurements", "published")
    assert {path: data for path, data in after.items() if path in kept} == kept
    assert house.record(FIRST).state is ReleaseState.PUBLISHED


def test_simulated_noise_is_never_published(house):
    works = house.release(FIRST, noise=simulated_noise(1))
    assert status(works, FIRST) is Status.FAILED
    assert "simulated" in works[FIRST].outcome.message
    assert not (house.folder / "published/data").exists()


def test_publishing_that_fails_is_finished_by_the_next_run(house, monkeypatch):
    def refuse(*_):
        raise PublicationError("the published folder cannot be written")

    monkeypatch.setattr(publish, "publish_release", refuse)
    works = house.release(FIRST)
    assert status(works, FIRST) is Status.FAILED
    assert house.record(FIRST).state is ReleaseState.DRAWN
    monkeypatch.undo()
    assert "wait" in house.release(FIRST, owner="impatient")[FIRST].outcome.message
    release.let_go(house.run(), works.values())
    assert status(house.release(FIRST, owner="next"), FIRST) is Status.PUBLISHED
    assert check_files(house.folder / "published") == []


def test_the_trusted_zone_is_closed_to_others(house):
    house.release(FIRST)
    for path in (house.folder / "trusted").rglob("*"):
        mode = stat.S_IMODE(path.stat().st_mode)
        assert mode & 0o077 == 0, f"{path}: {mode:o}"


def test_raw_values_stay_out_of_every_value_that_a_step_returns(house):
    """What Prefect may print of a task's result."""
    run, works = house.run(), [release.Work(FIRST)]
    for step in chunk.STEPS:
        works = step.take(run, works)
        shown = repr(works)
        assert "load_mw" not in shown
        assert "shape:" not in shown
    assert works[0].period is None


def test_lineage_names_inputs_columns_and_privacy(house):
    house.release(FIRST)
    (line,) = (house.folder / "trusted/lineage/events.jsonl").read_text().splitlines()
    event = json.loads(line)
    assert len(event["inputs"]) == 2
    assert event["run"]["facets"]["optstream_privacy"]["statement"]["epsilon_plan"]
    fields = event["outputs"][0]["facets"]["columnLineage"]["fields"]["load_mw"]["inputFields"]
    assert fields[0]["transformations"][0]["masking"] is True
    assert house.record(FIRST).published_name in event["outputs"][0]["name"]
