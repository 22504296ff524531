"""The privacy model's parameters, and rho and (epsilon, delta), never on the wrong side."""

import json
import math
from dataclasses import fields
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest

from optstream import AggregationTree, EquallySpaced, L1Sampling, PrivacyModel, PrivatePeriod, PublicDays
from optstream.errors import ParameterError
from optstream.mechanisms import Fast, Fourier, HistoryInformed, Laplace, OptStream
from optstream.privacy import zero_concentrated
from optstream.privacy.exact import Bounds, exact, exact_from_text, root_above, round_up_to_float
from optstream.privacy.zero_concentrated import epsilon_of, largest_rho


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"epsilon": "0"}, "epsilon of PrivacyModel must be greater than 0"),
        ({"epsilon": "-1"}, "epsilon of PrivacyModel must be greater than 0"),
        ({"epsilon": 0.1}, 'epsilon of PrivacyModel must be exact: an integer, or a string such as "0.1"'),
        ({"epsilon": "one"}, "epsilon of PrivacyModel must be a number"),
        ({"epsilon": "nan"}, "epsilon of PrivacyModel must be a number"),
        ({"epsilon": "1e999999999"}, "epsilon of PrivacyModel must be a number"),
        ({"alpha": 0}, "alpha of PrivacyModel must be greater than 0"),
        ({"window_length": 0}, "window of PrivacyModel must be an integer of at least 1"),
        ({"window_length": True}, "window of PrivacyModel must be an integer of at least 1"),
        ({"unit": "household"}, 'must be "customer" or "roaming"'),
        ({"leaves_per_step": 2}, 'use unit "roaming"'),
        *(
            ({"delta": delta}, r"delta of PrivacyModel must be 0 .* or in \[1e-15, 1/1000\]")
            for delta in ("-1e-6", "0.002", "1e-16", "1")
        ),
        ({"rho": "1/100"}, "for a delta greater than 0"),
        ({"rho": "1/10", "delta": "1e-6"}, "which gives epsilon 1 at delta 1/1000000"),
        ({"rho": "0", "delta": "1e-6"}, "rho of PrivacyModel must be in"),
        ({"epsilon": "1000001", "delta": "1e-6"}, "epsilon with a delta"),
        ({"delta": 1e-6}, "delta of PrivacyModel must be exact"),
        *(({"epsilon": value}, r'exact.*"0.1"') for value in (np.float64(0.1), np.bool_(True), True)),
    ],
)
def test_bad_parameters_are_named(changed, message):
    with pytest.raises(ParameterError, match=message):
        PrivacyModel(**({"epsilon": "1", "window_length": 48, "alpha": 1} | changed))


@pytest.mark.parametrize("text", [["1"], {}, 1, None, "1e3", "-1", "1/2/3"])
def test_what_is_no_exact_text_is_refused_in_one_way(text):
    with pytest.raises(ValueError, match="exact"):
        exact_from_text(text)


def test_epsilon_is_kept_exact_and_alpha_in_units_is_rounded_up():
    assert PrivacyModel(epsilon="0.1", window_length=48, alpha=Decimal("2.5")).epsilon == Fraction(1, 10)
    for alpha, resolution, units in (("1", "0.001", 1000), ("1", "0.3", 4), ("0.1", "1", 1)):
        model = PrivacyModel(epsilon=1, window_length=2, alpha=alpha, resolution=resolution)
        assert model.alpha_units == units, resolution


@pytest.mark.parametrize("text", ["1/3", "0.1", "2", "3", "123456789.123456789", "1e-30"])
def test_scales_round_up_by_at_most_one_float_and_roots_by_a_few(text):
    value = exact(text, "value")
    assert value <= Fraction(round_up_to_float(value)) <= value * (1 + Fraction(1, 2**52))
    assert value <= Fraction(root_above(value)) ** 2 <= value * (1 + Fraction(1, 2**49))


def test_a_scale_that_overflows_is_refused():
    with pytest.raises(ParameterError, match="too large"):
        round_up_to_float(Fraction(10) ** 400)


MODEL = PrivacyModel(1, 4, 10)
FOUR, HALF = np.int64(4), np.float32(0.5)
TREE = AggregationTree.from_parents({"all": None, "A": "all"})


def test_numpys_integers_become_those_of_python():
    """A Fraction of a numpy integer would keep it: 2^70 times it is an error, and less may be wrong."""
    number = exact(np.int64(3), "three")
    assert {type(number.numerator), type(number.denominator)} == {int}
    assert number * 2**70 == Fraction(3 * 2**70)
    period = PrivatePeriod.from_values(np.ones((1, 4)), resolution=MODEL.resolution, first_step=np.int64(96))
    assert json.dumps(period.first_step) == "96"


