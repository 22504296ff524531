"""What one customer has lost over the days of a month or a year, from the ledger alone."""

from dataclasses import dataclass
from datetime import date, timedelta
from fractions import Fraction

from optstream.errors import LedgerError
from optstream.ledger import Ledger
from optstream.privacy.horizon import HorizonLoss, loss_over
from tasks.ledger_pages import calendar_of
from tasks.settings import Settings

DELTA = Fraction(1, 10**6)


@dataclass(frozen=True)
class Horizon:
    """The days from first to last, and what all readings of one customer on them lose together.

    loss: None where noise was compromised: then it is all.
    """

    grant: str
    first: date
    last: date
    n_days: int
    delta: Fraction
    loss: HorizonLoss | None


def read_horizon(
    settings: Settings, ledger: Ledger, n_days: int, delta: Fraction = DELTA, last: date | None = None
) -> Horizon:
    """Compose what all streams of the configured one's grant were charged on `n_days` days up to `last`.

    last: by default the day of the newest release. A void day counts as charged. Raises LedgerError if the
    stream has no release, ParameterError for a delta outside its range. Reserves and spends nothing.
    """
    terms = ledger.terms(settings.stream.name)
    calendar = None if terms is None else calendar_of(terms)
    if terms is None or calendar is None:
        raise LedgerError(
            f"the ledger does not know the stream {settings.stream.name}, or in which days it counts: "
            "the first `optstream run` enrols it"
        )
    if last is None:
        members = [settings.stream.name, *(one.stream for one in ledger.siblings(settings.stream.name))]
        newest = [release.first_step for one in members if (release := ledger.last_release(one)) is not None]
        if not newest:
            raise LedgerError(f"{settings.stream.name} has no release yet: nothing was lost")
        last = calendar.local_time(max(newest)).date()
    first = last - timedelta(days=n_days - 1)
    steps = range(calendar.first_step(first), calendar.first_step(last + timedelta(days=1)))
    spent = ledger.spent_over(terms.grant, steps)
    loss = None
    if not spent.compromised:
        loss = loss_over(spent.spends, delta, adaptive=spent.adaptive, window=spent.window)
    return Horizon(terms.grant, first, last, n_days, delta, loss)
