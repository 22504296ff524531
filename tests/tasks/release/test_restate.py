"""A day measured again, by a person or by a later delivery, and a day published again from what was drawn."""

from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace

import polars as pl
import pytest

from optstream.catalogue import read_catalogue
from optstream.ledger import Key, ReleaseState
from optstream.privacy import worst_window
from tasks.operate.simulate import simulate
from tasks.plan.backfill import delivered_days, plan_backfill
from tasks.plan.dry_run import dry_run
from tasks.release import publish as publish_module
from tasks.release.publish import days_published
from tasks.release.run import Status
from tests.failing import no_noise
from tests.tasks.two_regions import DAYS, DRAWN, RESERVED, assert_ended, night

THREE = DAY, NEXT, THIRD = DAYS[:3]
L1 = ('method = "equally_spaced"\nn_samples = 10', 'method = "l1"\nn_samples = 10\nthreshold = "50"')


@pytest.fixture
def kept_back(installation):
    installation.configure('restatement_share = "0"', 'restatement_share = "1/10"')
    installation.released(DAY, NEXT)
    return installation


def newest(installation, day=DAY):
    return installation.ledger.latest("two-regions", day.isoformat())


def test_first_releases_leave_the_share_alone_and_restatements_use_no_more(kept_back):
    assert Fraction(89, 100) < kept_back.spent <= Fraction(9, 10)
    assert kept_back.statuses(DAY, NEXT, restate=True) == {Status.PUBLISHED}
    assert Fraction(99, 100) < kept_back.spent <= 1
    assert kept_back.rows()["revision"].unique().to_list() == [1]
    assert len(list((kept_back.folder / "published/superseded").rglob("*.parquet"))) == 2
    assert kept_back.problems() == []


@pytest.mark.parametrize(
    ("share", "revision", "words"),
    [("1/10", 1, ("revision 2", "Nothing was reserved")), ("0", 0, ("restatement_share",))],
)
def test_without_a_share_that_is_left_nothing_is_measured_again(installation, share, revision, words):
    installation.configure('restatement_share = "0"', f'restatement_share = "{share}"')
    installation.released(DAY)
    for _ in range(revision):
        installation.release(DAY, restate=True)
    before = installation.files("published", "trusted/measurements")
    installation.ends(DAY, Status.REFUSED, *words, restate=True)
    assert installation.files("published", "trusted/measurements") == before
    assert newest(installation).revision == revision


@pytest.mark.parametrize(("is_drawn", "asked_again"), [(True, True), (True, False), (False, False)])
def test_a_restatement_that_was_cut_short_goes_on_or_is_drawn(kept_back, is_drawn, asked_again):
    """Nobody saw that revision: that readers saw the one before does not make it a second draw."""
    (work,) = kept_back.release(DAY, steps=DRAWN if is_drawn else RESERVED, restate=True).values()
    if not is_drawn:
        kept_back.ledger.begin_draw(work.reservation, kept_back.now)
    kept_back.later(hours=1)
    drawn = kept_back.files("trusted/measurements")
    assert newest(kept_back).state is (ReleaseState.DRAWN if is_drawn else ReleaseState.RESERVED)
    assert kept_back.status(DAY, restate=asked_again) is Status.PUBLISHED
    assert (kept_back.files("trusted/measurements") == drawn) is is_drawn
    assert (newest(kept_back).revision, newest(kept_back).redraws) == (1, int(not is_drawn))
    assert kept_back.entry(DAY).revision == 1
    assert kept_back.problems() == []


def test_l1_plans_of_one_share_do_not_look_at_the_other(installation):
    """Windows full of first points leave restatements their points, and the other way round."""
    installation.configure(*L1)
    installation.configure('restatement_share = "0"', 'restatement_share = "1/2"')
    installation.simulate(THIRD)
    installation.released(DAY, NEXT)
    assert installation.statuses(NEXT, DAY, restate=True) == {Status.PUBLISHED}
    assert installation.status(THIRD) is Status.PUBLISHED
    assert installation.spent <= 1
    assert installation.ledger.verify() == []


