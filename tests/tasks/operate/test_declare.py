"""What a person declares of releases: withdrawals, amendments, known noise with the days that share it."""

import shutil
from itertools import chain
from math import inf

import pytest

from optstream.catalogue import find_catalogue
from optstream.errors import LedgerError
from optstream.ledger import Ledger, ReleaseState
from optstream.mechanisms import Hierarchical
from tasks.ledger.show import read_book
from tasks.ledger.verify import verify
from tasks.operate import withdraw as withdraw_module
from tasks.operate.declare import declare, rehearse
from tasks.release import draw
from tasks.release import pipeline as steps
from tasks.release.publish import publish
from tasks.release.run import Status, terms_of
from tasks.trusted.files import take_raw
from tests.by_night import few
from tests.failing import death_at
from tests.tasks.two_regions import DAYS, DRAWN, RESERVED, STAGED, STEPS, assert_ended

DAY, NEXT, *_ = DAYS
FOUR = DAYS[:4]


def test_a_withdrawn_day_is_out_of_the_folder_and_still_charged(installation):
    installation.released(DAY, NEXT)
    spent = installation.spent
    assert_ended(*installation.take_back(DAY), Status.WITHDRAWN, "stays charged")
    assert installation.rows()["date"].unique().to_list() == [NEXT]
    assert installation.entry(DAY).withdrawn
    assert installation.spent == spent
    assert installation.problems() == []
    assert installation.take_back(DAY)[0].status is Status.WITHDRAWN
    assert_ended(installation.outcome(DAY), Status.WITHDRAWN, "a wrong meter")
    assert installation.problems() == []


def test_a_restatement_takes_a_withdrawn_days_place(installation):
    installation.configure('restatement_share = "0"', 'restatement_share = "1/10"')
    installation.released(DAY)
    installation.take_back(DAY)
    assert installation.status(DAY, restate=True) is Status.PUBLISHED
    assert installation.entry(DAY).revision == 1
    assert installation.problems() == []
    installation.take_back(DAY)
    assert installation.problems() == []


def test_a_draw_that_was_never_published_is_given_up(installation):
    installation.release(DAY, steps=STAGED)
    assert_ended(*installation.take_back(DAY), Status.FAILED, "holds 2016-06-01 until")
    installation.later(hours=1)
    assert_ended(*installation.take_back(DAY), Status.VOID)
    assert installation.record(DAY).state is ReleaseState.VOID
    assert installation.status(DAY) is Status.VOID
    assert installation.problems() == []


def test_a_first_day_given_up_in_its_publication_keeps_no_other_day(installation):
    """Its run died with the file in its place and no catalogue; an empty folder remains."""
    works = list(installation.release(DAY, steps=STAGED).values())
    with death_at("optstream.catalogue.backends.replace"):
        steps.publish_releases(installation.run(), works)
    installation.later(hours=1)
    assert "run its day again, or withdraw it" in installation.outcome(NEXT).message
    assert installation.take_back(DAY)[0].status is Status.VOID
    assert installation.status(NEXT) is Status.PUBLISHED
    assert installation.problems() == []


def test_a_publisher_that_wakes_up_after_the_withdrawal_publishes_nothing(installation, monkeypatch):
    """It has looked, and goes to sleep before the lock; the control publishes without looking again."""
    (work,) = installation.release(DAY, steps=STAGED).values()
    asleep = installation.run()
    installation.later(hours=1)
    installation.take_back(DAY)
    with pytest.raises(LedgerError, match="as DRAWN, but VOID"):
        publish(asleep, [work])
    assert not (installation.folder / "published/catalogue.json").exists()
    monkeypatch.setattr("tasks.release.publish._check_may_be_listed", lambda _run, _work: None)
    publish(asleep, [work])
    assert installation.entry(DAY) is not None
    assert installation.problems() != []


def test_a_day_that_is_listed_but_not_recorded_was_published(installation):
    run = installation.run()
    works = list(installation.release(DAY, steps=STAGED).values())
    with death_at(run.ledger, "record_published"):
        steps.publish_releases(run, works)
    installation.later(hours=1)
    assert installation.take_back(DAY)[0].status is Status.WITHDRAWN
    record = installation.record(DAY)
    assert (record.state, record.withdrawn) == (ReleaseState.PUBLISHED, "a wrong meter")
    assert installation.problems() == []


