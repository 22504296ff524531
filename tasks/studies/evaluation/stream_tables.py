"""The tables of a stream's own past: experiments 10 and 11."""

from collections.abc import Sequence

from optstream.evaluation.contenders import INFORMED
from optstream.evaluation.experiments import EPSILONS
from optstream.evaluation.happenings import HAPPENINGS
from optstream.evaluation.streams import FIRST, REVISED_AFTER
from tasks.studies.evaluation.means import Mean, Results, percent, pooled, short
from tasks.studies.evaluation.tables import cost, entries, markdown

PEERS = (INFORMED, "OptStream ES", "Laplace")


def stream_table(results: Results) -> str:
    """A row for each ε and mechanism, a column for each year; then what later measurements are worth."""
    years = sorted(
        set(results.means.filter(experiment=10)["metric"].str.extract(r"^mae_(\d+)$").drop_nulls())
    )
    metrics = {"first": "first day", **{f"mae_{year}": year for year in years}, "mae": "all ± s.e."}
    rows = []
    for epsilon in EPSILONS:
        for name, scales in entries(results.rows(10, epsilon=epsilon)):
            found = [_mean(results, 10, name, metric, epsilon, scales) for metric in metrics]
            figures = [short(one.value) for one in found[:-1]] + [str(found[-1])]
            inside = results.rows(10, "covered", mechanism=name, epsilon=epsilon)
            figures.append("–" if inside.is_empty() else percent(pooled(inside).value))
            rows.append([f"{epsilon}, {name}", scales, cost(found[-1]), *figures])
    header = ["ε, mechanism", "scales", "true ε", *metrics.values(), "in 95 % bands"]
    words = "\n\nEvery seventh day from the 29th on, first as published, then estimated again, MW:\n\n"
    return markdown(header, rows) + words + _revised(results)


def _revised(results: Results) -> str:
    rows = []
    for epsilon in EPSILONS:
        if results.rows(10, "revised_0", epsilon=epsilon).is_empty():
            continue
        once = _mean(results, 10, INFORMED, "revised_0", epsilon)
        again = [_mean(results, 10, INFORMED, f"revised_{after}", epsilon).value for after in REVISED_AFTER]
        figures = [f"{short(one)} ({100 * (one / once.value - 1):+.1f} %)" for one in again]
        rows.append([epsilon, INFORMED, str(once), *figures])
    header = ["ε", "mechanism", "as published ± s.e.", *(f"{after} days later" for after in REVISED_AFTER)]
    return markdown(header, rows)


def unusual_table(results: Results) -> str:
    """A row for each thing that happens; for each ε the mechanisms beside each other and their ratio."""
    rows = []
    for what in [*HAPPENINGS, *(f"{happening}, after" for happening in HAPPENINGS), FIRST]:
        rows.append([what, *(cell for epsilon in EPSILONS for cell in _compared(results, what, epsilon))])
    header = ["on that day, or the three after"]
    for epsilon in EPSILONS:
        header += [f"ε = {epsilon}: {INFORMED}", "OptStream ES", "Laplace", "ratio to ES"]
    return markdown(header, rows)


def _compared(results: Results, what: str, epsilon: str) -> Sequence[str]:
    if results.rows(11, what, epsilon=epsilon).is_empty():
        return ["–"] * (len(PEERS) + 1)
    found = [_mean(results, 11, name, what, epsilon) for name in PEERS]
    return [str(found[0]), *(short(one.value) for one in found[1:]), short(found[0].value / found[1].value)]


def _mean(
    results: Results, number: int, name: str, metric: str, epsilon: str, scales: str = "strict"
) -> Mean:
    return pooled(results.rows(number, metric, mechanism=name, calibration=scales, epsilon=epsilon))
