"""Whether there is a ledger yet: looking at one must not make one."""

from contextlib import AbstractContextManager, closing, nullcontext

from optstream.errors import LedgerError
from optstream.ledger import Ledger, open_ledger
from tasks.config import Settings
from tasks.config.fields import ledger_database


def find_ledger(settings: Settings) -> Ledger | None:
    """Open the configured ledger; None where its SQLite file is not there. Raises LedgerError."""
    file = ledger_database(settings.ledger_url)
    if file is not None and not file.exists():
        return None
    return open_ledger(settings.ledger_url, database_time=True)


def ledger_if_any(settings: Settings) -> AbstractContextManager[Ledger | None]:
    """Give what `find_ledger` finds, and close it after the block."""
    ledger = find_ledger(settings)
    return nullcontext() if ledger is None else closing(ledger)


def need_ledger(settings: Settings) -> Ledger:
    """As `find_ledger`. Raises LedgerError where there is none."""
    ledger = find_ledger(settings)
    if ledger is None:
        raise LedgerError(
            "there is no ledger where [ledger] url points; the first `optstream run` makes it, and if there "
            "was one, bring it back before anything is released"
        )
    return ledger
