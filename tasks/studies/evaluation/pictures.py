"""Each experiment's figure: which means go into which panel, after the layout of the paper's own."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from optstream.evaluation.contenders import INFORMED, INFORMED_BLOCKS, LEVELS_APART, POINTS_ONLY, RAW
from optstream.evaluation.experiments import COUNTED_STEPS, EPSILONS
from tasks.studies.evaluation.means import Results
from tasks.studies.evaluation.stream_pictures import stream_picture, unusual_picture

STRICT, PAPER = "the house's scales (strict)", "the papers' scales"
MONTHS = {"2016-02": "February", "2016-06": "June", "2016-10": "October"}
FOUR = ("Laplace", "DFT", "OptStream ES", "OptStream L1")
Picture = tuple[list[dict[str, Any]], dict[str, Any]]


def pictures(results: Results) -> dict[int, Picture]:
    """For each experiment that was run: rows and options of `charts.panels`. Empty figures are left out."""
    made = {number: _PICTURES[number](results) for number in results.experiments() if number in _PICTURES}
    return {number: picture for number, picture in made.items() if picture[0]}


def write_pictures(results: Results, folder: Path) -> dict[int, Path]:
    """Write them as .svg; return where each lies. Raises ImportError without the extra `plots`."""
    from tasks.studies.evaluation.charts import write_panels

    folder.mkdir(parents=True, exist_ok=True)
    written = {}
    for number, (rows, options) in pictures(results).items():
        written[number] = folder / f"experiment-{number}.svg"
        write_panels(written[number], rows, **options)
    return written


def _by_month(
    results: Results, experiment: int, names: Iterable[str], x: str, metric: str = "mae", **where: Any
) -> list[dict[str, Any]]:
    """Two rows of panels, strict and paper; what has no scale of its paper's stands in both."""
    found = []
    for one in results.rows(experiment, metric, **where).to_dicts():
        if one["mechanism"] not in names:
            continue
        other = results.rows(experiment, metric, mechanism=one["mechanism"], calibration="paper", **where)
        rows = {"paper": [PAPER], "strict": [STRICT, PAPER] if other.is_empty() else [STRICT]}
        found += [
            {"x": one[x], "y": one["mean"], "series": one["mechanism"], "row": row,
             "column": MONTHS.get(one["span"], one["span"])}
            for row in rows.get(one["calibration"], [])
        ]  # fmt: skip
    return found


def _months_and_scales(
    results: Results, number: int, x_title: str, x_order: Any, series: Any
) -> dict[str, Any]:
    spans = [name for name in MONTHS if not results.rows(number, span=name).is_empty()]
    return {
        "series": series, "x_title": x_title, "x_order": x_order, "y_title": "MW a step",
        "columns": [MONTHS[name] for name in spans], "panel_rows": [STRICT, PAPER],
    }  # fmt: skip


def _first(results: Results) -> Picture:
    series = (*FOUR, "Sample", "BudgetAbsorption", "PeGaSus", "Fast, fixed", INFORMED)
    return _by_month(results, 1, series, "epsilon"), _months_and_scales(results, 1, "ε", EPSILONS, series)


def _second(results: Results) -> Picture:
    series = (*FOUR, LEVELS_APART, INFORMED)
    rows = []
    for metric, column in (("mae_nation", "nation"), ("mae", "a region")):
        for name in series:
            for calibration in ("strict", "paper"):
                for alpha in ("10", "50", "100"):
                    own = results.rows(2, metric, mechanism=name, alpha=alpha, calibration=calibration)
                    if own.is_empty():
                        own = results.rows(2, metric, mechanism=name, alpha=alpha)
                    if own.is_empty():
                        continue
                    row = STRICT if calibration == "strict" else PAPER
                    rows.append(
                        {"x": alpha, "y": own["mean"].mean(), "series": name, "column": column, "row": row}
                    )
    return rows, {
        "series": series, "x_title": "α, MW", "x_order": ("10", "50", "100"), "y_title": "MW a step",
        "columns": ("nation", "a region"), "panel_rows": (STRICT, PAPER),
    }  # fmt: skip


