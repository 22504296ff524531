"""The flow that the schedule runs: a backfill of the newest days, most nights of one. Wiring only."""

from contextlib import closing
from datetime import UTC, datetime
from typing import Any

from prefect import flow
from prefect.states import Completed

from flows.orchestration.backfill import backfill
from flows.orchestration.configuration import configured
from flows.orchestration.heartbeats import tell_over
from flows.orchestration.run_names import night_name
from optstream.ledger import open_ledger
from tasks.operations.permissions import check_trusted
from tasks.planning import plan_backfill
from tasks.planning.nightly import UnreleasedError, days_of_night, night_of
from tasks.release.run import terms_of


@flow(
    name="optstream-nightly",
    flow_run_name=night_name,
    persist_result=False,
    retries=0,
    validate_parameters=False,
    on_completion=[tell_over],
    on_failure=[tell_over],
)
def nightly(config: str) -> Any:
    """Look once: release what is complete of the newest days; what is not is for the next look.

    Its parameter is a path: Prefect stores it in clear. Ends as a state whose message says what was done.
    Raises UnreleasedError if a day failed, or is late: nothing of it is published, and no part of it either.
    """
    with configured(config) as settings:
        check_trusted(settings)
        with closing(open_ledger(settings.ledger_url)) as ledger:
            ledger.enrol(terms_of(settings), datetime.now(UTC))
            days = days_of_night(settings, ledger, datetime.now(UTC))
            plan = plan_backfill(settings, ledger, days) if days else None
        ended = []
        if plan and plan.to_run:
            given_up = [
                str(period)
                for day in settings.watching.accepted_gaps
                for period in settings.calendar.periods_of(day)
            ]
            ended = backfill(str(settings.file), str(plan.first), str(plan.last), without=given_up)
        night = night_of(settings, ended, plan.absent if plan else (), datetime.now(UTC))
    if night.left:
        raise UnreleasedError("; ".join(night.left))
    return Completed(message=night.words)