def test_a_withdrawal_cut_short_is_found_and_completed(installation, monkeypatch):
    installation.release(DAY)

    def is_cut_short(_folder, _day, tell, **_):
        tell(None, None)
        raise ZeroDivisionError

    with monkeypatch.context() as patch:
        patch.setattr(withdraw_module, "withdraw_published", is_cut_short)
        assert_ended(*installation.take_back(DAY), Status.FAILED)
    (problem,) = installation.problems()
    assert "according to the ledger alone; `optstream withdraw --date 2016-06-01 --reason WHY`" in problem
    assert installation.take_back(DAY)[0].status is Status.WITHDRAWN
    assert installation.problems() == []


def test_a_folder_that_was_lost_and_published_again_lacks_nothing_of_a_withdrawn_day(installation):
    installation.released(DAY, NEXT)
    installation.withdraw(DAY)
    shutil.rmtree(installation.folder / "published")
    assert installation.publish_again(NEXT)[0].status is Status.PUBLISHED
    assert installation.problems() == []
    (note,) = verify(installation.settings, installation.ledger).notes
    assert "no tombstone of 2016-06-01" in note
    assert_ended(*installation.take_back(DAY), Status.WITHDRAWN, "lists nothing of it, and it stays charged")
    assert installation.problems() == []


@pytest.fixture
def lowered(installation):
    """Two days released at alpha 10, and a configuration that says alpha 1."""
    installation.configure('alpha = "1"', 'alpha = "10"')
    installation.simulate(*FOUR)
    installation.released(*FOUR[:2])
    installation.configure('alpha = "10"', 'alpha = "1"')
    return installation


def test_a_dry_run_says_how_long_days_wait_and_they_do(lowered):
    head = lowered.ledger.head("two-regions")
    lines = rehearse(lowered.settings, lowered.ledger)
    assert len(lines) == 3
    assert lines[0] == "two-regions: alpha would change; nothing was declared"
    assert lines[1].startswith("2016-06-03 would wait: some window would lose epsilon ")
    assert "by privacy guarantee 0, which gives 1 and holds for days in it" in lines[1]
    assert lines[2].startswith("2016-06-04 is the first day")
    assert lowered.ledger.head("two-regions") == head

    lowered.ledger.amend(terms_of(lowered.settings), "smaller customers", lowered.now)
    done = lowered.release(*FOUR[2:])
    assert [done[day].status for day in FOUR[2:]] == [Status.REFUSED, Status.PUBLISHED]
    refused = done[DAYS[2]].message
    assert "by privacy guarantee 0 of privacy budget 'people' (epsilon 1, window 48, alpha 10)" in refused
    assert lowered.ledger.verify() == []
    (page,) = read_book(lowered.settings, lowered.ledger, DAYS[2], DAYS[2])
    assert page.days[0].may is False
    assert "by privacy guarantee 0" in page.days[0].because


def test_a_dry_run_says_that_an_open_draw_refuses_the_amendment(lowered):
    lowered.configure('alpha = "1"', 'alpha = "10"')
    lowered.release(DAYS[2], steps=DRAWN)
    lowered.configure('alpha = "10"', 'alpha = "1"')
    open_draw = f"{DAYS[2]} of stream 'two-regions' is drawn and not published"
    with pytest.raises(LedgerError, match=open_draw):
        rehearse(lowered.settings, lowered.ledger)
    with pytest.raises(LedgerError, match=open_draw):
        lowered.ledger.amend(terms_of(lowered.settings), "smaller customers", lowered.now)


def declared(lowered):
    declare(lowered.settings, lowered.ledger, "smaller customers", lowered.now)


def marked(lowered):
    lowered.compromise(DAY)


@pytest.mark.parametrize(("what", "act"), [("amendment is declared", declared), ("noise is marked", marked)])
def test_what_the_ledger_has_is_reported_although_its_witness_cannot_be(lowered, what, act):
    """The command failed, and what it did is permanent: who restores the configuration would be refused."""
    witness = lowered.folder / "trusted/witness"
    shutil.rmtree(witness)
    witness.touch()
    with pytest.raises(LedgerError, match=f"the {what}.*, permanently, and nothing is drawn before it is"):
        act(lowered)