def test_a_restatement_that_would_measure_nothing_is_refused(either, learning, monkeypatch):
    """HistoryInformed has nothing left for a second one: the first stays what readers have."""
    learning.release(DAY, NEXT)
    assert learning.status(DAY, restate=True) is Status.PUBLISHED
    before = learning.files("published", "trusted/measurements")
    learning.ends(DAY, Status.REFUSED, "would measure nothing", restate=True)
    assert learning.files("published", "trusted/measurements") == before
    assert newest(learning).revision == 1
    assert learning.problems() == []
    # the fault: nobody looks at what the plan costs
    monkeypatch.setattr("tasks.release.reserve.worst_window", lambda *_: SimpleNamespace(epsilon=1))
    assert learning.status(DAY, restate=True) is Status.PUBLISHED
    (problem,) = learning.problems()
    assert "revision 2 measured nothing" in problem


@pytest.fixture
def published(either):
    either.released(DAY, NEXT)
    return either


def place_of(installation, which, day=DAY):
    return installation.folder / "published" / getattr(installation.entry(day), which)


def again(installation, *days):
    """What became of them; the ledger has no new event, and no noise was asked for."""
    head = installation.ledger.head("two-regions")
    outcomes = installation.publish_again(*days, noise=no_noise())
    assert installation.ledger.head("two-regions") == head
    return outcomes


def bytes_of(installation):
    return {name: data for name, data in installation.files("published").items() if name.suffix != ".lock"}


def staged(installation):
    return [path for path in (installation.folder / "trusted/staging").rglob("*") if path.is_file()]


def forget_staging(installation):
    for path in staged(installation):
        path.unlink()


def cut(path):
    path.write_bytes(path.read_bytes()[:100])


def spoil(path):
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(bytes(data))


HARMS = [(Path.unlink, ["file"]), (cut, ["file"]), (Path.unlink, ["manifest"]), (spoil, ["file", "manifest"])]


@pytest.mark.parametrize("source", ["staging", "measurements"])
def test_the_same_bytes_are_back(published, source):
    before = bytes_of(published)
    for harm, which in HARMS:
        if source == "measurements":
            forget_staging(published)
        for name in which:
            harm(place_of(published, name))
        assert published.problems()
        assert_ended(*again(published, DAY), Status.PUBLISHED, "same bytes")
        assert bytes_of(published) == before
        assert published.problems() == []
    assert again(published, DAY, NEXT)[0].status is Status.UNCHANGED
    assert bytes_of(published) == before


def test_a_catalogue_that_is_no_catalogue_is_removed_and_made_again_as_it_was(published):
    path = published.folder / "published/catalogue.json"
    before = read_catalogue(published.folder / "published")
    cut(path)
    assert_ended(*again(published, DAY), Status.FAILED, "or remove it")
    path.unlink()
    assert days_published(published.run()) == {DAY, NEXT}
    assert {one.status for one in again(published, DAY, NEXT)} == {Status.PUBLISHED}
    after = read_catalogue(published.folder / "published")
    assert [entry.file for entry in after.entries] == [entry.file for entry in before.entries]
    assert published.problems() == []


def test_a_day_that_is_withdrawn_while_it_is_published_again_is_refused(published, monkeypatch):
    """The withdrawal comes between the look at the ledger and the turn at the folder."""
    real = publish_module.publish_releases

    def late(*arguments):
        published.withdraw(DAY)
        return real(*arguments)

    place_of(published, "file").unlink()
    monkeypatch.setattr(publish_module, "publish_releases", late)
    assert_ended(*published.publish_again(DAY), Status.FAILED, "withdrawn")
    assert published.rows()["date"].unique().to_list() == [NEXT]
    assert published.problems() == []


