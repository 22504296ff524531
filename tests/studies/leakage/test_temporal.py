"""Temporal leakage of a stream's ledger: what is counted, how time runs, and what is told."""

from datetime import UTC, date, datetime, timedelta
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest

from optstream.ledger import open_ledger
from optstream.privacy import StepSpend
from optstream.stream import Hour
from studies.leakage import backward_leakage, forward_leakage, supremum
from studies.leakage.charges import history_of
from studies.leakage.temporal import chain_of, leakage_of
from studies.leakage.transition_file import TransitionFile
from tasks.release.mechanism import mechanism_for
from tasks.release.run import Run, enrol
from tests.tasks.two_regions import released_by

pytestmark = pytest.mark.slow

NOW = datetime(2025, 6, 1, tzinfo=UTC)
DAY = date(2025, 3, 29)  # the next day has 46 steps
FORWARD = np.array([[0.9, 0.1], [0.3, 0.7]])


@pytest.fixture
def charging():
    """`charging(settings)`: a stream whose ledger takes periods as they are charged; nothing is drawn."""
    ledgers = []

    def make(settings):
        ledger = open_ledger(settings.ledger_url)
        ledgers.append(ledger)
        enrol(Run(settings, ledger, None, "test", lambda: NOW))

        def charge(day, spends=None, state="drawn", revision=0):
            calendar = settings.calendar
            first, n_steps = calendar.first_step(day), calendar.n_steps(day)
            spends = (
                mechanism_for(settings, day).plan(n_steps, first)
                if spends is None
                else spends(first, n_steps)
            )
            key = (settings.stream.name, day.isoformat(), revision)
            held = ledger.reserve(*key, spends, "test", NOW, timedelta(hours=1))
            if state != "reserved":
                ledger.begin_draw(held, NOW)
            if state == "void":
                ledger.void(*key, "the test says so", NOW, held)
            elif state == "drawn":
                ledger.record_drawn(held, "0" * 64, spends, NOW)
            return spends

        return SimpleNamespace(settings=settings, ledger=ledger, charge=charge)

    yield make
    for ledger in ledgers:
        ledger.close()


@pytest.fixture
def stream(small, charging):
    return charging(small().settings)


def flat(charge):
    """A plan of one step spend: `charge` a step."""
    return lambda first, n_steps: (
        StepSpend(0, "samples", first, (1,) * n_steps, 10_000 / Fraction(charge), 10_000),
    )


def chain(tmp_path, rows=FORWARD, names=None):
    return TransitionFile(tmp_path / "M.csv", np.asarray(rows), names)


def test_steps_of_days_with_gaps_and_clock_changes(stream):
    stream.charge(DAY, flat("1/100"))
    stream.charge(DAY + timedelta(days=3), flat("1/200"))
    history = history_of(stream.settings, stream.ledger, "step")
    assert history.epsilons.tolist() == [0.01] * 48 + [0.0] * (46 + 48) + [0.005] * 48
    assert history.starts.tolist() == [0, 48, 94, 142, 190]
    assert (history.n_releases, history.n_reserved) == (2, 0)
    assert history.when(0) == "2025-03-29 00:00"
    assert history.when(47) == "2025-03-29 23:30"
    assert history.when(48 + 4) == "2025-03-30 03:00"
    assert history.when(189) == "2025-04-01 23:30"
    assert history.worst_of_days(np.arange(190.0)).tolist() == [47, 93, 141, 189]


def test_hours_are_steps_of_their_days_and_add_up_to_them(load_text, charging):
    by_the_hour = load_text(released_by("PeGaSus"), ("[mechanism]", 'period = "hour"\n[mechanism]'))
    stream = charging(by_the_hour)
    stream.charge(Hour(DAY, 13), flat("1/100"))
    stream.charge(Hour(DAY, 14), flat("1/200"))
    stream.charge(Hour(DAY + timedelta(days=1), 0), flat("1/50"))
    history = history_of(stream.settings, stream.ledger, "step")
    expected = [0.0] * 26 + [0.01] * 2 + [0.005] * 2 + [0.0] * 18 + [0.02] * 2 + [0.0] * 44
    assert history.epsilons.tolist() == expected
    assert (history.n_releases, history.when(26)) == (3, "2025-03-29 13:00")
    days = history_of(stream.settings, stream.ledger, "period")
    np.testing.assert_allclose(days.epsilons, [0.03, 0.04], rtol=1e-12)
    assert days.when(1) == "2025-03-30"


def test_void_and_restated_days_count_and_reserved_ones_do_not(stream):
    stream.charge(DAY, flat("1/100"), state="void")
    stream.charge(DAY, flat("1/200"), revision=1)
    stream.charge(DAY + timedelta(days=1), flat("1/100"), state="reserved")
    history = history_of(stream.settings, stream.ledger, "step")
    assert history.epsilons.tolist() == [0.015] * 48
    assert (history.n_releases, history.n_reserved) == (2, 1)


@pytest.fixture
def found(stream, tmp_path):
    for number in range(3):
        stream.charge(DAY + timedelta(days=number), flat("1/100"))
    history = history_of(stream.settings, stream.ledger, "step")
    return leakage_of("small", history, chain_of(chain(tmp_path, names=("low", "high")), None), 0.5)


def test_leakage_is_the_sciences(found):
    epsilons, backward = found.history.epsilons, found.chain.backward
    np.testing.assert_allclose(backward, FORWARD, rtol=1e-12)  # two states: reversible
    np.testing.assert_array_equal(found.backward, backward_leakage(epsilons, backward))
    np.testing.assert_array_equal(found.forward, forward_leakage(epsilons, FORWARD))
    np.testing.assert_array_equal(found.total, found.backward + found.forward - epsilons)
    ends = supremum(FORWARD, 0.01)
    assert found.suprema == pytest.approx((ends, ends, 2 * ends - 0.01), rel=1e-9)
    assert 0.01 < found.constant < 0.5
    assert found.exact.series(10).sum() > 10 * found.constant
