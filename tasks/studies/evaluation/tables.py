"""The tables of the page, in Markdown: errors beside what the accountant says that they cost."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import polars as pl

from optstream.evaluation.contenders import CONTENDERS
from optstream.evaluation.experiment import MONTHS
from optstream.evaluation.experiments import COUNTED_STEPS, EPSILONS
from tasks.studies.evaluation.means import Mean, Results, epsilon_text, largest, percent, pooled, short

MONTH_NAMES = dict(zip(MONTHS, ("February", "June", "October"), strict=True))
ORDER = {name: number for number, name in enumerate(CONTENDERS)}


def markdown(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table; every column but the first two, or three where there are no more, to the right."""
    marks = ["---"] * 3 if len(header) == 3 else ["---"] * 2 + ["---:"] * (len(header) - 2)
    lines = [header, marks, *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def cost(mean: Mean) -> str:
    """What the plan costs any window, what was drawn cost at most, and of that windows inside a day."""
    if mean.epsilon_plan is None:
        return "∞"
    return " / ".join(
        epsilon_text(value) for value in (mean.epsilon_plan, mean.epsilon_drawn, mean.epsilon_drawn_aligned)
    )


def entries(rows: pl.DataFrame) -> list[tuple[str, str]]:
    """Mechanisms and scales, in the order of the field, strict first."""
    found = set(zip(rows["mechanism"], rows["calibration"], strict=True))
    return sorted(found, key=lambda entry: (ORDER[entry[0]], entry[1] == "paper"))


def _cells(
    results: Results, number: int, metrics: Sequence[str], name: str, scales: str, **where: Any
) -> list[str]:
    """A figure for each metric, over all spans; the first with its standard error."""
    found = []
    for position, metric in enumerate(metrics):
        rows = results.rows(number, metric, mechanism=name, calibration=scales, **where)
        mean = None if rows.is_empty() else pooled(rows)
        if mean is None:
            found.append("–")
        elif metric == "covered":
            found.append(percent(mean.value))
        else:
            found.append(str(mean) if position == 0 else short(mean.value))
    return found


def _by_epsilon(results: Results, number: int, metrics: dict[str, str], **where: Any) -> str:
    """A block for each ε, a row for each mechanism and scales: the months, then metrics over all months."""
    spans = [span for span in MONTHS if not results.rows(number, span=span, **where).is_empty()]
    header = ["ε, mechanism", "scales", "true ε", *(MONTH_NAMES[span] for span in spans), *metrics.values()]
    rows = []
    for epsilon in (*EPSILONS, "inf"):
        for name, scales in entries(results.rows(number, epsilon=epsilon, **where)):
            chosen = {"mechanism": name, "calibration": scales, "epsilon": epsilon, **where}
            months = [short(pooled(results.rows(number, span=span, **chosen)).value) for span in spans]
            figures = _cells(results, number, list(metrics), name, scales, epsilon=epsilon, **where)
            true = cost(pooled(results.rows(number, **chosen)))
            shown = "∞" if epsilon == "inf" else epsilon
            rows.append([f"{shown}, {name}", scales, true, *months, *figures])
    return markdown(header, rows)


_USUAL = {"mae": "all ± s.e.", "median": "median", "p95": "95 %", "last_week": "last week's"}


def _regions(results: Results, number: int) -> str:
    inside = results.rows(number, "covered", study="regions")
    more = {} if inside.is_empty() else {"covered": "in 95 % bands"}
    return _by_epsilon(results, number, _USUAL | more, study="regions")


def _hierarchy(results: Results, number: int = 2) -> str:
    """By α: nation and regions."""
    metrics = {
        "mae_nation": "nation ± s.e.", "median_nation": "median", "p95_nation": "95 %",
        "mae": "a region ± s.e.", "median": "median", "p95": "95 %", "violation": "sums off by, MW",
    }  # fmt: skip
    where = {"study": "hierarchy"}
    rows = []
    for alpha in ("10", "50", "100"):
        for name, scales in entries(results.rows(number, alpha=alpha, **where)):
            own = results.rows(number, "mae", alpha=alpha, mechanism=name, calibration=scales, **where)
            figures = _cells(results, number, list(metrics), name, scales, alpha=alpha, **where)
            figures[3] = str(pooled(own))
            off = results.rows(number, "violation", alpha=alpha, mechanism=name, calibration=scales, **where)
            furthest = largest(off["mean"])
            tiny = furthest is not None and furthest < 1e-3
            figures[6] = f"{furthest:.1g}" if tiny else short(furthest)
            rows.append([f"{alpha}, {name}", scales, cost(pooled(own)), *figures])
    return markdown(["α, mechanism", "scales", "true ε", *metrics.values()], rows)


def _forecasts(results: Results) -> str:
    metrics = {
        "mae": "all ± s.e.", "yesterday": "its yesterday", "week_before": "its week before",
        "unconverged": "not converged",
    }  # fmt: skip
    return _by_epsilon(results, 3, metrics)


def _ablations(results: Results) -> str:
    return _regions(results, 4) + "\n\nOn the tree, ε = 1 in halves, α = 10 MW:\n\n" + _hierarchy(results, 4)


def _grid(results: Results) -> str:
    """A row for each ε, scales, sampling and k; a column for each θ."""
    thetas = ("500", "1000", "2000", "5000", "10000")
    rows = []
    for epsilon in EPSILONS:
        for name, scales in entries(results.rows(5, epsilon=epsilon)):
            for k in (5, 10, 20):
                own = results.rows(5, mechanism=name, calibration=scales, epsilon=epsilon, n_samples=k)
                if own.is_empty():
                    continue
                figures = [
                    str(pooled(part)) if not (part := own.filter(threshold=theta)).is_empty() else "–"
                    for theta in thetas
                ]
                if own["threshold"].is_null().all():
                    figures = [str(pooled(own)), *["″"] * 4]
                rows.append([f"{epsilon}, {name}, k = {k}", scales, cost(pooled(own)), *figures])
    return markdown(["ε, mechanism", "scales", "true ε", *(f"θ = {theta}" for theta in thetas)], rows)


def _alphas(results: Results) -> str:
    spans = [span for span in MONTHS if not results.rows(6, span=span).is_empty()]
    rows = []
    for alpha in ("10", "50", "100"):
        for name, scales in entries(results.rows(6, alpha=alpha)):
            own = results.rows(6, mechanism=name, calibration=scales, alpha=alpha)
            months = [short(pooled(own.filter(span=span)).value) for span in spans]
            figures = _cells(results, 6, list(_USUAL), name, scales, alpha=alpha)
            rows.append([f"{alpha}, {name}", scales, cost(pooled(own)), *months, *figures])
    header = ["α, mechanism", "scales", "true ε", *(MONTH_NAMES[span] for span in spans), *_USUAL.values()]
    return markdown(header, rows)


def _bound(results: Results) -> str:
    metrics = {"mae": "measured ± s.e.", "bound": "bound, largest move", "bound_usual": "with the mean move"}
    rows = []
    for epsilon in EPSILONS:
        for k in sorted(set(results.rows(8, epsilon=epsilon)["n_samples"])):
            own = results.rows(8, epsilon=epsilon, n_samples=k)
            figures = [
                str(pooled(results.rows(8, metric, epsilon=epsilon, n_samples=k))) if metric == "mae"
                else short(pooled(results.rows(8, metric, epsilon=epsilon, n_samples=k)).value)
                for metric in metrics
            ]  # fmt: skip
            rows.append([epsilon, str(k), cost(pooled(own)), *figures])
    return markdown(["ε", "k", "true ε", *metrics.values()], rows)


def _fast(results: Results) -> str:
    rows = []
    for span, n_steps in COUNTED_STEPS.items():
        for epsilon in ("1", "0.1"):
            for name, scales in entries(results.rows(9, "relative", span=span, epsilon=epsilon)):
                own = results.rows(9, "relative", span=span, epsilon=epsilon, mechanism=name).sort(
                    "n_samples"
                )
                best = own.sort("mean").head(1)
                count = best["n_samples"][0]
                share = "all" if count is None else f"{100 * count / n_steps:.0f} %"
                figures = [short(value) for value in own["mean"]] if count is not None else ["–"] * 7
                rows.append(
                    [f"{span}, ε = {epsilon}, {name}", scales, cost(pooled(own)), *figures,
                     f"{pooled(best)} at {share}"]
                )  # fmt: skip
    shares = [f"{percent} %" for percent in (2, 5, 10, 15, 20, 30, 40)]
    return markdown(["series, ε, mechanism", "scales", "true ε", *shares, "best ± s.e."], rows)


TABLES: dict[int, Callable[[Results], str]] = {
    1: lambda results: _regions(results, 1),
    2: _hierarchy,
    3: _forecasts,
    4: _ablations,
    5: _grid,
    6: _alphas,
    7: lambda results: _regions(results, 7),
    8: _bound,
    9: _fast,
}
