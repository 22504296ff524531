"""The `[mechanism]` table: any mechanism by its name, its own keys, and what the others do not take."""

import re
from datetime import date

import pytest

from optstream import mechanisms
from optstream.errors import ParameterError
from optstream.mechanisms import Hierarchical, HistoryInformedTree
from optstream.stream.public_days import REST_DAY, SATURDAY, WORKDAY
from tasks.config.schema import MECHANISMS
from tasks.config.templates import EXAMPLE
from tasks.release.mechanism import mechanism_for
from tests.tasks.two_regions import CONFIGURATION, released_by, with_delta

pytestmark = pytest.mark.slow

DAY = date(2025, 1, 15)
PLAIN = [name for name in MECHANISMS if getattr(mechanisms, name).tree_class]


@pytest.fixture
def load(load_text):
    """Load the example for another mechanism: load("PeGaSus", threshold='"5"')."""

    def _load(name, *changes, keep=(), **keys):
        listed = "".join(f"{key} = {value}\n" for key, value in keys.items())
        text = re.sub(r"\[mechanism\].*\n(.+\n)+", f'[mechanism]\nname = "{name}"\n{listed}', EXAMPLE)
        for table in {"sampling", "features"} - set(keep):
            text = re.sub(rf"\[{table}\].*\n(.+\n)+", "", text)
        text = re.sub(r"(epsilon = \S+) .*", r"\1", text)
        return load_text(with_delta(text, name), *changes)

    return _load


HALVES = 'levels = ["1/2", "1/2"]'


def test_level_shares_are_stated_however_they_were_configured(load):
    """They are parameters of the mechanism, and readers are promised all of these."""
    settings = load("Laplace", (HALVES, 'levels = ["1/3", "2/3"]'))
    assert settings.describe_mechanism(date.min)["level_shares"] == ["1/3", "2/3"]


@pytest.mark.parametrize(
    ("budget", "told"),
    [
        ('levels = "best"', "budget.levels must be a list of shares in [0, 1]"),
        ('levels = "model"', "shares are numbers: `optstream advise --write FILE` writes those"),
        (f'{HALVES}\nstream_share = "model"', "shares are numbers: `optstream advise --write FILE`"),
        (f'{HALVES}\nshared_with = ["a.toml"]', "budget.shared_with must be left out: shares are numbers"),
    ],
)
def test_shares_are_numbers(refusal, budget, told):
    assert told in refusal("HistoryInformed", (HALVES, budget), scale=5000.0)


@pytest.mark.parametrize("name", PLAIN)
def test_every_mechanism_is_found_by_its_name_and_runs_on_the_tree(load, name):
    settings = load(name)
    mechanism = mechanism_for(settings, DAY)
    assert isinstance(mechanism, Hierarchical)
    assert type(mechanism.mechanism) is getattr(mechanisms, name)
    assert mechanism.tree == settings.tree_of(date.min)
    assert mechanism.epsilon <= 1
    assert settings.describe_mechanism(date.min)["name"] == name
    assert mechanism.plan(settings.calendar.n_steps(DAY), settings.calendar.first_step(DAY))


def test_keys_reach_the_mechanism(load):
    assert mechanism_for(load("PeGaSus", threshold='"7"'), DAY).mechanism.threshold == 7
    assert mechanism_for(load("Fourier"), DAY).mechanism.shortest_period == 46


def test_holidays_are_those_of_the_country_and_those_that_are_named(load):
    keys = {"country": '"FR"', "holidays": "[2025-01-17]", "scale": "500.0"}
    mechanism = mechanism_for(load("HistoryInformed", **keys), DAY)
    assert type(mechanism) is HistoryInformedTree
    assert mechanism.pattern.scale == 500.0
    days, calendar = mechanism.pattern.days, load("HistoryInformed").calendar
    steps = [calendar.first_step(date(2025, 1, day)) for day in (1, 16, 17, 18, 19)]
    assert days.kinds(days.clock(steps)).tolist() == [REST_DAY, WORKDAY, REST_DAY, SATURDAY, REST_DAY]
    with pytest.raises(ParameterError, match=r"country must be a code .* got 'ZZ'"):
        mechanism_for(load("HistoryInformed", country='"ZZ"'), DAY)


