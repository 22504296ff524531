"""What each window is charged, as a line under its limit."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from fractions import Fraction

from tasks.ledger.show_pages import GrantPage, WindowHeadroom
from tasks.reports.numbers import amount

WIDE, HIGH = 1000, 200


@dataclass(frozen=True)
class WindowPlot:
    """A stair of windows by their first step, in a box of WIDE by HIGH.

    Attributes:
        line: SVG path of what they are charged.
        limit: Height of what any may lose.
        first: When the first of them begins; "" where nobody knows.
        last: When the last of them begins.
        words: The same for who cannot see it.
        limit_words: What any window may lose.
        top_words: What the upper edge stands for.
    """

    line: str
    limit: int
    first: str
    last: str
    words: str
    limit_words: str
    top_words: str


def window_plot(page: GrantPage | None) -> WindowPlot | None:
    """Return the plot of the windows that the last release or a later one meets; None without any. Pure."""
    if page is None or not page.windows:
        return None
    grant, windows = page.terms.model.epsilon, page.windows
    charged = [_charged(grant, one) for one in windows]
    top = max(1.1 * float(grant), *charged)
    begin, end = windows[0].first_step, windows[-1].last_step + 1
    return WindowPlot(
        _stair(windows, charged, begin, end, top),
        _height(float(grant), top),
        _begin(windows[0].begin_first),
        _begin(windows[-1].begin_last),
        f"the fullest of {len(windows)} groups of windows is charged {amount(max(charged))} of "
        f"{amount(grant)}",
        amount(grant),
        amount(top),
    )


def _begin(at: datetime | None) -> str:
    return "" if at is None else f"{at:%Y-%m-%d %H:%M}"


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
        left, right = (
            round(WIDE * (step - begin) / (end - begin)) for step in (one.first_step, one.last_step + 1)
        )
        parts.append(f"{'L' if parts else 'M'}{left} {_height(value, top)}H{right}")
    return "".join(parts)
