"""The `[mechanism]` table: any mechanism by its name, its own keys, and what the others do not take."""

import json
import re
from datetime import date

import pytest

from optstream import mechanisms
from optstream.history.prior import COMPONENTS
from optstream.mechanisms import Hierarchical
from optstream.mechanisms.history_informed import medians_of, with_medians
from tasks.config.example import EXAMPLE
from tasks.config.schema import MECHANISMS
from tasks.release.mechanism import mechanism_for
from tests.tasks.two_regions import with_delta

pytestmark = pytest.mark.slow

DAY = date(2025, 1, 15)
PLAIN = [name for name in MECHANISMS if getattr(mechanisms, name).tree_class]


@pytest.fixture
def load(load_text):
    """Load the example for another mechanism: load("Fourier", n_coefficients="5")."""

    def _load(name, *changes, keep=(), **keys):
        listed = "".join(f"{key} = {value}\n" for key, value in keys.items())
        text = re.sub(r"\[mechanism\].*\n(.+\n)+", f'[mechanism]\nname = "{name}"\n{listed}', EXAMPLE)
        text = text if "stages" in keep else re.sub(r"stages = .+\n", "", text)
        for table in {"sampling", "features"} - set(keep):
            text = re.sub(rf"\[{table}\].*\n(.+\n)+", "", text)
        text = re.sub(r"(epsilon = \S+) .*", r"\1", text)
        return load_text(with_delta(text, name), *changes)

    return _load


HALVES, BY_MODEL = 'levels = ["1/2", "1/2"]', 'levels = "model"'


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
    fourier = mechanism_for(load("Fourier", n_coefficients="5"), DAY).mechanism
    assert fourier.n_coefficients == 5
    assert fourier.shortest_period == 46
    budget = mechanism_for(load("BudgetAbsorption", distance_share='"1/3"'), DAY).mechanism
    assert str(budget.distance_share) == "1/3"


GENERAL = medians_of(COMPONENTS)


def proxy(medians, learned_from='"open data"'):
    """As a TOML value in one line, as `[mechanism]` is written here."""
    rows = ", ".join(f"{json.dumps(name)} = {json.dumps(row)}" for name, row in medians.items())
    return f"{{ learned_from = {learned_from}, medians = {{ {rows} }} }}"


def test_a_public_proxy_seeds_the_prior_and_the_lineage_says_so(load):
    medians = GENERAL | {"daily shape": [0.5, 0.01, 0.7, 300.0]}
    settings = load("HistoryInformed", scale=5000.0, proxy=proxy(medians))
    pattern = mechanism_for(settings, DAY).pattern
    assert pattern.components == with_medians(medians)
    described = settings.describe_mechanism(date.min)["proxy"]
    assert described["learned_from"] == "open data"
    assert described["medians"]["daily shape"] == [0.5, 0.01, 0.7, 300.0]
    without = load("HistoryInformed", scale=5000.0)
    assert without.configuration_hash != settings.configuration_hash
    assert "proxy" not in without.describe_mechanism(date.min)


@pytest.mark.parametrize(
    "broken",
    [
        proxy({"drift": [0.1, 0.1, 6.0]}),
        proxy(GENERAL | {"drift": [0.1, 0.1]}),
        proxy(GENERAL | {"drift": [0.1, -0.1, 6.0]}),
        proxy(GENERAL | {"drift": "many"}),
        proxy(GENERAL, learned_from='""'),
        '"proxy.toml"',
    ],
)
def test_a_proxy_that_is_none_is_refused(refusal, broken):
    assert "mechanism.proxy must be the table that `python -m studies learn-proxy` prints" in refusal(
        "HistoryInformed", proxy=broken
    )


def test_the_configuration_hash_tells_mechanisms_and_their_keys_apart(load):
    hashes = {
        load(name, **keys).configuration_hash
        for name, keys in (
            ("Laplace", {}),
            ("Sample", {}),
            ("Fourier", {}),
            ("Fourier", {"n_coefficients": "5"}),
        )
    }
    assert len(hashes) == 4


@pytest.mark.parametrize(
    ("arguments", "keys", "message"),
    [
        (("Furrier",), {}, "mechanism.name must be \"OptStream\" or \"Laplace\" or .*; got 'Furrier'"),
        (("Fourier",), {"n_coefficients": "0"}, "n_coefficients of Fourier must be .* at least 1; got 0"),
        (("Fourier",), {"n_coeficients": "5"}, "is not a known key; did you mean n_coefficients"),
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
                f"privacy.{key} must be left out: .* `optstream ledger amend`",
            )
            for key, values in {"calibration": ("strict", "paper"), "windows": ("sliding", "aligned")}.items()
            for value in values
        ),
        (("Laplace",), {"n_samples": "5"}, "mechanism.n_samples is not a known key"),
        (("Sample",), {"keep": ["sampling"]}, r"\[sampling\] must be left out: it is for .*OptStream"),
        (("Sample",), {"keep": ["features"]}, r"\[features\] must be left out"),
        (("Sample",), {"keep": ["stages"]}, "budget.stages must be left out"),
        (("BudgetAbsorption",), {"distance_share": '"1"'}, "distance_share of .* between 0 and 1; got 1"),
        (("Fast",), {"n_samples": "49"}, r"n_samples of Fast must be an integer in \[1, .*\]; got 49"),
        (("Fast",), {"integral": "0.2"}, "proportional, integral and derivative of Fast must add up to 1"),
        (("Fast",), {"set_point": "inf"}, "set_point of Fast must be a finite number greater than 0"),
        (("PeGaSus",), {"groups": '"parents"'}, 'groups must be "own" or "children"'),
        (("PeGaSus",), {"smoother": '"mean"'}, 'smoother must be "median", "average" or "james_stein"'),
    ],
)  # fmt: skip
def test_refusals_name_the_key_the_range_and_the_remedy(refusal, arguments, keys, message):
    assert re.search(message, refusal(*arguments, **keys))


@pytest.mark.parametrize(("name", "keys"), [("HistoryInformed", {}), ("Laplace", {})])
def test_level_shares_by_the_model_need_a_model_and_a_public_scale(refusal, name, keys):
    said = refusal(name, (HALVES, BY_MODEL), **keys)
    assert 'budget.levels "model" is for mechanism.name "HistoryInformed" with mechanism.scale' in said


def test_level_shares_are_a_list_or_the_word(refusal):
    said = refusal("HistoryInformed", (HALVES, 'levels = "best"'), scale=5000.0)
    assert "budget.levels must be a list of shares in [0, 1]" in said
    assert "got 'best'" in said
