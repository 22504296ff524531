"""What `optstream ledger … --json` print: versioned, for machines."""

from datetime import datetime
from math import inf
from typing import Any

from optstream.privacy import PrivacyModel
from tasks.ledger.show import BudgetSummary, Horizon, StreamPage
from tasks.release.outcomes import amount_document


def book_document(
    pages: tuple[BudgetSummary, ...], horizons: tuple[Horizon, ...], stream: str, changed: list[str]
) -> dict[str, Any]:
    """Return what `optstream ledger show --json` prints: amounts exact as fractions, and as floats to read.

    stream: the configured one, of whose privacy budget the horizons are.
    """
    return {
        "format": "optstream.ledger-show/1",
        "stream": stream,
        "changed_in_configuration": changed,
        "grants": [_grant(page) for page in pages],
        "horizons": [horizon_document(found) for found in horizons],
    }


def _grant(page: BudgetSummary) -> dict[str, Any]:
    model = page.terms.model
    return {
        "grant": page.name,
        "window_steps": model.window_length,
        "windows": "sliding",
        "calendar": page.terms.calendar,
        **amount_document("epsilon", model.epsilon),
        **_in_rho(model),
        "streams": [_stream(one) for one in page.streams],
        "days": [
            {
                "date": one.day.isoformat(),
                **amount_document("left", one.left),
                "may_be_released": one.may,
                "because": one.because,
            }
            for one in page.days
        ],
        "window_groups": [
            {
                "first_step": one.first_step,
                "last_step": one.last_step,
                "begin_first": _time(one.begin_first),
                "begin_last": _time(one.begin_last),
                **amount_document("left", one.left),
            }
            for one in page.windows
        ],
        "shared_window": shared_document(page),
        "all_free_from_step": page.free_from,
        "all_free_from": _time(page.free_from_time),
    }


def shared_document(page: BudgetSummary) -> dict[str, Any] | None:
    """What each stream is charged in the fullest window of the days that are shown; None where none is."""
    if page.shared is None:
        return None
    return {
        "first_step": page.shared.first_step,
        **amount_document("charged", page.shared.total),
        "streams": [
            {"stream": name, **amount_document("charged", lost)} for name, lost in page.shared.by_stream
        ],
    }


def _in_rho(model: PrivacyModel) -> dict[str, Any]:
    """What is told beside epsilon where all other amounts of a privacy budget are rho."""
    if model.rho is None:
        return {}
    return {"currency": "rho", **amount_document("delta", model.delta), **amount_document("rho", model.rho)}


def _stream(page: StreamPage) -> dict[str, Any]:
    return {
        "stream": page.terms.stream,
        "terms": page.terms.guarantee(),
        "n_releases": {state.value.lower(): count for state, count in page.counts.items()},
        "releases": [
            {
                "date": release.period,
                "revision": release.revision,
                "state": release.state.value.lower(),
                **amount_document("charged", release.epsilon),
            }
            for release in page.releases
        ],
    }


def horizon_document(found: Horizon) -> dict[str, Any]:
    """Return what `optstream ledger horizon --json` prints.

    epsilon and plain are infinite where noise was compromised, and composed, which says how, is None there.
    """
    loss = found.loss
    return {
        "format": "optstream.ledger-horizon/1",
        "grant": found.grant,
        "first": found.first.isoformat(),
        "last": found.last.isoformat(),
        "n_days": found.n_days,
        "currency": "rho" if loss is not None and loss.composed == "rho" else "epsilon",
        **amount_document("delta", found.delta),
        "epsilon_float": None if loss is None else loss.epsilon,
        **amount_document("plain_sum", inf if loss is None else loss.plain),
        "composed": None if loss is None else loss.composed,
    }


def _time(moment: datetime | None) -> str | None:
    return None if moment is None else moment.isoformat(timespec="minutes")
