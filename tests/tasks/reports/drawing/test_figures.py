"""Values and the bands of their errors as a plot."""

import numpy as np

from tasks.reports.drawing.figures import Z, plot_of


def plot(least):
    values, errors = np.array([1.0, 2.0]), np.array([2.0, 0.5])
    return plot_of("Trips", 2, np.arange(2.0), values, errors, (), "trips", "", least)


def test_a_band_of_counts_does_not_lie_below_zero():
    free, bounded = plot(None), plot(0.0)
    assert float(free.y_labels[0][0].replace("\N{MINUS SIGN}", "-")) <= 1.0 - 2.0 * Z
    assert bounded.y_labels[0] == ("0", 100.0)
    assert bounded.band
    assert bounded.band != free.band
