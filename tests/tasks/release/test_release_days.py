"""From dumps to published rows, without an orchestrator, in folders and in an object store."""

import json
import shutil
import stat
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from fractions import Fraction

import fsspec
import polars as pl
import pytest

from optstream.catalogue import find_catalogue, read_catalogue
from optstream.errors import LedgerError, ParameterError
from optstream.ledger import Ledger, ReleaseState
from optstream.noise import simulated_noise
from optstream.privacy import CappedSpend, StepSpend, worst_window
from tasks.ledger.export import export
from tasks.monitor.view import status_document
from tasks.operate.doctor import examine
from tasks.operate.simulate import simulate
from tasks.release import pipeline as chunk
from tasks.release import statement
from tasks.release.mechanism import mechanism_for
from tasks.release.outcomes import RunDocument, budget_of
from tasks.release.run import Ended, Requested, Status, let_go
from tests.by_night import few
from tests.failing import raising
from tests.tasks.two_regions import CONFIGURATION, FEW_BLOCKS, RESERVED, STAGED, STEPS, released_by

FIRST, SECOND, THIRD = (date(2016, 6, day) for day in (1, 2, 3))


def test_a_day_is_published_for_every_node_consistent_and_charged(installation):
    """And no published byte names a moment of the run."""
    installation.now = datetime(2031, 8, 9, 10, 11, 12, 131415, tzinfo=UTC)
    works = installation.release(FIRST, SECOND)
    assert {work.status for work in works.values()} == {Status.PUBLISHED}
    rows = installation.rows()
    assert rows.height == 2 * 3 * 48
    assert rows["load_mw"].min() >= 0
    wide = rows.pivot(on="node", index=["date", "step"], values="load_mw")
    assert (wide["FR"] - wide["84"] - wide["11"]).abs().max() < 1e-9
    # In units of the resolution they add up exactly.
    units = wide.select((pl.col("FR", "84", "11") * 1000).round().cast(pl.Int64))
    assert (units["FR"] == units["84"] + units["11"]).all()
    assert 1 - Fraction(1, 2**40) < installation.spent <= 1
    assert installation.record(FIRST).state is ReleaseState.PUBLISHED
    catalogue = read_catalogue(installation.folder / "published")
    assert installation.ledger.missing_heads([catalogue.ledger_head]) == []
    assert [one.file for one in catalogue.entries] == [works[day].file for day in (FIRST, SECOND)]
    for path in (installation.folder / "trusted").rglob("*"):
        assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0, path
    for path, data in installation.files("published").items():
        for moment in (b"2031-08-09", b"10:11:12", f"{installation.now.timestamp():.0f}".encode()):
            assert moment not in data + str(path).encode(), path


def test_a_day_to_come_is_refused_though_its_dump_lies_there(installation):
    tomorrow = installation.now.date() + timedelta(days=1)
    installation.simulate(tomorrow)
    outcome = installation.outcome(tomorrow)
    assert (outcome.status, installation.record(tomorrow)) == (Status.REFUSED, None)
    said = "it is a day to come, for in Europe/Paris it is 2016-07-01: nothing was read or spent"
    assert outcome.message.startswith(said)
    installation.later(hours=22)  # midnight in Paris
    assert installation.status(tomorrow) is Status.PUBLISHED


def test_a_day_that_fails_stops_no_other(installation):
    (installation.folder / "dumps/region=84" / f"date={FIRST}" / "part-0.parquet").write_bytes(b"not parquet")
    works = installation.release(FIRST, SECOND, THIRD)
    assert [work.status for work in works.values()] == [Status.REFUSED, Status.PUBLISHED, Status.WAITING]
    assert "region=84" in works[FIRST].message
    assert installation.record(FIRST) is installation.record(THIRD) is None


DAMAGE = {"delete": None, "alter": lambda data: data.replace(b'"simulated":false', b'"simulated":true ', 1)}


