"""`optstream status --json`: versioned, for machines; its keys are in tasks/schemas/status.py."""

from datetime import UTC, datetime
from typing import Any

from tasks.config import Settings
from tasks.monitor.alarms import DEPENDS
from tasks.monitor.days import DayState
from tasks.monitor.facts import days_left, newest_day, replaced
from tasks.monitor.view import StreamView
from tasks.release.outcomes import amount_document, budget_document

FORMAT = "optstream.status/3"


def status_document(settings: Settings, view: StreamView) -> dict[str, Any]:
    """The calendar, the alarms, the budget by the accountant, and the last audit."""
    facts = view.facts
    tree = settings.tree_of(settings.local_day(view.at))
    return {
        "format": FORMAT,
        "stream": view.stream,
        "at": view.at.astimezone(UTC).isoformat(),
        "live": facts.live,
        "first_day": _text(facts.first),
        "last_day": _text(facts.last),
        "levels": [
            {"level": number, "nodes": len(nodes), "share": str(settings.level_shares[number])}
            for number, nodes in enumerate(tree.levels)
        ],
        "counts": view.counts,
        "days": [_day(day, view.at) for day in view.days],
        "alarms": [alarm.to_document() for alarm in view.alarms],
        "budget": {**budget_document(facts.budget), **_windows(view)},
        "last_audit": None
        if facts.audit is None
        else {
            "at": facts.audit.at.astimezone(UTC).isoformat(),
            "passed": facts.audit.passed,
            "same_configuration": facts.audit.same,
        },
        "replaced_readings": {
            "day": _text(newest_day(facts)),
            "note": DEPENDS,
            "regions": [
                {
                    "region": one.region,
                    "clamped": round(one.newest.clamped, 4),
                    "absent": round(one.newest.absent, 4),
                    "doubled": round(one.newest.doubled, 4),
                    "unusable": round(one.newest.unusable, 4),
                    "most": round(one.most, 4),
                    "most_day": one.most_day.isoformat(),
                }
                for one in replaced(facts)
            ],
        },
        "published": str(settings.published_folder),
    }


def _day(day: DayState, now: datetime) -> dict[str, Any]:
    """What is not said of a day is as on a fine day: nothing waits, nothing expires, no gap was accepted."""
    document: dict[str, Any] = {
        "date": day.day.isoformat(),
        "state": day.state.value,
        "revision": day.revision,
        "file": day.file,
        "note": day.note,
    }
    if day.waiting_for:
        document["waiting_for"] = list(day.waiting_for)
        document["levels"] = [
            {"level": level, "state": day.state.value, "nodes_without_input": count}
            for level, count in enumerate(day.levels)
        ]
    if day.raw_expires is not None:
        document["days_until_raw_expires"] = days_left(day.raw_expires, now)
    if day.accepted:
        document["accepted"] = True
    return document


def _windows(view: StreamView) -> dict[str, Any]:
    """The windows that the last release or a later one meets, and what each day could still be charged."""
    page = view.facts.page
    if page is None:
        return {"windows": [], "days": []}
    return {
        "windows": [
            {
                "first_step": one.first_step,
                "last_step": one.last_step,
                "begin_first": _text(one.begin_first),
                "begin_last": _text(one.begin_last),
                **amount_document("left", one.left),
            }
            for one in page.windows
        ],
        "days": [
            {
                "date": one.day.isoformat(),
                **amount_document("left", one.left),
                "may_be_released": one.may,
            }
            for one in page.days
        ],
    }


def _text(moment: Any) -> str | None:
    return None if moment is None else moment.isoformat()
