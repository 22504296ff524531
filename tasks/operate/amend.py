"""Declare another privacy guarantee, or show which days it would make wait, and until when."""

from datetime import datetime
from itertools import accumulate, islice, repeat

from optstream.ledger import Ledger
from optstream.stream import Hour
from tasks.config import Settings
from tasks.ledger.show import in_words
from tasks.plan.backfill import priced
from tasks.release.run import terms_of
from tasks.release.witness import bear_witness, refuse_older


def declare(settings: Settings, ledger: Ledger, reason: str, now: datetime) -> None:
    """Make the configuration's the privacy guarantee of the days to come, permanently, or LedgerError."""
    refuse_older(settings, ledger)
    ledger.amend(terms_of(settings), reason, now)
    bear_witness(settings, ledger, "the amendment is declared, permanently, and ")


def rehearse(settings: Settings, ledger: Ledger) -> list[str]:
    """Return in lines which days would wait under the new guarantee, as `reserve` would judge them."""
    stream, calendar, amended = settings.stream.name, settings.calendar, terms_of(settings).budget_model
    ledger.refuse_amendment(terms_of(settings))
    terms = ledger.terms(stream)
    changed = ", ".join(terms.differing(terms_of(settings)) if terms else ())
    lines, first = [f"{stream}: {changed} would change; nothing was declared"], None
    last = ledger.last_release(stream)
    if terms is None or last is None:
        return lines
    day = calendar.period_from_step(last.first_step)
    later = accumulate(repeat(day), lambda day, _: calendar.after(day))
    for day, plan, judged in priced(settings, ledger, islice(later, 1, None), terms.grant, amended):
        broken = next((one for one in judged if one.is_broken), None)
        if broken is not None:
            lines.append(f"{day} would wait: {in_words(broken)}")
        else:
            first = first or day
        # with the guarantee in force alone in reach, every later day is judged as this one
        if len(ledger.judge_plan(terms.grant, plan, amended)) == 1:
            break
    if first is not None:
        kind = "hour" if isinstance(first, Hour) else "day"
        lines.append(f"{first} is the first {kind} that could be released under the new guarantee")
    return lines
