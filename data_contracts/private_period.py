"""The contract of the private period: every leaf, every step, integers of the configured resolution."""

from collections.abc import Sequence
from datetime import date

import polars as pl

from data_contracts.judge import Rule
from optstream.privacy import PrivacyModel
from optstream.stream import AggregationTree, Calendar, PrivatePeriod

NAME = "private period"
RULES = (
    Rule("no_period", "must have been built from the raw readings, as int64"),
    Rule("wrong_leaves", "must have a row for each leaf of the hierarchy"),
    Rule("wrong_steps", "must have a column for each step of the day"),
    Rule("wrong_place", "must begin at the day's first step"),
    Rule("wrong_resolution", "must count in the configured resolution"),
)


def private_period_metrics(
    periods: Sequence[tuple[date, PrivatePeriod | None]],
    tree: AggregationTree,
    calendar: Calendar,
    model: PrivacyModel,
) -> pl.DataFrame:
    """A row for each day, from public facts about its period: type, shape, place and resolution."""
    rows = []
    for day, period in periods:
        held = period if isinstance(period, PrivatePeriod) else None
        facts = {
            "no_period": held is None,
            "wrong_leaves": held is not None and held.n_leaves != len(tree.leaves),
            "wrong_steps": held is not None and held.n_steps != calendar.n_steps(day),
            "wrong_place": held is not None and held.first_step != calendar.first_step(day),
            "wrong_resolution": held is not None and held.resolution != model.resolution,
        }
        rows.append({"day": day, **{name: int(fact) for name, fact in facts.items()}})
    return pl.DataFrame(rows, schema={"day": pl.Date, **{rule.name: pl.Int64 for rule in RULES}})
