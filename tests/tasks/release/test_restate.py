"""A day measured again under its own budget, and a day published again from what was drawn."""

from dataclasses import dataclass
from datetime import date, timedelta
from fractions import Fraction
from types import SimpleNamespace

import pytest

from optstream.catalogue import check_files, read_catalogue, read_published
from optstream.errors import LedgerError
from optstream.ledger import Key, ReleaseState
from tasks.release import pipeline as steps
from tasks.release.publish import days_published
from tasks.release.run import Status
from tests.tasks.release.noises import no_noise
from tests.tasks.release.vintage_nights import DAYS, night
from tests.tasks.two_regions import STEPS, Installation

DAY, NEXT = date(2016, 6, 1), date(2016, 6, 2)
L1 = ('method = "equally_spaced"\nn_samples = 10', 'method = "l1"\nn_samples = 10\nthreshold = "50"')
UNTIL_DRAW = STEPS[:6]


@pytest.fixture
def kept_back(installation):
    """A tenth of epsilon is kept back; two days are released from the rest."""
    installation.configure('restatement_share = "0"', 'restatement_share = "1/10"')
    installation.released(DAY, NEXT)
    return installation


def spent(installation):
    return installation.ledger.worst("people").epsilon


def restate(installation, *days, **more):
    return [work.outcome for work in installation.release(*days, restate=True, **more).values()]


def test_first_releases_leave_the_share_alone_and_restatements_use_no_more(kept_back):
    assert Fraction(89, 100) < spent(kept_back) <= Fraction(9, 10)
    assert [outcome.status for outcome in restate(kept_back, DAY, NEXT)] == [Status.PUBLISHED] * 2
    assert Fraction(99, 100) < spent(kept_back) <= 1
    assert kept_back.ledger.verify() == []
    rows = read_published(kept_back.folder / "published", verify=True)
    assert rows["revision"].unique().to_list() == [1]
    assert check_files(kept_back.folder / "published") == []
    assert len(list((kept_back.folder / "published/superseded").rglob("*.parquet"))) == 2


def test_the_share_holds_one_restatement_of_a_day(kept_back):
    restate(kept_back, DAY)
    before = kept_back.files("published", "trusted/measurements")
    (again,) = restate(kept_back, DAY)
    assert again.status is Status.REFUSED
    assert "revision 2" in again.message
    assert "Nothing was reserved" in again.message
    assert kept_back.files("published", "trusted/measurements") == before
    assert kept_back.ledger.latest("two-regions", DAY.isoformat()).revision == 1


def test_without_a_share_nothing_is_measured_again(installation):
    installation.released(DAY)
    before = installation.files("published")
    (refused,) = restate(installation, DAY)
    assert refused.status is Status.REFUSED
    assert "restatement_share" in refused.message
    assert installation.files("published") == before
    assert installation.ledger.latest("two-regions", DAY.isoformat()).revision == 0


@pytest.mark.parametrize("asked_again", [True, False])
def test_a_restatement_that_was_cut_short_goes_on_from_its_measurements(kept_back, asked_again):
    kept_back.release(DAY, steps=UNTIL_DRAW, restate=True)
    drawn = kept_back.files("trusted/measurements")
    assert kept_back.ledger.latest("two-regions", DAY.isoformat()).state is ReleaseState.DRAWN
    kept_back.later(hours=1)
    assert kept_back.release(DAY, restate=asked_again)[DAY].outcome.status is Status.PUBLISHED
    assert kept_back.files("trusted/measurements") == drawn
    assert read_catalogue(kept_back.folder / "published").entry(DAY).revision == 1


def test_l1_plans_of_one_share_do_not_look_at_the_other(installation):
    """Windows full of first points leave restatements their points, and the other way round."""
    installation.configure(*L1)
    installation.configure('restatement_share = "0"', 'restatement_share = "1/2"')
    installation.simulate(date(2016, 6, 3))
    installation.released(DAY, NEXT)
    assert [outcome.status for outcome in restate(installation, NEXT, DAY)] == [Status.PUBLISHED] * 2
    first = installation.release(date(2016, 6, 3))[date(2016, 6, 3)]
    assert first.outcome.status is Status.PUBLISHED
    assert spent(installation) <= 1
    assert installation.ledger.verify() == []


