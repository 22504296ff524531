"""The findings of docs/research/evaluation.md as comparisons of means."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import polars as pl

from studies.evaluation.experiments import (
    ALPHAS,
    EPSILONS,
    INFORMED,
    INFORMED_JOINT,
    INFORMED_WEATHER,
    JOINT,
    MONTHS,
    POINTS_ONLY,
    RAW,
)
from studies.evaluation.trials import FIRST, HAPPENINGS, REVISED_AFTER

LAPLACE, DFT, ES, L1 = "Laplace", "DFT", "OptStream ES", "OptStream L1"
FEBRUARY, JUNE = tuple(MONTHS)[:2]
INDEPENDENT_TRIAL = {
    (LAPLACE, "1"): 48, (LAPLACE, "0.1"): 481, (LAPLACE, "0.01"): 3950,
    ("OptStream ES, paper's weights", "0.1"): 233, ("OptStream ES, paper's weights", "0.01"): 1938,
}  # fmt: skip
"""MW a step in February, by another program."""
ASKED = {"1": 22, "0.1": 65, "0.01": 140}


@dataclass(frozen=True, eq=False)
class Means:
    """Means over the trials of one experiment, for each mechanism, its parameters, span and metric."""

    frame: pl.DataFrame

    @classmethod
    def of(cls, results: pl.DataFrame) -> "Means":
        """Return the means of tidy results, with the standard error."""
        keys = ("study", "mechanism", "epsilon", "alpha", "span", "metric")
        grouped = results.group_by(*keys, maintain_order=True)
        value = pl.col("value")
        return cls(
            grouped.agg(
                mean=value.mean(), error=value.std() / pl.len().sqrt(), trials=pl.len(),
                plan=pl.col("epsilon_plan").max(),
            )
        )  # fmt: skip

    def mean(self, mechanism: str, metric: str = "mae", **where: str) -> float:
        """Return one mean over spans. Raises KeyError where the results lack it."""
        where = where if mechanism != RAW else {}
        found = self.frame.filter(mechanism=mechanism, metric=metric, **where)["mean"]
        if found.is_empty():
            raise KeyError((mechanism, metric, where))
        return float(found.to_numpy().mean())

    def table(self) -> pl.DataFrame:
        """Return a row for each mechanism, its parameters and span, a column for each metric."""
        mean, error = pl.col("mean").round_sig_figs(3), pl.col("error").round_sig_figs(2)
        shown = self.frame.with_columns(
            mean=pl.format("{} ± {}", mean, error).fill_null(mean.cast(pl.String))
        ).drop("error")
        index = [name for name in shown.columns if name not in ("metric", "mean")]
        return shown.pivot("metric", index=index, values="mean", aggregate_function="first")


Check = Callable[[Means], bool]


def ahead(
    ours: str, *theirs: str, by: str = "epsilon", at: Iterable[str] = EPSILONS, factor: float = 1.0,
    metric: str = "mae", **where: str,
) -> Check:  # fmt: skip
    """Return whether our mean is less than `factor` times each of theirs, at each value of a parameter."""

    def check(means: Means) -> bool:
        return all(
            means.mean(ours, metric, **{by: value}, **where)
            < factor * means.mean(name, metric, **{by: value}, **where)
            for value in at
            for name in theirs
        )

    return check


def every(*checks: Check) -> Check:
    """Return whether all of these hold."""
    return lambda means: all(check(means) for check in checks)


def at_each(check: Callable[[Means, str], bool]) -> Check:
    """Return whether it holds at each epsilon."""
    return lambda means: all(check(means, epsilon) for epsilon in EPSILONS)


def _ahead_of_all(means: Means, by: str, at: Iterable[str], metric: str = "mae") -> bool:
    names = set(means.frame["mechanism"]) - {INFORMED, RAW}
    return ahead(INFORMED, *names, by=by, at=at, metric=metric)(means)


def _very_small(means: Means) -> bool:
    learned, sample, es = (means.mean(name, epsilon="0.01") for name in (INFORMED, "Sample", ES))
    return learned < means.mean(RAW, "last_week") < sample < es


def _last_week(means: Means) -> bool:
    today, week = (
        {e: means.mean(ES, metric, epsilon=e) for e in EPSILONS} for metric in ("mae", "last_week")
    )
    return today["0.1"] < week["0.1"] and week["0.01"] < 1.1 * today["0.01"]


def _winter(means: Means) -> bool:
    with_weather, without = (
        means.mean(name, epsilon="0.01", span=FEBRUARY) / means.mean(name, epsilon="0.01", span=JUNE)
        for name in (INFORMED_WEATHER, INFORMED_JOINT)
    )
    return with_weather < without


HOLD = at_each(lambda means, e: 0.93 <= means.mean(INFORMED, "covered", epsilon=e) <= 0.97)
PARTS = [part for what in HAPPENINGS for part in (what, f"{what}, after")]
LARGE = ["50", "100"]
FINDINGS: tuple[tuple[int, str, str, Check], ...] = (
    (1, "OptStream against noise on every step", "better from ε = 0.1 down, worse at 1",
     every(ahead(LAPLACE, ES, at=["1"]), ahead(ES, LAPLACE, at=["0.1", "0.01"]))),
    (1, "better by an order of magnitude", "does not reproduce",
     at_each(lambda means, e: all(means.mean(rival, epsilon=e) < 10 * means.mean(ours, epsilon=e)
                                  for rival in (LAPLACE, DFT) for ours in (ES, L1)))),
    (1, "L1 sampling against equal spacing", "behind, but for the paper's scales at 0.01", ahead(ES, L1)),
    (1, "very small ε", "only what learns is worth releasing every day", _very_small),
    (1, "nothing but last week's release", "worse at ε = 0.1, as good at 0.01", _last_week),
    (1, "an independent trial", "agrees",
     lambda means: all(abs(means.mean(name, epsilon=e, span=FEBRUARY) / known - 1) < 0.05
                       for (name, e), known in INDEPENDENT_TRIAL.items())),
    (1, "learning from past releases", "ahead of all others at each ε",
     lambda means: _ahead_of_all(means, "epsilon", EPSILONS)),
    (1, "bands of 95 %", "hold 93 to 97 %", HOLD),
    (2, "national and regional error", "OptStream where α is large",
     every(ahead(DFT, ES, by="alpha", at=["10"], metric="mae_nation"),
           ahead(ES, DFT, by="alpha", at=LARGE, metric="mae_nation"),
           ahead(ES, DFT, LAPLACE, by="alpha", at=ALPHAS))),
    (2, "sums are consistent", "holds",
     lambda means: all(means.mean(name, "violation") < 1e-3 for name in (LAPLACE, DFT, ES, L1))),
    (2, "learning from past releases", "ahead at each α, nation and regions",
     lambda means: all(_ahead_of_all(means, "alpha", ALPHAS, metric) for metric in ("mae", "mae_nation"))),
    (4, "every step of the procedure helps", "sampling does; the optimisation only at ε = 1",
     every(ahead(ES, POINTS_ONLY, at=["1"], study="regions"),
           ahead(POINTS_ONLY, ES, at=["0.1", "0.01"], study="regions"))),
    (10, "every year, from the first day", "ahead at each ε",
     every(*(ahead(INFORMED, LAPLACE, ES, metric=f"mae_{year}") for year in (2013, 2014, 2015, 2016)))),
    (10, "bands of 95 %", "hold 93 to 97 %", HOLD),
    (10, "revised estimates", "nearer to the truth, at no cost",
     at_each(lambda means, e: all(means.mean(INFORMED, f"revised_{after}", epsilon=e)
                                  < means.mean(INFORMED, "revised_0", epsilon=e)
                                  for after in REVISED_AFTER))),
    (11, "days unlike all others", "below 1.5 times OptStream's error",
     every(*(ahead(INFORMED, ES, metric=part, factor=1.5) for part in PARTS))),
    (11, "the first day", "no worse than OptStream's", ahead(INFORMED, ES, metric=FIRST)),
    (12, "what each part gives", "joint noise a third at ε = 1, weather a little",
     every(ahead(JOINT, LAPLACE), ahead(INFORMED_JOINT, INFORMED))),
    (12, "all parts together", "short of what was asked",
     at_each(lambda means, e: all(means.mean(name, epsilon=e) > ASKED[e]
                                  for name in (INFORMED_JOINT, INFORMED_WEATHER)))),
    (12, "winter against summer", "nearer with temperature", _winter),
)  # fmt: skip
"""Experiment, question, answer, and the comparison that it rests on."""


def checked(means: dict[int, Means]) -> pl.DataFrame:
    """Return the findings of the experiments at hand: `holds` is null where the results lack a figure."""
    rows = []
    for experiment, asked, found, check in FINDINGS:
        if experiment in means:
            try:
                holds: bool | None = check(means[experiment])
            except KeyError:
                holds = None
            rows.append((experiment, asked, found, holds))
    return pl.DataFrame(rows, ["experiment", "asked", "found", "holds"], orient="row")
