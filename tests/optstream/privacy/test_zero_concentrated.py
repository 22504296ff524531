"""rho and (epsilon, delta): against OpenDP, dp_accounting and the definition, and never on the wrong side."""

import math
from decimal import Context, Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest

from optstream.errors import ParameterError
from optstream.privacy import PrivacyModel, zero_concentrated
from optstream.privacy.zero_concentrated import epsilon_of, largest_rho

PAIRS = [
    (Fraction(epsilon), Fraction(delta))
    for epsilon in ("1/100", "1/10", "1", "4", "20")
    for delta in ("1/1000", "1/1000000", "1/1000000000000")
]


@pytest.mark.parametrize(("epsilon", "delta"), PAIRS)
def test_there_and_back_loses_hardly_anything_and_never_gains(epsilon, delta):
    rho = largest_rho(epsilon, delta)
    assert epsilon * (1 - Fraction(1, 10**9)) < epsilon_of(rho, delta) <= epsilon * (1 + Fraction(1, 10**12))
    assert epsilon_of(rho * Fraction(101, 100), delta) > epsilon, "and no larger one would do"
    assert len(str(rho.numerator)) <= 15, "an amount that a ledger can hold"


@pytest.mark.parametrize(("epsilon", "delta"), PAIRS)
def test_opendp_finds_the_same_epsilon(epsilon, delta):
    import opendp.prelude as dp

    dp.enable_features("contrib")
    rho = largest_rho(epsilon, delta)
    space = dp.vector_domain(dp.atom_domain(T="i64")), dp.l2_distance(T="float")
    # sensitivity 1 and this sigma have this rho by OpenDP's own map
    noise = dp.m.make_gaussian(*space, scale=math.sqrt(1 / (2 * rho)))
    assert noise.map(1.0) == pytest.approx(float(rho), rel=1e-12)
    curve = dp.c.make_zCDP_to_approxDP(noise).map(1.0)
    assert curve.epsilon(float(delta)) == pytest.approx(float(epsilon), rel=1e-6)


@pytest.mark.parametrize(("epsilon", "delta"), PAIRS)
def test_dp_accounting_finds_no_smaller_epsilon(epsilon, delta):
    """It tries some orders, ours is one that nearly minimises: its figure is never below ours."""
    from dp_accounting.rdp import rdp_privacy_accountant

    rho = largest_rho(epsilon, delta)
    orders = np.concatenate([1 + np.geomspace(1e-3, 1e5, 2000)])
    found, _ = rdp_privacy_accountant.compute_epsilon(orders, float(rho) * orders, float(delta))
    assert float(epsilon) * (1 - 1e-9) <= found <= float(epsilon) * 1.001


def test_the_definition_holds_with_other_arithmetic():
    """delta of the order that minimises it, in floats: Canonne, Kamath and Steinke 2020, Proposition 7."""
    for epsilon, delta in PAIRS:
        rho = float(largest_rho(epsilon, delta))
        a = 1 + np.geomspace(1e-3, 1e6, 200_000)
        log_delta = (a - 1) * (a * rho - float(epsilon)) - np.log(a - 1) + a * np.log1p(-1 / a)
        assert log_delta.min() == pytest.approx(math.log(delta), abs=1e-5)


def told(a, rho, delta):
    """The epsilon of rho at delta by one order a, to 60 digits."""
    with localcontext(Context(prec=90)):
        a, rho, delta = (Decimal(one.numerator) / Decimal(one.denominator) for one in (a, rho, delta))
        return a * rho + ((a - 1) / a).ln() - (delta.ln() + a.ln()) / (a - 1)


@pytest.mark.parametrize(("epsilon", "delta"), PAIRS)
def test_what_is_rounded_is_rounded_to_the_safe_side(monkeypatch, epsilon, delta):
    """By the very order that was taken: rho gives no more than epsilon, and hardly less."""
    taken = []

    def order(function):
        taken.append(found(function))
        return taken[-1]

    found = zero_concentrated._order
    monkeypatch.setattr(zero_concentrated, "_order", order)
    rho = largest_rho.__wrapped__(epsilon, delta)
    whole = Decimal(epsilon.numerator) / Decimal(epsilon.denominator)
    assert whole * (1 - Decimal(10) ** -12) < told(taken[-1], rho, delta) < whole
    back = epsilon_of.__wrapped__(rho, delta)
    exact = told(taken[-1], rho, delta)
    assert exact < Decimal(back.numerator) / Decimal(back.denominator) < exact * (1 + Decimal(10) ** -13)


def test_no_rho_costs_nothing_and_more_costs_more():
    delta = Fraction(1, 10**6)
    found = [epsilon_of(Fraction(n, 1000), delta) for n in range(20)]
    assert found[0] == 0
    assert found == sorted(set(found))


@pytest.mark.parametrize("delta", ["-1e-6", "0.002", "1e-16", "1"])
def test_a_delta_that_promises_nothing_is_refused(delta):
    with pytest.raises(ParameterError, match=r"delta of PrivacyModel must be 0 .* or in \[1e-15, 1/1000\]"):
        PrivacyModel("1", 48, 1, delta=delta)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"rho": "1/100"}, "for a delta greater than 0"),
        ({"rho": "1/10", "delta": "1e-6"}, "which gives epsilon 1 at delta 1/1000000"),
        ({"rho": "0", "delta": "1e-6"}, "rho of PrivacyModel must be in"),
        ({"epsilon": "1000001", "delta": "1e-6"}, "epsilon with a delta"),
        ({"delta": 1e-6}, "delta of PrivacyModel must be exact"),
    ],
)
def test_a_rho_or_epsilon_that_does_not_fit_is_refused(given, message):
    with pytest.raises(ParameterError, match=message):
        PrivacyModel(**({"epsilon": "1", "window_length": 48, "alpha": 1} | given))


def test_a_model_has_one_currency_and_a_budget_in_it():
    pure, other = PrivacyModel("1", 48, 1), PrivacyModel("1", 48, 1, delta="1e-6")
    assert (pure.currency, pure.budget, pure.rho, pure.pure_epsilon) == ("epsilon", 1, None, 1)
    assert (other.currency, other.budget, other.epsilon) == ("rho", other.rho, 1)
    assert other.rho == largest_rho(Fraction(1), Fraction(1, 10**6))
    with pytest.raises(ParameterError, match="Laplace noise, which has no price"):
        _ = other.pure_epsilon
    quarter = other.with_budget(other.budget / 4)
    assert (quarter.budget, quarter.epsilon, quarter.delta) == (other.rho / 4, 1, Fraction(1, 10**6))
    assert pure.with_budget(pure.budget / 4).epsilon == Fraction(1, 4)
    with pytest.raises(ParameterError, match="rho of PrivacyModel"):
        other.with_budget(other.budget * 2)


def test_a_model_without_a_delta_is_written_as_it_always_was():
    assert "delta" not in PrivacyModel("1", 48, 1).to_document()
    document = PrivacyModel("1", 48, 1, delta="1e-6").to_document()
    assert document["delta"] == "1/1000000"
    assert PrivacyModel(**document) == PrivacyModel("1", 48, 1, delta="1e-6")
