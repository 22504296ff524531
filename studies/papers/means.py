"""Looking means up in the summary of results: by experiment, mechanism, scales and parameters."""

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from optstream.errors import ParameterError
from studies.evaluation.contenders import INFORMED
from studies.evaluation.experiments import EPSILONS
from studies.papers.store import FORMAT

ALPHAS = ("10", "50", "100")


@dataclass(frozen=True)
class Mean:
    """A mean over trials (and spans, each counting alike), with its standard error; NaN for one trial."""

    value: float
    error: float
    epsilon_plan: float | None = None
    epsilon_drawn: float | None = None
    epsilon_drawn_aligned: float | None = None

    def __str__(self) -> str:
        return (
            f"{short(self.value)}" if math.isnan(self.error) else f"{short(self.value)} ± {short(self.error)}"
        )


@dataclass(frozen=True, eq=False)
class Results:
    """What `results.json` says. means: as `run.summary`. facts: code, seed, data, machine, seconds."""

    means: pl.DataFrame
    facts: Mapping[str, Any]

    @classmethod
    def read(cls, folder: Path) -> "Results":
        """Raises ParameterError where no results lie, or of another format."""
        try:
            document = json.loads((folder / "results.json").read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise ParameterError(f"{folder} holds no results; run `evaluate` first") from error
        if document.get("format") != FORMAT:
            raise ParameterError(
                f"{folder} holds results of another format than {FORMAT}; run evaluate again"
            )
        facts = {name: value for name, value in document.items() if name != "means"}
        return cls(pl.DataFrame(document["means"], infer_schema_length=None), facts)

    def rows(self, experiment: int, metric: str = "mae", **where: Any) -> pl.DataFrame:
        """The rows of an experiment's metric that have these values, or one of them where a set is given."""
        found = self.means.filter(experiment=experiment, metric=metric)
        for name, value in where.items():
            found = found.filter(pl.col(name).is_in(value if isinstance(value, set) else {value}))
        return found

    def values(self, experiment: int, metric: str = "mae", **where: Any) -> list[float]:
        """The means of `rows`. Raises KeyError if nothing is there."""
        found = self.rows(experiment, metric, **where)["mean"].to_list()
        if not found:
            raise KeyError((experiment, metric, where))
        return found

    def mean(
        self, experiment: int, mechanism: str, calibration: str = "strict", metric: str = "mae", **where: Any
    ) -> Mean:
        """One mean, over all spans unless `span` is given. Raises KeyError if nothing is there, or points of
        several parameters.
        """
        found = self.rows(experiment, metric, mechanism=mechanism, calibration=calibration, **where)
        parameters = found.select("study", "epsilon", "alpha", "n_samples", "threshold").unique()
        if parameters.height != 1:
            raise KeyError((experiment, mechanism, calibration, metric, where, parameters.height))
        return pooled(found)

    def by(
        self,
        experiment: int,
        mechanism: str,
        calibration: str = "strict",
        *,
        alpha: Sequence[str] | None = None,
        **where: Any,
    ) -> dict[str, float]:
        """`mean` for each epsilon; for each of these alphas where they are given."""
        name, values = ("epsilon", EPSILONS) if alpha is None else ("alpha", alpha)
        return {
            value: self.mean(experiment, mechanism, calibration, **{name: value}, **where).value
            for value in values
        }

    def rivals(self, experiment: int, **where: Any) -> set[str]:
        """All mechanisms but HistoryInformed under the same guarantee. Raises KeyError if there are none."""
        found = set(self.rows(experiment, calibration="strict", **where)["mechanism"]) - {INFORMED}
        if not found:
            raise KeyError((experiment, where))
        return found

    def experiments(self) -> list[int]:
        """Those that were run."""
        return sorted(set(self.means["experiment"]))


def below(ours: Mapping[Any, float], theirs: Mapping[Any, float], keys: Iterable[Any] | None = None) -> bool:
    """Whether each of our figures is less than theirs; by default for all keys."""
    return all(ours[key] < theirs[key] for key in (ours if keys is None else keys))


def pooled(rows: pl.DataFrame) -> Mean:
    """Several means as one, each counting alike; epsilons are the largest."""
    errors = [math.nan if error is None else error for error in rows["standard_error"]]
    epsilons = [largest(rows[name]) for name in ("epsilon_plan", "epsilon_drawn", "epsilon_drawn_aligned")]
    return Mean(
        sum(rows["mean"]) / rows.height, math.sqrt(sum(error**2 for error in errors)) / rows.height, *epsilons
    )  # fmt: skip


def largest(column: pl.Series) -> float | None:
    """The largest number of a column; None where it has none."""
    found = column.max()
    return found if isinstance(found, int | float) else None


def short(value: float | None) -> str:
    """Three figures or so, whole numbers from 100 on."""
    if value is None or math.isnan(value):
        return "–"
    if value == 0:
        return "0"
    size = abs(value)
    if size >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if size >= 10 else f"{value:.2f}" if size >= 0.095 else f"{value:.2g}"


def percent(share: float) -> str:
    """To a tenth."""
    return f"{100 * share:.1f} %"


def epsilon_text(value: float | None) -> str:
    """An epsilon to four figures; ∞ for none."""
    return "∞" if value is None else f"{value:.4g}"
