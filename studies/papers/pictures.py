"""Each experiment's figure: which means go into which panel, after the layout of the paper's own."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import polars as pl

from studies.evaluation.contenders import (
    INFORMED,
    INFORMED_BLOCKS,
    INFORMED_JOINT,
    INFORMED_WEATHER,
    JOINT_NOISE,
    LEVELS_APART,
    POINTS_ONLY,
    RAW,
)
from studies.evaluation.experiments import COUNTED_STEPS, EPSILONS
from studies.evaluation.happenings import HAPPENINGS
from studies.evaluation.streams import FIRST
from studies.papers.means import ALPHAS, Results
from studies.papers.tables import MONTH_NAMES

STRICT, PAPER = "OptStream's scales (strict)", "the papers' scales"
ROWS = {"strict": STRICT, "paper": PAPER}
FOUR = ("Laplace", "DFT", "OptStream ES", "OptStream L1")
STREAMS = ("Laplace", "OptStream ES", INFORMED)
SHORT_NAMES = ("nothing", "holiday", "heat wave", "region dark", "all dark", "customer", "step", "joins")
BY_EPSILON = {epsilon: f"ε = {epsilon}" for epsilon in EPSILONS}
Rows = list[dict[str, Any]]
Picture = tuple[Rows, dict[str, Any]]


def pictures(results: Results) -> dict[int, Picture]:
    """Return, of each experiment that was run, rows and options of `charts.panels`; no empty figures."""
    made = {number: _PICTURES[number](results) for number in results.experiments() if number in _PICTURES}
    return {number: picture for number, picture in made.items() if picture[0]}


def write_pictures(results: Results, folder: Path) -> dict[int, Path]:
    """Write them as .svg; return where each lies. Raises ImportError without the extra `plots`."""
    from studies.papers.charts import write_panels

    folder.mkdir(parents=True, exist_ok=True)
    written = {}
    for number, (rows, options) in pictures(results).items():
        written[number] = folder / f"experiment-{number}.svg"
        write_panels(written[number], rows, **options)
    return written


def _point(x: Any, y: Any, series: str, column: str, row: str = "") -> dict[str, Any]:
    return {"x": x, "y": y, "series": series, "column": column, "row": row}


def _both_scales(means: pl.DataFrame, series: Iterable[str], x: str, column: str) -> Rows:
    """Return points by strict and by the papers' scales; what has none of its paper's stands in both rows."""
    with_own = set(means.filter(calibration="paper")["mechanism"])
    found = []
    for one in means.filter(pl.col("mechanism").is_in(list(series))).to_dicts():
        scales = ("strict", "paper") if one["mechanism"] not in with_own else (one["calibration"],)
        if one["calibration"] in scales:
            found += [
                _point(one[x], one["mean"], one["mechanism"], one[column], ROWS[name]) for name in scales
            ]
    return found


def _months(
    results: Results, number: int, series: Iterable[str], by: str = "epsilon", **where: Any
) -> Picture:
    """Return an experiment's figure by month, over ε or α."""
    means = results.rows(number, **where).with_columns(month=pl.col("span").replace(MONTH_NAMES))
    spans = set(means["span"])
    return _both_scales(means, series, by, "month"), {
        "series": tuple(series), "x_title": "ε", "x_order": EPSILONS, "y_title": "MW a step",
        "columns": [name for span, name in MONTH_NAMES.items() if span in spans],
        "panel_rows": (STRICT, PAPER),
        **({"x_title": "α, MW (k = 10, 10, 5)", "x_order": ALPHAS} if by == "alpha" else {}),
    }  # fmt: skip


def _hierarchy(results: Results) -> Picture:
    series, columns = (*FOUR, LEVELS_APART, INFORMED), {"mae_nation": "nation", "mae": "a region"}
    means = results.means.filter(pl.col("metric").is_in(list(columns)), experiment=2)
    over_months = means.group_by("metric", "mechanism", "calibration", "alpha", maintain_order=True).agg(
        pl.col("mean").mean()
    )
    named = over_months.with_columns(column=pl.col("metric").replace(columns))
    return _both_scales(named, series, "alpha", "column"), {
        "series": series, "x_title": "α, MW", "x_order": ALPHAS, "y_title": "MW a step",
        "columns": tuple(columns.values()), "panel_rows": (STRICT, PAPER),
    }  # fmt: skip


def _forecasts(results: Results) -> Picture:
    rows, options = _months(results, 3, (*FOUR, INFORMED))
    real = "the real stream"
    rows += [
        _point(epsilon, one["mean"], real, MONTH_NAMES[one["span"]], row)
        for one in results.rows(3, mechanism=RAW).to_dicts()
        for epsilon in EPSILONS
        for row in (STRICT, PAPER)
    ]
    return rows, options | {"series": (*options["series"], real), "log_y": False}


def _parts(results: Results) -> Picture:
    series = ("Laplace", JOINT_NOISE, INFORMED_BLOCKS, INFORMED, INFORMED_JOINT, INFORMED_WEATHER)
    rows, options = _months(results, 12, series)
    return [row for row in rows if row["row"] == STRICT], options | {"panel_rows": (STRICT,)}


