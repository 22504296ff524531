"""A stream from its first day, and days unlike all others: what is compared with what."""

from dataclasses import replace
from datetime import date

import numpy as np
import pytest

from studies.evaluation import Load, Point, StudyData, run_cell
from studies.evaluation.contenders import INFORMED, cell_of
from studies.evaluation.data import BEGINNING
from studies.evaluation.happenings import HAPPENINGS
from studies.evaluation.streams import FIRST, LEARNED_DAYS

SEED, DAY = 5, "2013-02-13"


@pytest.fixture(scope="module")
def data() -> StudyData:
    """Two regions that repeat their days and weeks, from the first day of the long load on."""
    generator = np.random.default_rng(0)
    hours, n_days = np.arange(48) / 2, BEGINNING.n_days
    shape = 1 + 0.3 * np.sin((hours - 9) * np.pi / 12)
    week = np.where((np.arange(n_days) + 2) % 7 > 4, 0.9, 1.0)[:, None, None]
    load = np.array([3000.0, 7000.0])[:, None] * shape * week * generator.normal(1.0, 0.01, (n_days, 2, 48))
    history = Load(load, ("a", "b"), BEGINNING.first)
    return StudyData(replace(history, first_day=date(2016, 1, 4)), {}, "b", 900.0, 150.0, history)


def metrics_of(data, study, mechanism, span, epsilon="0.1"):
    result = run_cell(cell_of(study, mechanism, "strict", Point(epsilon), span, (0, 1)), data, SEED)
    assert result.trials[0].drawn <= result.epsilon_plan <= float(epsilon) * (1 + 1e-12)
    return result.trials[0].metrics


@pytest.mark.nightly
def test_a_stream_is_judged_from_its_first_day_and_sharpened_by_later_ones(data):
    found = metrics_of(data, "stream", INFORMED, BEGINNING.name)
    assert found["mae"] == pytest.approx(found["mae_2013"])  # the span has one year
    assert found["first"] > found["revised_0"] > found["revised_7"]
    assert 0.85 < found["covered"] == found["covered_2013"] < 1.0
    peer = metrics_of(data, "stream", "OptStream ES", BEGINNING.name)
    assert found["mae"] < peer["mae"]
    assert 0.85 < peer["covered"] < 1.0  # the same days, by what its own points show
    assert "revised_1" not in peer


def test_revisions_are_compared_with_the_same_days_as_published(data):
    chosen = range(LEARNED_DAYS, BEGINNING.n_days - 14, 7)
    assert len(chosen) == 3
    laplace = metrics_of(data, "stream", "Laplace", BEGINNING.name)
    assert laplace["first"] == pytest.approx(laplace["mae"], rel=0.3)  # noise on every step, every day


def test_each_thing_that_happens_is_on_its_own_copy_of_the_days(data):
    found = metrics_of(data, "unusual", "Laplace", DAY)
    assert set(found) == {*HAPPENINGS, *(f"{what}, after" for what in HAPPENINGS), FIRST, "mae"}
    # noise on every step does not care what happens
    assert [found[what] for what in HAPPENINGS] == pytest.approx([480.0] * len(HAPPENINGS), rel=0.3)


@pytest.mark.nightly
def test_what_learns_knows_the_past_of_an_unusual_day_and_none_on_its_first(data):
    found = metrics_of(data, "unusual", INFORMED, DAY)
    assert found["mae"] == found["nothing"] < found[FIRST]
    assert found["a blackout everywhere"] > found["nothing"]
