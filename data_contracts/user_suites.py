"""Users' own suites, which raise alarms and stop no day. A Python file runs with the rights of the run."""

import json
import os
import re
import runpy
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import great_expectations as gx
import polars as pl
from great_expectations.core import ExpectationSuiteValidationResult
from great_expectations.expectations import Expectation

from data_contracts.judge import columns_of, raised, validated
from data_contracts.metrics import KEYS
from optstream.errors import ContractError

MOST_SUITES, MOST_EXPECTATIONS, LARGEST_FILE = 50, 500, 2**20
SHORT = {"result_format": "SUMMARY", "unexpected_index_column_names": KEYS}
"""At most twenty rows for which an expectation does not hold."""
MOST_TOLD = 12
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
    more = f" and {len(failing) - MOST_TOLD} more" if len(failing) > MOST_TOLD else ""
    return result, f"does not hold: {', '.join(failing[:MOST_TOLD])}{more}"


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