def test_a_withdrawal_records_a_restatement_published_while_it_waited(installation, monkeypatch):
    """`latest` is read before the publishers' lock: the tombstone names revision 1, the ledger gets 0."""
    installation.configure('restatement_share = "0"', 'restatement_share = "1/2"')
    installation.release(DAY)
    genuine = withdraw_module.withdraw_published

    def waits(*arguments, **named):
        installation.release(DAY, restate=True)
        return genuine(*arguments, **named)

    monkeypatch.setattr(withdraw_module, "withdraw_published", waits)
    installation.withdraw(DAY)
    assert installation.entry(DAY).withdrawn
    monkeypatch.undo()
    assert installation.status(DAY) is Status.WITHDRAWN


# Known noise: the days that share it, by groups that cross midnight; nothing under way is drawn or shown.


@pytest.fixture
def pegasus(installation):
    installation.change_mechanism("PeGaSus", 'threshold = "100000"')
    installation.simulate(*DAYS)
    return installation


@pytest.fixture
def short(pegasus):
    """One day is released, and none of the next day's windows reaches back to it."""
    pegasus.configure("window = 48", "window = 1")
    pegasus.release(DAY)
    return pegasus


def lost(installation, step):
    return installation.ledger.window_spent("people", range(step, step + 1)).epsilon == inf


def first_step(installation, day):
    return installation.settings.calendar.first_step(day)


def test_the_day_before_whose_open_group_ran_into_the_leaked_one_is_lost(pegasus):
    """An outcome of the leaked day may have probability 0 under one of two streams that differ there."""
    pegasus.released(DAY)
    pegasus.release(NEXT)
    assert pegasus.compromise(NEXT) == DAYS[:2]
    assert lost(pegasus, first_step(pegasus, DAY))
    # a window that ends with the first step of the day before, far from the leaked one
    assert lost(pegasus, first_step(pegasus, DAY) - 40)
    assert pegasus.raw_files() == []
    assert pegasus.ledger.verify() == []
    assert pegasus.status(DAYS[2]) is Status.REFUSED


def thresholds_of(installation, days):
    """The steps that each threshold was compared with, of every series, from what was recorded."""
    open_now, found = {}, []
    for day in days:
        for level, part in enumerate(installation.measured(day).parts):
            for node, starts in enumerate(part.choices["groups"]):
                own = open_now.pop((level, node), None)
                for step, start in enumerate(starts, first_step(installation, day)):
                    if own is None:
                        own = [step]
                        found.append(own)
                        continue
                    own.append(step)
                    if start == step:
                        own = None
                assert (own is not None) == bool(part.state["noisy"][node])
                if own is not None:
                    open_now[level, node] = own
    return found


@pytest.mark.parametrize("case", few([(20, 2), (0, 1), (100, 1), (0, 2), (20, 1), (100, 2)], 1), ids=str)
def test_exactly_the_days_that_share_a_threshold_are_marked(pegasus, case):
    threshold, leaked = case
    pegasus.configure('threshold = "100000"', f'threshold = "{threshold}"')
    pegasus.release(*FOUR)
    steps = {day: set(range(first_step(pegasus, day), first_step(pegasus, day) + 48)) for day in FOUR}
    known = [own for own in thresholds_of(pegasus, FOUR) if steps[FOUR[leaked]].intersection(own)]
    expected = [day for day in FOUR if steps[day].intersection(chain.from_iterable(known))]
    assert pegasus.compromise(FOUR[leaked]) == expected
    reasons = [pegasus.record(day).compromised for day in FOUR]
    assert reasons == ["a stolen disk" if day in expected else None for day in FOUR]


def test_days_that_nobody_can_read_any_more_count_as_joined(pegasus):
    pegasus.configure('threshold = "100000"', 'threshold = "0"')
    pegasus.release(*FOUR)
    for day in FOUR:
        shutil.rmtree(pegasus.settings.measurements_of(day, 0))
    assert pegasus.compromise(FOUR[2]) == FOUR


