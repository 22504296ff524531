"""Revised estimates: later measurements sharpen earlier days, under the same spends, a vintage at a time."""

from datetime import date, timedelta

import numpy as np
import pytest

from optstream.errors import LedgerError
from optstream.history.blocks import unpacked
from optstream.ledger import ReleaseState
from optstream.mechanisms import HistoryInformedTree
from optstream.noise.source import SimulatedNoise
from tasks.release import pipeline as steps
from tasks.release import publish, revise
from tasks.release.mechanism import mechanism_for
from tasks.release.revise import due
from tasks.release.run import Status, terms_of
from tests.failing import raising
from tests.tasks.two_regions import DAYS, FEW_BLOCKS, STEPS, assert_ended, listed, night, revised

FIRST, SECOND, THIRD, FOURTH, FIFTH, SIXTH = DAYS


class GivenNoise(SimulatedNoise):
    """The same draws in each run of a test, which a release takes for secure ones."""

    simulated = False


def revised_statuses(installation):
    return {day: one.status for day, one in revised(installation).items()}


def test_each_night_sharpens_the_last_days_and_spends_nothing(learning):
    """The noise is given: days' differences are learned from noisy days too."""
    noise, tree = GivenNoise(0), learning.settings.tree_of(date.min)
    assert night(learning, FIRST, noise=noise) == {}
    first = learning.rows()
    assert set(night(learning, SECOND, noise=noise)) == {FIRST}
    before = learning.record(FIRST).spends
    assert set(night(learning, THIRD, noise=noise)) == {FIRST, SECOND}
    assert set(night(learning, FOURTH, noise=noise)) == {SECOND, THIRD}
    assert listed(learning) == {FIRST: 2, SECOND: 2, THIRD: 1, FOURTH: 0}
    assert learning.record(FIRST).spends == before
    assert learning.record(FIRST).state is ReleaseState.PUBLISHED
    rows = learning.rows().filter(date=FIRST)
    mechanism = mechanism_for(learning.settings, FIRST)
    expected = mechanism.revise(learning.measured(FIRST), [learning.measured(day) for day in DAYS[1:3]])
    wide = rows.pivot(on="step", index="node", values="load_mw")
    found = np.array([wide.filter(node=name).drop("node").row(0) for name in tree.leaves])
    assert np.allclose(found, expected.values[tree.leaf_indices], atol=0.0006)
    assert not rows["load_mw"].equals(first["load_mw"])
    assert rows["load_mw_se"].mean() < first["load_mw_se"].mean()
    assert learning.problems() == []


def test_days_that_are_filled_in_are_sharpened_wherever_they_lie_by_the_days_after_them_that_count(learning):
    old = [date(2016, 3, 29), *(date(2016, 4, 1) + timedelta(days=number) for number in range(4))]
    learning.simulate(*old)
    learning.released(*DAYS[:3])
    learning.released(*old)
    nightly, filled = due(learning.run()), due(learning.run(), old[2:])
    later = {one.day: [day for day, _ in one.later] for one in nightly}
    assert later == {FIRST: DAYS[1:3], SECOND: DAYS[2:3]}
    of_the_span = {one.day: [day for day, _ in one.later] for one in filled if one.day < FIRST}
    assert of_the_span == {old[1]: old[2:4], old[2]: old[3:5], old[3]: old[4:5]}
    assert [one for one in filled if one.day >= FIRST] == nightly
    run = learning.run()
    steps.publish_revisions(run, steps.revise_estimates(run, filled))
    assert due(run, old[2:]) == []
    assert learning.problems() == []


def test_a_new_estimate_states_what_its_draw_was_planned_for_whatever_is_configured_since(learning):
    """Sum of alpha and rounding as before, and another share, are no amendment."""
    learning.configure('alpha = "1"', 'alpha = "0.5"')
    learning.configure("[input]", '[input]\nsupplier_rounding = "0.5"')
    assert night(learning, FIRST) == {}
    first = learning.statement(FIRST)
    learning.configure('supplier_rounding = "0.5"', 'supplier_rounding = "0"')
    learning.configure('alpha = "0.5"', 'alpha = "1"')
    learning.configure("[budget]", '[budget]\nstream_share = "1/2"')
    learning.configure('bounds = ["0", "20000"]', 'bounds = ["0", "30000"]')
    assert set(night(learning, SECOND)) == {FIRST}
    now = learning.statement(FIRST)
    assert (first["vintage"], now["vintage"]) == (0, 1)
    for key in ("epsilon_plan", "supplier_rounding", "long_spans", "privacy_model", "bounds"):
        assert now[key] == first[key], key
    assert "changes of each reading by at most 0.5 in" in now["privacy_in_words"]
    assert learning.problems() == []


