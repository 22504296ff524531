"""The contract of the raw readings: what stops a day, and what only raises an alarm.

Whether a day appears must not depend on a reading. What stops one is structural: files, columns, types and
the steps of a leaf. For metered input null, duplicates and infinities have a public rule and only alarm;
for aggregated input a null or a duplicate is the supplier's fault.
"""

from data_contracts.judge import Rule
from optstream.storage.parquet_limits import Limits

NAME = "raw"
LIMITS = Limits(rows=2**31, columns=10_000)
"""What the footer of one file of a dump may claim; a day may have many files."""

FILES = (
    Rule("unreadable", "must be a readable Parquet file; deliver it again"),
    Rule("too_much", f"must claim {LIMITS.words}; split it into several"),
    Rule(
        "columns",
        "must hold these columns; correct [input], or its changes by date, or the dump",
        "timestamp value",
    ),
    Rule(
        "other_schema",
        'must have the customer column if and only if [input] schema is "metered"; correct the schema',
        "customer",
    ),
    Rule("timestamp_type", "must be a date with time", "timestamp"),
    Rule("value_type", "must be a column of numbers that can be counted exactly (text is not)", "value"),
    Rule("customer_type", "must be text or integers", "customer"),
    Rule(
        "clock",
        'the clock changes on this day: day = "elapsed" needs timestamps with a time zone, day = "fixed" '
        "wall-clock timestamps without one",
        "timestamp",
    ),
    Rule("empty", "must hold at least one row"),
)
STEPS = (
    Rule("no_timestamp", "must not be null", "timestamp"),
    Rule("outside_day", "must lie inside the day; this may be a dump of another day", "timestamp"),
    Rule("off_grid", "must be the start of a step", "timestamp"),
    Rule("missing_steps", "every step of the day must have a row", "timestamp"),
)
AGGREGATED = (
    Rule("duplicates", "must be there once for each step", "timestamp"),
    Rule("absent", "must not be null or NaN", "value"),
    Rule("infinite", "was infinite: clamped to the public bounds", "value", alarm=True),
    Rule("out_of_bounds", "was outside the public bounds: clamped", "value", alarm=True),
)
METERED = (
    Rule("no_customer", "must not be null", "customer"),
    Rule("too_large", "has too many rows for an exact sum; choose a coarser privacy.resolution", "value"),
    Rule(
        "two_leaves", "was in several leaves at one step: none of these rows counts", "customer", alarm=True
    ),
    Rule("duplicates", "had several rows at one step: the first was kept", "customer", alarm=True),
    Rule("absent", "was null or NaN: counted as 0", "value", alarm=True),
    Rule("infinite", "was infinite: clamped to the public bounds", "value", alarm=True),
    Rule("out_of_bounds", "was outside the public bounds: clamped", "value", alarm=True),
)


def raw_rules(*, metered: bool) -> tuple[Rule, ...]:
    """The rules of one schema, the most telling first."""
    return (*FILES, *STEPS, *(METERED if metered else AGGREGATED))
