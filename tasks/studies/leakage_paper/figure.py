"""A figure as values: points of named lines in panels; written as CSV and drawn as SVG."""

import csv
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple


class Point(NamedTuple):
    """A point of a line; the names are what `charts.panels` asks for.

    Attributes:
        column: The panel's heading.
        row: The heading of the panel's row, empty where there is one row.
        series: The line's name.
        x: Unit as the figure's `x_title` says.
        y: Unit as its `y_title` says.
    """

    column: str
    row: str
    series: str
    x: float
    y: float


@dataclass(frozen=True)
class Figure:
    """A figure of the paper.

    Attributes:
        number: In the paper.
        title: What it shows.
        x_title: Of the horizontal axes.
        y_title: Of the vertical axes.
        points: Of every line of every panel.
        log_x: Whether horizontal axes are logarithmic.
        log_y: Whether vertical axes are.
        shared_y: Whether panels have one vertical axis.
    """

    number: int
    title: str
    x_title: str
    y_title: str
    points: tuple[Point, ...]
    log_x: bool = False
    log_y: bool = False
    shared_y: bool = True

    @property
    def name(self) -> str:
        """Return what its files are called, without their ending."""
        return f"figure-{self.number}"

    def value(self, series: str, x: float, column: str | None = None, row: str | None = None) -> float:
        """Return the y of one point.

        Args:
            series: The line's name.
            x: Exactly as the point has it.
            column: The panel's heading; None for any.
            row: The heading of its row; None for any.

        Returns:
            The y.

        Raises:
            ValueError: No point, or several.
        """
        (found,) = (
            point.y
            for point in self.points
            if (point.series, point.x) == (series, x)
            and column in (None, point.column)
            and row in (None, point.row)
        )
        return found

    def document(self) -> dict[str, Any]:
        """Return it for machines: title, axes, and each point as a list in the order of `columns`."""
        return {
            "figure": self.number,
            "title": self.title,
            "x": self.x_title,
            "y": self.y_title,
            "columns": list(Point._fields),
            "points": [list(point) for point in self.points],
        }


def write_figure(figure: Figure, folder: Path) -> tuple[Path, Path]:
    """Write `figure-N.csv` and `figure-N.svg` into a folder that exists.

    Args:
        figure: At most nine lines.
        folder: Files of the same name are replaced.

    Returns:
        Where the two lie.

    Raises:
        ImportError: The extra `plots` is not installed.
    """
    from tasks.studies.evaluation.charts import write_panels

    numbers, picture = folder / f"{figure.name}.csv", folder / f"{figure.name}.svg"
    with numbers.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(Point._fields)
        writer.writerows((*point[:3], f"{point.x:.9g}", f"{point.y:.9g}") for point in figure.points)
    write_panels(
        picture,
        [point._asdict() for point in figure.points],
        series=_each(point.series for point in figure.points),
        columns=_each(point.column for point in figure.points),
        panel_rows=_each(point.row for point in figure.points),
        x_title=figure.x_title,
        y_title=figure.y_title,
        log_x=figure.log_x,
        log_y=figure.log_y,
        shared_y=figure.shared_y,
        y_format=".3~r",
    )
    return numbers, picture


def _each(names: Iterable[str]) -> list[str]:
    """Return each once, in the order of their first."""
    return list(dict.fromkeys(names))