def test_an_amendment_stops_smoothing_across_it(learning):
    learning.released(*DAYS[:2])
    revised(learning)
    learning.configure('alpha = "1"', 'alpha = "2"')
    learning.ledger.amend(terms_of(learning.settings), "larger customers", learning.now)
    learning.configure("revise_days = 2", "revise_days = 10")
    done = {}
    for day in DAYS[2:]:
        if learning.status(day) is Status.PUBLISHED:
            done = revised(learning)
    assert done
    assert not {FIRST, SECOND} & done.keys()
    assert listed(learning)[FIRST] == 1
    assert learning.problems() == []


def test_a_day_that_is_drawn_and_not_out_yet_tells_nothing(learning):
    """It may be held until its hour: a new estimate before would tell when it was drawn."""
    learning.released(*DAYS[:2])
    learning.release(THIRD, steps=STEPS[:-1])
    assert learning.record(THIRD).state is ReleaseState.DRAWN
    (work,) = due(learning.run())
    assert (work.day, [day for day, _ in work.later]) == (FIRST, [SECOND])


def test_a_restatement_stops_it_and_a_restated_day_keeps_its_measurements(learning):
    learning.released(*DAYS[:3])
    assert set(revised(learning)) == {FIRST, SECOND}
    learning.configure("revise_days = 2", "revise_days = 10")
    assert learning.status(SECOND, restate=True) is Status.PUBLISHED
    assert set(night(learning, FOURTH)) == {FIRST, THIRD}
    assert listed(learning) == {FIRST: 2, SECOND: 0, THIRD: 1, FOURTH: 0}
    assert learning.entry(SECOND).revision == 1
    assert learning.problems() == []
    # it remembers what was measured before its day
    again = learning.measured(SECOND, 1)
    before, first = learning.measured(FIRST), learning.measured(SECOND)
    for level, known in again.state["levels"].items():
        starts = [one for one in known["history"]["starts"] if one < again.first_step]
        assert starts == before.state["levels"][level]["history"]["starts"]
    assert again.before["began"] == first.before["began"] is not None
    # and nothing goes on from it
    sums = [one.state["levels"]["0"]["history"]["sums"] for one in (first, learning.measured(FOURTH))]
    of_first, of_last = (unpacked(one) for one in sums)
    assert np.array_equal(of_last[:, : of_first.shape[1]], of_first)


def test_a_day_whose_next_was_taken_back_has_its_first_estimate_again(learning):
    """The dump of the day after was wrong: no estimate rests on it, also where nothing else is left."""
    learning.once(night, FIRST)
    values = ["node", "step", "load_mw", "load_mw_se"]
    first = learning.rows()
    night(learning, *DAYS[1:3])
    assert listed(learning)[FIRST] == 1
    learning.withdraw(SECOND)
    assert revised_statuses(learning) == {FIRST: Status.PUBLISHED}
    assert listed(learning)[FIRST] == 2
    assert learning.rows().filter(date=FIRST).select(values).equals(first.select(values))
    assert revised(learning) == {}
    again = revise.estimated_again(learning.run(), learning.record(FIRST), 2).release
    mechanism = mechanism_for(learning.settings, FIRST)
    assert np.array_equal(again.values, mechanism.estimate(learning.measured(FIRST)).values)
    assert learning.problems() == []


def test_lost_measurements_cost_the_new_estimate_not_the_old(learning):
    learning.released(*DAYS[:2])
    before = learning.rows()
    for path in learning.settings.measurements_of(SECOND, 0).iterdir():
        path.unlink()
    assert_ended(*revised(learning).values(), Status.FAILED, "is gone")
    assert learning.rows().equals(before)


def blocks_before(installation, day):
    """Where the blocks begin that the draw of a day knew of, of all levels."""
    measured = installation.measured(day)
    starts = (start for one in measured.state["levels"].values() for start in one["history"]["starts"])
    return {start for start in starts if start < measured.first_step}


