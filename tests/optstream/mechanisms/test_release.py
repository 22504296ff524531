"""A release by hand: what is given, what it shows, and a session's budget over several streams."""

from dataclasses import replace
from datetime import datetime, timedelta
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pytest

from optstream import (
    AggregationTree,
    BudgetAbsorption,
    BudgetError,
    EquallySpaced,
    Hierarchical,
    HistoryInformed,
    Laplace,
    OptStream,
    ParameterError,
    PrivacyModel,
    Session,
    secure_noise,
    simulated_noise,
)
from optstream.privacy import worst_window
from tests.optstream.mechanisms.planned_days import in_turn, spends_of
from tests.optstream.mechanisms.silent_noise import SilentNoise, Undrawn

TREE = AggregationTree.from_parents({"all": None, "north": "all", "south": "all", "west": "all"})
MODEL = PrivacyModel(epsilon=1, window=4, alpha=1, resolution=1)
READINGS = {"north": [1.0, 2, 3, 4], "south": [10.0, 20, 30, 40], "west": [100.0, 200, 300, 400]}
ARRAY = np.array([READINGS[leaf] for leaf in TREE.leaves])
ORDER = ["west", "north", "south"]
MECHANISM = OptStream(
    MODEL, TREE, sampling=EquallySpaced(4), features=[], level_shares=["1/2", "1/2"], post_processing=False
)
STEPS = pd.date_range("2016-02-01", periods=4, freq="30min")
FRAMES = {
    "polars": pl.DataFrame(READINGS).select(ORDER),
    "pandas": pd.DataFrame(READINGS, index=STEPS)[ORDER],
    "pandas by index": pd.DataFrame(READINGS).T.loc[ORDER],
    "pandas by index, times in the columns": pd.DataFrame(READINGS, index=STEPS).T.loc[ORDER],
    "pandas integers that may be missing": pd.DataFrame(READINGS).astype("Int64")[ORDER],
    **{one: pl.DataFrame(READINGS).cast(getattr(pl, one)) for one in ("Float32", "Int32", "UInt64")},
}
WRONG = {
    "a leaf is missing": (pl.DataFrame(READINGS).drop("south"), "missing: 'south'"),
    "a column is no leaf": (pl.DataFrame({**READINGS, "all": [0.0] * 4}), "no leaf: 'all'"),
    "a leaf has another name": (pd.DataFrame(READINGS).rename(columns={"west": "vest"}), "missing: 'west'"),
    "a leaf comes twice": (pd.DataFrame(READINGS)[[*ORDER, "north"]], "more than once: 'north'"),
    "leaves on both axes": (pd.DataFrame(ARRAY[:, :3], index=ORDER, columns=ORDER), "both have them"),
    "texts": (pl.DataFrame(READINGS).cast(pl.String), "integers or floats"),
    "texts in an index": (pd.DataFrame(READINGS).astype(object).T, "integers or floats"),
    "steps in disorder": (pd.DataFrame(READINGS, index=STEPS)[ORDER].iloc[[1, 0, 2, 3]], "sort them by time"),
    "another library's": (pl.DataFrame(READINGS).to_arrow(), "polars or pandas frame"),
    "not collected": (pl.LazyFrame(READINGS), "polars or pandas frame"),
}
NAMED = AggregationTree.from_parents({"all": None, "A": "all", "<b>": "all"})
NAMED_READINGS = pl.DataFrame({"<b>": [5.0, 6, 7, 8], "A": [1.0, 2, 3, 4]})
PERIODS = np.arange(24, dtype=float).reshape(3, 1, 8)


def released(values, mechanism=MECHANISM):
    return mechanism.release(values, noise=SilentNoise()).values


@pytest.mark.parametrize("kind", FRAMES)
def test_a_frame_goes_by_label_in_whatever_order(kind):
    assert np.array_equal(released(FRAMES[kind]), released(ARRAY))
    assert released(ARRAY)[TREE.nodes.index("south")].tolist() == READINGS["south"]


def test_an_array_goes_by_position():
    assert np.array_equal(released(ARRAY.tolist()), released(ARRAY))
    assert not np.array_equal(released(ARRAY[::-1]), released(ARRAY))


@pytest.mark.parametrize("missing", [None, float("nan")])
def test_what_is_missing_counts_as_nothing(missing):
    """Whether there is a release must not depend on a reading, so neither on its absence."""
    readings = {**READINGS, "south": [10.0, missing, 30.0, 40.0]}
    wanted = ARRAY.copy()
    wanted[1, 1] = 0
    frame = pd.DataFrame(readings)
    for values in (pl.DataFrame(readings), frame, frame.astype("Int64"), np.ma.masked_equal(ARRAY, 20)):
        assert np.array_equal(released(values), released(wanted))