@pytest.mark.parametrize(("how", "words"), [("withdraw", "was withdrawn"), ("compromise", "know the noise")])
def test_a_day_that_was_taken_back_is_refused(published, how, words):
    getattr(published, how)(DAY)
    if how == "compromise":
        place_of(published, "file").unlink()
    before = bytes_of(published)
    assert_ended(*again(published, DAY), Status.FAILED, words)
    assert bytes_of(published) == before
    assert list((published.folder / "published/data").glob(f"date={DAY}/*")) == []


def test_what_was_never_published_is_left_to_a_run(installation):
    installation.release(DAY, steps=DRAWN)
    drawn, unknown = again(installation, DAY, NEXT)
    assert (drawn.status, "DRAWN, not published" in drawn.message) == (Status.FAILED, True)
    assert (unknown.status, "optstream run" in unknown.message) == (Status.FAILED, True)
    assert not (installation.folder / "published/catalogue.json").exists()


ANOTHER = b'"another"'
FORGED = (b"\xff\xfe{", b"[" * 200_000, b'{"statement": ' + b"1" * 5000 + b"}", ANOTHER)


@pytest.mark.parametrize("forged", FORGED, ids=["no text", "nested", "a huge number", "another stream"])
def test_other_bytes_than_the_recorded_ones_are_never_published(published, monkeypatch, forged):
    """Neither spoilt staging, nor what another configuration or version computes under a forged statement."""
    for path in staged(published):
        spoil(path)
    place_of(published, "file").unlink()
    published.configure("n_samples = 10", "n_samples = 12")
    monkeypatch.setattr("optstream.__version__", "99.0")
    manifest = place_of(published, "manifest")
    edited = manifest.read_bytes().replace(b'"two-regions"', forged)
    manifest.write_bytes(edited if forged == ANOTHER else forged)
    assert_ended(*again(published, DAY), Status.FAILED, "from a copy")
    assert list((published.folder / "published/data").glob(f"date={DAY}/*")) == []


@pytest.mark.parametrize("what", ["another version", "a restated day"])
def test_what_was_stated_comes_back(installation, monkeypatch, what):
    installation.configure('restatement_share = "0"', 'restatement_share = "1/10"')
    installation.released(DAY)
    if what == "a restated day":
        installation.release(DAY, restate=True)
    else:
        monkeypatch.setattr("optstream.__version__", "99.0")  # the statement is the manifest's
    forget_staging(installation)
    before = bytes_of(installation)
    place_of(installation, "file").unlink()
    assert again(installation, DAY)[0].status is Status.PUBLISHED
    assert bytes_of(installation) == before
    assert installation.entry(DAY).revision == int(what == "a restated day")


@pytest.mark.parametrize("source", ["staging", "measurements"])
def test_a_new_estimate_comes_back_as_readers_had_it(learning, source):
    learning.once(night, *THREE)
    before = bytes_of(learning)
    assert learning.entry(DAY).vintage == 1
    if source == "measurements":
        forget_staging(learning)
    for day in THREE:
        place_of(learning, "file", day).unlink()
    assert {one.status for one in again(learning, *THREE)} == {Status.PUBLISHED}
    assert bytes_of(learning) == before
    assert learning.problems() == []


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
    return [spend for day in THREE for spend in installation.record(day, revision).spends]


def test_every_delivery_of_neighbouring_days_is_released_with_its_own_share(planned):
    planned.configure("revisions = 3", "revisions = 2")
    planned.released(*THREE)
    for revision in (1, 2):
        assert planned.statuses(*THREE) == {Status.UNCHANGED}
        deliver(planned, revision, *THREE)
        assert plan_backfill(planned.settings, planned.ledger, THREE).to_run == tuple(THREE)
        assert planned.statuses(*THREE) == {Status.PUBLISHED}
        assert {planned.entry(day).revision for day in THREE} == {revision}
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
    files = [folder.glob(f"region=*/date={DAY}/*.parquet") for folder in (first, again)]
    sums = [sum(pl.read_parquet(file)["load_mw"].sum() for file in own) for own in files]
    root = planned.rows().filter(pl.col("node") == "FR")["load_mw"].sum()
    assert abs(root - sums[1]) < abs(sums[0] - sums[1]) / 20
    assert planned.problems() == []