def test_nothing_goes_on_from_noise_that_others_know(learning):
    """A day drawn before an earlier day's noise became known carries its blocks, and what they taught."""
    learning.configure(FEW_BLOCKS, "scale = 300.0")
    learning.released(*DAYS[:3])
    known = set(range(learning.record(FIRST).first_step, learning.record(SECOND).first_step))
    assert blocks_before(learning, THIRD) & known
    learning.compromise(FIRST, "a leak")
    done = revised(learning)
    assert {day: one.status for day, one in done.items()} == {SECOND: Status.UNCHANGED}
    assert "noise that others know" in done[SECOND].message
    assert listed(learning)[SECOND] == 0
    done = night(learning, FOURTH)
    assert blocks_before(learning, FOURTH) == set()
    assert {day: one.status for day, one in done.items()} == dict.fromkeys(DAYS[1:3], Status.PUBLISHED)
    night(learning, FIFTH)
    assert min(blocks_before(learning, FIFTH)) >= learning.record(FOURTH).first_step
    assert learning.problems() == []


def half_shown(installation, n_days=2, day=FIRST):
    """A new estimate of one of the first days up to where its bytes are recorded and not shown."""
    installation.released(*DAYS[:n_days])
    run = installation.run()
    (staged,) = steps.revise_estimates(run, [work for work in due(run) if work.day == day])
    assert isinstance(staged, revise.StagedVintage)
    return run, staged


def test_an_owner_that_was_thought_dead_shows_nothing(learning):
    run, stale = half_shown(learning)
    learning.later(hours=1)
    assert revised_statuses(learning) == {FIRST: Status.PUBLISHED}
    after = learning.files("published")
    with pytest.raises(LedgerError, match="taken over"):
        publish.publish(run, [stale])
    assert learning.files("published") == after
    assert listed(learning)[FIRST] == 1
    assert learning.problems() == []


def test_what_was_listed_is_recorded_and_what_it_replaced_leaves_data(learning):
    """Else a reader of data/ without the catalogue finds the day twice."""
    run, staged = half_shown(learning)
    before = next((learning.folder / "published" / "data").glob(f"date={FIRST}/*"))
    kept = before.read_bytes()
    publish.publish(run, [staged])
    before.write_bytes(kept)
    assert len(list(before.parent.iterdir())) == 2
    learning.later(hours=1)
    learning.configure("revise_days = 2", "revise_days = 0")
    assert due(learning.run()) == []
    assert any("listed and not recorded" in line for line in learning.problems())
    revise.record_listed(learning.run())
    assert len(list(before.parent.iterdir())) == 1
    assert before.name in [path.name for path in (learning.folder / "published" / "superseded").rglob("*")]
    assert learning.problems() == []


RESTS = "that rests on it is not shown"
TAKEN_BACK = {
    "withdrawn itself": (lambda made: made.withdraw(FIRST), "was withdrawn"),
    "withdrawn": (lambda made: made.withdraw(SECOND), RESTS),
    "known": (lambda made: made.compromise(SECOND, "a stolen disk"), RESTS),
    "restated": (lambda made: made.status(SECOND, restate=True), RESTS),
}


@pytest.mark.parametrize(("take_back", "words"), TAKEN_BACK.values(), ids=TAKEN_BACK)
def test_what_rests_on_a_day_that_was_taken_back_meanwhile_is_not_shown(learning, take_back, words):
    run, staged = half_shown(learning)
    take_back(learning)
    assert_ended(*steps.publish_revisions(run, [staged]), Status.FAILED, words)
    assert listed(learning)[FIRST] == 0
    assert (FIRST in learning.rows()["date"]) == (words == RESTS)


def test_what_was_staged_is_not_taken_up_once_it_rests_on_known_noise(learning):
    half_shown(learning, 3, SECOND)
    learning.compromise(FIRST, "a stolen disk")
    learning.later(hours=1)
    assert revised(learning)[SECOND].status is Status.UNCHANGED
    assert listed(learning)[SECOND] == 0
    assert learning.ledger.verify() == []


def test_learning_that_fails_voids_no_day(learning, monkeypatch):
    """It runs before the draw is begun, so nothing was drawn: the next run goes on."""
    learning.release(FIRST)
    with monkeypatch.context() as patch:
        patch.setattr(HistoryInformedTree, "prepared", raising(MemoryError("on purpose")))
        assert learning.status(SECOND) is Status.FAILED
    assert learning.record(SECOND).state is ReleaseState.RESERVED
    assert learning.status(SECOND) is Status.PUBLISHED
    assert learning.problems() == []
