"""The benchmark of currencies: errors are those of the scales, and rows of both currencies stand together."""

import math
from fractions import Fraction

import pytest

from studies.benchmarks.noise import currencies
from studies.benchmarks.noise.currencies import EVERY_STEP, error_of, main, models, random_steps


@pytest.mark.parametrize(("share", "laplace", "gaussian"), [("1", 48.0, 25.04), ("1/4", 192.0, 50.09)])
def test_errors_are_those_of_the_noise(share, laplace, gaussian):
    """24,000 values: each mean is within 3 % of what its law says, but with a probability below 1e-5."""
    periods = random_steps(42)
    expected = {"Laplace noise": laplace, "Gaussian noise": gaussian}
    for name, error in expected.items():
        found = error_of(EVERY_STEP[name](*models("1", Fraction(share))), periods, 1)
        assert found == pytest.approx(error, rel=0.03)
    assert math.isclose(gaussian / 25.04, 1 / math.sqrt(Fraction(share)), rel_tol=1e-3)


def test_the_table_has_every_row(capsys, monkeypatch):
    monkeypatch.setattr(currencies, "DRAWS", 500)
    monkeypatch.delenv("OPTSTREAM_DATA", raising=False)
    main(["--periods", "3"])
    said = capsys.readouterr().out
    assert "3 days of random steps" in said
    for name in EVERY_STEP:
        assert f"one product: {name}" in said
        assert f"each of 4 products: {name}" in said
    assert "OpenDP" in said
