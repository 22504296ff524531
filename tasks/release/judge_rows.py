"""Holding the rows that are to be published against their contract, before they are staged.

Great Expectations takes seconds to import: the steps load this file where there is something to judge.
"""

from collections.abc import Sequence

import polars as pl

from data_contracts.judge import judge as judge_metrics
from data_contracts.release import CONTRACT, refusals, release_metrics
from optstream.errors import ContractError
from tasks.release.run import Run
from tasks.release.stages import Estimated
from tasks.trusted.judging import judge_by_users, keep
from tasks.trusted.verdicts import RELEASE


def judge(run: Run, days: Sequence[Estimated]) -> list[ContractError | None]:
    """Return each day's error, or None where it may be published; keep the results in the trusted zone."""
    settings, now = run.settings, run.clock()
    metrics = pl.concat(
        release_metrics(
            day.day,
            day.rows,
            settings.tree_of(day.day),
            settings.features(day.day),
            value_column=settings.published.value,
            resolution=settings.privacy.resolution,
            lower_bound=settings.privacy.lower_bound,
            n_steps=settings.calendar.n_steps(day.day),
            statement=day.statement.to_json(),
            step_of_day=settings.calendar.step_of_day(day.day),
        )
        for day in days
    )
    result, broken = judge_metrics(CONTRACT, metrics)
    errors = refusals(broken)
    stopped = {day: str(error) for day, error in errors.items()}
    alarms = judge_by_users(settings, RELEASE, metrics, now)
    keep(settings, result, RELEASE, [day.day for day in days], now, stopped=stopped, alarms=alarms)
    return [errors.get(day.day.isoformat()) for day in days]
