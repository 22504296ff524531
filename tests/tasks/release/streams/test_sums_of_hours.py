"""Sums over a stream by the hour: each hour has replicates of its own."""

from datetime import date

import numpy as np
import polars as pl
import pytest

from optstream import read_published, read_sum
from optstream.catalogue import check_files, read_catalogue
from optstream.catalogue.backends import open_storage
from optstream.catalogue.replicates import daily_replicates, period_sums
from tasks.release.publish import close_over

DAY, NEXT = date(2016, 6, 1), date(2016, 6, 2)


def by_hand(rows, node, steps):
    """The value of a sum and its error: noise of Laplace is drawn anew for each step."""
    own = rows.filter(pl.col("date") == DAY, pl.col("node") == node, pl.col("step").is_in(steps))
    return own["load_mw"].sum(), np.sqrt((own["load_mw_noise_se"].cast(pl.Float64) ** 2).sum())


@pytest.mark.parametrize("closed", [False, True])
def test_a_sum_over_hours_has_the_error_of_its_steps(day_of_hours, closed):
    folder = str(day_of_hours.settings.published_folder)
    if closed:
        assert close_over(day_of_hours.run()) == (DAY,)
    rows = read_published(folder)
    for node, steps in (("FR", None), ("84", range(9, 31)), ("FR", [0]), ("84", [47])):
        found = read_sum(folder, [node], DAY, DAY, steps)
        value, error = by_hand(rows, node, range(48) if steps is None else [*steps])
        assert found.value == pytest.approx(value)
        assert found.noise_standard_error == pytest.approx(error, rel=0.5)
    catalogue = read_catalogue(open_storage(folder))
    sums = period_sums(rows, "load_mw", "day", daily_replicates(open_storage(folder), catalogue, [DAY, NEXT]))
    own = sums.filter(date=DAY, node="84").row(0, named=True)
    assert own["load_mw_sum_noise_se"] == pytest.approx(by_hand(rows, "84", range(48))[1], rel=0.5)
    day_of_hours.write_pages()
    assert check_files(folder) == []
