"""Streams whose privacy guarantee changed: a real ledger decides which days are released on either side of
it.

Day 0 is released under a first guarantee, which an amendment then weakens. Neighbours of the first guarantee
differ in a window across the border: that guarantee is held to its epsilon there (Lemma 12, docs/privacy.md).
"""

from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from numpy.typing import NDArray

from optstream.errors import BudgetError
from optstream.ledger import Ledger, StreamTerms, open_ledger
from optstream.mechanisms import Laplace
from optstream.privacy import PrivacyModel
from optstream.stream import PrivatePeriod
from studies.audit.subjects.histories import History, HistorySubject

STREAM = GRANT = "audit"
NOW = datetime(2026, 1, 1, tzinfo=UTC)
LEASE = timedelta(minutes=10)
WINDOW, DAYS = 4, 3
"""Steps of a window and of a day; days that are offered, the first one before the amendment."""

Accepts = Callable[[Ledger, Laplace, int], bool]
"""Whether a day may be measured by a mechanism; the ledger then has it."""


@dataclass(frozen=True)
class Amendment:
    """The first guarantee, the one of an amendment, and a plan that fits both.

    little: what a day beside one of the first guarantee may be measured by.
    """

    name: str
    first: PrivacyModel
    second: PrivacyModel
    little: PrivacyModel


def _model(epsilon: str, alpha: int) -> PrivacyModel:
    return PrivacyModel(epsilon, WINDOW, alpha, resolution=1)


AMENDMENTS = (
    Amendment("alpha 10 to 1", _model("1", 10), _model("1", 1), _model("1/10", 1)),
    Amendment("epsilon 1 to 10", _model("1", 10), _model("10", 10), _model("1", 10)),
)


def amended_subjects() -> tuple[HistorySubject, ...]:
    """Return subjects whose days after an amendment wait, and whose days that take what is left.

    Returns for each amendment both, held to the epsilon of the first guarantee.
    """
    return tuple(
        _subject(f"amended {one.name}, {what}", one, offers, is_reserved)
        for one in AMENDMENTS
        for what, offers in (
            ("the next day waits", [one.second]),
            ("the next day takes less", [one.second, one.little]),
        )
    )


def hasty_subjects() -> tuple[HistorySubject, ...]:
    """Return subjects that are BROKEN ON PURPOSE: the guarantee in force alone judges a day.

    Returns one for each amendment, whose days after it must exceed the epsilon of the first guarantee.
    """
    return tuple(
        _subject(
            f"amended {amendment.name}, judged by the second guarantee alone",
            amendment,
            [amendment.second],
            fits_the_newest,
        )
        for amendment in AMENDMENTS
    )


def _subject(
    name: str, amendment: Amendment, offers: Sequence[PrivacyModel], accepts: Accepts
) -> HistorySubject:
    return HistorySubject(
        name,
        "a window across the change",
        claimed=float(amendment.first.epsilon),
        make=partial(_histories, amendment, offers, accepts),
    )


def _histories(
    amendment: Amendment, offers: Sequence[PrivacyModel], accepts: Accepts
) -> tuple[History, History]:
    released = released_days(amendment, offers, accepts)
    one = np.zeros(DAYS * WINDOW, dtype=np.int64)
    other = one.copy()
    other[WINDOW - WINDOW // 2 : WINDOW + WINDOW // 2] = amendment.first.alpha_units

    def history(series: NDArray[np.int64]) -> History:
        days = {first: series[None, first : first + WINDOW] for first, _ in released}
        resolution = amendment.first.resolution
        return [
            (mechanism, PrivatePeriod(days[first], resolution=resolution, first_step=first))
            for first, mechanism in released
        ]

    return history(one), history(other)


def released_days(
    amendment: Amendment, offers: Sequence[PrivacyModel], accepts: Accepts
) -> list[tuple[int, Laplace]]:
    """Return the first step of each day that is released, and its mechanism: of the offers the first
    accepted.

    Day 0 is released and published, the guarantee amended, and the days after it are asked for, in a ledger
    of their own.
    """
    with TemporaryDirectory() as folder, closing(open_ledger(f"sqlite:///{Path(folder)}/ledger")) as ledger:
        ledger.enrol(_terms(amendment.first), NOW)
        released = [(0, Laplace(amendment.first))]
        is_reserved(ledger, released[0][1], 0)
        ledger.amend(_terms(amendment.second), "another guarantee", NOW)
        for first_step in range(WINDOW, DAYS * WINDOW, WINDOW):
            accepted = (one for one in map(Laplace, offers) if accepts(ledger, one, first_step))
            released += [(first_step, one) for one in islice(accepted, 1)]
        return released


def _terms(model: PrivacyModel) -> StreamTerms:
    return StreamTerms(STREAM, GRANT, model, "one series", "a step")


def is_reserved(ledger: Ledger, mechanism: Laplace, first_step: int) -> bool:
    """Return whether the ledger reserves it; then it is recorded as drawn and published, as a night does."""
    plan, period = mechanism.plan(WINDOW, first_step), f"from step {first_step}"
    try:
        held = ledger.reserve(STREAM, period, 0, plan, "audit", NOW, LEASE)
    except BudgetError:
        return False
    ledger.begin_draw(held, NOW)
    ledger.record_drawn(held, "measured", plan, NOW)
    ledger.record_staged(STREAM, period, 0, "staged", "release.parquet", NOW)
    ledger.record_published(STREAM, period, 0, NOW)
    return True


def fits_the_newest(ledger: Ledger, mechanism: Laplace, first_step: int) -> bool:
    """BROKEN ON PURPOSE: earlier guarantees are not checked."""
    newest, *_ = ledger.judge_plan(GRANT, mechanism.plan(WINDOW, first_step))
    return not newest.is_broken
