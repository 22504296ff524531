"""The tables of the page, in Markdown: errors beside what the accountant says that they cost."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from studies.evaluation.contenders import CONTENDERS, INFORMED
from studies.evaluation.experiment import MONTHS
from studies.evaluation.experiments import COUNTED_STEPS, EPSILONS
from studies.evaluation.happenings import HAPPENINGS
from studies.evaluation.streams import FIRST, REVISED_AFTER
from studies.papers.means import (
    ALPHAS,
    Mean,
    Results,
    epsilon_text,
    largest,
    percent,
    pooled,
    short,
)

MONTH_NAMES = dict(zip(MONTHS, ("February", "June", "October"), strict=True))
ORDER = {name: number for number, name in enumerate(CONTENDERS)}
PEERS = (INFORMED, "OptStream ES", "Laplace")


def markdown(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table; every column but the first two, or three where there are no more, to the right."""
    marks = ["---"] * 3 if len(header) == 3 else ["---"] * 2 + ["---:"] * (len(header) - 2)
    lines = [header, marks, *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def cost(rows: pl.DataFrame) -> str:
    """Return what the plan costs any window, what was drawn at most, and of that windows inside a day."""
    mean = pooled(rows)
    if mean.epsilon_plan is None:
        return "∞"
    return " / ".join(
        epsilon_text(value) for value in (mean.epsilon_plan, mean.epsilon_drawn, mean.epsilon_drawn_aligned)
    )


def entries(rows: pl.DataFrame) -> list[tuple[str, str]]:
    """Return mechanisms and scales, in the order of the field, strict first."""
    found = set(zip(rows["mechanism"], rows["calibration"], strict=True))
    return sorted(found, key=lambda entry: (ORDER[entry[0]], entry[1] == "paper"))


def _alone(rows: pl.DataFrame) -> str:
    return short(pooled(rows).value)


def _with_error(rows: pl.DataFrame) -> str:
    return str(pooled(rows))


def _share(rows: pl.DataFrame) -> str:
    return percent(pooled(rows).value)


def _furthest(rows: pl.DataFrame) -> str:
    """Return the largest, one digit where it is rounding."""
    most = largest(rows["mean"])
    return f"{most:.1g}" if most is not None and most < 1e-3 else short(most)


@dataclass(frozen=True)
class Column:
    """A heading, and what stands under it: means of a metric where it is so, as `text` writes them."""

    heading: str
    metric: str = "mae"
    text: Callable[[pl.DataFrame], str] = _alone
    where: Mapping[str, Any] = field(default_factory=dict)

    def of(self, results: Results, number: int, **where: Any) -> str:
        """Return a row's cell; – where there are no such means."""
        rows = results.rows(number, self.metric, **where, **self.where)
        return "–" if rows.is_empty() else self.text(rows)


ALL = Column("all ± s.e.", text=_with_error)
INSIDE = Column("in 95 % bands", "covered", _share)
USUAL = (ALL, Column("median", "median"), Column("95 %", "p95"), Column("last week's", "last_week"))
FORECASTS = (
    ALL, Column("its yesterday", "yesterday"), Column("its week before", "week_before"),
    Column("not converged", "unconverged"),
)  # fmt: skip
LEVELS = (
    Column("nation ± s.e.", "mae_nation", _with_error), Column("median", "median_nation"),
    Column("95 %", "p95_nation"), Column("a region ± s.e.", text=_with_error), *USUAL[1:3],
    Column("sums off by, MW", "violation", _furthest),
)  # fmt: skip
BOUND = (
    Column("measured ± s.e.", text=_with_error), Column("bound, largest move", "bound"),
    Column("with the mean move", "bound_usual"),
)  # fmt: skip


def _table(
    results: Results, number: int, by: str, columns: Sequence[Column], *, months: bool = False, **where: Any
) -> str:
    """Return a block for each ε or α, in it a row for each mechanism and scales, as far as they were run.

    by: "epsilon" or "alpha". months: whether each month stands before the columns, which are over all spans.
    """
    spans = [name for name in MONTHS if months and not results.rows(number, span=name, **where).is_empty()]
    shown = (*(Column(MONTH_NAMES[name], where={"span": name}) for name in spans), *columns)
    symbol, values = ("α", ALPHAS) if by == "alpha" else ("ε", (*EPSILONS, "inf"))
    rows = []
    for value in values:
        chosen = {by: value, **where}
        for name, scales in entries(results.rows(number, **chosen)):
            own = {**chosen, "mechanism": name, "calibration": scales}
            cells = [column.of(results, number, **own) for column in shown]
            label = f"{'∞' if value == 'inf' else value}, {name}"
            rows.append([label, scales, cost(results.rows(number, **own)), *cells])
    headings = [column.heading for column in shown]
    return markdown([f"{symbol}, mechanism", "scales", "true ε", *headings], rows)


def _regions(results: Results, number: int) -> str:
    inside = results.rows(number, "covered", study="regions")
    columns = USUAL if inside.is_empty() else (*USUAL, INSIDE)
    return _table(results, number, "epsilon", columns, months=True, study="regions")


def _ablations(results: Results) -> str:
    tree = _table(results, 4, "alpha", LEVELS, study="hierarchy")
    return _regions(results, 4) + "\n\nOn the tree, ε = 1 in halves, α = 10 MW:\n\n" + tree


def _grid(results: Results) -> str:
    """Return a row for each ε, scales, sampling and k; a column for each θ."""
    thetas = ("500", "1000", "2000", "5000", "10000")
    columns = [Column(f"θ = {theta}", text=_with_error, where={"threshold": theta}) for theta in thetas]
    rows = []
    for epsilon in EPSILONS:
        for name, scales in entries(results.rows(5, epsilon=epsilon)):
            for k in (5, 10, 20):
                where: dict[str, Any] = {"mechanism": name, "calibration": scales, "epsilon": epsilon}
                where["n_samples"] = k
                own = results.rows(5, **where)
                if own.is_empty():
                    continue
                figures = [column.of(results, 5, **where) for column in columns]
                if own["threshold"].is_null().all():
                    figures = [_with_error(own), *["″"] * 4]
                rows.append([f"{epsilon}, {name}, k = {k}", scales, cost(own), *figures])
    return markdown(["ε, mechanism", "scales", "true ε", *(column.heading for column in columns)], rows)


def _bound(results: Results) -> str:
    rows = []
    for epsilon in EPSILONS:
        for k in sorted(set(results.rows(8, epsilon=epsilon)["n_samples"])):
            where = {"epsilon": epsilon, "n_samples": k}
            figures = [column.of(results, 8, **where) for column in BOUND]
            rows.append([epsilon, str(k), cost(results.rows(8, **where)), *figures])
    return markdown(["ε", "k", "true ε", *(column.heading for column in BOUND)], rows)


def _fast(results: Results) -> str:
    rows = []
    for span, n_steps in COUNTED_STEPS.items():
        for epsilon in ("1", "0.1"):
            own = results.rows(9, "relative", span=span, epsilon=epsilon).sort("n_samples")
            for name, scales in entries(own):
                means = own.filter(mechanism=name)
                best = means.sort("mean").head(1)
                count = best["n_samples"][0]
                share = "all" if count is None else f"{100 * count / n_steps:.0f} %"
                figures = [short(value) for value in means["mean"]] if count is not None else ["–"] * 7
                label = f"{span}, ε = {epsilon}, {name}"
                rows.append([label, scales, cost(means), *figures, f"{pooled(best)} at {share}"])
    shares = [f"{part} %" for part in (2, 5, 10, 15, 20, 30, 40)]
    return markdown(["series, ε, mechanism", "scales", "true ε", *shares, "best ± s.e."], rows)


def _stream(results: Results) -> str:
    """Return rows by ε and mechanism, a column for each year; then what later measurements are worth."""
    metrics = results.means.filter(experiment=10)["metric"]
    years = sorted(set(metrics.str.extract(r"^mae_(\d+)$").drop_nulls()))
    by_year = (Column(year, f"mae_{year}") for year in years)
    whole = _table(results, 10, "epsilon", (Column("first day", "first"), *by_year, ALL, INSIDE))
    rows = []
    for epsilon in EPSILONS:
        once, *again = (
            _mean(results, 10, INFORMED, f"revised_{after}", epsilon) for after in (0, *REVISED_AFTER)
        )
        if once is not None:
            gains = [
                f"{short(one.value)} ({100 * (one.value / once.value - 1):+.1f} %)" for one in again if one
            ]
            rows.append([epsilon, INFORMED, str(once), *gains])
    header = ["ε", "mechanism", "as published ± s.e.", *(f"{after} days later" for after in REVISED_AFTER)]
    words = "\n\nEvery seventh day from the 29th on, first as published, then estimated again, MW:\n\n"
    return whole + words + markdown(header, rows)


def _unusual(results: Results) -> str:
    """Return a row for each thing that happens; for each ε the mechanisms and how the first two compare."""
    rows, header = [], ["on that day, or the three after"]
    for epsilon in EPSILONS:
        header += [f"ε = {epsilon}: {INFORMED}", "OptStream ES", "Laplace", "ratio to ES"]
    for what in [*HAPPENINGS, *(f"{happening}, after" for happening in HAPPENINGS), FIRST]:
        cells = [what]
        for epsilon in EPSILONS:
            ours, *others = (_mean(results, 11, name, what, epsilon) for name in PEERS)
            figures = ["–" if one is None else short(one.value) for one in others]
            ratio = ours.value / others[0].value if ours and others[0] else None
            cells += ["–" if ours is None else str(ours), *figures, short(ratio)]
        rows.append(cells)
    return markdown(header, rows)


def _mean(results: Results, number: int, name: str, metric: str, epsilon: str) -> Mean | None:
    rows = results.rows(number, metric, mechanism=name, calibration="strict", epsilon=epsilon)
    return None if rows.is_empty() else pooled(rows)


TABLES: dict[int, Callable[[Results], str]] = {
    1: lambda results: _regions(results, 1),
    2: lambda results: _table(results, 2, "alpha", LEVELS, study="hierarchy"),
    3: lambda results: _table(results, 3, "epsilon", FORECASTS, months=True),
    4: _ablations,
    5: _grid,
    6: lambda results: _table(results, 6, "alpha", USUAL, months=True),
    7: lambda results: _regions(results, 7),
    8: _bound,
    9: _fast,
    10: _stream,
    11: _unusual,
    12: lambda results: _regions(results, 12),
}
