"""What each window is charged, as a line under its limit."""

from collections.abc import Sequence
from datetime import datetime
from fractions import Fraction
from typing import Any

from tasks.ledger.show import BudgetSummary, WindowHeadroom
from tasks.reports.numbers import amount
from tasks.ui.views.guarantees import GuaranteeRow

WIDE, HIGH = 1000, 200


def window_plot(page: BudgetSummary | None, guarantees: Sequence[GuaranteeRow] = ()) -> dict[str, Any] | None:
    """Return a stair of the windows that the last release or a later one meets; None without any. Pure.

    By name, for the template: paths and heights in a box of WIDE by HIGH, and words. page: None before the
    first release. guarantees: those that days were planned under.
    """
    if page is None or not page.windows:
        return None
    grant, windows = page.terms.model.budget, page.windows
    charged = [_charged(grant, one) for one in windows]
    begin, end = windows[0].first_step, windows[-1].last_step + 1
    kept = [(one.limit, _inside(one.steps, begin, end)) for one in guarantees if one.steps is not None]
    kept = [(limit, steps) for limit, steps in kept if steps]
    top = max(1.1 * max(float(grant), *(limit for limit, _ in kept), 0.0), *charged)
    return {
        "line": _stair(windows, charged, begin, end, top),
        "limit": _height(float(grant), top),
        "limit_words": amount(grant),
        "fullest": _height(max(charged), top),
        "fullest_words": amount(max(charged)),
        # what windows may lose that touch days of an earlier guarantee, which they keep
        "earlier": "".join(
            f"M{_place(steps.start, begin, end)} {_height(limit, top)}H{_place(steps.stop, begin, end)}"
            for limit, steps in kept
        ),
        "first": _begin(windows[0].begin_first),
        "last": _begin(windows[-1].begin_last),
        "words": f"the fullest of {len(windows)} groups of windows is charged {amount(max(charged))} of "
        f"{amount(grant)}",
    }


def _begin(at: datetime | None) -> str:
    """When a window begins; "" where nobody knows."""
    return "" if at is None else f"{at:%Y-%m-%d %H:%M %Z}"


def _inside(steps: range, begin: int, end: int) -> range:
    return range(max(steps.start, begin), min(steps.stop, end))


def _place(step: int, begin: int, end: int) -> int:
    return round(WIDE * (step - begin) / (end - begin))


def _charged(grant: Fraction, one: WindowHeadroom) -> float:
    """At most twice the limit: infinite where noise was compromised."""
    return min(float(grant - one.left), 2 * float(grant))


def _height(value: float, top: float) -> int:
    return round(HIGH * (1 - value / top))


def _stair(
    windows: Sequence[WindowHeadroom], charged: Sequence[float], begin: int, end: int, top: float
) -> str:
    parts: list[str] = []
    for one, value in zip(windows, charged, strict=True):
        left, right = (_place(step, begin, end) for step in (one.first_step, one.last_step + 1))
        parts.append(f"{'L' if parts else 'M'}{left} {_height(value, top)}H{right}")
    return "".join(parts)
