"""A day measured again under its own budget, and a day published again from what was drawn."""

from dataclasses import dataclass
from fractions import Fraction
from types import SimpleNamespace

import pytest

from optstream.catalogue import read_catalogue
from optstream.ledger import ReleaseState
from tasks.release import publish as publish_module
from tasks.release.publish import days_published
from tasks.release.run import Status
from tests.tasks.release.noises import no_noise
from tests.tasks.two_regions import DAYS, DRAWN, RESERVED, Installation, assert_ended, night

DAY, NEXT, THIRD = DAYS[:3]
L1 = ('method = "equally_spaced"\nn_samples = 10', 'method = "l1"\nn_samples = 10\nthreshold = "50"')


@pytest.fixture
def kept_back(installation):
    """A tenth of epsilon is kept back; two days are released from the rest."""
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
def test_a_restatement_that_was_cut_short_goes_on_from_its_measurements_or_is_drawn(
    kept_back, is_drawn, asked_again
):
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


# Days that are published again.


@dataclass
class Published:
    installation: Installation

    @property
    def folder(self):
        return self.installation.folder / "published"

    def path(self, which, day=DAY):
        return self.folder / getattr(self.installation.entry(day), which)

    def again(self, *days):
        """What became of them; the ledger has no new event, and no noise was asked for."""
        head = self.installation.ledger.head("two-regions")
        outcomes = self.installation.publish_again(*days, noise=no_noise())
        assert self.installation.ledger.head("two-regions") == head
        return outcomes

    def comes_back(self, *days):
        """Whether these days are published again, as they were before they were harmed."""
        return {one.status for one in self.again(*days)} == {Status.PUBLISHED}

    def is_refused(self, words, *days):
        assert_ended(*self.again(*days), Status.FAILED, words)
        return True

    def bytes(self):
        found = self.installation.files("published")
        return {name: data for name, data in found.items() if name.suffix != ".lock"}

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


HARMS = [(lose, ["file"]), (truncate, ["file"]), (lose, ["manifest"]), (spoil, ["file", "manifest"])]


@pytest.mark.parametrize("source", ["staging", "measurements"])
def test_the_same_bytes_are_back(published, source):
    before = published.bytes()
    for harm, which in HARMS:
        if source == "measurements":
            published.forget_staging()
        for name in which:
            harm(published.path(name))
        assert published.installation.problems()
        assert_ended(*published.again(DAY), Status.PUBLISHED, "same bytes")
        assert published.bytes() == before
        assert published.installation.problems() == []
    assert published.again(DAY, NEXT)[0].status is Status.UNCHANGED
    assert published.bytes() == before


def test_a_catalogue_that_is_no_catalogue_is_removed_and_made_again_as_it_was(published):
    path = published.folder / "catalogue.json"
    before = read_catalogue(published.folder)
    truncate(path)
    assert published.is_refused("or remove it", DAY)
    path.unlink()
    assert days_published(published.installation.run()) == {DAY, NEXT}
    assert published.comes_back(DAY, NEXT)
    after = read_catalogue(published.folder)
    assert [entry.file for entry in after.entries] == [entry.file for entry in before.entries]
    assert published.installation.problems() == []


def test_a_day_that_is_withdrawn_while_it_is_published_again_is_refused(published, monkeypatch):
    """The withdrawal comes between the look at the ledger and the turn at the folder."""
    real = publish_module.publish_releases

    def late(*arguments):
        published.installation.withdraw(DAY)
        return real(*arguments)

    lose(published.path("file"))
    monkeypatch.setattr(publish_module, "publish_releases", late)
    assert_ended(*published.installation.publish_again(DAY), Status.FAILED, "withdrawn")
    assert published.installation.rows()["date"].unique().to_list() == [NEXT]
    assert published.installation.problems() == []


@pytest.mark.parametrize(("how", "words"), [("withdraw", "was withdrawn"), ("compromise", "know the noise")])
def test_a_day_that_was_taken_back_is_refused(published, how, words):
    getattr(published.installation, how)(DAY)
    if how == "compromise":
        lose(published.path("file"))
    before = published.bytes()
    assert published.is_refused(words, DAY)
    assert published.bytes() == before
    assert list((published.folder / "data").glob(f"date={DAY}/*")) == []


def test_what_was_never_published_is_left_to_a_run(installation):
    installation.release(DAY, steps=DRAWN)
    drawn, unknown = Published(installation).again(DAY, NEXT)
    assert (drawn.status, "DRAWN, not published" in drawn.message) == (Status.FAILED, True)
    assert (unknown.status, "optstream run" in unknown.message) == (Status.FAILED, True)
    assert not (installation.folder / "published/catalogue.json").exists()


ANOTHER = b'"another"'
FORGED = (b"\xff\xfe{", b"[" * 200_000, b'{"statement": ' + b"1" * 5000 + b"}", ANOTHER)


@pytest.mark.parametrize("forged", FORGED, ids=["no text", "nested", "a huge number", "another stream"])
def test_other_bytes_than_the_recorded_ones_are_never_published(published, monkeypatch, forged):
    """Neither spoilt staging, nor what another configuration or version computes under a forged statement."""
    for path in published.staged():
        spoil(path)
    lose(published.path("file"))
    published.installation.configure("n_samples = 10", "n_samples = 12")
    monkeypatch.setattr("optstream.__version__", "99.0")
    manifest = published.path("manifest")
    edited = manifest.read_bytes().replace(b'"two-regions"', forged)
    manifest.write_bytes(edited if forged == ANOTHER else forged)
    assert published.is_refused("from a copy", DAY)
    assert list((published.folder / "data").glob(f"date={DAY}/*")) == []


@pytest.mark.parametrize("what", ["another version", "a restated day"])
def test_what_was_stated_comes_back(installation, monkeypatch, what):
    installation.configure('restatement_share = "0"', 'restatement_share = "1/10"')
    installation.released(DAY)
    if what == "a restated day":
        installation.release(DAY, restate=True)
    else:
        monkeypatch.setattr("optstream.__version__", "99.0")  # the statement is the manifest's
    published = Published(installation)
    published.forget_staging()
    before = published.bytes()
    lose(published.path("file"))
    assert published.comes_back(DAY)
    assert published.bytes() == before
    assert installation.entry(DAY).revision == int(what == "a restated day")


@pytest.mark.parametrize("source", ["staging", "measurements"])
def test_a_new_estimate_comes_back_as_readers_had_it(learning, source):
    learning.once(night, *DAYS[:3])
    published = Published(learning)
    before = published.bytes()
    assert learning.entry(DAY).vintage == 1
    if source == "measurements":
        published.forget_staging()
    for day in DAYS[:3]:
        lose(published.path("file", day))
    assert published.comes_back(*DAYS[:3])
    assert published.bytes() == before
    assert learning.problems() == []
