"""A figure as values: points of named lines in panels; written as CSV and drawn as SVG."""

import csv
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple


class Point(NamedTuple):
    """A point of a line; the names are what `charts.panels` asks for, units as the figure's titles say.

    column: the panel's heading. row: that of the panel's row, empty where there is one row. series: the
    line's.
    """

    column: str
    row: str
    series: str
    x: float
    y: float


@dataclass(frozen=True)
class Figure:
    """A figure of the paper, by its number there: titles, and every line of every panel.

    log_x, log_y: whether axes are logarithmic. shared_y: whether panels have one vertical axis.
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
    """Write `figure-N.csv` and `figure-N.svg` into a folder that exists; return where they lie.

    At most nine lines can be told apart. Raises ImportError if the extra `plots` is not installed.
    """
    from studies.papers.charts import write_panels

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
