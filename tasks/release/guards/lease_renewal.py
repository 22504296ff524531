"""Hold a day while it is drawn: its lease is renewed beside the draw, so that none ends by lasting long."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from optstream.errors import LedgerError, LedgerUnavailableError
from optstream.ledger import Reservation
from tasks.release.run import Run


@contextmanager
def held(run: Run, reservation: Reservation) -> Iterator[None]:
    """Renew the lease three times in its length until the block ends; a database that is away is asked again.

    Were a draw given up because it lasted longer than its lease, those that are quick would be more likely to
    be published than those that are slow (docs/privacy.md, section 5).
    """
    over = threading.Event()

    def renew() -> None:
        while not over.wait(run.lease.total_seconds() / 3):
            try:
                run.ledger.renew(reservation, run.clock(), run.lease)
            except LedgerUnavailableError:
                continue
            except LedgerError:  # taken over or over: whoever draws is told when it records
                return

    beside = threading.Thread(target=renew, name="lease", daemon=True)
    beside.start()
    try:
        yield
    finally:
        over.set()
        beside.join()