def test_a_live_owner_keeps_its_day(installation):
    (work,) = installation.release(DAY, steps=STEPS[:5]).values()
    run = installation.run()
    for step in STEPS[5:7]:
        installation.later(minutes=6)
        (work,) = step(run, [work])
    installation.later(minutes=14)
    with pytest.raises(LedgerError, match="another run"):
        run.ledger.adopt(
            Key("two-regions", DAY.isoformat()), "a thief", installation.now, timedelta(minutes=15)
        )
    installation.later(minutes=20)
    (published,) = steps.publish_releases(run, [work])
    assert published.outcome.status is Status.PUBLISHED


def test_an_owner_that_was_taken_over_while_away_does_not_renew(installation):
    (work,) = installation.release(DAY, steps=STEPS[:5]).values()
    away = installation.run()
    installation.later(minutes=20)
    installation.release(DAY)
    installation.later(minutes=20)
    (stale,) = steps.draw_measurements(away, [work])
    assert stale.outcome.status is Status.FAILED
    assert "taken over by another run" in stale.outcome.message
    assert installation.ledger.verify() == []


def test_a_restatement_that_would_measure_nothing_is_refused(either, learning, monkeypatch):
    """HistoryInformed has nothing left for a second one: the first stays what readers have."""
    learning.release(DAY, NEXT)
    assert [outcome.status for outcome in restate(learning, DAY)] == [Status.PUBLISHED]
    before = learning.files("published", "trusted/measurements")
    (again,) = restate(learning, DAY)
    assert again.status is Status.REFUSED
    assert "would measure nothing" in again.message
    assert learning.files("published", "trusted/measurements") == before
    assert learning.ledger.latest("two-regions", DAY.isoformat()).revision == 1
    assert learning.problems() == []
    # the fault: nobody looks at what the plan costs
    monkeypatch.setattr("tasks.release.reserve.worst_window", lambda *_: SimpleNamespace(epsilon=1))
    assert [outcome.status for outcome in restate(learning, DAY)] == [Status.PUBLISHED]
    (problem,) = learning.problems()
    assert "revision 2 measured nothing" in problem


@dataclass
class Published:
    installation: Installation

    @property
    def folder(self):
        return self.installation.folder / "published"

    def file(self, day):
        return self.folder / read_catalogue(self.folder).entry(day).file

    def manifest(self, day):
        return self.folder / read_catalogue(self.folder).entry(day).manifest

    def again(self, *days):
        """What became of them; the ledger has no new event, and no noise was asked for."""
        head = self.installation.ledger.head("two-regions")
        outcomes = self.installation.publish_again(*days, noise=no_noise())
        assert self.installation.ledger.head("two-regions") == head
        return outcomes

    def bytes(self):
        return {
            name: data
            for name, data in self.installation.files("published").items()
            if name.suffix != ".lock"
        }

    def staged(self):
        return [path for path in (self.installation.folder / "trusted/staging").rglob("*") if path.is_file()]

    def forget_staging(self):
        for path in self.staged():
            lose(path)


@pytest.fixture
def published(either):
    either.released(DAY, NEXT)
    return Published(either)


def lose(path):
    path.unlink()


def truncate(path):
    path.write_bytes(path.read_bytes()[:100])


def spoil(path):
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(bytes(data))


@pytest.mark.parametrize(
    ("harm", "which"),
    [(lose, "file"), (truncate, "file"), (spoil, "manifest"), (lose, "manifest"), (spoil, "both")],
)
@pytest.mark.parametrize("source", ["staging", "measurements"])
def test_the_same_bytes_are_back(published, harm, source, which):
    before = published.bytes()
    if source == "measurements":
        published.forget_staging()
    for name in ("file", "manifest") if which == "both" else (which,):
        harm(getattr(published, name)(DAY))
    assert published.installation.problems()
    (outcome,) = published.again(DAY)
    assert (outcome.status, "same bytes" in outcome.message) == (Status.PUBLISHED, True), outcome
    assert published.bytes() == before
    assert published.installation.problems() == []
    assert published.again(DAY, NEXT)[0].status is Status.UNCHANGED
    assert published.bytes() == before


