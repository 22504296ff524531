"""What a dry run and the advice say of a hierarchy with a margin."""

import re
from fractions import Fraction

import pytest

from flows.cli.advise import as_toml
from tasks.config import load_settings
from tasks.plan.advise import Choice, Judge, advice_document, advise_plans, with_level_shares, write_proposal
from tests.tasks.two_regions import released_by

SECTORS = '[hierarchy.margins]\nsector = ["industry", "homes"]\n[budget]\nmargins = { sector = "1/4" }\n'


@pytest.fixture(scope="module")
def settings(tmp_path_factory):
    text = released_by("Laplace").replace("[budget]\n", SECTORS)
    path = tmp_path_factory.mktemp("margin") / "optstream.toml"
    text = text.replace('step = "30min"', 'step = "1h"').replace("window = 48 ", "window = 24 ")
    text = re.sub(r"(?m)^(2[478]|32|44|5[23]|7[56]|93) = .*\n", "", text)  # two of twelve regions
    path.write_text(text.replace('levels = ["1/2", "1/2"]', 'levels = ["1/4", "1/4", "1/4"]'))
    return load_settings(path)


@pytest.fixture(scope="module")
def advice(settings):
    return advise_plans([settings], [1000.0])


@pytest.mark.nightly
def test_plans_with_a_margin_have_shares_and_errors_of_it(advice):
    found = advice.streams[0].compared
    assert found.levels == ("level 0", "level 1", "level 2", "sector")
    assert [one.size for one in found.configured.expected] == [4_000, 2_000, 1_000, 2_000]
    of_margin = {plan.level_shares[-1] for plan in found.plans}
    assert {Fraction(0), Fraction(1, 4)} < of_margin
    for plan in found.plans:
        budget = plan.choice.keys.get("budget")
        if budget is not None:
            shares = [*budget["levels"], budget["margins"]["sector"]]
            assert tuple(map(Fraction, shares)) == plan.level_shares
            assert sum(plan.level_shares) == 1
    # the sum of a sector's cells, each with noise of its own, errs more than a sector that is measured
    derived = (*[Fraction(1, 3)] * 3, Fraction(0))
    choice = with_level_shares(Choice("", {}, found.settings), derived)
    without = Judge.of(found.settings, 1000.0).judged(choice)
    assert without.expected[3].error > found.configured.expected[3].error


@pytest.mark.nightly
def test_a_proposal_with_a_margin_is_written(settings, advice):
    folder = settings.folder
    budget = {"levels": ["1/8", "1/8", "1/4"], "margins": {"sector": "1/2"}}
    keys = {"budget": budget}
    write_proposal(settings, keys, folder / "proposed.toml")
    proposed = load_settings(folder / "proposed.toml")
    assert proposed.level_shares == tuple(map(Fraction, ("1/8", "1/8", "1/4", "1/2")))
    assert 'margins = { sector = "1/2" }' in as_toml(keys)
    assert advice_document(advice)["streams"][0]["levels"][-1] == "sector"
