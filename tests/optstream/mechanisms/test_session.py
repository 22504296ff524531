"""A session: one budget over several streams, each of which goes on from its last period."""

from datetime import datetime, timedelta
from fractions import Fraction

import numpy as np
import polars as pl
import pytest

from optstream import (
    AggregationTree,
    BudgetAbsorption,
    BudgetError,
    Hierarchical,
    HistoryInformed,
    Laplace,
    ParameterError,
    PrivacyModel,
    Session,
    simulated_noise,
)
from optstream.privacy import worst_window

MODEL = PrivacyModel(epsilon=1, window=4, alpha=1, resolution=1)
PERIODS = np.arange(24, dtype=float).reshape(3, 1, 8)
TREE = AggregationTree.from_parents({"all": None, "north": "all", "south": "all"})


@pytest.mark.parametrize("kind", [Laplace, BudgetAbsorption, HistoryInformed])
def test_periods_go_on_as_those_of_the_mechanism_do(kind):
    session, noise, state = Session(MODEL, noise=simulated_noise(3)), simulated_noise(3), None
    own, spends = kind(MODEL), []
    stream = kind(MODEL)
    for number, values in enumerate(PERIODS):
        wanted = own.release(values, noise=noise, first_step=8 * number, state=state)
        assert session.release(stream, values).values.tolist() == wanted.values.tolist()
        state, spends = wanted.state, [*spends, *wanted.spends]
    assert session.spends == tuple(spends)
    assert session.left(range(24)) == 1 - worst_window(spends, 4).epsilon


def test_streams_share_the_budget_and_what_it_does_not_cover_is_not_drawn():
    session = Session(MODEL, noise=simulated_noise(0))
    half, most = Laplace(MODEL.with_budget(Fraction(1, 2))), Laplace(MODEL.with_budget(Fraction(3, 4)))
    session.release(half, PERIODS[0])
    assert session.left(range(8)) == Fraction(1, 2)
    before = session.spends
    with pytest.raises(BudgetError, match=r"would be charged 1.25, .*epsilon 1: .*nothing was drawn"):
        session.release(most, PERIODS[0])
    assert session.spends == before
    session.release(Laplace(MODEL.with_budget(Fraction(1, 2))), PERIODS[0])
    assert session.left(range(8)) == 0
    assert session.left() == Fraction(1, 4), "a window of the next step has three steps behind it"


def test_a_draw_that_fails_stays_charged(monkeypatch):
    session, stream = Session(MODEL, noise=simulated_noise(0)), Laplace(MODEL)
    monkeypatch.setattr(Laplace, "_draw", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        session.release(stream, PERIODS[0])
    assert session.left(range(8)) == 0


def test_other_guarantees_periods_and_no_noise_are_refused():
    with pytest.raises(ParameterError, match=r"noise must be secure_noise\(\)"):
        Session(MODEL)
    session = Session(MODEL, noise=simulated_noise(0))
    with pytest.raises(ParameterError, match="must be the session's"):
        session.release(Laplace(PrivacyModel(1, window=5, alpha=1, resolution=1)), PERIODS[0])
    for wrong in ({"window_length": 4, "window": 4}, {}):
        with pytest.raises(ParameterError, match=r"window \(steps\).*PrivacyModel\(epsilon=1, window=48"):
            PrivacyModel(1, alpha=1, **wrong)


@pytest.fixture
def release():
    readings = pl.DataFrame({"south": [5.0, 6, 7, 8], "north": [1.0, 2, 3, 4]})
    mechanism = Hierarchical(Laplace(MODEL), TREE, ["1/2", "1/2"])
    return mechanism.release(readings, noise=simulated_noise(1)), readings


def test_a_release_prints_its_cost_and_a_plot_has_units_times_bands_and_the_truth(release):
    one, readings = release
    assert repr(one).startswith(
        "Release of 3 nodes at 4 steps, 0 to 3, by Hierarchical\n"
        "epsilon 1 in any window of 4 steps, charged 1; simulated noise: never to be published\n"
    )
    many = Laplace(MODEL).release(np.ones((1000, 4)), noise=simulated_noise(0))
    assert repr(many).endswith("\nand 995 more: to_frame() has all")
    times = [datetime(2016, 2, 1) + timedelta(hours=hour) for hour in range(4)]
    chart = one.plot(["all", "south"], unit="MW", times=times, truth=readings).to_dict()
    assert chart["title"] == "simulated noise, lines: released, bands: 95 %, dashed: truth"
    assert [layer["mark"]["type"] for layer in chart["layer"]] == ["area", "line", "line"]
    assert chart["layer"][1]["encoding"]["y"]["title"] == "MW"
    (rows,) = chart["datasets"].values()
    shown = [(row["step"][:13], row["truth"]) for row in rows if row["node"] == "all"]
    assert shown == [(f"2016-02-01T0{hour}", 6 + 2 * hour) for hour in range(4)], "leaves are matched by name"
    assert all(row["lowest"] < row["value"] < row["highest"] for row in rows)
    for wrong in ({"times": times[1:]}, {"truth": readings[1:]}):
        with pytest.raises(ParameterError, match="4"):
            one.plot(**wrong)
