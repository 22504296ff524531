"""Ledgers with one wrong line each, which the histories must find."""

from contextlib import ExitStack, contextmanager
from dataclasses import replace
from fractions import Fraction
from math import isqrt
from unittest.mock import patch

from optstream.ledger.accounting import charges_of, losses_with
from optstream.ledger.schema import ReleaseRow, lock
from optstream.privacy import GaussianSpend
from optstream.privacy import spends as joint_spend
from optstream.privacy.amendment import repriced
from tests.optstream.ledger.histories.choices import MARGIN

RESERVE = "optstream.ledger.lifecycle"
ENROL = "optstream.ledger.terms"
AMEND = "optstream.ledger.terms"


def in_force_alone():
    """What the code did before: new plans are priced by the guarantee in force alone."""
    return patch(f"{RESERVE}.losses_with", lambda *some, **named: losses_with(*some, **named)[:1])


@contextmanager
def each_stream_by_itself():
    """The other streams of the privacy budget are not added up."""
    reserving = []

    def locked(connection, stream):
        reserving[:] = lock(connection, stream)
        return tuple(reserving)

    def of_one_stream(connection, grant, plan, *only, **named):
        return losses_with(connection, grant, plan, *only, ReleaseRow.stream_id == reserving[0].id, **named)

    with patch(f"{RESERVE}.lock", locked), patch(f"{RESERVE}.losses_with", of_one_stream):
        yield


def _without(kept):
    """Charges of those releases alone for which `kept` is true."""
    return patch(
        "optstream.ledger.accounting.charges_of",
        lambda near, guarantees: charges_of([one for one in near if kept(one)], guarantees),
    )


def margins_for_free():
    """What measured a margin is not added up."""
    return _without(lambda one: one.spend.level != MARGIN)


def compromise_forgotten():
    """Known noise charges nothing at all."""
    return _without(lambda one: not one.is_known)


def rho_as_epsilon():
    """k neighbours in a row cost k times the rho of one, and not the square."""

    def linear(spend, planned, other):
        found = repriced(spend, planned, other)
        if not isinstance(spend, GaussianSpend):
            return found
        factor = found.alpha_units // spend.alpha_units
        if factor == 1:
            return found
        return replace(spend, scale=spend.scale * Fraction(10**6, isqrt(10**12 * factor) + 1))

    return patch("optstream.ledger.accounting.repriced", linear)


def any_currency():
    """An amendment may change the currency."""
    return patch(f"{AMEND}.check_currency_kept", lambda *_: None)


@contextmanager
def any_shares():
    """Chosen shares may add up to more than all."""
    with ExitStack() as stack:
        for place in (ENROL, AMEND):
            stack.enter_context(patch(f"{place}.refuse_more_than_all", lambda *_: None))
        yield


def any_tree():
    """A hierarchy may change on days that were reserved."""
    return patch(f"{ENROL}.continues", lambda *_: True)


@contextmanager
def restatements_for_free():
    """What restatements have taken of their share is not looked at."""
    with ExitStack() as stack:
        found = stack.enter_context(patch(f"{RESERVE}.cost_touching"))
        found.return_value.epsilon = 0
        yield


def blocks_as_steps():
    """A block is charged as one step of it."""
    of_steps = joint_spend._most_of_one_part

    def charged(group, n_windows, window_length):
        singles = tuple(range(part.start, part.start + 1) for part in group)
        return of_steps(singles, n_windows, window_length)

    return patch.object(joint_spend, "_most_of_one_part", charged)
