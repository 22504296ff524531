"""How times and spans stand on the operators' pages."""

from datetime import UTC, datetime, timedelta

UNITS = ((86400, "d"), (3600, "h"), (60, "min"), (1, "s"))


def span_in_words(span: timedelta) -> str:
    """Return "3 d", "5 h", "12 min" or "40 s": whole units of the largest that fits."""
    seconds = max(0, int(span.total_seconds()))
    for size, unit in UNITS:
        if seconds >= size:
            return f"{seconds // size} {unit}"
    return "0 s"


def moment_in_words(at: datetime) -> str:
    """Return "2016-02-10 06:00 UTC"."""
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M UTC}"
