"""Spends and releases, durable: exactly one release a period, and no window above its grant."""

from optstream.ledger.ledger import Ledger, open_ledger
from optstream.ledger.outline import ReleaseOutline
from optstream.ledger.records import (
    PromiseLoss,
    ReleaseRecord,
    ReleaseState,
    Reservation,
    StreamTerms,
    WindowLoss,
)
from optstream.ledger.room import Stretch
from optstream.ledger.vintages import Vintage

__all__ = [
    "Ledger",
    "PromiseLoss",
    "ReleaseOutline",
    "ReleaseRecord",
    "ReleaseState",
    "Reservation",
    "StreamTerms",
    "Stretch",
    "Vintage",
    "WindowLoss",
    "open_ledger",
]
