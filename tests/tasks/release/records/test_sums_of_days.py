"""Sums over nodes and days of a published folder, with their standard errors."""

from datetime import timedelta

import numpy as np
import polars as pl
import pytest

from optstream import read_figure, read_measurements, read_published, read_sum
from optstream.errors import ParameterError, PublicationError
from tests.tasks.conftest import TWO_REGIONS, Installation
from tests.tasks.release.records.test_published_measurements import DAY, DAYS, LAST, wanted

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module", params=["OptStream", "Laplace", "HistoryInformed"])
def published(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("sums")
    (folder / "optstream.toml").write_text(TWO_REGIONS)
    installation = wanted(Installation(folder), request.param)
    installation.release(*DAYS)
    return request.param, installation.settings.published_folder


def test_a_sum_is_that_of_the_rows(published):
    _, folder = published
    rows = read_published(folder).filter(node="11")
    assert read_sum(folder, ["11"], DAY, LAST).value == pytest.approx(rows["load_mw"].sum())
    evening = rows.filter((rows["step"] >= 36) & (rows["date"] > DAY))["load_mw"].sum()
    found = read_sum(folder, ["11"], DAY + timedelta(days=1), LAST, steps=range(36, 48))
    assert found.value == pytest.approx(evening)


def test_of_one_day_it_is_as_the_days_own_release_says(published):
    name, folder = published
    own = read_measurements(folder, LAST).release()
    steps = [own.measured.first_step + step for step in range(10, 20)]
    found, expected = read_sum(folder, ["84", "11"], LAST, LAST, range(10, 20)), own.sum(["84", "11"], steps)
    for one, other in (
        (found.standard_error, expected.standard_error),
        (found.noise_standard_error, expected.noise_standard_error),
    ):
        assert (one is None) == (other is None)
        assert one is None or one == pytest.approx(other, rel=1e-4)  # float32
    assert (found.standard_error is None) == (name == "OptStream")
    assert (found.noise_standard_error is None) == (name == "HistoryInformed")


def test_a_day_shares_its_errors_with_another_only_where_it_learns(published):
    """Replicates are functions of public facts, so these figures are the same in each run."""
    name, folder = published
    columns = [f"replicate_{number}" for number in range(1, 51)]
    sums = []
    for day in DAYS[1:]:
        (file,) = (folder / f"errors/date={day}").iterdir()
        rows = pl.read_parquet(file, hive_partitioning=False).filter(node="11")
        sums.append(rows.select(pl.col(columns).cast(pl.Float64).sum()).row(0))
    correlation, other = np.corrcoef(sums)[0, 1], np.corrcoef(sums[0], np.roll(sums[1], 1))[0, 1]
    if name == "HistoryInformed":
        assert correlation > 0.3 > abs(other)
    else:
        assert abs(correlation) < 0.3


def test_a_figure_has_the_spread_of_its_replicates(published):
    name, folder = published
    found = read_figure(folder, lambda value: value.max(), DAY, LAST, by=["node", "date"])
    rows = read_published(folder).group_by("node", "date").agg(pl.col("load_mw").max()).sort("node", "date")
    assert found["value"].equals(rows["load_mw"], check_names=False)
    known = "standard_error" if name != "OptStream" else "noise_standard_error"
    assert found[known].min() > 0
    (file,) = (folder / f"errors/date={LAST}").iterdir()
    rows = pl.read_parquet(file, hive_partitioning=False).filter(node="84")
    peaks = rows.select(pl.selectors.starts_with("replicate").max())
    own = found.filter(node="84", date=LAST).row(0, named=True)
    assert own[known] == pytest.approx(np.std(peaks.row(0), ddof=1), rel=1e-4)


def test_a_share_of_the_nation_has_an_error_of_its_own(published):
    name, folder = published

    def share(value):
        return value.filter(pl.col("node") == "11").sum() / value.filter(pl.col("node") == "FR").sum()

    (found,) = read_figure(folder, share, DAY, LAST, by=[pl.lit("all").alias("span")]).iter_rows(named=True)
    assert 0 < found["value"] < 1
    known = found["standard_error"] if name != "OptStream" else found["noise_standard_error"]
    assert 0 < known < 1
    of_root = read_figure(folder, lambda value: value.sum() / value.sum(), DAY, LAST)
    assert of_root["standard_error" if name != "OptStream" else "noise_standard_error"].max() == 0.0


@pytest.mark.parametrize(
    ("nodes", "last", "steps", "words"),
    [
        (
            ["11"],
            LAST + timedelta(days=1),
            None,
            "to 2016-06-04 must be published; 3 of them are",
        ),
        (["12"], LAST, None, "has no node '12'"),
        ("11", LAST, None, r"several names, such as \['11'\]; got the text '11'"),
        (
            ["11"],
            "2016-06-03",
            None,
            r"last day must be one such as date\(2016, 2, 1\); got '2016-06-03'",
        ),
        (["11"], DAY - timedelta(days=1), None, "2016-05-31, is before the first, 2016-06-01"),
        (["FR", "11"], LAST, None, "none may lie in another"),
        (["11"], LAST, [48], "steps of a sum|of this period"),
        (["11"], LAST, [], "steps of a sum"),
        (["11"], LAST, [1.5], "steps of a sum must be integers, counted from 0; got 1.5"),
        ({"11": np.nan}, LAST, None, "the weight of '11' in a sum must be a finite number"),
        ({"11": "x"}, LAST, None, "the weight of '11' in a sum must be a finite number"),
    ],
)
def test_what_cannot_be_summed_is_named(published, nodes, last, steps, words):
    _, folder = published
    with pytest.raises((ParameterError, PublicationError), match=words):
        read_sum(folder, nodes, DAY, last, steps)
