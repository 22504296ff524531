"""Judging a small frame of metrics with Great Expectations: one validation, however many days it holds."""

import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from threading import RLock
from typing import Any

import polars as pl

from optstream.errors import ContractError


@dataclass(frozen=True)
class Rule:
    """One line of a contract: the metric `name` must be 0 in every row.

    says: what must hold, with the remedy, for messages. columns: which of the source's columns it is
    about ("timestamp", "value", "customer"), by blanks, if any. alarm: reported in the trusted zone, stops
    nothing.
    """

    name: str
    says: str
    columns: str = ""
    alarm: bool = False


@dataclass(frozen=True)
class Broken:
    """A rule that a row of the metrics breaks."""

    row: int
    rule: Rule


def preload() -> None:
    """Load Great Expectations now, while the caller waits for something else anyway."""
    _library()


def judge(contract: str, rules: Sequence[Rule], metrics: pl.DataFrame, *, n_rows: int) -> list[Broken]:
    """Return what is broken, row by row and in the rules' order within a row.

    metrics: a non-negative integer column for each rule, `n_rows` rows. Raises ContractError unless every
    expectation was loaded and evaluated without error and agrees with a count of the same column: a judge
    that did not look must not pass a day.
    """
    names = [rule.name for rule in rules]
    if not rules or len(set(names)) != len(names):
        raise ContractError(f"the contract {contract!r} must have rules, each once")
    absent = sorted(set(names) - set(metrics.columns))
    if absent or n_rows < 1 or metrics.height != n_rows:
        raise ContractError(
            f"the contract {contract!r} judges a frame of {n_rows} rows, at least one, with the columns "
            f"{', '.join(names)}; missing: {', '.join(absent) or 'rows'}"
        )
    judged = metrics.select(pl.col(name).cast(pl.Int64) for name in names)
    empty = [name for name in names if judged[name].null_count()]
    if empty:
        raise ContractError(f"the contract {contract!r} has no metric in some row of {', '.join(empty)}")
    passed = _validate(contract, names, judged)
    for rule in rules:
        if passed[rule.name] != bool((judged[rule.name] == 0).all()):
            raise ContractError(
                f"the contract {contract!r} was not judged: its verdict on {rule.name} is not its metric's"
            )
    failing = [rule for rule in rules if not passed[rule.name]]
    return [Broken(row, rule) for row in range(n_rows) for rule in failing if judged[rule.name][row] != 0]


def _validate(contract: str, names: Sequence[str], judged: pl.DataFrame) -> dict[str, bool]:
    """Run the suite; for each rule whether it holds."""
    library, batches = _library()
    known = library.expectations
    expectations = [known.ExpectColumnValuesToBeInSet(column=name, value_set=[0]) for name in names]
    expectations.append(known.ExpectTableColumnsToMatchSet(column_set=list(names), exact_match=True))
    expectations.append(known.ExpectTableRowCountToEqual(value=judged.height))
    suite = library.ExpectationSuite(name=contract, expectations=expectations)
    frame = {name: judged[name].to_numpy() for name in names}
    batch = batches.get_batch({"dataframe": _pandas().DataFrame(frame)})
    result = batch.validate(suite, result_format="BOOLEAN_ONLY")
    wanted = Counter((entry.expectation_type, getattr(entry, "column", None)) for entry in expectations)
    return check_evaluated(contract, wanted, result.results)


def check_evaluated(contract: str, wanted: Counter[Any], results: Sequence[Any]) -> dict[str, bool]:
    """For each column its verdict. Raises ContractError unless all that was wanted was evaluated, no more.

    The library drops an expectation that it does not know, and passes an empty suite.
    """
    seen: Counter[Any] = Counter()
    passed = {}
    for entry in results:
        configuration = entry.expectation_config
        column = configuration.kwargs.get("column")
        seen[configuration.type, column] += 1
        if _raised(entry.exception_info) or not isinstance(entry.success, bool):
            raise ContractError(
                f"the contract {contract!r} was not judged: {configuration.type} could not be evaluated"
            )
        if column is not None:
            passed[column] = entry.success
        elif not entry.success:
            raise ContractError(
                f"the contract {contract!r} was not judged: {configuration.type} failed on its metrics"
            )
    if seen != wanted:
        lost = ", ".join(sorted({kind for kind, _ in wanted - seen} | {kind for kind, _ in seen - wanted}))
        raise ContractError(f"the contract {contract!r} was not judged: not evaluated as loaded: {lost}")
    return passed


def _raised(information: Any) -> bool:
    """Exception information comes flat, or by metric."""
    if not isinstance(information, dict) or not information:
        return False
    if "raised_exception" in information:
        return bool(information["raised_exception"])
    return any(_raised(entry) for entry in information.values())


@cache
def _library() -> tuple[Any, Any]:
    """Great Expectations, imported at first use (2 s), silent and without telemetry, and where batches go."""
    os.environ["GX_ANALYTICS_ENABLED"] = "false"
    import great_expectations as library
    from tqdm.std import tqdm

    # It takes the lock of its progress bars even where they are off. The one that tqdm makes is shared by all
    # processes that are forked from here: one that is killed while it holds it would stop all others.
    tqdm.set_lock(RLock())
    context = library.get_context(mode="ephemeral")
    context.variables.progress_bars = {"globally": False}  # type: ignore[assignment]  # GX types an object where it reads a mapping
    asset = context.data_sources.add_pandas("metrics").add_dataframe_asset("metrics")
    return library, asset.add_batch_definition_whole_dataframe("all")


def _pandas() -> Any:
    import pandas

    return pandas
