"""Spends and releases, durable: exactly one release a period, and no window above its grant."""

from optstream.ledger.ledger import Ledger, open_ledger
from optstream.ledger.records import ReleaseRecord, ReleaseState, Reservation, StreamTerms

__all__ = ["Ledger", "ReleaseRecord", "ReleaseState", "Reservation", "StreamTerms", "open_ledger"]
