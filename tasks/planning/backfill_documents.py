"""What `optstream backfill --json` prints: versioned, for machines, free of any reading."""

from collections.abc import Iterable, Sequence
from datetime import date
from typing import Any

from tasks.config import Settings
from tasks.planning.backfill_cost import BackfillCost
from tasks.planning.backfill_plan import BackfillPlan
from tasks.release.day import Ended
from tasks.release.records.outcomes import Budget, amount_document, outcomes_document


def plan_document(plan: BackfillPlan, cost: BackfillCost, settings: Settings) -> dict[str, Any]:
    """Of `--dry-run`."""
    return {
        "format": "optstream.backfill-plan/1",
        "stream": settings.stream.name,
        **_span(plan),
        "missing": _days(plan.missing),
        "begun": _days(plan.begun),
        "would_be_refused": _days(cost.refused),
        "window_steps": settings.privacy.window,
        **amount_document("grant", cost.grant),
        **amount_document("spent", cost.before),
        **amount_document("would_be_spent", cost.after),
    }


def backfill_document(
    ended: Sequence[Ended], plan: BackfillPlan, settings: Settings, budget: Budget
) -> dict[str, Any]:
    """As `optstream run --json`, with the span and what was left out of it."""
    return {**outcomes_document(ended, settings, budget), "format": "optstream.backfill/1", **_span(plan)}


def _span(plan: BackfillPlan) -> dict[str, Any]:
    return {
        "from": plan.first.isoformat(),
        "to": plan.last.isoformat(),
        "over": dict(plan.over),
        "without_dump": _days(plan.absent),
    }


def _days(days: Iterable[date]) -> list[str]:
    return [day.isoformat() for day in days]
