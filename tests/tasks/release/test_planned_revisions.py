"""Later deliveries of a day: each a restatement of its own share, which needs no person."""

from datetime import date
from fractions import Fraction

import polars as pl
import pytest

from optstream.ledger import Key
from optstream.privacy import worst_window
from tasks.operate.simulate import simulate
from tasks.plan.backfill import delivered_days, plan_backfill
from tasks.plan.dry_run import dry_run
from tasks.release.run import Status
from tests.tasks.two_regions import RESERVED

DAY, NEXT, THIRD = DAYS = [date(2016, 6, day) for day in (1, 2, 3)]


def deliver(installation, revision, *days):
    settings = installation.settings
    placed = settings.input.model_copy(update={"folder": f"dumps/revision={revision}"})
    simulate(settings.model_copy(update={"input": placed}), days, seed=100 + revision)


@pytest.fixture
def planned(installation):
    """The small stream of three days; every delivery of a day has a quarter of epsilon."""
    installation.configure('restatement_share = "0"', "revisions = 3")
    installation.simulate(THIRD)
    return installation


def spends(installation, revision):
    return [
        spend
        for day in DAYS
        for spend in installation.ledger.find(Key("two-regions", day.isoformat(), revision)).spends
    ]


def test_every_delivery_of_neighbouring_days_is_released_with_its_own_share(planned):
    planned.configure("revisions = 3", "revisions = 2")
    planned.released(*DAYS)
    for revision in (1, 2):
        assert planned.statuses(*DAYS) == {Status.UNCHANGED}
        deliver(planned, revision, *DAYS)
        assert plan_backfill(planned.settings, planned.ledger, DAYS).to_run == tuple(DAYS)
        assert planned.statuses(*DAYS) == {Status.PUBLISHED}
        assert {planned.entry(day).revision for day in DAYS} == {revision}
    costs = [worst_window(spends(planned, revision), 48).epsilon for revision in range(3)]
    assert all(Fraction(32, 100) < cost <= Fraction(1, 3) for cost in costs)
    assert Fraction(96, 100) < planned.spent <= 1
    # a third has no share: it is refused, and costs nothing
    deliver(planned, 3, DAY)
    (planned.folder / "dumps/revision=3").rename(planned.folder / "dumps/_revision=3")
    before = planned.files("published", "trusted/measurements")
    assert planned.status(DAY) is Status.UNCHANGED
    planned.ends(DAY, Status.REFUSED, "budget.revisions keeps shares for 2", restate=True)
    assert planned.files("published", "trusted/measurements") == before
    assert planned.problems() == []


@pytest.mark.parametrize(("share", "warned"), [("", False), ('restatement_share = "1/10"', True)])
def test_noisier_revisions_than_first_releases_are_warned_of(planned, share, warned):
    planned.configure("revisions = 3", f"revisions = 3\n{share}")
    found = [one for one in dry_run(planned.settings, [DAY]).warnings if "budget.revisions" in one]
    assert len(found) == warned
    assert all("27 times" in one for one in found)


@pytest.mark.parametrize(
    ("what", "status"),
    [
        ("incomplete", Status.UNCHANGED),
        ("second first", Status.UNCHANGED),
        ("withdrawn", Status.WITHDRAWN),
        ("compromised", Status.UNCHANGED),
        ("broken", Status.REFUSED),
        ("void", Status.PUBLISHED),
    ],
)
def test_what_a_later_delivery_does_by_itself(planned, what, status):
    planned.released(DAY)
    deliver(planned, 2 if what == "second first" else 1, DAY)
    region = planned.folder / f"dumps/revision=1/region=84/date={DAY}"
    match what:
        case "incomplete":
            (region / "_SUCCESS").unlink()
        case "withdrawn":
            planned.withdraw(DAY)
        case "compromised":
            planned.compromise(DAY)
        case "broken":
            (region / "notes.txt").write_text("no dump")
        case "void":
            planned.cut_short(DAY)
            planned.ledger.void(Key("two-regions", str(DAY), 1), "a person said so", planned.now)
            assert planned.status(DAY) is Status.VOID
            deliver(planned, 2, DAY)
    before, ended = planned.spent, planned.outcome(DAY)
    assert ended.status is status
    assert ("its next delivery" in ended.message) is (what == "incomplete")
    if status is not Status.PUBLISHED:
        assert planned.spent == before
        assert delivered_days(planned.settings, planned.ledger) == ((DAY,) if what == "broken" else ())


def test_a_restatement_that_died_goes_on_from_its_own_delivery_and_measures_nothing_of_the_first(planned):
    planned.configure('epsilon = "1"', 'epsilon = "5000"')
    planned.released(DAY)
    deliver(planned, 1, DAY)
    planned.cut_short(DAY, steps=RESERVED)
    assert planned.status(DAY) is Status.PUBLISHED
    assert planned.entry(DAY).revision == 1
    assert planned.settings.delivered(1).input.folder == "dumps/revision=1"
    first, again = ((planned.folder / f"dumps{place}") for place in ("", "/revision=1"))
    sums = [
        sum(pl.read_parquet(file)["load_mw"].sum() for file in folder.glob(f"region=*/date={DAY}/*.parquet"))
        for folder in (first, again)
    ]
    root = planned.rows().filter(pl.col("node") == "FR")["load_mw"].sum()
    assert abs(root - sums[1]) < abs(sums[0] - sums[1]) / 20
    assert planned.problems() == []


def test_without_the_key_a_folder_of_a_revision_stops_the_day(installation):
    deliver(installation, 1, DAY)
    assert "revision=1" in installation.outcome(DAY).message
