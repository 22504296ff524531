"""Declare another privacy guarantee, or show which days it would make wait, and until when."""

from dataclasses import dataclass
from datetime import date, datetime
from itertools import accumulate, islice, repeat

from optstream.ledger import GuaranteeLoss, Ledger
from optstream.stream import Hour
from tasks.config import Settings
from tasks.ledger.show import guarantee_changed, in_words
from tasks.plan.backfill import priced
from tasks.release.run import terms_of
from tasks.release.witness import bear_witness, refuse_older


def declare(settings: Settings, ledger: Ledger, reason: str, now: datetime) -> None:
    """Make the configuration's the privacy guarantee of the days to come, permanently, or LedgerError."""
    refuse_older(settings, ledger)
    ledger.amend(terms_of(settings), reason, now)
    bear_witness(settings, ledger, "the amendment is declared, permanently, and ")


@dataclass(frozen=True)
class Waits:
    """What an amendment would change of the guarantee, the days it refuses, and the first it does not."""

    changed: tuple[str, ...]
    refused: tuple[tuple[date, GuaranteeLoss], ...]
    first: date | None

    def lines(self, stream: str) -> list[str]:
        """What a terminal shows."""
        lines = [f"{stream}: {', '.join(self.changed)} would change; nothing was declared"]
        lines += [f"{day} would wait: {in_words(broken)}" for day, broken in self.refused]
        if self.first is not None:
            kind = "hour" if isinstance(self.first, Hour) else "day"
            lines.append(f"{self.first} is the first {kind} that could be released under the new guarantee")
        return lines


def rehearse(settings: Settings, ledger: Ledger) -> Waits:
    """Judge the days after the last release as `reserve` would under the new guarantee; declares nothing."""
    stream, calendar, amended = settings.stream.name, settings.calendar, terms_of(settings).budget_model
    ledger.refuse_amendment(terms_of(settings))
    terms, changed = ledger.terms(stream), guarantee_changed(settings, ledger)
    last = ledger.last_release(stream)
    if terms is None or last is None:
        return Waits(tuple(changed), (), None)
    refused, first = list[tuple[date, GuaranteeLoss]](), None
    day = calendar.period_from_step(last.first_step)
    later = accumulate(repeat(day), lambda day, _: calendar.after(day))
    for day, plan, judged in priced(settings, ledger, islice(later, 1, None), terms.grant, amended):
        broken = next((one for one in judged if one.is_broken), None)
        if broken is not None:
            refused.append((day, broken))
        else:
            first = first or day
        # with the guarantee in force alone in reach, every later day is judged as this one
        if len(ledger.judge_plan(terms.grant, plan, amended)) == 1:
            break
    return Waits(tuple(changed), tuple(refused), first)