@pytest.mark.parametrize("damage", [lambda data: data, *DAMAGE.values()], ids=["whole", *DAMAGE])
def test_a_run_that_dies_after_staging_publishes_the_same_bytes(installation, monkeypatch, damage):
    installation.cut_short(FIRST, steps=STAGED)
    place = installation.settings.staging_of(FIRST, 0) / installation.record(FIRST).staged_hash[:32]
    staged = place.read_bytes()
    place.unlink()
    if damage:
        place.write_bytes(damage(staged))
    if place.exists() and place.read_bytes() == staged:
        # Another version of the code would encode other bytes.
        monkeypatch.setattr(statement, "published_rows", None)
    outcome = installation.ends(FIRST, Status.PUBLISHED)
    assert (installation.folder / "published" / outcome.file).read_bytes() == staged


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=list(DAMAGE))
def test_measurements_that_are_gone_or_altered_void_the_day(installation, damage):
    installation.cut_short(FIRST)
    (path,) = (installation.folder / f"trusted/measurements/two-regions/{FIRST}-r0").iterdir()
    data = path.read_bytes()
    path.unlink()
    if damage:
        path.write_bytes(damage(data))
    assert "void" in installation.outcome(FIRST).message
    assert installation.record(FIRST).state is ReleaseState.VOID
    assert installation.spent > Fraction(9, 10)
    assert not (installation.folder / "published").exists()
    installation.later(hours=1)
    assert installation.status(FIRST) is Status.VOID


def test_simulated_noise_is_never_published(installation):
    installation.ends(FIRST, Status.FAILED, "simulated", noise=simulated_noise(1))
    assert not (installation.folder / "published/data").exists()


def test_a_day_that_cannot_be_published_keeps_no_other_back(installation, monkeypatch):
    """The orchestrator repeats a step for all of its days when it failed for one of them."""
    run, works = installation.through(STEPS[:-1], FIRST, SECOND)
    genuine = run.ledger.record_published

    def refuse_the_second(key, *rest):
        if key.period == SECOND.isoformat():
            raise LedgerError("the ledger is away")
        genuine(key, *rest)

    with monkeypatch.context() as patch:
        patch.setattr(run.ledger, "record_published", refuse_the_second)
        first = chunk.publish_releases(run, works)
    assert [work.status for work in first] == [Status.PUBLISHED, Status.FAILED]
    again = chunk.publish_releases(run, works)
    assert [work.status for work in again] == [Status.PUBLISHED, Status.PUBLISHED]
    assert installation.record(SECOND).state is ReleaseState.PUBLISHED
    assert installation.problems() == []


@pytest.mark.parametrize(
    ("is_withdrawn", "status", "words"),
    [
        (False, Status.UNCHANGED, "another run published it meanwhile; nothing changed, nothing spent"),
        (True, Status.WITHDRAWN, "a restatement may take its place"),
    ],
)
def test_a_day_that_another_run_published_meanwhile_is_over(installation, is_withdrawn, status, words):
    run, works = installation.through(STEPS[:4], FIRST)
    installation.released(FIRST)
    if is_withdrawn:
        installation.withdraw(FIRST)
    record = installation.record(FIRST)
    (work,) = chunk.reserve_budget(run, works)
    assert (work.status, words in work.message) == (status, True)
    assert installation.record(FIRST) == record


DAYS = [date(2016, 3, 25) + timedelta(days=number) for number in range(5)]


@pytest.fixture
def l1(installation):
    installation.configure('method = "equally_spaced"', 'method = "l1"\nthreshold = "50"')
    installation.simulate(*DAYS)
    return installation


@pytest.mark.parametrize("order", few([[0, 2, 4, 1, 3], [4, 3, 2, 1, 0]], 1), ids=["late days", "backwards"])
def test_days_in_any_order_stay_within_epsilon_across_a_clock_change(l1, order):
    assert l1.statuses(*[DAYS[number] for number in order]) == {Status.PUBLISHED}
    steps = l1.rows().group_by("date").agg(pl.col("step").n_unique()).sort("date")["step"]
    assert steps.to_list() == [48, 48, 46, 48, 48]
    assert l1.spent <= 1
    assert l1.ledger.verify() == []


def test_the_plan_knows_the_points_of_the_days_around_it_and_is_drawn_by_what_was_charged(l1):
    """Were the rule to look again at draw time, a day could measure what it was not charged for."""
    l1.released(DAYS[0])
    (work,) = l1.release(DAYS[1], steps=RESERVED).values()
    plans = [spend for spend in l1.record(DAYS[1]).spends if isinstance(spend, CappedSpend)]
    before = [spend for spend in l1.record(DAYS[0]).spends if isinstance(spend, StepSpend)]
    for plan, spend in zip(plans, (one for one in before if one.stage == "samples"), strict=True):
        measured = [spend.first_step + step for step, weight in enumerate(spend.weights) if weight]
        assert plan.taken == tuple(measured)
        assert plan.cap == 10
    with pytest.raises(ParameterError, match="the features are for periods of 48 steps"):
        mechanism_for(l1.settings, DAYS[0]).plan(44)
    assert work.memory.state == {"points": {str(plan.level): list(plan.taken) for plan in plans}}