@pytest.mark.parametrize("kind", WRONG)
def test_what_does_not_fit_is_refused_before_any_noise(kind):
    frame, message = WRONG[kind]
    with pytest.raises(ParameterError, match=message):
        MECHANISM.release(frame, noise=Undrawn())


def test_plain_series_have_no_names_to_match():
    with pytest.raises(ParameterError, match="give an array, a series in each row"):
        Laplace(MODEL).release(FRAMES["polars"], noise=Undrawn())
    for series in (pl.Series(READINGS["west"]), pd.Series(READINGS["west"])):
        assert released(series, Laplace(MODEL)).tolist() == [READINGS["west"]]


@pytest.mark.parametrize("noise", [0, None, 0.5, secure_noise, type(secure_noise())])
def test_no_noise_is_refused_in_words(noise):
    with pytest.raises(ParameterError, match=r"noise must be secure_noise\(\).*nothing is released without"):
        MECHANISM.release(ARRAY, noise=noise)


@pytest.fixture(scope="module")
def release():
    mechanism = Hierarchical(Laplace(MODEL), NAMED, ["1/2", "1/2"])
    return mechanism.release(NAMED_READINGS, noise=simulated_noise(1), first_step=8)


def test_a_frame_has_a_row_for_each_node_and_step(release):
    frame = release.to_frame()
    columns = ["step", "node", "parent", "level", "value", "standard_error", "noise_standard_error"]
    assert frame.columns == columns
    assert frame["step"].to_list() == [8, 9, 10, 11] * 3
    assert frame["node"].to_list() == [name for name in NAMED.nodes for _ in range(4)]
    assert frame["parent"].to_list() == [None] * 4 + ["all"] * 8
    assert frame["level"].to_list() == [0] * 4 + [1] * 8
    assert frame["value"].to_numpy().reshape(3, 4).tolist() == release.values.tolist()
    errors = np.full((3, 4), 2.0)
    frame = replace(release, standard_errors=errors, bands=(errors, errors + 1)).to_frame()
    assert frame.select("standard_error", "lowest", "highest").row(0) == (2, 2, 3)


def test_a_notebook_shows_what_it_cost_and_no_name_as_markup(release):
    shown = release._repr_html_()
    assert "epsilon 1 in any window. Simulated noise: never to be published." in shown
    assert "&lt;b&gt;" in shown
    assert "<b>" not in shown


@pytest.mark.parametrize("kind", [Laplace, BudgetAbsorption, HistoryInformed])
def test_periods_go_on_as_those_of_the_mechanism_do(kind):
    session, noise, stream = Session(MODEL, noise=simulated_noise(3)), simulated_noise(3), kind(MODEL)
    wanted = in_turn(kind(MODEL).release, PERIODS, lambda step: noise)
    for values, release in zip(PERIODS, wanted, strict=True):
        assert session.release(stream, values).values.tolist() == release.values.tolist()
    assert session.spends == tuple(spends_of(wanted))
    assert session.left(range(24)) == 1 - worst_window(spends_of(wanted), 4).epsilon


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


def test_a_release_prints_its_cost_and_a_plot_has_units_times_bands_and_the_truth(release):
    assert repr(release).startswith(
        "Release of 3 nodes at 4 steps, 8 to 11, by Hierarchical\n"
        "epsilon 1 in any window of 4 steps, charged 1; simulated noise: never to be published\n"
    )
    many = Laplace(MODEL).release(np.ones((1000, 4)), noise=simulated_noise(0))
    assert repr(many).endswith("\nand 995 more: to_frame() has all")
    times = [datetime(2016, 2, 1) + timedelta(hours=hour) for hour in range(4)]
    chart = release.plot(["all", "A"], unit="MW", times=times, truth=NAMED_READINGS).to_dict()
    assert chart["title"] == "simulated noise, lines: released, bands: 95 %, dashed: truth"
    assert [layer["mark"]["type"] for layer in chart["layer"]] == ["area", "line", "line"]
    assert chart["layer"][1]["encoding"]["y"]["title"] == "MW"
    (rows,) = chart["datasets"].values()
    shown = [(row["step"][:13], row["truth"]) for row in rows if row["node"] == "all"]
    assert shown == [(f"2016-02-01T0{hour}", 6 + 2 * hour) for hour in range(4)], "leaves are matched by name"
    assert all(row["lowest"] < row["value"] < row["highest"] for row in rows)
    for wrong in ({"times": times[1:]}, {"truth": NAMED_READINGS[1:]}):
        with pytest.raises(ParameterError, match="4"):
            release.plot(**wrong)
