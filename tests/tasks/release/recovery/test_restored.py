"""Ledger and folders from backups: what others saw is never drawn a second time."""

import shutil
from datetime import date
from itertools import combinations

import pytest

from optstream.errors import LedgerError
from tasks.monitor.alarms import Kind
from tasks.monitor.view import watch
from tasks.operate.amend import declare
from tasks.operate.doctor import examine
from tasks.release.run import Drawn, Status
from tests.tasks.release.noises import NoiseMeanwhile
from tests.tasks.release.recovery.backups import back_up
from tests.tasks.two_regions import STEPS, Installation

FIRST, SECOND, THIRD = date(2016, 6, 1), date(2016, 6, 2), date(2016, 6, 3)
TELLING = ("witness", "measurements", "staging", "lineage")


def refused(installation, day=SECOND):
    """What a run says that must draw nothing."""
    noise = NoiseMeanwhile()
    works = installation.release(day, noise=noise)
    assert works[day].outcome.status is Status.FAILED, works[day].outcome
    assert noise.calls <= 1
    return works[day].outcome.message


def told_by_doctor(installation):
    return [one.rule for one in examine(installation.settings, {}, installation.now)]


@pytest.mark.parametrize("telling", TELLING)
def test_ledger_and_published_folder_restored_together(either, telling):
    """Any one of what the trusted folder keeps is enough to notice it."""
    either.released(FIRST)
    restore = back_up(either, "published")
    either.release(SECOND)
    restore()
    for other in set(TELLING) - {telling}:
        for path in (either.folder / "trusted" / other).rglob(f"*{SECOND}*"):
            shutil.rmtree(path, ignore_errors=True)
        if other in ("witness", "lineage"):
            shutil.rmtree(either.folder / "trusted" / other, ignore_errors=True)
    kept = either.files("trusted/measurements", "published")
    assert f"trusted/{telling}" in refused(either)
    assert either.files("trusted/measurements", "published") == kept
    assert either.record(SECOND) is None
    assert any("older copy" in rule for rule in told_by_doctor(either))


@pytest.mark.parametrize("second", ["second", "memory://witness/of-{name}"])
def test_everything_restored_is_noticed_by_the_second_place(either, tmp_path, second):
    place = second.format(name=tmp_path.name)
    either.configure('[trusted]\nfolder = "trusted"', f'[trusted]\nfolder = "trusted"\nwitness = "{place}"')
    either.released(FIRST)
    restore = back_up(either, "published", *(f"trusted/{name}" for name in TELLING))
    either.release(SECOND)
    restore()
    assert place.rpartition("/")[2] in refused(either)
    assert any("older copy" in rule for rule in told_by_doctor(either))


def test_everything_restored_to_the_middle_of_a_draw_is_noticed_by_the_second_place(either):
    """The copy has the draw as begun, as after a death: the next run would draw what readers have anew."""
    either.configure('[trusted]\nfolder = "trusted"', '[trusted]\nfolder = "trusted"\nwitness = "second"')
    everything = ("published", *(f"trusted/{name}" for name in TELLING))
    noise = NoiseMeanwhile(lambda: back_up(either, *everything))
    assert either.status(FIRST, noise=noise) is Status.PUBLISHED
    noise.came()
    either.later(hours=1)
    assert "/second" in refused(either, FIRST)


def test_the_second_place_that_cannot_be_reached_stops_the_day_before_it_is_reserved(either):
    either.configure('[trusted]\nfolder = "trusted"', '[trusted]\nfolder = "trusted"\nwitness = "second"')
    (either.folder / "second").write_text("in the way")
    assert "cannot be told how far the ledger is" in refused(either, FIRST)
    assert either.record(FIRST) is None


def test_a_ledger_restored_to_the_middle_of_a_day(either):
    """Reserved and not begun in the copy; drawn in the folder, under the same token or a later one."""
    from tasks.release import pipeline as steps

    works = either.release(FIRST, steps=STEPS[:5])
    restore = back_up(either, "published")
    (drawn,) = steps.draw_measurements(either.run(), list(works.values()))
    assert isinstance(drawn, Drawn)
    restore()
    shutil.rmtree(either.folder / "trusted/witness", ignore_errors=True)
    either.later(hours=1)
    assert "knows a draw" in refused(either, FIRST)


