"""Revised estimates: later measurements sharpen earlier days, under the same spends, a vintage at a time."""

import json
from datetime import date, timedelta

import numpy as np

from optstream.catalogue import read_catalogue, read_published
from optstream.history.blocks import unpacked
from optstream.ledger import ReleaseState
from optstream.mechanisms import HistoryInformedTree
from optstream.noise.secure import SimulatedNoise
from tasks.release import pipeline as steps
from tasks.release import revise
from tasks.release.mechanism import mechanism_for
from tasks.release.revise import due
from tasks.release.run import Status
from tests.failing import raising
from tests.tasks.release.noises import no_noise
from tests.tasks.release.vintage_nights import DAYS, listed, night, revised
from tests.tasks.two_regions import FEW_BLOCKS, STEPS


class GivenNoise(SimulatedNoise):
    """The same draws in each run of a test, which a release takes for secure ones."""

    simulated = False


def test_each_night_sharpens_the_last_days_and_spends_nothing(learning):
    """The noise is given: days' differences are learned from noisy days too."""
    installation, noise = learning, GivenNoise(0)
    assert night(installation, DAYS[0], noise=noise) == {}
    first = read_published(installation.folder / "published")
    assert set(night(installation, DAYS[1], noise=noise)) == {DAYS[0]}
    before = installation.ledger.worst("people"), installation.record(DAYS[0]).spends
    assert set(night(installation, DAYS[2], noise=noise)) == {DAYS[0], DAYS[1]}
    assert set(night(installation, DAYS[3], noise=noise)) == {DAYS[1], DAYS[2]}
    assert listed(installation) == {DAYS[0]: 2, DAYS[1]: 2, DAYS[2]: 1, DAYS[3]: 0}
    assert installation.record(DAYS[0]).spends == before[1]
    assert installation.record(DAYS[0]).state is ReleaseState.PUBLISHED
    rows = read_published(installation.folder / "published", verify=True)
    mechanism = mechanism_for(installation.settings, DAYS[0])
    expected = mechanism.revise(
        installation.measured(DAYS[0]), [installation.measured(day) for day in DAYS[1:3]]
    )
    wide = rows.filter(date=DAYS[0]).pivot(on="step", index="node", values="load_mw")
    found = np.array(
        [
            wide.filter(node=name).drop("node").row(0)
            for name in installation.settings.tree_of(date.min).leaves
        ]
    )
    assert np.allclose(
        found, expected.values[installation.settings.tree_of(date.min).leaf_indices], atol=0.0006
    )
    assert not rows.filter(date=DAYS[0])["load_mw"].equals(first["load_mw"])
    assert rows.filter(date=DAYS[0])["load_mw_se"].mean() < first["load_mw_se"].mean()
    installation.assert_sound()


def test_days_that_are_filled_in_are_sharpened_wherever_they_lie_by_the_days_after_them_that_count(learning):
    """Days of a span two months back are due at once; a night looks at the two days before the newest."""
    old = [date(2016, 3, 29), *(date(2016, 4, 1) + timedelta(days=number) for number in range(5))]
    learning.simulate(*old)
    learning.released(*DAYS[:4])
    learning.released(*old)
    nightly, filled = due(learning.run()), due(learning.run(), old[2:])
    told = {one.day: [day for day, _ in one.later] for one in nightly}
    assert told == {DAYS[1]: DAYS[2:4], DAYS[2]: DAYS[3:4]}
    of_the_span = {one.day: [day for day, _ in one.later] for one in filled if one.day < DAYS[0]}
    assert of_the_span == {old[1]: old[2:4], old[2]: old[3:5], old[3]: old[4:6], old[4]: old[5:6]}
    assert [one for one in filled if one.day >= DAYS[0]] == nightly
    run = learning.run()
    steps.publish_revisions(run, steps.revise_estimates(run, filled))
    assert due(run, old[2:]) == []
    learning.assert_sound()


def test_the_superseded_file_leaves_and_statement_and_lineage_say_what_it_is(learning):
    learning.once(night, DAYS[0])
    night(learning, DAYS[1])
    entry = read_catalogue(learning.folder / "published").entry(DAYS[0])
    data = [path.name for path in (learning.folder / f"published/data/date={DAYS[0]}").iterdir()]
    assert data == [entry.file.rpartition("/")[2]]
    assert len(list((learning.folder / f"published/superseded/date={DAYS[0]}").iterdir())) == 1
    statement = json.loads((learning.folder / "published" / entry.manifest).read_text())["statement"]
    assert statement["vintage"] == 1
    assert "vintage 1, a revised estimate" in statement["privacy_in_words"]
    assert "costs nothing more" in statement["privacy_in_words"]
    told = [event["run"]["facets"]["optstream_privacy"]["estimate"] for event in learning.lineage()]
    assert [words.split(" of ")[0] for words in told] == ["first estimate"] * 2 + ["revised estimate"]