def _third(results: Results) -> Picture:
    real = "the real stream"
    series = (*FOUR, INFORMED, real)
    rows = _by_month(results, 3, (*FOUR, INFORMED), "epsilon")
    rows += [
        {"x": epsilon, "y": one["mean"], "series": real, "row": row, "column": MONTHS[one["span"]]}
        for one in results.rows(3, mechanism=RAW).to_dicts()
        for epsilon in EPSILONS
        for row in (STRICT, PAPER)
    ]
    return rows, _months_and_scales(results, 3, "ε", EPSILONS, series) | {"log_y": False}


def _fourth(results: Results) -> Picture:
    names = {
        "Laplace": "⟨P,∘,∘⟩",
        POINTS_ONLY: "⟨P,S,∘⟩",
        "OptStream, every step": "⟨P,∘,O⟩",
        "OptStream ES": "⟨P,S,O⟩",
    }
    rows = _by_month(results, 4, names, "epsilon", study="regions")
    for row in rows:
        row["series"] = names[row["series"]]
    return rows, _months_and_scales(results, 4, "ε", EPSILONS, tuple(names.values()))


def _fifth(results: Results) -> Picture:
    rows, series = (
        [],
        [f"L1, k = {k}" for k in (5, 10, 20)] + [f"equal spacing, k = {k}" for k in (5, 10, 20)],
    )
    for one in results.rows(5).to_dicts():
        is_l1 = one["mechanism"] == "OptStream L1"
        thetas = [int(one["threshold"])] if is_l1 else [500, 10000]
        name = ("L1" if is_l1 else "equal spacing") + f", k = {one['n_samples']}"
        rows += [
            {"x": theta, "y": one["mean"], "series": name, "column": f"ε = {one['epsilon']}",
             "row": STRICT if one["calibration"] == "strict" else PAPER}
            for theta in thetas
        ]  # fmt: skip
    return rows, {
        "series": series, "x_title": "θ, MW times steps", "y_title": "MW a step", "log_x": True,
        "columns": [f"ε = {epsilon}" for epsilon in EPSILONS], "panel_rows": (STRICT, PAPER),
    }  # fmt: skip


def _sixth(results: Results) -> Picture:
    series = (*FOUR, INFORMED)
    rows = _by_month(results, 6, series, "alpha")
    return rows, _months_and_scales(results, 6, "α, MW (k = 10, 10, 5)", ("10", "50", "100"), series)


def _seventh(results: Results) -> Picture:
    series = ("Laplace", "PeGaSus", "OptStream ES", "OptStream L1", "PeGaSus, average")
    return _by_month(results, 7, series, "epsilon"), _months_and_scales(results, 7, "ε", EPSILONS, series)


def _eighth(results: Results) -> Picture:
    series = {
        "mae": "measured",
        "bound": "bound, largest move of 2015",
        "bound_usual": "the same with the mean move",
    }
    rows = []
    for metric, name in series.items():
        means = results.rows(8, metric).group_by("epsilon", "n_samples", maintain_order=True)
        rows += [
            {"x": k, "y": part["mean"].mean(), "series": name, "column": f"ε = {epsilon}", "row": ""}
            for (epsilon, k), part in means
        ]
    return rows, {
        "series": tuple(series.values()), "x_title": "k", "y_title": "MW a step", "log_x": True,
        "columns": [f"ε = {epsilon}" for epsilon in EPSILONS],
    }  # fmt: skip


def _ninth(results: Results) -> Picture:
    series = ("Fast", "Fast, fixed", "Fast, linear", "Fast, fixed, linear", "Laplace", INFORMED_BLOCKS)
    rows = []
    for one in results.rows(9, "relative").to_dicts():
        n_steps = COUNTED_STEPS[one["span"]]
        shares = [2, 40] if one["n_samples"] is None else [100 * one["n_samples"] / n_steps]
        rows += [
            {"x": share, "y": one["mean"], "series": one["mechanism"], "column": one["span"],
             "row": f"ε = {one['epsilon']}"}
            for share in shares
        ]  # fmt: skip
    return rows, {
        "series": series, "x_title": "samples, % of the steps", "y_title": "relative error",
        "columns": tuple(COUNTED_STEPS), "panel_rows": ("ε = 1", "ε = 0.1"), "shared_y": False,
        "y_format": "~g",
    }  # fmt: skip


_PICTURES: dict[int, Callable[[Results], Picture]] = {
    1: _first, 2: _second, 3: _third, 4: _fourth, 5: _fifth, 6: _sixth, 7: _seventh, 8: _eighth, 9: _ninth,
    10: stream_picture, 11: unusual_picture,
}  # fmt: skip