def _ablations(results: Results) -> Picture:
    names = {
        "Laplace": "⟨P,∘,∘⟩", POINTS_ONLY: "⟨P,S,∘⟩", "OptStream, every step": "⟨P,∘,O⟩",
        "OptStream ES": "⟨P,S,O⟩",
    }  # fmt: skip
    rows, options = _months(results, 4, names, study="regions")
    renamed = [row | {"series": names[row["series"]]} for row in rows]
    return renamed, options | {"series": tuple(names.values())}


def _grid(results: Results) -> Picture:
    rows = []
    for one in results.rows(5).to_dicts():
        is_l1 = one["mechanism"] == "OptStream L1"
        name = ("L1" if is_l1 else "equal spacing") + f", k = {one['n_samples']}"
        column, row = BY_EPSILON[one["epsilon"]], ROWS[one["calibration"]]
        thetas = [int(one["threshold"])] if is_l1 else [500, 10000]
        rows += [_point(theta, one["mean"], name, column, row) for theta in thetas]
    return rows, {
        "series": [f"{name}, k = {k}" for name in ("L1", "equal spacing") for k in (5, 10, 20)],
        "x_title": "θ, MW times steps", "y_title": "MW a step", "log_x": True,
        "columns": [*BY_EPSILON.values()], "panel_rows": (STRICT, PAPER),
    }  # fmt: skip


def _bound(results: Results) -> Picture:
    series = {
        "mae": "measured",
        "bound": "bound, largest move of 2015",
        "bound_usual": "the same with the mean move",
    }
    rows = [
        _point(k, part["mean"].mean(), name, BY_EPSILON[epsilon])
        for metric, name in series.items()
        for (epsilon, k), part in results.rows(8, metric).group_by(
            "epsilon", "n_samples", maintain_order=True
        )
    ]
    return rows, {
        "series": tuple(series.values()), "x_title": "k", "y_title": "MW a step", "log_x": True,
        "columns": [*BY_EPSILON.values()],
    }  # fmt: skip


def _fast(results: Results) -> Picture:
    series = ("Fast", "Fast, fixed", "Fast, linear", "Fast, fixed, linear", "Laplace", INFORMED_BLOCKS)
    rows = []
    for one in results.rows(9, "relative").to_dicts():
        n_steps = COUNTED_STEPS[one["span"]]
        shares = [2, 40] if one["n_samples"] is None else [100 * one["n_samples"] / n_steps]
        row = BY_EPSILON[one["epsilon"]]
        rows += [_point(share, one["mean"], one["mechanism"], one["span"], row) for share in shares]
    return rows, {
        "series": series, "x_title": "samples, % of the steps", "y_title": "relative error",
        "columns": tuple(COUNTED_STEPS), "panel_rows": ("ε = 1", "ε = 0.1"), "shared_y": False,
        "y_format": "~g",
    }  # fmt: skip


def _streams(results: Results, number: int, names: dict[str, str], x_title: str, **options: Any) -> Picture:
    """Return strict means by metric: the paper's scales cost another epsilon than the panel's."""
    means = results.means.filter(pl.col("metric").is_in(list(names)), experiment=number, calibration="strict")
    over_days = means.group_by("metric", "mechanism", "epsilon", maintain_order=True).agg(
        pl.col("mean").mean()
    )
    rows = [
        _point(names[one["metric"]], one["mean"], one["mechanism"], BY_EPSILON[one["epsilon"]])
        for one in over_days.to_dicts()
    ]
    return rows, {
        "series": STREAMS, "x_title": x_title, "x_order": tuple(names.values()), "y_title": "MW a step",
        "columns": [*BY_EPSILON.values()], **options,
    }  # fmt: skip


def _years(results: Results) -> Picture:
    metrics = results.means.filter(experiment=10)["metric"]
    years = {name: name.removeprefix("mae_") for name in sorted(set(metrics)) if name.startswith("mae_")}
    return _streams(results, 10, {"first": "first", **years}, "the first day, and each year")


def _unusual(results: Results) -> Picture:
    names = {**dict(zip(HAPPENINGS, SHORT_NAMES, strict=True)), FIRST: "first day"}
    return _streams(results, 11, names, "what happens", x_angle=-50)


_PICTURES: dict[int, Callable[[Results], Picture]] = {
    1: lambda results: _months(
        results, 1, (*FOUR, "Sample", "BudgetAbsorption", "PeGaSus", "Fast, fixed", INFORMED)
    ),
    2: _hierarchy,
    3: _forecasts,
    4: _ablations,
    5: _grid,
    6: lambda results: _months(results, 6, (*FOUR, INFORMED), "alpha"),
    7: lambda results: _months(
        results, 7, ("Laplace", "PeGaSus", "OptStream ES", "OptStream L1", "PeGaSus, average")
    ),
    8: _bound,
    9: _fast,
    10: _years,
    11: _unusual,
    12: _parts,
}
