"""The privacy guarantees that days were planned under: each is kept for them, also after another."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date

from optstream.ledger import ReleaseOutline
from optstream.privacy import PrivacyModel
from tasks.reports.numbers import amount, decimal


@dataclass(frozen=True)
class GuaranteeRow:
    """A guarantee. days: those planned under it; "" where none is yet. now: whether new days are.

    steps: of the windows that touch its days, for the picture of windows, whose limit there is `limit`; None
    for the one of now, and where it is counted otherwise: by another window, alpha or unit.
    """

    number: int
    epsilon: str
    window: str
    alpha: str
    days: str
    now: bool
    steps: range | None = None
    limit: float = 0.0


def guarantee_rows(
    guarantees: Mapping[int, PrivacyModel], releases: Mapping[date, ReleaseOutline]
) -> tuple[GuaranteeRow, ...]:
    """Return a row for each guarantee in force for some day, the newest first, and for the one of now. Pure.

    guarantees: by number; the highest is the one of now. releases: of each day the newest.
    """
    return tuple(_rows(guarantees, releases))


def _rows(
    guarantees: Mapping[int, PrivacyModel], releases: Mapping[date, ReleaseOutline]
) -> Iterator[GuaranteeRow]:
    newest = max(guarantees, default=0)
    for number, model in sorted(guarantees.items(), reverse=True):
        own = {day: one for day, one in releases.items() if one.amendment == number}
        if not own and number != newest:
            continue
        steps = None
        if own and number != newest and _counted(model) == _counted(guarantees[newest]):
            first, end = min(one.first_step for one in own.values()), max(one.end for one in own.values())
            steps = range(first - model.window_length + 1, end)
        span = f"{min(own)} to {max(own)}" if own else ""
        window = f"{model.window_length} step{'' if model.window_length == 1 else 's'}"
        yield GuaranteeRow(
            number, _epsilon(model), window, decimal(model.alpha), span, number == newest, steps,
            float(model.budget),
        )  # fmt: skip


def _epsilon(model: PrivacyModel) -> str:
    """Epsilon, and what else is promised beside it."""
    return f"{amount(model.epsilon)}{f' at delta {float(model.delta):g}' if model.delta else ''}"


def _counted(model: PrivacyModel) -> tuple[object, ...]:
    """What spends are counted by."""
    return model.window_length, model.alpha, model.unit, model.leaves_per_step
