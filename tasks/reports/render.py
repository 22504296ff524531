"""From frozen values to the pages. Every text is escaped by the templates.

Each page has one script, which its content security policy names by its hash, and fetches nothing. The same
values give the same bytes: no clock, no host, no language of the machine.
"""

from collections import Counter
from collections.abc import Callable
from functools import cache, partial
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from optstream.catalogue import digest_of
from optstream.catalogue.about import called
from optstream.catalogue.index import day_entries
from optstream.catalogue.page import MARKER
from tasks.monitor.alarms import DEPENDS, alarm_groups
from tasks.monitor.days import by_day, day_or_hour
from tasks.monitor.facts import MOST_SHOWN, SUSPECT_DAYS, newest_day, replaced
from tasks.reports import numbers
from tasks.reports.charts import chart_of
from tasks.reports.coverage import measured_coverage
from tasks.reports.drawing.calendar import (
    Mark,
    counted,
    level_rows,
    marks_of_days,
    marks_of_facts,
    month_spans,
    stretches,
    used_states,
    years_of,
)
from tasks.reports.drawing.figures import Z, figures_of
from tasks.reports.facts import RECENT_DAYS, PublicFacts
from tasks.reports.markup import with_code
from tasks.reports.operator import OperatorFacts
from tasks.reports.snippets import snippets

STRETCHES_SHOWN = 40
LOST_SHOWN = 10


def public_page(facts: PublicFacts) -> bytes:
    """Return the page of the published folder, HTML as UTF-8. Pure: the same facts give the same bytes."""
    values = _values(facts, marks_of_facts(facts), "", None)
    days = day_entries(facts.catalogue.entries)
    changed = [one for one in reversed(days) if one.revision or one.vintage or one.withdrawn]
    values |= {
        "citation": _citation(facts),
        "changed": changed[:STRETCHES_SHOWN],
        "n_changed": len(changed),
    }
    return _environment().get_template("public.html.jinja").render(values).encode()


def trusted_page(facts: PublicFacts, operator: OperatorFacts) -> bytes:
    """Return the same page with what only operators may know: calendar, alarms, budget, charges."""
    marks = marks_of_days(
        by_day(operator.view.days), partial(called, facts=facts.about.nodes)
    ) or marks_of_facts(facts)
    values = _values(facts, marks, operator.links, operator)
    return _environment().get_template("trusted.html.jinja").render(values).encode()


def _values(
    facts: PublicFacts,
    marks: tuple[Mark, ...],
    links: str | None,
    operator: OperatorFacts | None,
) -> dict[str, Any]:
    """What both templates set in."""
    value = facts.catalogue.value_column
    unit, quantity = numbers.unit_of(value), numbers.quantity_of(value)
    listed, last = facts.listed, marks[-RECENT_DAYS:]
    by_level = [n for _, n in sorted(Counter(node.level for node in facts.nodes).items())]
    found = stretches(marks)
    return {
        "facts": facts,
        "called": partial(called, facts=facts.about.nodes),
        "operator": operator,
        "links": links,
        "digest": digest_of(facts.catalogue),
        "marker": MARKER,
        "value": value,
        "unit": unit,
        "quantity": quantity,
        "listed": listed,
        "newest": next((one for one in reversed(listed) if one.period not in facts.lost), None),
        "lost_shown": LOST_SHOWN,
        "replaced": () if operator is None else replaced(operator.view.facts),
        "replaced_day": None if operator is None else newest_day(operator.view.facts),
        "most_replaced": MOST_SHOWN,
        "suspect_days": SUSPECT_DAYS,
        "depends": DEPENDS,
        "recent_entries": tuple(reversed(listed[-RECENT_DAYS:])),
        "years": years_of(marks),
        "counts": counted(marks),
        "legend": used_states(marks),
        "last": last,
        "months": list(month_spans(last)),
        "level_rows": level_rows(last, by_level if operator is None else operator.nodes, facts.margin),
        "by_level": by_level,
        "shares": facts.level_shares,
        "stretches": found[:STRETCHES_SHOWN],
        "n_stretches": len(found),
        "figures": figures_of(facts),
        "chart": chart_of(facts, unit, quantity),
        "z": Z,
        "coverage": measured_coverage(),
        "snippets": snippets(value, facts.nodes[0].name) if facts.nodes else (),
        "document": None if facts.statement is None else facts.statement.to_json(),
    }


@cache
def _environment() -> Environment:
    return templates_of(
        "tasks.reports",
        at_most=numbers.at_most,
        brief=numbers.brief,
        decimal=numbers.decimal,
        percent=lambda share: f"{100 * share:.0f} %",
        in_words=_in_words,
        with_code=with_code,
        grouped=lambda alarms: alarm_groups(alarms, {}),
    )


def templates_of(package: str, **filters: Callable[..., Any]) -> Environment:
    """Return a package's templates: every text is escaped, and a name that is not given is an error.

    filters: of its own, beside those for days and figures.
    """
    environment = Environment(
        loader=PackageLoader(package, "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    usual = {
        "day": numbers.day_in_words,
        "day_or_hour": day_or_hour,
        "amount": numbers.amount,
        "shown": numbers.shown,
        "share": numbers.share_in_percent,
    }
    environment.filters |= usual | filters
    return environment


def _in_words(value: Any) -> str:
    """A parameter of the mechanism as people read it."""
    if isinstance(value, dict):
        return "; ".join(f"{name}: {_in_words(one)}" for name, one in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(_in_words(one) for one in value) or "none"
    return numbers.brief(value) if isinstance(value, str) else str(value)


def _citation(facts: PublicFacts) -> str:
    """How the published days are cited; "" where there is none."""
    listed = facts.listed
    if not listed:
        return ""
    span = f"{numbers.day_in_words(listed[0].period)} to {numbers.day_in_words(listed[-1].period)}"
    who = f"{facts.about.publisher}: " if facts.about.publisher else ""
    version = digest_of(facts.catalogue)[:16]
    return f"{who}{facts.catalogue.stream}, differentially private series, {span}, version {version}."