@pytest.mark.parametrize("either", ["sqlite", "postgresql"], indirect=True)
def test_a_whole_folder_that_was_lost_is_made_again(published):
    before = read_published(published.folder)
    for path in sorted(published.folder.rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    assert days_published(published.installation.run()) == {DAY, NEXT}
    assert [one.status for one in published.again(DAY, NEXT)] == [Status.PUBLISHED] * 2
    assert read_published(published.folder, verify=True).equals(before)
    assert published.installation.problems() == []


def test_a_catalogue_that_is_no_catalogue_is_removed_and_made_again_as_it_was(published):
    path = published.folder / "catalogue.json"
    before = read_catalogue(published.folder)
    truncate(path)
    (told,) = published.installation.publish_again(DAY)
    assert (told.status, "or remove it" in told.message) == (Status.FAILED, True), told
    path.unlink()
    assert [one.status for one in published.again(DAY, NEXT)] == [Status.PUBLISHED] * 2
    after = read_catalogue(published.folder)
    assert [entry.file for entry in after.entries] == [entry.file for entry in before.entries]
    assert published.installation.problems() == []


def test_a_withdrawn_day_is_refused(published):
    published.installation.withdraw(DAY)
    before = published.bytes()
    (outcome,) = published.again(DAY)
    assert (outcome.status, "was withdrawn" in outcome.message) == (Status.FAILED, True)
    assert published.bytes() == before
    assert days_published(published.installation.run()) == {NEXT}


@pytest.mark.parametrize("either", ["sqlite", "postgresql"], indirect=True)
def test_a_day_that_is_withdrawn_while_it_is_published_again_is_refused(published, monkeypatch):
    """The withdrawal comes between the look at the ledger and the turn at the folder."""
    from tasks.release import publish as module

    real = module.publish_releases

    def late(*arguments):
        published.installation.withdraw(DAY)
        return real(*arguments)

    lose(published.file(DAY))
    monkeypatch.setattr(module, "publish_releases", late)
    (outcome,) = published.installation.publish_again(DAY)
    assert (outcome.status, "withdrawn" in outcome.message) == (Status.FAILED, True)
    assert read_published(published.folder)["date"].unique().to_list() == [NEXT]
    assert check_files(published.folder) == []


def test_a_day_whose_noise_is_known_is_refused(published):
    published.installation.compromise(DAY)
    lose(published.file(DAY))
    (outcome,) = published.again(DAY)
    assert (outcome.status, "know the noise" in outcome.message) == (Status.FAILED, True)
    assert list((published.folder / "data").glob(f"date={DAY}/*")) == []


def test_what_was_never_published_is_left_to_a_run(installation):
    installation.release(DAY, steps=STEPS[:6])
    drawn, unknown = Published(installation).again(DAY, NEXT)
    assert (drawn.status, "DRAWN, not published" in drawn.message) == (Status.FAILED, True)
    assert (unknown.status, "optstream run" in unknown.message) == (Status.FAILED, True)
    assert not (installation.folder / "published/catalogue.json").exists()


def test_other_bytes_than_the_recorded_ones_are_never_published(published):
    """Neither spoilt staging nor what another configuration computes takes a file's place."""
    for path in published.staged():
        spoil(path)
    lose(published.file(DAY))
    published.installation.configure("n_samples = 10", "n_samples = 12")
    manifest = published.manifest(DAY)
    manifest.write_text(manifest.read_text().replace('"two-regions"', '"another"'))
    (outcome,) = published.again(DAY)
    assert (outcome.status, "from a copy" in outcome.message) == (Status.FAILED, True), outcome
    assert list((published.folder / "data").glob(f"date={DAY}/*")) == []


def test_another_version_takes_the_statement_from_the_manifest(published, monkeypatch):
    before = published.bytes()
    published.forget_staging()
    lose(published.file(DAY))
    monkeypatch.setattr("optstream.__version__", "99.0")
    assert published.again(DAY)[0].status is Status.PUBLISHED
    assert published.bytes() == before


def test_a_restated_day_comes_back_in_its_newest_revision(installation):
    installation.configure('restatement_share = "0"', 'restatement_share = "1/10"')
    installation.released(DAY)
    installation.release(DAY, restate=True)
    published = Published(installation)
    published.forget_staging()
    before = published.bytes()
    lose(published.file(DAY))
    assert published.again(DAY)[0].status is Status.PUBLISHED
    assert published.bytes() == before
    assert read_catalogue(published.folder).entry(DAY).revision == 1


def three_nights(installation):
    for day in DAYS[:3]:
        night(installation, day)


@pytest.mark.parametrize("source", ["staging", "measurements"])
def test_a_new_estimate_comes_back_as_readers_had_it(learning, source):
    learning.once(three_nights)
    published = Published(learning)
    before = published.bytes()
    assert read_catalogue(published.folder).entry(DAYS[0]).vintage == 2
    if source == "measurements":
        published.forget_staging()
    for day in DAYS[:3]:
        lose(published.file(day))
    assert {one.status for one in published.again(*DAYS[:3])} == {Status.PUBLISHED}
    assert published.bytes() == before
    assert learning.problems() == []