def test_a_ledger_restored_while_a_run_draws(either):
    """The run destroys its draw, and nothing is drawn before the newest ledger is back."""
    either.released(FIRST)
    bring_older = back_up(either)

    def meanwhile():
        bring_newest = back_up(either)
        bring_older()
        return bring_newest

    noise, before = NoiseMeanwhile(meanwhile), either.files("published/data")
    assert either.status(SECOND, noise=noise) is Status.FAILED
    assert noise.calls > 1
    assert either.files("published/data") == before
    left = either.files("trusted/measurements/two-regions/2016-06-02-r0")
    assert {path.name: data for path, data in left.items()} == {"1.intact": b""}
    assert "older copy" in refused(either)
    noise.came()
    either.later(hours=1)
    assert either.status(SECOND) is Status.PUBLISHED
    assert either.record(SECOND).redraws == 1
    assert either.problems() == []


def test_an_older_published_folder_shows_a_withdrawn_day_again_and_is_an_alarm(either):
    def alarms():
        return [alarm.kind for alarm in watch(either.settings, either.ledger, either.now, live=False).alarms]

    either.released(FIRST)
    shutil.copytree(either.folder / "published", either.folder / "older")
    for restored in (False, True):
        either.withdraw(FIRST)
        assert Kind.WITHDRAWN not in alarms()
        if not restored:
            shutil.rmtree(either.folder / "published")
            shutil.copytree(either.folder / "older", either.folder / "published")
            assert Kind.WITHDRAWN in alarms()
            # a night of other days goes on, and does not hide it
            assert either.status(SECOND) is Status.PUBLISHED
            assert Kind.WITHDRAWN in alarms()


def test_a_witness_that_is_behind_follows_and_one_that_is_broken_is_told(either):
    either.released(FIRST)
    file = either.folder / "trusted/witness/ledger-heads.json"
    older = file.read_bytes()
    either.release(SECOND)
    newer = file.read_bytes()
    assert newer != older
    file.write_bytes(older)
    either.simulate(THIRD)
    assert either.status(THIRD) is Status.PUBLISHED
    assert file.read_bytes() not in (older, newer)
    file.write_bytes(b"{}")
    either.simulate(date(2016, 6, 4))
    assert "not what OptStream wrote" in refused(either, date(2016, 6, 4))


@pytest.mark.parametrize("declared", ["withdrawn", "compromised", "amended"])
def test_what_a_person_declared_is_not_forgotten(either, declared):
    """The copy lacks nothing but that: readers would have the day again, or its windows be drawn in."""

    either.released(FIRST)
    restore = back_up(either, "published")
    if declared == "withdrawn":
        assert either.withdraw(FIRST).status is Status.WITHDRAWN
    elif declared == "amended":
        either.configure('alpha = "1"', 'alpha = "10"')
        declare(either.settings, either.ledger, "larger customers", either.now)
        either.configure('alpha = "10"', 'alpha = "1"')
    else:
        assert either.compromise(FIRST) == [FIRST]
    restore()
    assert any("older copy" in rule for rule in told_by_doctor(either))
    for day in (FIRST, SECOND):
        assert "older copy" in refused(either, day)
    (again,) = either.publish_again(FIRST)
    assert (again.status, "older copy" in again.message) == (Status.FAILED, True), again
    for declare_again in (either.withdraw, either.compromise):
        with pytest.raises(LedgerError, match="older copy"):
            declare_again(FIRST)
    either.configure('alpha = "1"', 'alpha = "10"')
    with pytest.raises(LedgerError, match="older copy"):
        declare(either.settings, either.ledger, "larger customers", either.now)


