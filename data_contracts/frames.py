"""The frames of metrics that suites judge: their columns, and those of which a suite must not be silent.

No frame holds a reading. Whether a day appears must not depend on one: what stops a day is structural, that
is files, columns, types, rows and steps. This module does not import Great Expectations.
"""

from optstream.storage.parquet import Limits

LIMITS = Limits(rows=2**31, columns=10_000)
"""What the footer of one file of a dump may claim; a day may have many files."""

LARGEST_SUM = 2**62
"""Units that the rows of a day may add up to: each at its largest, as many as the footers claim."""

FILE_FAULTS = {
    "unreadable": "must be a readable Parquet file; deliver it again",
    "other_hash": "must have the SHA-256 that the list of files gives; deliver it again",
    "damaged_page": "must have pages that fit their checksums; deliver it again",
    "too_much": f"must claim {LIMITS.words}; split it into several",
    "too_many_rows": "has with the others too many rows a day for exact sums; choose a coarser resolution",
    "columns": "must hold these columns; correct [input], or its changes by date, or the dump",
    "other_schema": 'must have the customer column if and only if [input] schema is "metered"; correct the '
    "schema",
    "timestamp_type": "must be a date with time",
    "value_type": "must be a column of numbers that can be counted exactly: no text, and no decimals of more "
    "than 38 digits",
    "customer_type": "must be text or whole numbers",
    "region_type": "must be text or whole numbers",
    "clock": 'the clock changes on this day: day = "elapsed" needs timestamps with a time zone, '
    'day = "fixed" wall-clock timestamps without one: deliver this day with those, which other days need not',
}
"""Why a file cannot be read, the most telling first."""
FAULTY_COLUMNS = {
    "columns": "timestamp value region margin",
    "other_schema": "customer",
    "timestamp_type": "timestamp",
    "value_type": "value",
    "customer_type": "customer",
    "region_type": "region margin",
    "clock": "timestamp",
}
"""Which of the source's columns a fault is about."""

KEYS = ["day", "region"]
RAW = {
    "day": "the local day",
    "region": "a leaf of the hierarchy",
    "file_fault": "why the first of its files that cannot be read cannot be; null if all can",
    "rows": "rows of all files",
    "unknown_region": "rows of a region that is no leaf (in the first leaf's row)",
    "steps_found": "distinct steps of the day with a row",
    "steps_expected": "steps of the day",
    "no_timestamp": "rows without a timestamp",
    "outside_day": "rows outside the day",
    "off_grid": "rows between the starts of steps",
    "duplicates": "rows of a step (metered: of a customer and step) that has one already",
    "absent": "values that are null or NaN",
    "infinite": "infinite values",
    "out_of_bounds": "finite values beyond the public bounds",
}
RAW_METERED = {
    "no_customer": "rows without a customer",
    "two_leaves": "rows of a customer who has others at this step in another leaf",
}
"""Further columns where [input] schema is "metered"."""
_ALARMING = {"infinite", "out_of_bounds"}
"""What has a public rule instead: it depends on readings, and raises an alarm only."""

PRIVATE_PERIOD = {
    "day": "the local day",
    "region": "the root of the hierarchy",
    "periods": "1 if a private period was built from the raw readings, else 0",
    "leaves": "its rows, a leaf each",
    "leaves_expected": "leaves of the hierarchy",
    "steps": "its columns, a step each",
    "steps_expected": "steps of the day",
    "first_step": "the running number of its first step",
    "first_step_expected": "that of the day's first step",
    "resolution": "what it counts in, as text",
    "resolution_expected": "the configured resolution, as text",
}
"""A row a day, from public facts about its period."""

RELEASE = {
    "day": "the local day",
    "region": "a node of the hierarchy",
    "rows": "its rows",
    "cells": "distinct steps with a row",
    "cells_expected": "steps of the day",
    "not_finite": "steps whose value is absent, NaN or infinite",
    "lowest": "its lowest value",
    "lowest_allowed": "the configured lower bound times the leaves below it",
    "highest": "its highest value",
    "total": "the sum of its values",
    "children_minus_parent": "the largest difference at a step, in units of the resolution",
    "not_whole": "steps whose value is no multiple of the resolution",
    "errors_not_positive": "standard errors that are not finite and greater than 0, nor null",
    "unknown_rows": "rows of no node or step of the day (in the root's row)",
    "unfit_features": "features that are no partition of the day's steps (in the root's row)",
    "lineage_absent": "statements of the lineage that are not made (in the root's row)",
}
"""A row a (day, node), from what is to be published."""


def raw_columns(*, metered: bool) -> dict[str, str]:
    """Return the columns of the raw frame, each with what it counts."""
    return {**RAW, **RAW_METERED} if metered else RAW


def structural(columns: dict[str, str], *, metered: bool = False) -> frozenset[str]:
    """Return the columns that may stop a day, each of which a built-in suite must judge."""
    if columns is RELEASE:
        return frozenset(columns) - {*KEYS, "highest", "total"}
    return frozenset({"file_fault"}) if metered else frozenset(columns) - {*KEYS, *_ALARMING}
