"""The built-in suites; of metered input only files can stop a day (docs/privacy.md, Lemma 2c). Users' own."""

import json
import os
import re
import runpy
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import great_expectations as gx
import polars as pl
from great_expectations.core import ExpectationSuiteValidationResult
from great_expectations.expectations import (
    Expectation,
    ExpectColumnPairValuesAToBeGreaterThanB,
    ExpectColumnPairValuesToBeEqual,
    ExpectColumnValuesToBeBetween,
    ExpectColumnValuesToBeNull,
)
from great_expectations.expectations.metadata_types import FailureSeverity
from great_expectations.expectations.row_conditions import Column

from data_contracts.judge import Broken, Contract, columns_of, raised, validated
from data_contracts.metrics import FILE_FAULTS, KEYS
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


# Users' own suites, which raise alarms and stop no day. A Python file runs with the rights of the run.

MOST_SUITES, MOST_EXPECTATIONS, LARGEST_FILE = 50, 500, 2**20
SHORT = {"result_format": "SUMMARY", "unexpected_index_column_names": KEYS}
"""At most twenty rows for which an expectation does not hold."""
MOST_NAMED = 12
_NAME = re.compile(r"[\w-]{1,64}")


@dataclass(frozen=True)
class UserSuite:
    """A file's suite. problem: why it cannot be used, None if it can."""

    name: str
    expectations: tuple[Expectation, ...] = ()
    problem: str | None = None


def user_suites(folder: Path) -> list[UserSuite]:
    """Return the suites of a folder, which may be absent, by name; with its problem where one has any."""
    try:
        files = sorted(path for path in folder.iterdir() if path.suffix in (".json", ".py"))
    except FileNotFoundError:
        return []
    except OSError:
        return [UserSuite("all", problem="cannot be listed: fix the permissions of its folder")]
    loaded = [_loaded(path) for path in files[:MOST_SUITES]]
    if len(files) > MOST_SUITES:
        loaded.append(
            UserSuite("others", problem=f"was not judged: a frame has at most {MOST_SUITES} suites")
        )
    return loaded


def judge_user_suite(
    suite: UserSuite, metrics: pl.DataFrame
) -> tuple[ExpectationSuiteValidationResult, str | None]:
    """Return the library's result on one day's frame, and its problem in words, None without one."""
    if suite.problem is not None:
        return unjudged(suite), suite.problem
    try:
        result = validated(suite.name, suite.expectations, metrics, SHORT)
    except (Exception, SystemExit) as error:  # noqa: BLE001 maybe of a reading: it must not stop the day
        return unjudged(suite), f"could not be evaluated: {type(error).__name__}"
    results: Sequence[Any] = result.results
    failing = [
        f"{one.expectation_config.type}({', '.join(columns_of(one.expectation_config))})"
        + (" could not be evaluated" if raised(one.exception_info) else "")
        for one in results
        if not one.success
    ]
    if not failing:
        return result, None
    more = f" and {len(failing) - MOST_NAMED} more" if len(failing) > MOST_NAMED else ""
    return result, f"does not hold: {', '.join(failing[:MOST_NAMED])}{more}"


def unjudged(suite: UserSuite) -> ExpectationSuiteValidationResult:
    """Return the result of a suite that was not evaluated."""
    counts = (f"{kind}_expectations" for kind in ("evaluated", "successful", "unsuccessful"))
    none = {**dict.fromkeys(counts, 0), "success_percent": None}
    return ExpectationSuiteValidationResult(success=False, results=[], suite_name=suite.name, statistics=none)


def _loaded(path: Path) -> UserSuite:
    if not _NAME.fullmatch(path.stem):
        problem = "must have a name of letters, digits, '_' and '-'; rename the file"
        return UserSuite("unnamed", problem=problem)
    try:
        found = _from_json(path) if path.suffix == ".json" else _from_python(path)
        if 1 <= len(found) <= MOST_EXPECTATIONS:
            return UserSuite(path.stem, tuple(found))
        problem = f"must have 1 to {MOST_EXPECTATIONS} expectations"
    except ContractError as error:
        problem = str(error)
    except (Exception, SystemExit) as error:  # noqa: BLE001 whatever it raises is an alarm, and stops no day
        problem = f"cannot be loaded: {type(error).__name__}: {str(error)[:500]}"
    return UserSuite(path.stem, problem=problem)


def _from_json(path: Path) -> Sequence[Expectation]:
    """Read a suite as the library writes it: name and expectations, each with type and kwargs."""
    with path.open("rb") as file:
        content = file.read(LARGEST_FILE + 1)
    if len(content) > LARGEST_FILE:
        raise ContractError("cannot be loaded: it is larger than 1 MiB")
    document: dict[str, Any] = json.loads(content)
    suite = gx.ExpectationSuite(name=path.stem, expectations=document["expectations"])
    if len(suite.expectations) != len(document["expectations"]):
        # the library leaves out unknown and repeated expectations
        raise ContractError(
            "has an expectation that the library does not know, or one twice; correct its type"
        )
    return suite.expectations


def _from_python(path: Path) -> Sequence[Expectation]:
    """Run a file that assigns an `ExpectationSuite` to `suite`."""
    for one in (path, *path.absolute().parents[:2]):
        facts = one.stat()
        if facts.st_uid not in (0, os.geteuid()) or facts.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            raise ContractError(f"was not run: {one.name} may be written by others; chown it, chmod go-w it")
    suite = runpy.run_path(str(path)).get("suite")
    if not isinstance(suite, gx.ExpectationSuite):
        raise ContractError("must assign a great_expectations.ExpectationSuite to the name `suite`")
    return suite.expectations