@pytest.mark.parametrize(
    "made",
    [
        PrivacyModel(np.int64(1), FOUR, np.int32(10)),
        L1Sampling(FOUR, np.int64(2)),
        Laplace(MODEL, "joint", (FOUR, np.int64(5)), np.int64(1)),
        Fourier(MODEL, n_coefficients=np.int64(2), shortest_period=FOUR),
        Fast(MODEL, n_samples=np.int64(2), set_point=HALF, integration_time=np.int8(1)),
        HistoryInformed(MODEL, np.int64(1), np.int64(2), scale=HALF, history_days=np.uint8(7)),
        PublicDays(FOUR, first_weekday=np.int64(0)),
        OptStream(
            MODEL, TREE, sampling=EquallySpaced(FOUR), features=[], level_shares=[np.int64(0), np.int64(1)],
            lower_bound=HALF, shortest_period=FOUR,
        ),
    ],
    ids=lambda one: type(one).__name__,
)  # fmt: skip
def test_numpys_numbers_are_parameters(made):
    for field in fields(made):
        value = getattr(made, field.name)
        for one in value if isinstance(value, tuple) else (value,):
            assert not isinstance(one, np.generic), field.name
            if isinstance(one, Fraction):
                assert type(one.numerator) is int


@pytest.mark.parametrize("value", [Fraction(1, 3), Fraction(2), Fraction(5), Fraction(7)])
@pytest.mark.parametrize("name", ["exp", "ln"])
def test_bounds_lie_on_their_side_of_what_decimal_rounds_to_the_nearest(name, value):
    many = Context(50)
    whole = getattr(many, name)(many.divide(Decimal(value.numerator), Decimal(value.denominator)))
    below, above = (getattr(Bounds(side, 4), name)(value) for side in (ROUND_FLOOR, ROUND_CEILING))
    assert below < whole < above
    assert above - below <= abs(whole) / 100, "nor far from it"


# rho and (epsilon, delta): against OpenDP, dp_accounting and the definition.

PAIRS = [
    (Fraction(epsilon), Fraction(delta))
    for epsilon in ("1/100", "1/10", "1", "4", "20")
    for delta in ("1/1000", "1/1000000", "1/1000000000000")
]


@pytest.mark.parametrize(("epsilon", "delta"), PAIRS)
def test_there_and_back_opendp_finds_the_same_epsilon_and_dp_accounting_no_smaller_one(epsilon, delta):
    """The last tries some orders, ours is one that nearly minimises."""
    import opendp.prelude as dp
    from dp_accounting.rdp import rdp_privacy_accountant

    dp.enable_features("contrib")
    rho = largest_rho(epsilon, delta)
    assert epsilon * (1 - Fraction(1, 10**9)) < epsilon_of(rho, delta) <= epsilon * (1 + Fraction(1, 10**12))
    assert epsilon_of(rho * Fraction(101, 100), delta) > epsilon, "and no larger one would do"
    assert epsilon_of(Fraction(0), delta) == 0
    assert len(str(rho.numerator)) <= 15, "an amount that a ledger can hold"
    space = dp.vector_domain(dp.atom_domain(T="i64")), dp.l2_distance(T="float")
    # sensitivity 1 and this sigma have this rho by OpenDP's own map
    noise = dp.m.make_gaussian(*space, scale=math.sqrt(1 / (2 * rho)))
    assert noise.map(1.0) == pytest.approx(float(rho), rel=1e-12)
    curve = dp.c.make_zCDP_to_approxDP(noise).map(1.0)
    assert curve.epsilon(float(delta)) == pytest.approx(float(epsilon), rel=1e-6)
    orders = 1 + np.geomspace(1e-3, 1e5, 2000)
    found, _ = rdp_privacy_accountant.compute_epsilon(orders, float(rho) * orders, float(delta))
    assert float(epsilon) * (1 - 1e-9) <= found <= float(epsilon) * 1.001


def stated_epsilon(a, rho, delta):
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
    assert whole * (1 - Decimal(10) ** -12) < stated_epsilon(taken[-1], rho, delta) < whole
    back = epsilon_of.__wrapped__(rho, delta)
    exact = stated_epsilon(taken[-1], rho, delta)
    assert exact < Decimal(back.numerator) / Decimal(back.denominator) < exact * (1 + Decimal(10) ** -13)


def test_a_model_has_one_currency_and_a_budget_in_it_and_is_written_with_both():
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
    # rho is rounded down and its stated epsilon up, here past the epsilon that rho was made of
    model = PrivacyModel("1/3", window_length=2, alpha=1, delta="1e-6")
    assert epsilon_of(model.rho, model.delta) > model.to_epsilon(model.rho) == Fraction(1, 3)
    assert model.to_epsilon(2 * model.rho) > Fraction(1, 3)
    # without a delta a model is written as it always was
    assert "delta" not in PrivacyModel("1", 48, 1).to_document()
    document = PrivacyModel("1", 48, 1, delta="1e-6").to_document()
    assert document["delta"] == "1/1000000"
    assert PrivacyModel(**document) == PrivacyModel("1", 48, 1, delta="1e-6")
