"""Shares of one population's streams by `stream_share = "model"`: whoever asks gets the same."""

import re
from fractions import Fraction

import pytest

from optstream.errors import ConfigurationError
from tasks.config import load_settings
from tests.tasks.two_regions import released_by

LAPLACE = released_by("Laplace")
INFORMED = released_by("HistoryInformed", keys="scale = 5000")


@pytest.fixture
def load(tmp_path):
    """Write configurations by name, each sharing with all others, and load one of them."""

    def made(wanted, *changes, **texts):
        for name, text in texts.items():
            listed = ", ".join(f'"{other}.toml"' for other in texts if other != name)
            whole = text.replace("two-regions", name).replace(
                "[budget]", f'[budget]\nstream_share = "model"\nshared_with = [{listed}]'
            )
            for place, old, new in changes:
                if place == name:
                    assert whole.count(old) == 1, old
                    whole = whole.replace(old, new)
            (tmp_path / f"{name}.toml").write_text(whole)
        return load_settings(tmp_path / f"{wanted}.toml")

    return made


def test_a_stream_with_a_number_of_its_own_is_taken_off_first(load):
    own = ("c", 'stream_share = "model"\nshared_with = ["a.toml", "b.toml"]', 'stream_share = "1/5"')
    shares = [load(name, own, a=LAPLACE, b=LAPLACE, c=LAPLACE).stream_share for name in "abc"]
    assert shares == [Fraction(2, 5), Fraction(2, 5), Fraction(1, 5)]


@pytest.mark.slow
def test_what_saturates_leaves_epsilon_to_others_and_both_sides_agree(load):
    """At an alpha of 1,000 of leaves of 5,000 HistoryInformed goes by its prior, and little is lost there."""
    coarse = ("b", 'alpha = "1"', 'alpha = "3000"\nbudget_alpha = "1"')
    shares = {name: load(name, coarse, a=LAPLACE, b=INFORMED).stream_share for name in "ab"}
    assert sum(shares.values()) == 1
    assert shares["a"] > Fraction(1, 2)
    assert load("a", coarse, a=LAPLACE, b=INFORMED).model_of(0).epsilon == shares["a"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("b", 'shared_with = ["a.toml"]', 'shared_with = ["c.toml"]'), "must list each other"),
        (("b", 'population = "people"', 'population = "others"'), "must have the same population"),
        (("b", 'name = "b"', 'name = "a"'), "must be of different streams"),
        (("a", 'shared_with = ["b.toml"]', 'shared_with = ["absent.toml"]'), "absent.toml cannot be read"),
        (
            ("b", 'stream_share = "model"\nshared_with = ["a.toml"]', 'stream_share = "1"'),
            "must leave something; they add up to 1",
        ),
    ],
)
def test_files_that_do_not_fit_are_refused(load, change, message):
    settings = load("a", change, a=LAPLACE, b=LAPLACE)
    with pytest.raises(ConfigurationError, match=re.escape(message)):
        _ = settings.stream_share


def test_the_keys_go_together(load):
    for change in (("a", '"model"', '"1/2"'), ("a", 'shared_with = ["b.toml"]\n', "")):
        with pytest.raises(ConfigurationError, match=r"shared_with go together"):
            load("a", change, a=LAPLACE, b=LAPLACE)