ROAMING = '[stream]\nunit = "roaming"\nleaves_per_step = {}\n'
TWO = '84 = "FR"\n11 = "FR"\n'
CHANGE = f'[[hierarchy.changes]]\nvalid_from = {SECOND}\nmerged = {{ ALL = ["84", "11"] }}\n'
HIERARCHIES = {"two": TWO, "one": 'ALL = "FR"\n', "dated": TWO + CHANGE}
OPTSTREAM = CONFIGURATION.replace('"1"\nbounds', '"1"\nresolution = "1"\nbounds')
TEXTS = {"OptStream": OPTSTREAM} | {
    name: released_by(name, OPTSTREAM, FEW_BLOCKS if name == "HistoryInformed" else "")
    for name in ("Laplace", "Gaussian", "HistoryInformed", "BudgetAbsorption", "Fast")
}


@pytest.mark.parametrize("leaves", [2, 3])
@pytest.mark.parametrize("hierarchy", HIERARCHIES.values(), ids=list(HIERARCHIES))
@pytest.mark.parametrize("text", TEXTS.values(), ids=list(TEXTS))
def test_the_noise_of_any_tree_is_for_all_readings_in_one_leaf(load_text, text, hierarchy, leaves):
    """A window of a device whose readings all move by alpha, also where they lie in one leaf."""
    settings = load_text(text.replace("[stream]\n", ROAMING.format(leaves)).replace(TWO, hierarchy))
    for day in (FIRST, SECOND):
        plan = mechanism_for(settings, day).plan(settings.calendar.n_steps(day), 0)
        moved = [replace(spend, leaves_changed=settings.stream.leaves_per_step) for spend in plan]
        assert worst_window(moved, settings.privacy.window).epsilon <= settings.model.budget


