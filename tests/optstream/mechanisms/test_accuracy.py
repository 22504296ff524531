"""The error of three mechanisms on real load, to the digit: a refactoring changes none of them."""

from datetime import date

import numpy as np
import polars as pl
import pytest

from optstream import Feature, PrivacyModel, simulated_noise
from optstream.measurement import EquallySpaced
from optstream.mechanisms import Hierarchical, HistoryInformed, HistoryInformedTree, Laplace, OptStream
from optstream.stream import AggregationTree, PublicDays
from tests.optstream.mechanisms.planned_days import in_turn

FIRST, LAST, LEAD_DAYS = date(2016, 2, 1), date(2016, 3, 13), 28
"""The last 14 of the 42 days are judged."""
ERRORS = {
    "Laplace": (9676.526064209602, 5776.833202056228),
    "OptStream": (3160.2096647193284, 2714.903815895209),
    "HistoryInformed": (1088.014318895583, 201.956448946916),
}
"""MW, of the nation and of a region, as on 2026-12-01; seed 2016."""


@pytest.fixture(scope="module")
def load(real_data):
    rows = pl.read_parquet(real_data / "rte_regional_load_2013_2016.parquet")
    rows = rows.filter(pl.col("timestamp_local").dt.date().is_between(FIRST, LAST))
    rows = rows.sort("region_code", "timestamp_local")
    regions = rows["region_code"].unique().sort().to_list()
    values = rows["load_mw"].to_numpy().reshape(len(regions), -1, 48).transpose(1, 0, 2)
    return AggregationTree.from_parents({"FR": None} | dict.fromkeys(regions, "FR")), values


def make(name, tree):
    model, halves = PrivacyModel("0.1", 48, "10"), ["1/2", "1/2"]
    if name == "Laplace":
        return Hierarchical(Laplace(model), tree, halves)
    if name == "OptStream":
        features = Feature.day_parts(48)
        return OptStream(model, tree, sampling=EquallySpaced(10), features=features, level_shares=halves)
    days = PublicDays.from_date(FIRST, 48, ())
    return HistoryInformedTree(HistoryInformed(model, 10, scale=5000.0, days=days), tree, halves)


@pytest.mark.slow
@pytest.mark.parametrize("name", ERRORS)
def test_the_error_on_real_load_is_what_it_was(load, name):
    tree, values = load
    mechanism, noise = make(name, tree), simulated_noise(2016)
    judged = in_turn(mechanism.measure, values, lambda step: noise)[LEAD_DAYS:]
    missed = np.abs([mechanism.estimate(one).values for one in judged] - tree.add_up(values)[LEAD_DAYS:])
    print(f"{name}: nation {missed[:, 0].mean():.3f} MW, region {missed[:, 1:].mean():.3f} MW")
    assert (missed[:, 0].mean(), missed[:, 1:].mean()) == pytest.approx(ERRORS[name], rel=1e-7)
