"""What a backfill would charge, as the ledger would judge it, reserving nothing; and documents of it."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from fractions import Fraction
from typing import Any

from optstream.errors import LedgerError
from optstream.ledger import GuaranteeLoss, Ledger, WindowLoss
from optstream.privacy import Spend, worst_window
from tasks.config import Settings
from tasks.ledger.show import refused_changes
from tasks.planning.backfill_plan import BackfillPlan
from tasks.release.build_mechanism import Mechanism, mechanism_for
from tasks.release.day import Ended
from tasks.release.records.outcomes import Budget, amount_document, outcomes_document


@dataclass(frozen=True)
class BackfillCost:
    """The worst window of those that the days touch, before and after, infinite where noise was compromised.
    refused: the days that the ledger would refuse, rising.
    """

    grant: Fraction
    before: Fraction | float
    after: Fraction | float
    refused: tuple[date, ...]


def cost_of(settings: Settings, ledger: Ledger, days: Sequence[date]) -> BackfillCost:
    """Plan the days in order, each beside what was charged and what the days before it would be.

    A plan is the most that a day may cost; once drawn it may be charged less. days: rising. Raises
    LedgerError where the ledger's guarantee is not the configuration's, for then a run is refused.
    """
    if changed := refused_changes(settings, ledger):
        raise LedgerError(
            f"the ledger has stream {settings.stream.name!r} or its privacy budget under another "
            f"{', '.join(changed)}: restore the configuration, or declare the change with `optstream ledger "
            "amend`"
        )
    grant, model, calendar = settings.privacy.population, settings.model, settings.calendar
    is_known = any(terms.grant == grant for terms in map(ledger.terms, ledger.streams()) if terms)

    def judged(plan: Sequence[Spend]) -> list[GuaranteeLoss]:
        if is_known:
            return ledger.judge_plan(grant, plan)
        cost = worst_window(plan, model.window_length, model.windows)
        return [GuaranteeLoss(0, model, WindowLoss(cost.epsilon, cost.first_step))]

    before: Fraction | float = Fraction(0)
    if is_known and days:
        first, last = calendar.first_step(days[0]), calendar.first_step(days[-1]) + calendar.n_steps(days[-1])
        before = ledger.window_spent(grant, first, last - first).epsilon
    after, refused, recent = before, [], list[Spend]()
    for day in days:
        start = calendar.first_step(day)
        recent = [spend for spend in recent if spend.first_step + spend.n_steps > start - model.window_length]
        plan = _plan(settings, ledger, day, recent)
        losses = judged([*recent, *plan])
        if any(one.is_broken for one in losses):
            refused.append(day)
        else:
            after, recent = max(after, losses[0].loss.epsilon), [*recent, *plan]
    return BackfillCost(model.budget, before, after, tuple(refused))


def _plan(settings: Settings, ledger: Ledger, day: date, recent: Sequence[Spend]) -> tuple[Spend, ...]:
    calendar = settings.calendar
    first_step, n_steps = calendar.first_step(day), calendar.n_steps(day)
    mechanism: Mechanism = mechanism_for(settings, day)
    state = None
    if mechanism.reads_spends:
        near = ledger.charged_near(settings.stream.name, day.isoformat(), 0, first_step, n_steps)
        state = mechanism.recall([*near, *recent])
    return mechanism.plan(n_steps, first_step, state)


def plan_document(plan: BackfillPlan, cost: BackfillCost, settings: Settings) -> dict[str, Any]:
    """What `optstream backfill --dry-run --json` prints: versioned, for machines, free of any reading."""
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
