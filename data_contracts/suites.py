"""The built-in suites; of metered input only files can stop a day (docs/privacy.md, Lemma 2c)."""

from collections.abc import Sequence
from functools import cache

from great_expectations.expectations import (
    ExpectColumnPairValuesAToBeGreaterThanB,
    ExpectColumnPairValuesToBeEqual,
    ExpectColumnValuesToBeBetween,
    ExpectColumnValuesToBeNull,
)
from great_expectations.expectations.metadata_types import FailureSeverity
from great_expectations.expectations.row_conditions import Column

from data_contracts.judge import Broken, Contract
from data_contracts.metrics import FILE_FAULTS
from optstream.errors import ContractError

STOPS, ALARMS = FailureSeverity.CRITICAL, FailureSeverity.WARNING


def none_of(
    column: str, says: str, about: str = "", severity: FailureSeverity = STOPS
) -> ExpectColumnValuesToBeBetween:
    """Return the expectation that a count is 0."""
    return ExpectColumnValuesToBeBetween(
        column=column, min_value=0, max_value=0, severity=severity, meta={"says": says, "about": about}
    )


def equal(
    column: str, other: str, says: str, about: str = "", severity: FailureSeverity = STOPS
) -> ExpectColumnPairValuesToBeEqual:
    """Return the expectation that two columns are equal."""
    return ExpectColumnPairValuesToBeEqual(
        column_A=column, column_B=other, severity=severity, meta={"says": says, "about": about}
    )


_FILES = ExpectColumnValuesToBeNull(column="file_fault", severity=STOPS, meta={"says": FILE_FAULTS})
_CLAMPED = (
    none_of("infinite", "was infinite: clamped to the public bounds", "value", ALARMS),
    none_of("out_of_bounds", "was outside the public bounds: clamped", "value", ALARMS),
)
_ROWS = (
    (
        "unknown_region",
        "must be a leaf of the hierarchy; add it, or remove rows of others, of totals and of units",
        "region margin",
    ),
    ("no_timestamp", "must not be null, and in a text by ISO 8601 or input.stamps_format", "timestamp"),
    (
        "outside_day",
        "must lie inside the day; this may be a dump of another day, or in another time zone",
        "timestamp",
    ),
    ("off_grid", "must be the start of a step, as input.stamps and stream.step say", "timestamp"),
)
_AGGREGATED = (
    _FILES,
    ExpectColumnValuesToBeBetween(
        column="rows",
        min_value=1,
        row_condition=Column("file_fault").is_null(),
        severity=STOPS,
        meta={
            "says": "must hold at least one row; write [[hierarchy.changes]] for a leaf that began or ended, "
            'or input.missing_rows = "zero" where sums of 0 have no row'
        },
    ),
    *(none_of(*rule) for rule in _ROWS),
    equal(
        "steps_found",
        "steps_expected",
        'every step of the day must have a row, save by input.missing_rows = "zero"',
        "timestamp",
    ),
    none_of(
        "duplicates",
        "must be there once for each step; keep the rows of one kind, such as import, or write their sum",
        "timestamp",
    ),
    none_of(
        "absent",
        "must not be null or NaN (in a text: or no number by input.decimal, such as with a unit or commas "
        "in thousands)",
        "value",
    ),
    *_CLAMPED,
)
_METERED = (
    _FILES,
    *(none_of(column, f"{says}: not counted", about, ALARMS) for column, says, about in _ROWS),
    none_of("no_customer", "must not be null: not counted", "customer", ALARMS),
    equal("steps_found", "steps_expected", "had no row: counted as 0", "timestamp", ALARMS),
    none_of("two_leaves", "was in several leaves at one step: none of these rows counts", "customer", ALARMS),
    none_of("duplicates", "had several rows at one step: the first was kept", "customer", ALARMS),
    none_of("absent", "was null or NaN: counted as 0", "value", ALARMS),
    *_CLAMPED,
)


@cache
def raw_contract(*, metered: bool) -> Contract:
    """Return the contract of one schema, the most telling expectations first."""
    return Contract("raw", _METERED if metered else _AGGREGATED)


RELEASE_CONTRACT = Contract(
    "release",
    (
        equal("cells", "cells_expected", "must have a row for each node and step"),
        equal("rows", "cells", "must have each node and step once"),
        none_of("unknown_rows", "must have rows of the hierarchy's nodes and the day's steps only"),
        none_of("not_finite", "must hold finite numbers"),
        ExpectColumnPairValuesAToBeGreaterThanB(
            column_A="lowest",
            column_B="lowest_allowed",
            or_equal=True,
            severity=STOPS,
            meta={"says": "must be at or above the lower bound, times the leaves below the node"},
        ),
        none_of("children_minus_parent", "must have each node equal the sum of its children"),
        none_of("not_whole", "must hold multiples of the resolution"),
        none_of("unfit_features", "must have each feature's parts cover the day's steps"),
        none_of(
            "errors_not_positive", "must have standard errors that are finite and greater than 0, or null"
        ),
        none_of("lineage_absent", "must state its whole lineage"),
    ),
)


def refusals(broken: Sequence[Broken]) -> dict[str, ContractError]:
    """Return, by day, why a release is not published."""
    says: dict[str, dict[str, None]] = {}
    for one in broken:
        says.setdefault(one.day, {})[one.says] = None
    return {
        day: ContractError(f"the release of {day} is not published: it {', and '.join(rules)}")
        for day, rules in says.items()
    }