def test_a_new_estimate_states_what_its_draw_was_planned_for_whatever_is_configured_since(learning):
    """Sum of alpha and rounding as before, and another share, are no amendment."""
    learning.configure('alpha = "1"', 'alpha = "0.5"')
    learning.configure("[input]", '[input]\nsupplier_rounding = "0.5"')
    assert night(learning, DAYS[0]) == {}

    def stated():
        entry = read_catalogue(learning.folder / "published").entry(DAYS[0])
        return json.loads((learning.folder / "published" / entry.manifest).read_text())["statement"]

    first = stated()
    learning.configure('supplier_rounding = "0.5"', 'supplier_rounding = "0"')
    learning.configure('alpha = "0.5"', 'alpha = "1"')
    learning.configure("[budget]", '[budget]\nstream_share = "1/2"')
    learning.configure('bounds = ["0", "20000"]', 'bounds = ["0", "30000"]')
    assert set(night(learning, DAYS[1])) == {DAYS[0]}
    now = stated()
    assert (first["vintage"], now["vintage"]) == (0, 1)
    for told in ("epsilon_plan", "supplier_rounding", "long_spans", "privacy_model", "bounds"):
        assert now[told] == first[told], told
    assert "changes of each reading by at most 0.5 in" in now["privacy_in_words"]
    learning.assert_sound()


def test_an_amendment_stops_smoothing_across_it(learning):
    learning.once(night, *DAYS[:2])
    learning.configure('alpha = "1"', 'alpha = "2"')
    from tasks.release.run import terms_of

    learning.ledger.amend(terms_of(learning.settings), "larger customers", learning.now)
    learning.configure("revise_days = 2", "revise_days = 10")
    done = {}
    for day in DAYS[2:]:
        if learning.release(day)[day].outcome.status is Status.PUBLISHED:
            done = revised(learning)
    assert done
    assert DAYS[0] not in done
    assert DAYS[1] not in done
    assert listed(learning)[DAYS[0]] == 1
    learning.assert_sound()


def test_a_day_that_is_drawn_and_not_out_yet_tells_nothing(learning):
    """It may be held until its hour: a new estimate before would tell when it was drawn."""
    learning.released(*DAYS[:2])
    learning.release(DAYS[2], steps=STEPS[:-1])
    assert learning.record(DAYS[2]).state is ReleaseState.DRAWN
    (work,) = due(learning.run())
    assert (work.day, [day for day, _ in work.later]) == (DAYS[0], [DAYS[1]])


def test_a_restatement_stops_it_and_a_restated_day_keeps_its_measurements(learning):
    learning.configure("revise_days = 2", "revise_days = 10")
    learning.once(night, *DAYS[:3])
    (work,) = learning.release(DAYS[1], restate=True).values()
    assert work.outcome.status is Status.PUBLISHED
    assert set(night(learning, DAYS[3])) == {DAYS[0], DAYS[2]}
    assert listed(learning) == {DAYS[0]: 2, DAYS[1]: 0, DAYS[2]: 1, DAYS[3]: 0}
    assert read_catalogue(learning.folder / "published").entry(DAYS[1]).revision == 1
    learning.assert_sound()


def test_a_restatement_remembers_what_was_measured_before_its_day(learning):
    learning.released(*DAYS[:4])
    (work,) = learning.release(DAYS[2], restate=True).values()
    assert work.outcome.status is Status.PUBLISHED
    again = learning.measured(DAYS[2], 1)
    before, first = learning.measured(DAYS[1]), learning.measured(DAYS[2])
    own = again.first_step
    for level, known in again.state["levels"].items():
        starts = [one for one in known["history"]["starts"] if one < own]
        assert starts == before.state["levels"][level]["history"]["starts"]
    assert again.before["began"] == first.before["began"] is not None
    # and nothing goes on from it
    sums = [one.state["levels"]["0"]["history"]["sums"] for one in (first, learning.measured(DAYS[3]))]
    of_first, of_last = (unpacked(one) for one in sums)
    assert np.array_equal(of_last[:, : of_first.shape[1]], of_first)


def test_a_withdrawn_day_takes_all_its_vintages_along(learning):
    learning.once(night, *DAYS[:2])
    night(learning, DAYS[2])
    outcome = learning.withdraw(DAYS[0])
    assert outcome.status is Status.WITHDRAWN
    for part in ("data", "superseded"):
        assert not list((learning.folder / f"published/{part}/date={DAYS[0]}").glob("*.parquet"))
    assert read_published(learning.folder / "published")["date"].min() == DAYS[1]
    assert DAYS[0] not in night(learning, DAYS[3])
    learning.assert_sound()


