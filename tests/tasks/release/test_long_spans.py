"""The month and the year of a statement: of the plan alone, composed once, and kept for the nights after."""

from datetime import date

import pytest

from tasks.plan.dry_run import dry_run
from tasks.release import mechanism
from tasks.release.mechanism import long_spans_of, plan_horizons

pytestmark = pytest.mark.slow

DAY, LATER = date(2016, 6, 1), date(2016, 10, 30)


@pytest.fixture
def composed(whole_spans, monkeypatch):
    """The days for which it was composed, rather than looked up."""
    days = []

    def count(settings, day, revision):
        days.append(day)
        return plan_horizons(settings, day, revision)

    monkeypatch.setattr(mechanism, "plan_horizons", count)
    monkeypatch.setattr(mechanism, "_made", {})  # as in a new process
    return days


def test_it_is_the_dry_runs_figure_rounded_up_and_the_same_all_year(small, composed):
    settings = small().settings
    month, year = long_spans_of(settings, DAY, 0)
    for span, (n_days, loss) in zip((month, year), dry_run(settings, [DAY]).horizons, strict=True):
        assert (span.n_days, span.delta, span.composed) == (n_days, loss.delta, loss.composed)
        assert n_days <= loss.plain < n_days + 0.1  # of epsilon 1 a day
        assert loss.epsilon <= span.epsilon <= 1.001 * loss.epsilon
        assert loss.plain <= span.plain_sum <= loss.plain * 1001 / 1000
    assert long_spans_of(settings, LATER, 0) == (month, year)
    assert composed == [DAY]


@pytest.mark.nightly
def test_another_process_takes_it_from_the_file_and_a_damaged_one_costs_time_alone(
    small, composed, monkeypatch
):
    settings = small().settings
    found = long_spans_of(settings, DAY, 0)
    monkeypatch.setattr(mechanism, "_made", {})
    assert long_spans_of(settings, LATER, 0) == found
    assert composed == [DAY]
    for damage in (b"", b"[1]", b"\xff"):
        settings.long_spans_file.write_bytes(damage)
        monkeypatch.setattr(mechanism, "_made", {})
        assert long_spans_of(settings, DAY, 0) == found
    assert composed == [DAY] * 4
    monkeypatch.setattr(mechanism, "_made", {})
    settings.long_spans_file.unlink()
    settings.long_spans_file.mkdir()  # cannot be written either
    assert long_spans_of(settings, DAY, 0) == found