def test_a_day_that_readers_have_is_not_void_though_its_trusted_files_are_lost(installation, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(Ledger, "record_published", raising(LedgerError("away")))
        installation.release(FIRST)
    installation.later(hours=1)
    assert installation.entry(FIRST)
    shutil.rmtree(installation.settings.staging_of(FIRST, 0))
    shutil.rmtree(installation.settings.measurements_of(FIRST, 0))
    assert installation.status(FIRST) is Status.PUBLISHED
    assert installation.record(FIRST).state is ReleaseState.PUBLISHED
    assert installation.rows().height == 3 * 48


# Days that wait for their hour; nothing that readers see shows a moment of a run.

HOUR = datetime(2016, 6, 2, 4, tzinfo=UTC)  # 06:00 in Paris


@pytest.fixture
def held(installation):
    installation.configure('folder = "published"\n', 'folder = "published"\nnot_before = "06:00"\n')
    installation.now = HOUR - timedelta(minutes=10)
    return installation


def run(installation, *days, **changes):
    """As the flow does: the steps, then the leases."""
    works = installation.release(*days, **changes)
    let_go(installation.run(), works.values())
    return works


def test_a_run_before_the_hour_draws_and_holds_and_the_next_one_publishes_those_bytes(held):
    outcome = run(held, FIRST)[FIRST]
    assert (outcome.status, outcome.status.is_good) == (Status.HELD, True)
    assert "held until 2016-06-02 06:00 (Europe/Paris)" in outcome.message
    assert not (held.folder / "published").exists()
    assert held.record(FIRST).state is ReleaseState.DRAWN
    staged = (held.settings.staging_of(FIRST, 0) / held.record(FIRST).staged_hash[:32]).read_bytes()
    held.now = HOUR - timedelta(microseconds=1)
    assert run(held, FIRST)[FIRST].status is Status.HELD
    # the lease of a held day is over: the run at the hour need not wait for it
    held.now = HOUR
    works = run(held, FIRST, noise=None)
    assert works[FIRST].status is Status.PUBLISHED
    assert (held.folder / "published" / works[FIRST].file).read_bytes() == staged


def test_a_run_that_holds_its_day_changes_no_inode_that_readers_see(held):
    """The time of such a change would show when the draw was over."""
    published = held.folder / "published"

    def night(day):
        run(held, day)
        assert held.write_pages() == ()
        paths = [published, *published.rglob("*")]
        return {path: (path.stat().st_ino, path.stat().st_ctime_ns) for path in paths}

    held.simulate(FIRST - timedelta(days=1))
    before = night(FIRST - timedelta(days=1))
    assert night(FIRST) == before
    held.now = HOUR
    assert night(FIRST).keys() > before.keys()


def test_raw_values_stay_out_of_every_value_that_a_step_returns(installation):
    """What Prefect may print of a task's result."""
    run, works = installation.run(), [Requested(FIRST)]
    for step in STEPS:
        works = step(run, works)
        assert "load_mw" not in repr(works)
        assert "shape:" not in repr(works)
    assert isinstance(works[0], Ended)


@pytest.fixture(params=["memory", pytest.param("s3", marks=pytest.mark.nightly)])
def moved(installation, request):
    """The small installation with its dumps in a store, and its published folder there as well."""
    is_memory = request.param == "memory"
    root = f"/{installation.folder.name}" if is_memory else request.getfixturevalue("s3_bucket")
    filesystem = fsspec.filesystem(request.param, use_listings_cache=False)
    for path in sorted((installation.folder / "dumps").rglob("*")):
        if path.is_file():
            filesystem.pipe_file(f"{root}/{path.relative_to(installation.folder)}", path.read_bytes())
    url = f"{request.param}://{root.lstrip('/')}"
    installation.configure('folder = "dumps"', f'folder = "{url}/dumps"')
    installation.configure('folder = "published"', f'folder = "{url}/public"')
    installation.filesystem, installation.root = filesystem, root
    return installation


@pytest.mark.parametrize("moved", ["memory", "s3"], indirect=True)
def test_days_are_released_published_and_read(moved):
    done = moved.release(FIRST, SECOND)
    assert {work.status for work in done.values()} == {Status.PUBLISHED}
    url, rows = str(moved.settings.published_folder), moved.rows()
    assert rows["date"].unique().sort().to_list() == [FIRST, SECOND]
    assert not (moved.folder / "published").exists()
    assert moved.problems() == []
    settings, budget = moved.settings, budget_of(moved.settings, moved.ledger)
    status = status_document(settings, moved.watch(live=False))
    for document in (RunDocument.of(list(done.values()), settings, budget).to_json(), status):
        assert document["published"] == url
        assert all(day["file"].startswith("data/date=") for day in document["days"])
    # the lineage names objects and keyed hashes alone
    event, protocol = moved.lineage()[0], settings.input_folder.protocol
    (source, _) = event["inputs"]
    assert source["namespace"] == f"{protocol}://{moved.root.lstrip('/')}"
    assert source["name"] == f"dumps/region=84/date={FIRST}"
    (tag,) = source["facets"]["optstream_inputs"]["hmac_sha256"].values()
    assert len(tag) == 64
    assert event["outputs"][0]["name"].startswith(f"public/data/date={FIRST}/release-")
    said = json.dumps(moved.lineage())
    for path in moved.filesystem.find(f"{moved.root}/dumps"):
        tag = moved.filesystem.info(path).get("ETag", "no tag here").strip('"')
        assert tag not in said


def test_the_doctor_looks_at_stores(moved):
    moved.release(FIRST)
    now = datetime(2016, 7, 1, 12, tzinfo=UTC)
    found = examine(moved.settings, {}, now)
    (times,) = [one for one in found if "an object store shows when" in one.rule]
    assert times.severity == "note"
    assert "published.not_before" in times.remedy
    assert [one.place for one in found if one.severity != "note" and "://" in one.place] == []
    moved.configure('value = "load_mw"\n[trusted]', 'value = "load_mw"\nnot_before = "06:00"\n[trusted]')
    assert not [one for one in examine(moved.settings, {}, now) if "an object store shows" in one.rule]
    for path in moved.filesystem.find(f"{moved.root}/dumps"):
        if path.endswith("_SUCCESS"):
            moved.filesystem.rm_file(path)
    (waits,) = [one for one in examine(moved.settings, {}, now) if "none has" in one.rule]
    assert waits.place == str(moved.settings.input_folder)
    assert waits.remedy.endswith("or correct input.marker")


def test_what_stays_local(moved):
    settings = moved.settings
    with pytest.raises(ParameterError, match=r"made up in a folder of this machine, not in .*://"):
        simulate(settings, [FIRST], seed=1)
    export(settings, moved.run().ledger, moved.folder / "export")
    assert find_catalogue(settings.published_folder) is None
