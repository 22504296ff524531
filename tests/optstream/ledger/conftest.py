"""A ledger on disk with one stream, and plans that are easy to add up."""

from datetime import UTC, datetime, timedelta
from fractions import Fraction
from types import SimpleNamespace

import pytest

from optstream.ledger import StreamTerms, open_ledger
from optstream.privacy import PrivacyModel, StepSpend


def step_plan(first_step, charge, n_steps=4):
    """One spend that charges `charge` to each of its steps."""
    return (StepSpend(0, "samples", first_step, (Fraction(charge),) * n_steps, Fraction(1), 1),)


def terms(stream="load", grant="customers", epsilon="1", window_length=4, hierarchy="tree", **more):
    windows = more.pop("windows", "sliding")
    model = PrivacyModel(epsilon, window_length, "1", resolution="1", windows=windows)
    return StreamTerms(stream, grant, model, hierarchy, more.pop("calibration", "strict"), "30 min", **more)


@pytest.fixture
def kit():
    """Times, plans and terms; epsilon 1 in any window of 4 steps."""
    now = datetime(2026, 3, 1, 2, tzinfo=UTC)
    return SimpleNamespace(now=now, lease=timedelta(minutes=10), plan=step_plan, terms=terms)


@pytest.fixture
def url(tmp_path):
    return f"sqlite:///{tmp_path}/trusted/ledger.sqlite"


@pytest.fixture
def ledger(url, kit):
    opened = open_ledger(url)
    opened.enrol(terms(), kit.now)
    yield opened
    opened.close()


@pytest.fixture
def reserve(ledger, kit):
    """Reserve with everything defaulted."""

    def call(period="day 0", plan=None, revision=0, owner="night", stream="load", **more):
        now = more.pop("now", kit.now)
        plan = kit.plan(0, "1/4") if plan is None else plan
        return ledger.reserve(stream, period, revision, plan, owner, now, kit.lease, **more)

    return call


@pytest.fixture
def publish(ledger, reserve, kit):
    """Take a release all the way."""

    def call(period="day 0", plan=None, revision=0, **more):
        reservation = reserve(period, plan, revision, **more)
        ledger.begin_draw(reservation, kit.now)
        outcome = kit.plan(0, "1/4") if plan is None else plan
        ledger.record_drawn(reservation, "measured", outcome, kit.now)
        key = (reservation.stream, period, revision)
        ledger.record_staged(*key, "staged", "release-1.parquet", kit.now, reservation)
        ledger.record_published(*key, kit.now, reservation)
        return reservation

    return call
