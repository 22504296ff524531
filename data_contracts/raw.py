"""The suite of the raw readings: what stops a day, and what only raises an alarm.

For metered input null, duplicates and infinities have a public rule and only alarm; for aggregated input a
null or a duplicate is the supplier's fault, and structural.
"""

from functools import cache

from great_expectations.expectations import (
    Expectation,
    ExpectColumnPairValuesAToBeGreaterThanB,
    ExpectColumnPairValuesToBeEqual,
    ExpectColumnValuesToBeBetween,
    ExpectColumnValuesToBeNull,
)
from great_expectations.expectations.metadata_types import FailureSeverity
from great_expectations.expectations.row_conditions import Column

from data_contracts.frames import FILE_FAULTS, raw_columns, structural
from data_contracts.judge import Contract

STOPS, ALARMS = FailureSeverity.CRITICAL, FailureSeverity.WARNING


def _meta(says: str, about: str) -> dict[str, str]:
    return {"says": says, "about": about} if about else {"says": says}


def none_of(
    column: str, says: str, about: str = "", severity: FailureSeverity = STOPS
) -> ExpectColumnValuesToBeBetween:
    """Return the expectation that a count is 0."""
    return ExpectColumnValuesToBeBetween(
        column=column, min_value=0, max_value=0, severity=severity, meta=_meta(says, about)
    )


def equal(column: str, other: str, says: str, about: str = "") -> ExpectColumnPairValuesToBeEqual:
    """Return the expectation that two columns are equal, which stops a day."""
    return ExpectColumnPairValuesToBeEqual(
        column_A=column, column_B=other, severity=STOPS, meta=_meta(says, about)
    )


_FIRST: tuple[Expectation, ...] = (
    ExpectColumnValuesToBeNull(column="file_fault", severity=STOPS, meta={"says": FILE_FAULTS}),
    ExpectColumnValuesToBeBetween(
        column="rows",
        min_value=1,
        row_condition=Column("file_fault").is_null(),
        severity=STOPS,
        meta={"says": "must hold at least one row"},
    ),
    none_of("unknown_region", "must be a leaf of the hierarchy", "region margin"),
    none_of("no_timestamp", "must not be null", "timestamp"),
    none_of(
        "outside_day",
        "must lie inside the day; this may be a dump of another day, or in another time zone",
        "timestamp",
    ),
    none_of("off_grid", "must be the start of a step", "timestamp"),
    equal("steps_found", "steps_expected", "every step of the day must have a row", "timestamp"),
)
_LAST = (
    none_of("infinite", "was infinite: clamped to the public bounds", "value", ALARMS),
    none_of("out_of_bounds", "was outside the public bounds: clamped", "value", ALARMS),
)


_AGGREGATED = (
    none_of("duplicates", "must be there once for each step", "timestamp"),
    none_of("absent", "must not be null or NaN", "value"),
)
_METERED = (
    none_of("no_customer", "must not be null", "customer"),
    ExpectColumnPairValuesAToBeGreaterThanB(
        column_A="rows_countable",
        column_B="rows_at_a_step",
        severity=STOPS,
        meta={
            "says": "has too many rows for an exact sum; choose a coarser privacy.resolution",
            "about": "value",
        },
    ),
    none_of("two_leaves", "was in several leaves at one step: none of these rows counts", "customer", ALARMS),
    none_of("duplicates", "had several rows at one step: the first was kept", "customer", ALARMS),
    none_of("absent", "was null or NaN: counted as 0", "value", ALARMS),
)


@cache
def raw_contract(*, metered: bool) -> Contract:
    """Return the contract of one schema, the most telling expectations first."""
    suite = (*_FIRST, *(_METERED if metered else _AGGREGATED), *_LAST)
    return Contract("raw", suite, structural(raw_columns(metered=metered), metered=metered))