def test_the_configuration_hash_tells_mechanisms_and_their_keys_apart(load):
    hashes = {
        load(name, **keys).configuration_hash
        for name, keys in (
            ("Laplace", {}),
            ("Sample", {}),
            ("PeGaSus", {}),
            ("PeGaSus", {"threshold": '"5"'}),
        )
    }
    assert len(hashes) == 4


HASHES = {
    "OptStream": "335263f1e603f2bb",
    "Laplace": "6f74257b156628c9",
    "BudgetAbsorption": "12e2b9d6c17a886e",
    "PeGaSus": "cc35473b60e60ab6",
    "Fast": "9efc40168e61edc6",
    "HistoryInformed": "a0c02919b52c3b17",
}
"""Of version 0.2, whose mechanisms had keys that nobody named here."""


def test_the_configuration_hash_is_that_of_before_keys_went(load_text):
    for name, known in HASHES.items():
        text = CONFIGURATION if name == "OptStream" else released_by(name)
        assert load_text(text).configuration_hash[:16] == known


@pytest.mark.parametrize(
    ("arguments", "keys", "message"),
    [
        (("Furrier",), {}, "mechanism.name must be \"OptStream\" or \"Laplace\" or .*; got 'Furrier'"),
        (("PeGaSus",), {"threshold": '"-1"'}, "threshold of PeGaSus must be .*; got -1"),
        (("PeGaSus",), {"treshold": '"5"'}, "is not a known key; did you mean threshold"),
        (
            ("Fourier",),
            {"leaves_per_period": "1"},
            "mechanism.leaves_per_period must be left out: it limited how customers move, which the privacy "
            "guarantee does not",
        ),
        (("Laplace",), {"leaves_per_period": "1"}, "leaves_per_period must be left out"),
        *(
            (
                ("Laplace", ('alpha = "10"', f'alpha = "10"\n{key} = "{value}"')),
                {},
                f"privacy.{key} must be left out: .*`optstream ledger amend`",
            )
            for key, values in {"calibration": ("strict", "paper"), "windows": ("sliding", "aligned")}.items()
            for value in values
        ),
        (("Laplace",), {"n_draws": "5"}, "mechanism.n_draws is not a known key"),
        (("Sample",), {"keep": ["sampling"]}, r"\[sampling\] must be left out: it is for .*OptStream"),
        (("Sample",), {"keep": ["features"]}, r"\[features\] must be left out"),
        (("Fast",), {"n_samples": "7"}, "n_samples must be left out: how a mechanism is tuned inside"),
        *(
            ((name,), {key: value}, f"mechanism.{key} must be left out: how a mechanism is tuned inside")
            for name, key, value in (
                ("Fast", "integral", "0.2"),
                ("BudgetAbsorption", "distance_share", '"1/3"'),
                ("PeGaSus", "smoother", '"average"'),
                ("HistoryInformed", "n_blocks", "16"),
                ("HistoryInformed", "block_length", "2"),
                ("OptStream", "weights", '"paper"'),
                ("HistoryInformed", "proxy", '{ learned_from = "x" }'),
            )
        ),
        (("PeGaSus",), {"groups": '"children"'}, "groups must be left out: how a mechanism is tuned inside"),
    ],
)  # fmt: skip
def test_refusals_name_the_key_the_range_and_the_remedy(refusal, arguments, keys, message):
    assert re.search(message, refusal(*arguments, **keys))


def test_the_nearest_name_is_offered_and_no_other_table_is_blamed(refusal):
    message = refusal("Pegasus")
    assert message.endswith("got 'Pegasus'; did you mean PeGaSus?")
    assert "sampling" not in message


def test_a_mechanism_without_a_name_is_told_the_names(refusal):
    message = refusal("Laplace", ('name = "Laplace"\n', ""))
    assert "mechanism.name is missing; it must be" in message
    assert "BudgetAbsorption" in message
