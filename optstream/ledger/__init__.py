"""Spends and releases, durable: exactly one release a period, and no window above its privacy budget."""

from optstream.ledger.accounting import Stretch
from optstream.ledger.ledger import Ledger, open_ledger
from optstream.ledger.lifecycle import Vintage
from optstream.ledger.records import (
    GuaranteeLoss,
    Key,
    ReleaseEvent,
    ReleaseOutline,
    ReleaseRecord,
    ReleaseState,
    Reservation,
    StreamTerms,
    WindowLoss,
)

__all__ = [
    "GuaranteeLoss",
    "Key",
    "Ledger",
    "ReleaseEvent",
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