def test_a_day_that_is_being_drawn_is_given_up(short, monkeypatch):
    """It has taken the threshold of the day before: what it draws is destroyed, not published."""
    genuine = Hierarchical.measure

    def measure(self, *arguments, **named):
        assert short.compromise(DAY) == DAYS[:2]
        return genuine(self, *arguments, **named)

    monkeypatch.setattr(Hierarchical, "measure", measure)
    assert short.status(NEXT) is not Status.PUBLISHED
    record = short.record(NEXT)
    assert (record.state, record.compromised) == (ReleaseState.VOID, "a stolen disk")
    assert short.raw_files() == []


def test_a_day_goes_on_with_no_threshold_that_became_known_before_its_draw_began(short, monkeypatch):
    """Its own windows have lost nothing, and the raw state is in its hands already."""

    def taken_too_early(folder, digest):
        raw = take_raw(folder, digest)
        assert short.compromise(DAY) == DAYS[:1]
        return raw

    with monkeypatch.context() as patched:
        patched.setattr(draw, "take_raw", taken_too_early)
        assert short.status(NEXT) is Status.FAILED
    record = short.record(NEXT)
    assert (record.state, record.drawing, record.redraws) == (ReleaseState.RESERVED, False, 0)
    short.later(hours=1)
    assert short.status(NEXT) is Status.PUBLISHED
    first, parts = first_step(short, NEXT), short.measured(NEXT).parts
    assert all(series[0] >= first for part in parts for series in part.choices["groups"])
    assert short.record(NEXT).compromised is None


def test_a_day_that_began_its_draw_while_the_releases_were_looked_at_is_marked_too(short, monkeypatch):
    genuine = Ledger.releases

    def releases(self, stream):
        found = genuine(self, stream)
        monkeypatch.setattr(Ledger, "releases", genuine)
        assert short.status(NEXT) is Status.PUBLISHED
        return found

    monkeypatch.setattr(Ledger, "releases", releases)
    assert short.compromise(DAY) == DAYS[:2]
    assert short.record(NEXT).compromised == "a stolen disk"
    assert short.raw_files() == []


@pytest.mark.parametrize(
    "mechanism", few(["HistoryInformed", "BudgetDistribution", "BudgetAbsorption", "Fast"], 1)
)
def test_mechanisms_that_remember_outputs_only_share_no_noise(installation, mechanism):
    installation.change_mechanism(mechanism)
    installation.simulate(*DAYS)
    installation.released(*DAYS[:3])
    assert all(installation.record(day).state is ReleaseState.PUBLISHED for day in DAYS[:3])
    assert installation.compromise(NEXT) == [NEXT]


def test_a_drawn_day_is_void_and_no_run_publishes_it(installation):
    """Someone who knows the noise can compute the raw values from the published ones."""
    run, works = installation.through(STAGED, DAY)
    installation.compromise(DAY)
    (late,) = STEPS[-1](run, works)
    assert late.status is Status.FAILED, late
    installation.later(hours=1)
    assert installation.status(DAY) is Status.VOID
    record = installation.record(DAY)
    assert (record.state, record.compromised) == (ReleaseState.VOID, "a stolen disk")
    assert record.spends
    assert find_catalogue(installation.folder / "published") is None
    assert installation.problems() == []


def test_a_run_that_is_about_to_draw_draws_nothing(installation):
    installation.released(DAY)
    run, works = installation.through(RESERVED, NEXT)
    assert installation.record(NEXT).state is ReleaseState.RESERVED
    installation.compromise(DAY)
    (refused,) = STEPS[5](run, works)
    assert refused.status is Status.REFUSED, refused
    # nor does the run that takes the day over, under the plan that was charged already
    installation.later(hours=1)
    assert installation.status(NEXT) is Status.REFUSED
    assert installation.record(NEXT).state is ReleaseState.RESERVED
    assert installation.ledger.verify() == []


def test_one_that_is_listed_and_not_recorded_is_reported_and_withdrawn(installation):
    run, works = installation.through(STAGED, DAY)
    publish(run, works)
    installation.compromise(DAY)
    (line,) = installation.problems()
    assert f"optstream withdraw --date {DAY}" in line
    installation.later(hours=1)
    installation.withdraw(DAY)
    assert installation.entry(DAY).withdrawn
    assert installation.problems() == []