def test_a_day_whose_next_was_taken_back_has_its_first_estimate_again(learning):
    """The dump of the day after was wrong: no estimate rests on it, also where nothing is left beside it."""
    learning.once(night, DAYS[0])
    folder, values = learning.folder / "published", ["node", "step", "load_mw", "load_mw_se"]
    first = read_published(folder)
    night(learning, *DAYS[1:3])
    assert listed(learning)[DAYS[0]] == 1
    learning.withdraw(DAYS[1])
    assert {day: one.status for day, one in revised(learning).items()} == {DAYS[0]: Status.PUBLISHED}
    assert listed(learning)[DAYS[0]] == 2
    found = read_published(folder, verify=True).filter(date=DAYS[0])
    assert found.select(values).equals(first.select(values))
    assert revised(learning) == {}
    again = revise.estimated_again(learning.run(), learning.record(DAYS[0]), 2).release
    mechanism = mechanism_for(learning.settings, DAYS[0])
    assert np.array_equal(again.values, mechanism.estimate(learning.measured(DAYS[0])).values)
    learning.assert_sound()


def test_lost_measurements_cost_the_new_estimate_not_the_old(learning):
    learning.released(*DAYS[:2])
    before = read_published(learning.folder / "published")
    for path in learning.settings.measurements_of(DAYS[1], 0).iterdir():
        path.unlink()
    (outcome,) = revised(learning).values()
    assert outcome.status is Status.FAILED
    assert "is gone" in outcome.message
    assert read_published(learning.folder / "published", verify=True).equals(before)


def test_nothing_is_drawn_for_it(learning):
    learning.released(*DAYS[:2])
    assert revised(learning, noise=no_noise())[DAYS[0]].status is Status.PUBLISHED
    assert learning.release(DAYS[2], noise=no_noise())[DAYS[2]].outcome.status is Status.FAILED  # control


def test_learning_that_fails_voids_no_day(learning, monkeypatch):
    """It runs before the draw is begun, so nothing was drawn: the next run goes on."""
    learning.release(DAYS[0])
    with monkeypatch.context() as patch:
        patch.setattr(HistoryInformedTree, "_refreshed", raising(MemoryError("as told")))
        (work,) = learning.release(DAYS[1]).values()
    assert work.outcome.status is Status.FAILED
    assert learning.record(DAYS[1]).state is ReleaseState.RESERVED
    assert learning.release(DAYS[1])[DAYS[1]].outcome.status is Status.PUBLISHED
    learning.assert_sound()


def test_days_of_another_mechanism_keep_their_estimate(installation):
    installation.simulate(*DAYS)
    installation.released(DAYS[0])
    installation.change_mechanism("HistoryInformed")
    assert installation.settings.revise_days == 14
    installation.release(*DAYS[1:3])
    done = revised(installation)
    assert done[DAYS[0]].status is Status.UNCHANGED
    assert done[DAYS[1]].status is Status.PUBLISHED
    installation.assert_sound()


def blocks_before(installation, day):
    """Where the blocks begin that the draw of a day knew of, of all levels."""
    measured = installation.measured(day)
    starts = (start for one in measured.state["levels"].values() for start in one["history"]["starts"])
    return {start for start in starts if start < measured.first_step}


def test_nothing_goes_on_from_noise_that_others_know(learning):
    """A day drawn before an earlier day's noise became known carries its blocks, and what they taught."""
    learning.configure(FEW_BLOCKS, "scale = 300.0")
    learning.released(*DAYS[:3])
    known = set(range(learning.record(DAYS[0]).first_step, learning.record(DAYS[1]).first_step))
    assert blocks_before(learning, DAYS[2]) & known
    learning.compromise(DAYS[0], "a leak")
    done = revised(learning)
    assert {day: one.status for day, one in done.items()} == {DAYS[1]: Status.UNCHANGED}
    assert "noise that others know" in done[DAYS[1]].message
    assert listed(learning)[DAYS[1]] == 0
    done = night(learning, DAYS[3])
    assert blocks_before(learning, DAYS[3]) == set()
    assert {day: one.status for day, one in done.items()} == dict.fromkeys(DAYS[1:3], Status.PUBLISHED)
    night(learning, DAYS[4])
    assert min(blocks_before(learning, DAYS[4])) >= learning.record(DAYS[3]).first_step
    learning.assert_sound()
