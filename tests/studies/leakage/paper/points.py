"""Points of the paper's figures, looked up by tests."""


def value_of(figure, series, x, column=None, row=None):
    """The y of the one point of this line and x, in this panel if it is named."""
    (found,) = (
        point.y
        for point in figure.points
        if (point.series, point.x) == (series, x)
        and column in (None, point.column)
        and row in (None, point.row)
    )
    return found
