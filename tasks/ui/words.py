"""How times and spans stand on the operators' pages."""

from datetime import UTC, datetime, timedelta

from markupsafe import Markup

from tasks.monitor.facts import Suspect
from tasks.monitor.view import Alarm
from tasks.reports.markup import with_code
from tasks.reports.numbers import share_in_percent

UNITS = ((86400, "d"), (3600, "h"), (60, "min"), (1, "s"))


def span_in_words(span: timedelta) -> str:
    """Return "3 d", "5 h", "12 min" or "40 s": whole units of the largest that fits."""
    seconds = max(0, int(span.total_seconds()))
    for size, unit in UNITS:
        if seconds >= size:
            return f"{seconds // size} {unit}"
    return "0 s"


def size_in_words(n_bytes: int) -> str:
    """Return "812 kB" or "1.2 GB": two digits at least, in powers of a thousand."""
    size = float(n_bytes)
    units = ["GB", "MB", "kB", "B"]
    while size >= 1000 and len(units) > 1:
        size /= 1000
        units.pop()
    digits = 1 if size < 10 and len(units) < 4 else 0
    return f"{size:.{digits}f} {units[-1]}"


def replaced_in_words(one: Suspect) -> str:
    """Return "3.1 % absent, 50.0 % doubled", or "none"."""
    told = [f"{share_in_percent(share)} {what}" for what, share in one.shares if share]
    return ", ".join(told) or "none"


def moment_in_words(at: datetime) -> str:
    """Return "2016-02-10 06:00 UTC"."""
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M UTC}"


def second_in_words(at: datetime) -> str:
    """Return "2016-02-10 06:00:07 UTC"."""
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M:%S UTC}"


def what_to_do(alarm: Alarm) -> Markup:
    """Return an alarm's words as HTML, without the day that they begin with: it stands beside them."""
    return with_code(alarm.words.removeprefix(f"{alarm.day}: "))
