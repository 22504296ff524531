"""How figures stand on a page: as many digits as are of use there. Exact ones are in the files."""

import re
from collections.abc import Sequence
from datetime import date
from fractions import Fraction
from math import ceil, floor, isfinite, log10

from optstream.stream import Hour

UNITS = {"mw": "MW", "gw": "GW", "kw": "kW", "mwh": "MWh", "kwh": "kWh", "wh": "Wh", "w": "W", "count": ""}
MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
STEPS = (1, 2, 2.5, 5, 10)
LONGEST_FRACTION = 12
LEAST_AMOUNT = 1e-9
_FRACTION = re.compile(r"-?[0-9]{1,300}(/[0-9]{1,300})?")


def unit_of(column: str) -> str:
    """The unit that a column's name ends in; "" where it ends in none that is known."""
    return UNITS.get(column.rpartition("_")[2].lower(), "")


def quantity_of(column: str) -> str:
    """The column's name without its unit, in words: "load"."""
    name, _, unit = column.rpartition("_")
    return (name if name and unit.lower() in UNITS else column).replace("_", " ")


def shown(value: float) -> str:
    """Four digits, or the whole number if it has more; a dash for what is not known."""
    if not isfinite(value):
        return "–"
    size = abs(value)
    decimals = 0 if size >= 1000 or size == 0 else max(0, min(6, 3 - floor(log10(size))))
    text = f"{value:,.{decimals}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def share_in_percent(share: float) -> str:
    """One decimal; what is not zero is never shown as zero, nor what is not all as all."""
    text = f"{100 * share:.1f} %"
    if share > 0 and text == "0.0 %":
        return "< 0.1 %"
    return "> 99.9 %" if share < 1 and text == "100.0 %" else text


def amount(value: Fraction | float) -> str:
    """An epsilon: six digits, "∞" where noise was compromised, "≈ 0" for what only rounding left."""
    try:
        if isfinite(value) and 0 < abs(float(value)) < LEAST_AMOUNT:
            return "≈ 0"
        return f"{float(value):.6g}" if isfinite(value) else ("∞" if value > 0 else "−∞")
    except OverflowError:  # a text of many digits, in a file that anyone may have written
        return "∞"


def at_most(value: Fraction | float) -> str:
    """An epsilon of a long span: four decimals, rounded up: what is lost is never understated."""
    return f"{ceil(value * 10**4) / 10**4:.4f}".rstrip("0").rstrip(".")


def decimal(value: object) -> str:
    """A fraction, or its text, in four digits; any other text as it is."""
    text = str(value)
    if not _FRACTION.fullmatch(text):
        return text
    try:
        return shown(float(Fraction(text)))
    except (ZeroDivisionError, OverflowError):
        return text


def brief(value: object) -> str:
    """A fraction, or its text, as it stands where it is short, else in four digits."""
    return str(value) if len(str(value)) <= LONGEST_FRACTION else decimal(value)


def day_in_words(day: date) -> str:
    """ "14 Feb 2016", whatever the machine's language; of an hour "14 Feb 2016, hour 13"."""
    hour = f", hour {day.clock.removeprefix('T')}" if isinstance(day, Hour) else ""
    return f"{day.day} {MONTHS[day.month - 1]} {day.year}{hour}"


def ticks(low: float, high: float, most: int = 5) -> Sequence[float]:
    """Round numbers that hold [low, high] between the first and the last; at most `most` + 1."""
    if not high > low:
        low, high = low - max(1.0, abs(low) / 2), high + max(1.0, abs(high) / 2)
    rough = (high - low) / (most - 1)
    unit = 10.0 ** floor(log10(rough))
    step = next(one * unit for one in STEPS if one * unit >= rough * (1 - 1e-9))
    start, stop = floor(low / step + 1e-9), ceil(high / step - 1e-9)
    return [number * step for number in range(start, stop + 1)]
