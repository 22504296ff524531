"""What one customer has lost over the days of a month or a year, from the ledger alone."""

from dataclasses import dataclass
from datetime import date, timedelta
from fractions import Fraction

from optstream.errors import LedgerError
from optstream.ledger import Ledger
from optstream.privacy.composition import Compose, composed
from optstream.privacy.horizon import HorizonLoss, loss_over
from optstream.stream import day_of
from tasks.config import Settings
from tasks.ledger.show_pages import calendar_of
from tasks.storage.kept_figures import kept_composition

DELTA = Fraction(1, 10**6)
HORIZONS = (30, 365)
"""Days over which a customer's whole loss is told where nobody asked for another number."""


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


def read_horizons(settings: Settings, ledger: Ledger) -> tuple[Horizon, ...]:
    """Return what the last 30 and 365 days lost, up to the newest release; () before the first.

    What was composed before is taken from a file: a full year of the same plan is the same sum each night.
    """
    try:
        return tuple(
            read_horizon(settings, ledger, n_days, compose=kept_composition(settings.composed_file))
            for n_days in HORIZONS
        )
    except LedgerError:
        return ()


def read_horizon(
    settings: Settings,
    ledger: Ledger,
    n_days: int,
    delta: Fraction = DELTA,
    last: date | None = None,
    compose: Compose = composed,
) -> Horizon:
    """Compose what all streams of the configured privacy budget were charged on `n_days` days up to `last`.

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
        last = day_of(calendar.period_from_step(max(newest)))
    first = last - timedelta(days=n_days - 1)
    steps = calendar.steps_over(first, last)
    spent = ledger.spent_over(terms.grant, steps)
    loss = None
    if not spent.compromised:
        loss = loss_over(spent.spends, delta, adaptive=spent.adaptive, window=spent.window, compose=compose)
    return Horizon(terms.grant, first, last, n_days, delta, loss)