@pytest.mark.parametrize("shared", ["published", "witness"])
def test_a_copied_trusted_folder_run_elsewhere(installation, tmp_path_factory, shared):
    """Two machines, a ledger each: the second notices the first before it draws."""
    if shared == "witness":
        place = installation.folder / "second"
        installation.configure(
            '[trusted]\nfolder = "trusted"', f'[trusted]\nfolder = "trusted"\nwitness = "{place}"'
        )
    else:
        place = installation.folder / "published"
        installation.configure('[published]\nfolder = "published"', f'[published]\nfolder = "{place}"')
    installation.released(FIRST)
    installation.ledger.close()
    elsewhere = Installation(tmp_path_factory.mktemp("elsewhere") / "copy", installation.now)
    shutil.copytree(installation.folder, elsewhere.folder)
    if shared == "published":
        shutil.rmtree(elsewhere.folder / "published")
    assert installation.status(SECOND) is Status.PUBLISHED
    assert "bring" in refused(elsewhere).lower()
    assert elsewhere.record(SECOND) is None


STORES = ("ledger", "trusted", "published")


class Moments:
    """Copies of ledger, trusted and published folder at each moment of one history, to be restored apart."""

    def __init__(self, installation):
        self.installation, self.n = installation, 0
        self.copy()
        installation.release(FIRST)
        self.copy()
        noise = NoiseMeanwhile(self.copy)
        steps = (*STEPS[:6], self.between, STEPS[6], self.between, STEPS[7])
        works = installation.release(SECOND, steps=steps, noise=noise)
        assert works[SECOND].outcome.status is Status.PUBLISHED
        self.copy()
        installation.withdraw(FIRST)
        self.copy()
        self.last = self.n - 1
        installation.later(hours=1)

    def place(self, number, store=""):
        return self.installation.folder / "moments" / str(number) / store

    def between(self, _run, works):
        self.copy()
        return works

    def copy(self):
        for store in ("trusted", "published"):
            if (source := self.installation.folder / store).exists():
                hidden = shutil.ignore_patterns("ledger.sqlite*")
                shutil.copytree(source, self.place(self.n, store), ignore=hidden)
        if self.n:
            self.installation.copy_ledger().rename(self.place(self.n, "ledger"))
        self.n += 1

    def lay(self, stores, number):
        """Bring these stores back as they were then, and the others as they are at the end."""
        self.installation.ledger.close()
        for store in ("trusted", "published"):
            shutil.rmtree(self.installation.folder / store, ignore_errors=True)
            source = self.place(number if store in stores else self.last, store)
            if source.exists():
                shutil.copytree(source, self.installation.folder / store)
        source = self.place(number if "ledger" in stores else self.last, "ledger")
        if source.exists():
            (self.installation.folder / "trusted").mkdir(mode=0o700, exist_ok=True)
            shutil.copy(source, self.installation.folder / "trusted/ledger.sqlite")

    def run(self):
        """Whether anything was sampled, and whether the run or the check says that something is wrong."""
        noise = NoiseMeanwhile()
        try:
            done = self.installation.release(FIRST, SECOND, noise=noise)
        except LedgerError:
            return noise.calls > 2, True
        fine = (Status.PUBLISHED, Status.UNCHANGED, Status.WITHDRAWN)
        wrong = any(work.outcome.status not in fine for work in done.values())
        return noise.calls > 2, wrong or self.installation.problems() != []


@pytest.mark.parametrize("stores", [*combinations(STORES, 1), *combinations(STORES, 2)], ids=" + ".join)
def test_no_restored_part_of_any_earlier_moment_has_a_day_that_readers_saw_drawn_again(installation, stores):
    moments = Moments(installation)
    assert moments.last == 6
    hashes = {path.name for path in moments.place(6, "trusted/measurements").rglob("*-*") if path.is_file()}
    for number in range(moments.last):
        moments.lay(stores, number)
        sampled, told = moments.run()
        assert not sampled, number
        assert told or "ledger" not in stores, number
        left = installation.files("trusted/measurements")
        assert {path.name for path in left if "-" in path.name} <= hashes, number


def test_control_all_parts_of_the_middle_of_a_draw_have_it_drawn_again(installation):
    """Nothing is left that could tell: a second witness outside of the backup is for that."""
    moments = Moments(installation)
    moments.lay(STORES, 2)
    assert moments.run()[0]
