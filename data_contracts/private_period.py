"""The contract of the private period: every leaf, every step, integers of the configured resolution."""

from collections.abc import Callable, Sequence
from datetime import date

import polars as pl
from great_expectations.expectations import ExpectColumnValuesToBeInSet

from data_contracts.frames import PRIVATE_PERIOD, structural
from data_contracts.judge import Contract
from data_contracts.raw import STOPS, equal
from optstream.privacy import PrivacyModel
from optstream.stream import AggregationTree, Calendar, PrivatePeriod

CONTRACT = Contract(
    "private period",
    (
        ExpectColumnValuesToBeInSet(
            column="periods",
            value_set=[1],
            severity=STOPS,
            meta={"says": "must have been built from the raw readings, as int64"},
        ),
        equal("leaves", "leaves_expected", "must have a row for each leaf of the hierarchy"),
        equal("steps", "steps_expected", "must have a column for each step of the day"),
        equal("first_step", "first_step_expected", "must begin at the day's first step"),
        equal("resolution", "resolution_expected", "must count in the configured resolution"),
    ),
    structural(PRIVATE_PERIOD),
)


def private_period_metrics(
    periods: Sequence[tuple[date, PrivatePeriod | None]],
    tree_of: Callable[[date], AggregationTree],
    calendar: Calendar,
    model: PrivacyModel,
) -> pl.DataFrame:
    """Return a row for each day, from public facts about its period: type, shape, place and resolution."""
    rows = []
    for day, period in periods:
        tree = tree_of(day)
        held = period if isinstance(period, PrivatePeriod) else None
        facts = {
            "day": day.isoformat(),
            "region": tree.nodes[0],
            "periods": int(held is not None),
            "leaves": held.n_leaves if held else 0,
            "leaves_expected": len(tree.leaves),
            "steps": held.n_steps if held else 0,
            "steps_expected": calendar.n_steps(day),
            "first_step": held.first_step if held else -1,
            "first_step_expected": calendar.first_step(day),
            "resolution": str(held.resolution if held else None),
            "resolution_expected": str(model.resolution),
        }
        rows.append(facts)
    return pl.DataFrame(rows)
