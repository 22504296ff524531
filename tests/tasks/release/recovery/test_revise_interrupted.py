"""New estimates that a death, another owner or something taken back meets on their way to readers."""

import pytest

from optstream.catalogue import read_catalogue, read_published
from optstream.errors import LedgerError
from tasks.release import pipeline as steps
from tasks.release import publish, revise
from tasks.release.revise import due
from tasks.release.stages import Status
from tests.tasks.release.vintage_nights import DAYS, listed, revised


def stages(installation, work):
    """A new estimate up to where its bytes are recorded and not shown."""
    run = installation.run()
    (staged,) = steps.revise_estimates(run, [work])
    assert isinstance(staged, revise.StagedVintage)
    return run, staged


def half_shown(installation):
    """The new estimate of the first of two released days, `stages` of it."""
    installation.released(*DAYS[:2])
    (work,) = due(installation.run())
    return stages(installation, work)


def test_a_withdrawal_in_between_is_not_undone(learning):
    run, staged = half_shown(learning)
    learning.withdraw(DAYS[0])
    (late,) = steps.publish_revisions(run, [staged])
    assert late.outcome.status is Status.FAILED
    assert "was withdrawn" in late.outcome.message
    assert read_published(learning.folder / "published")["date"].unique().to_list() == [DAYS[1]]


def test_an_owner_that_was_thought_dead_shows_nothing(learning):
    run, stale = half_shown(learning)
    learning.later(hours=1)
    assert {day: one.status for day, one in revised(learning).items()} == {DAYS[0]: Status.PUBLISHED}
    after = learning.files("published")
    with pytest.raises(LedgerError, match="taken over"):
        publish.publish(run, [stale])
    assert learning.files("published") == after
    assert listed(learning)[DAYS[0]] == 1
    learning.assert_sound()


def test_a_run_that_died_before_it_showed_is_finished_with_the_same_bytes(learning):
    _, staged = half_shown(learning)
    assert listed(learning)[DAYS[0]] == 0
    learning.later(hours=1)
    assert revised(learning)[DAYS[0]].status is Status.PUBLISHED
    entry = read_catalogue(learning.folder / "published").entry(DAYS[0])
    assert (entry.vintage, entry.file_hash) == (1, staged.staged.file_hash)
    learning.assert_sound()


def test_what_was_listed_is_recorded_though_its_day_is_never_due_again(learning):
    learning.released(*DAYS[:3])
    work = next(work for work in due(learning.run()) if work.day == DAYS[0])
    publish.publish(*(lambda run, staged: (run, [staged]))(*stages(learning, work)))
    learning.later(hours=1)
    learning.configure("revise_days = 2", "revise_days = 0")
    assert due(learning.run()) == []
    assert any("listed and not recorded" in line for line in learning.problems())
    revise.record_listed(learning.run())
    learning.assert_sound()
    head = learning.ledger.head("two-regions")
    revise.record_listed(learning.run())
    assert learning.ledger.head("two-regions") == head


def test_what_a_listed_estimate_replaced_leaves_data_though_its_run_died_before(learning):
    """Else whoever reads data/ without the catalogue finds the day twice."""
    run, staged = half_shown(learning)
    before = next((learning.folder / "published" / "data").glob(f"date={DAYS[0]}/*"))
    kept = before.read_bytes()
    publish.publish(run, [staged])
    before.write_bytes(kept)
    assert len(list(before.parent.iterdir())) == 2
    learning.later(hours=1)
    revise.record_listed(learning.run())
    assert len(list(before.parent.iterdir())) == 1
    assert before.name in [path.name for path in (learning.folder / "published" / "superseded").rglob("*")]
    learning.assert_sound()


@pytest.mark.parametrize("taken_back", ["withdrawn", "known", "restated"])
def test_what_rests_on_a_day_that_was_taken_back_meanwhile_is_not_shown(learning, taken_back):
    run, staged = half_shown(learning)
    if taken_back == "withdrawn":
        learning.withdraw(DAYS[1])
    elif taken_back == "known":
        learning.compromise(DAYS[1], "a stolen disk")
    else:
        assert learning.release(DAYS[1], restate=True)[DAYS[1]].outcome.status is Status.PUBLISHED
    (late,) = steps.publish_revisions(run, [staged])
    assert late.outcome.status is Status.FAILED
    assert "that rests on it is not shown" in late.outcome.message
    assert listed(learning)[DAYS[0]] == 0


def test_what_was_staged_is_not_taken_up_once_it_rests_on_known_noise(learning):
    learning.released(*DAYS[:3])
    work = next(work for work in due(learning.run()) if work.day == DAYS[1])
    stages(learning, work)
    learning.compromise(DAYS[0], "a stolen disk")
    learning.later(hours=1)
    assert revised(learning)[DAYS[1]].status is Status.UNCHANGED
    assert listed(learning)[DAYS[1]] == 0
    assert learning.ledger.verify() == []
