"""Temporal leakage as a task: what knowing a chain adds to a history, and the budgets that bound it."""

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from optstream.errors import ConfigurationError, ParameterError
from studies.leakage import (
    Budgets,
    LossFunction,
    backward_leakage,
    backward_transition,
    constant_budget,
    exact_budgets,
    forward_leakage,
    repeated_leakage,
)
from studies.leakage.charges import By, History
from studies.leakage.loss import Floats
from studies.leakage.transition_file import TransitionFile

FORMAT = "optstream.leakage/1"


@dataclass(frozen=True, eq=False)
class Chain:
    """What the adversary knows. backward_from: None where it was derived by Bayes."""

    forward: TransitionFile
    backward: Floats
    backward_from: Path | None


@dataclass(frozen=True, eq=False)
class Leakage:
    """What an adversary with the chain learns, beside a bound. Series by time point, as history.epsilons.

    suprema: backward, forward and total if the last day were repeated without end; may be inf.
    constant, exact: epsilons of a time point that keep the total at `bound`: without end; for so many points
    (None for a history of fewer than two).
    """

    stream: str
    history: History
    chain: Chain
    backward: Floats
    forward: Floats
    total: Floats
    suprema: tuple[float, float, float]
    bound: float
    constant: float
    exact: Budgets | None

    @property
    def rows(self) -> tuple[tuple[str, Floats, float | None], ...]:
        """Name, series and supremum of what is shown; epsilon is what one without the chain learns."""
        names, series = ("backward", "forward", "total"), (self.backward, self.forward, self.total)
        return (("epsilon", self.history.epsilons, None), *zip(names, series, self.suprema, strict=True))


def chain_of(forward: TransitionFile, backward: TransitionFile | None) -> Chain:
    """Both directions: of the files, or backward by Bayes from the forward chain's stationary distribution.

    Raises ConfigurationError if the files do not have the same states, or Bayes needs a second file.
    """
    if backward is None:
        try:
            return Chain(forward, backward_transition(forward.rows), None)
        except ParameterError:
            raise ConfigurationError(
                f"{forward.path}: the chain is reducible, so that it has no unique stationary distribution "
                "from which to derive what came before; give the backward chain with --backward"
            ) from None
    if backward.n_states != forward.n_states or (
        forward.names and backward.names and forward.names != backward.names
    ):
        raise ConfigurationError(
            f"{backward.path}: it must have the states of {forward.path}, in the same order; "
            f"they have {backward.n_states} and {forward.n_states}"
        )
    return Chain(forward, backward.rows, backward.path)


def leakage_of(stream: str, history: History, chain: Chain, bound: float) -> Leakage:
    """Follow both directions over the history. Raises ParameterError unless bound is greater than 0."""
    before, after = LossFunction(chain.backward), LossFunction(chain.forward.rows)
    epsilons = history.epsilons
    backward, forward = backward_leakage(epsilons, before), forward_leakage(epsilons, after)
    last_day = epsilons[history.starts[-2] :]
    ends = repeated_leakage(last_day, backward=before, forward=after)
    together = ends[0] + ends[1] - last_day
    several = epsilons.size > 1
    return Leakage(
        stream=stream,
        history=history,
        chain=chain,
        backward=backward,
        forward=forward,
        total=backward + forward - epsilons,
        suprema=(float(ends[0].max()), float(ends[1].max()), float(together.max())),
        bound=bound,
        constant=constant_budget(bound, backward=before, forward=after),
        exact=exact_budgets(bound, backward=before, forward=after) if several else None,
    )


def leakage_document(found: Leakage) -> dict[str, Any]:
    """`python -m studies leakage --json`: versioned, for machines; of each day the worst time point."""
    history, chain = found.history, found.chain
    worst = {name: history.worst_of_days(series).tolist() for name, series, _ in found.rows}
    exact = found.exact
    return {
        "format": FORMAT,
        "stream": found.stream,
        "by": history.by,
        "chain": {
            "transition": str(chain.forward.path),
            "backward": None if chain.backward_from is None else str(chain.backward_from),
            "n_states": chain.forward.n_states,
            "states": None if chain.forward.names is None else list(chain.forward.names),
        },
        "n_points": history.epsilons.size,
        "n_releases": history.n_releases,
        "n_reserved_left_out": history.n_reserved,
        "summary": {name: _summary(history, series, supremum) for name, series, supremum in found.rows},
        "bound": {
            "total": found.bound,
            "constant": found.constant,
            "exact": None
            if exact is None
            else {"first": exact.first, "middle": exact.middle, "last": exact.last},
        },
        "days": [
            {"date": day.isoformat(), **{name: worst[name][number] for name in worst}}
            for number, day in enumerate(history.days)
        ],
    }


def _summary(history: History, series: Floats, supremum: float | None) -> dict[str, Any]:
    """Return a series' worst and median; its supremum, null where infinite, and whether it is bounded."""
    summary = {"worst": float(series.max()), "at": history.when(int(series.argmax()))}
    summary["median"] = float(np.median(series))
    if supremum is None:
        return summary
    bounded = math.isfinite(supremum)
    return {**summary, "supremum": supremum if bounded else None, "bounded": bounded}


def empty_document(stream: str, by: By) -> dict[str, Any]:
    """The same where nothing was drawn yet."""
    return {"format": FORMAT, "stream": stream, "by": by, "n_points": 0, "n_releases": 0, "days": []}
