"""Shares of several streams: what is known of a saturating error, and what is refused."""

from fractions import Fraction

import pytest

from optstream.errors import ConfigurationError
from tasks.config import load_settings
from tasks.plan.advise import choose_stream_shares, total_of
from tests.tasks.two_regions import CONFIGURATION


def test_a_floor_moves_shares_to_the_one_that_needs_it_more():
    """Root mean squares of noise over a share and of a floor: brute force over 1/32 finds nothing better."""

    def error(floor):
        return lambda share: (floor**2 + float(1 / share) ** 2) ** 0.5

    errors = [error(1.0), error(20.0), error(0.0)]
    found = choose_stream_shares(errors, Fraction(1))

    def mean(shares):
        return (errors[0](shares[0]) * errors[1](shares[1]) * errors[2](shares[2])) ** (1 / 3)

    grid = [
        (Fraction(a, 32), Fraction(b, 32), Fraction(32 - a - b, 32))
        for a in range(1, 31)
        for b in range(1, 32 - a)
    ]
    assert mean(found) <= 1.01 * min(map(mean, grid))
    assert found[1] < found[0] <= found[2]


def test_only_streams_of_one_population_share(tmp_path):
    def load(name, *changes):
        text = CONFIGURATION
        for old, new in (('name = "two-regions"', f'name = "{name}"'), *changes):
            assert text.count(old) == 1
            text = text.replace(old, new)
        (tmp_path / f"{name}.toml").write_text(text)
        return load_settings(tmp_path / f"{name}.toml")

    share = ("[budget]", '[budget]\nstream_share = "1/4"')
    assert total_of([load("a"), load("b")]) == 1
    assert total_of([load("a", share), load("b", share)]) == Fraction(1, 2)
    with pytest.raises(ConfigurationError, match="must have the same population: only streams of one"):
        total_of([load("a"), load("b", ('population = "people"', 'population = "others"'))])
    with pytest.raises(ConfigurationError, match="must be of different streams; got a, a"):
        total_of([load("a"), load("a")])
