"""The figures of a stream's own past: experiments 10 and 11."""

from typing import Any

from optstream.evaluation.contenders import INFORMED
from optstream.evaluation.experiments import EPSILONS
from optstream.evaluation.happenings import HAPPENINGS
from optstream.evaluation.streams import FIRST
from tasks.studies.evaluation.means import Results

SERIES = ("Laplace", "OptStream ES", INFORMED)
SHORT_NAMES = ("nothing", "holiday", "heat wave", "region dark", "all dark", "customer", "step", "joins")
Picture = tuple[list[dict[str, Any]], dict[str, Any]]


def stream_picture(results: Results) -> Picture:
    """Errors by year, and of the first day before them."""
    rows = results.means.filter(experiment=10).to_dicts()
    found = [
        {"x": one["metric"].removeprefix("mae_"), "y": one["mean"], "series": one["mechanism"],
         "column": f"ε = {one['epsilon']}", "row": ""}
        for one in rows
        if one["calibration"] == "strict"  # the paper's scales cost another epsilon than the panel's
        and (one["metric"].startswith("mae_") or one["metric"] == "first")
    ]  # fmt: skip
    years = sorted({one["x"] for one in found} - {"first"})
    return found, _options("the first day, and each year", ("first", *years))


def unusual_picture(results: Results) -> Picture:
    """Errors on the day on which something happens, over all days that were taken."""
    names = {**dict(zip(HAPPENINGS, SHORT_NAMES, strict=True)), FIRST: "first day"}
    found = []
    for epsilon in EPSILONS:
        for what, name in names.items():
            for series in SERIES:
                rows = results.rows(11, what, mechanism=series, epsilon=epsilon)
                if not rows.is_empty():
                    found.append({"x": name, "y": rows["mean"].mean(), "series": series,
                                  "column": f"ε = {epsilon}", "row": ""})  # fmt: skip
    return found, _options("what happens", tuple(names.values())) | {"x_angle": -50}


def _options(x_title: str, x_order: tuple[str, ...]) -> dict[str, Any]:
    return {
        "series": SERIES, "x_title": x_title, "x_order": x_order, "y_title": "MW a step",
        "columns": [f"ε = {epsilon}" for epsilon in EPSILONS],
    }  # fmt: skip
