"""From frozen values to one self-contained page: nothing is fetched when it is read, and nothing runs in it.

Every text is escaped by the templates; the page forbids itself, by its content security policy, to fetch
anything at all. The same values give the same bytes: no clock, no host, no language of the machine.
"""

from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from optstream.catalogue import digest_of
from optstream.catalogue.page import MARKER
from tasks.monitoring.alarm_groups import alarm_groups
from tasks.monitoring.alarms import DEPENDS
from tasks.monitoring.deadlines import days_left
from tasks.monitoring.facts import SUSPECT_DAYS
from tasks.monitoring.replaced import newest_day, replaced
from tasks.reports import numbers
from tasks.reports.calendar import (
    Mark,
    counted,
    last_marks,
    level_rows,
    marks_of_days,
    marks_of_facts,
    month_spans,
    stretches,
    used_states,
    years_of,
)
from tasks.reports.coverage import measured_coverage
from tasks.reports.drawing import HEIGHT
from tasks.reports.facts import RECENT_DAYS, PublicFacts
from tasks.reports.figures import Z, figures_of
from tasks.reports.markup import with_code
from tasks.reports.operator import OperatorFacts
from tasks.reports.snippets import snippets

STRETCHES_SHOWN = 40
LOST_SHOWN = 10


def public_page(facts: PublicFacts) -> bytes:
    """Return the page of the published folder. Pure: a function of what is published.

    Args:
        facts: Of the published folder.

    Returns:
        HTML as UTF-8; the same facts give the same bytes.
    """
    return _page(facts, marks_of_facts(facts), "", None)


def trusted_page(facts: PublicFacts, operator: OperatorFacts) -> bytes:
    """Return the same page with what only operators may know: calendar, alarms, budget, charges.

    Args:
        facts: Of the published folder.
        operator: Of the trusted zone.

    Returns:
        HTML as UTF-8.
    """
    marks = marks_of_days(operator.view.days) or marks_of_facts(facts)
    return _page(facts, marks, operator.links, operator)


def _page(
    facts: PublicFacts, marks: tuple[Mark, ...], links: str | None, operator: OperatorFacts | None
) -> bytes:
    value = facts.catalogue.value_column
    unit, quantity = numbers.unit_of(value), numbers.quantity_of(value)
    listed, last = facts.listed, last_marks(marks)
    by_level = [sum(node.level == level for node in facts.nodes) for level in _levels(facts)]
    found = stretches(marks)
    text = (
        _environment()
        .get_template("page.html.jinja")
        .render(
            facts=facts,
            operator=operator,
            links=links,
            digest=digest_of(facts.catalogue),
            marker=MARKER,
            value=value,
            unit=unit,
            quantity=quantity,
            listed=listed,
            newest=next((one for one in reversed(listed) if one.period not in facts.lost), None),
            lost_shown=LOST_SHOWN,
            replaced=() if operator is None else replaced(operator.view.facts),
            replaced_day=None if operator is None else newest_day(operator.view.facts),
            suspect_days=SUSPECT_DAYS,
            depends=DEPENDS,
            recent_entries=tuple(reversed(listed[-RECENT_DAYS:])),
            years=years_of(marks),
            counts=counted(marks),
            legend=used_states(marks),
            last=last,
            months=list(month_spans(last)),
            level_rows=level_rows(last, by_level if operator is None else operator.nodes),
            by_level=by_level,
            shares=facts.level_shares if operator is None else operator.shares,
            stretches=found[:STRETCHES_SHOWN],
            n_stretches=len(found),
            figures=figures_of(facts, unit, quantity),
            height=HEIGHT,
            z=Z,
            coverage=measured_coverage(),
            snippets=snippets(value, facts.nodes[0].name) if facts.nodes else (),
            document=None if facts.statement is None else facts.statement.to_document(),
        )
    )
    return text.encode()


def _levels(facts: PublicFacts) -> range:
    return range(max((node.level for node in facts.nodes), default=-1) + 1)


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("tasks.reports", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "day": numbers.day_in_words,
        "amount": numbers.amount,
        "at_most": numbers.at_most,
        "shown": numbers.shown,
        "percent": lambda share: f"{100 * share:.0f} %",
        "share": lambda share: f"{100 * share:.1f} %",
        "in_words": _in_words,
        "days_left": days_left,
        "with_code": with_code,
        "grouped": lambda alarms: alarm_groups(alarms, {}),
    }
    return environment


def _in_words(value: Any) -> str:
    """A parameter of the mechanism as people read it."""
    if isinstance(value, dict):
        return "; ".join(f"{name}: {_in_words(one)}" for name, one in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(_in_words(one) for one in value) or "none"
    return str(value)
