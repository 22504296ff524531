"""The month and the year of a statement: of the plan alone, composed once, and kept for the nights after."""

from datetime import date
from fractions import Fraction

import pytest

from tasks.config import load_settings
from tasks.plan import long_spans
from tasks.plan.dry_run import dry_run
from tasks.plan.long_spans import long_spans_of, plan_horizons
from tests.tasks.planning.advice.test_population import LAPLACE

pytestmark = pytest.mark.slow

DAY, LATER, NEXT_YEAR = date(2016, 6, 1), date(2016, 10, 30), date(2017, 6, 1)


@pytest.fixture(autouse=True)
def as_a_new_process(whole_spans, monkeypatch):
    monkeypatch.setattr(long_spans, "_made", {})


@pytest.fixture
def composed(monkeypatch):
    """The days for which it was composed, rather than looked up."""
    days = []

    def count(settings, day, revision):
        days.append(day)
        return plan_horizons(settings, day, revision)

    monkeypatch.setattr(long_spans, "plan_horizons", count)
    return days


def test_it_is_the_dry_runs_figure_rounded_up_and_the_same_all_year(small, composed):
    settings = small().settings
    month, year = long_spans_of(settings, DAY, 0)
    for span, (n_days, loss) in zip((month, year), dry_run(settings, [DAY]).horizons, strict=True):
        assert (span.n_days, span.delta, span.composed) == (n_days, loss.delta, loss.composed)
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
    monkeypatch.setattr(long_spans, "_made", {})
    assert long_spans_of(settings, LATER, 0) == found
    assert composed == [DAY]
    for damage in (b"", b"[1]", b"\xff"):
        settings.long_spans_file.write_bytes(damage)
        monkeypatch.setattr(long_spans, "_made", {})
        assert long_spans_of(settings, DAY, 0) == found
    assert composed == [DAY] * 4
    monkeypatch.setattr(long_spans, "_made", {})
    settings.long_spans_file.unlink()
    settings.long_spans_file.mkdir()  # cannot be written either
    assert long_spans_of(settings, DAY, 0) == found


@pytest.mark.nightly
def test_another_plan_or_year_is_composed_anew(small, composed):
    settings = small().settings
    first = long_spans_of(settings, DAY, 0)
    long_spans_of(settings, NEXT_YEAR, 0)
    assert composed == [DAY, NEXT_YEAR]
    file = settings.file
    file.write_text(file.read_text().replace('epsilon = "1"', 'epsilon = "2"'))
    assert long_spans_of(load_settings(file), DAY, 0)[0].epsilon > first[0].epsilon
    assert composed == [DAY, NEXT_YEAR, DAY]


@pytest.mark.nightly
def test_a_share_that_another_streams_file_moves_is_composed_anew(tmp_path, composed):
    """The stream's own file stays as it was: with `stream_share = "model"` it does not say the whole plan."""
    (tmp_path / "trusted").mkdir()
    own, other = tmp_path / "own.toml", tmp_path / "other.toml"
    own.write_text(
        LAPLACE.replace("[budget]", '[budget]\nstream_share = "model"\nshared_with = ["other.toml"]')
    )
    text = LAPLACE.replace("two-regions", "other").replace("[budget]", '[budget]\nstream_share = "4/5"')
    other.write_text(text)
    few = long_spans_of(load_settings(own), DAY, 0)
    other.write_text(text.replace("4/5", "1/5"))
    settings = load_settings(own)
    assert settings.model_of(0).epsilon == Fraction(4, 5)
    assert long_spans_of(settings, DAY, 0)[0].epsilon > 3 * few[0].epsilon
    assert composed == [DAY, DAY]
