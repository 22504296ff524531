"""What a dry run and the advice say of a hierarchy with a margin."""

from datetime import date
from fractions import Fraction

import pytest

from flows.cli.show.advice import as_toml
from tasks.config import load_settings
from tasks.config.example_kinds import Kind, example_of
from tasks.planning.advice.compare_plans import compare_plans
from tasks.planning.advice.plans_picture import draw_plans
from tasks.planning.advice.propose_plans import advice_document, advise_plans
from tasks.planning.advice.write_proposal import write_proposal
from tasks.planning.dry_run import dry_run
from tasks.planning.preview import dry_run_document

DAY = date(2016, 2, 1)
SECTORS = '[hierarchy.margins]\nsector = ["industry", "homes"]\n[budget]\nmargins = { sector = "1/4" }\n'


@pytest.fixture
def settings(tmp_path):
    text = example_of(Kind("Laplace", False, False, 2)).replace("[budget]\n", SECTORS)
    path = tmp_path / "optstream.toml"
    path.write_text(text.replace('levels = ["1/2", "1/2"] ', 'levels = ["1/4", "1/4", "1/4"] '))
    return load_settings(path)


def test_a_dry_run_names_the_margin_and_prices_it_as_a_level(settings):
    found = dry_run(settings, [DAY])
    (period,) = found.periods
    assert [level.name for level in period.levels] == ["level 0", "level 1", "level 2", "sector"]
    assert [level.n_nodes for level in period.levels] == [1, 12, 24, 2]
    margin = period.levels[-1]
    assert margin.epsilon == pytest.approx(0.25)
    assert 0 < margin.band.typical < period.levels[2].band.typical * 12**0.5, "less than adding up its cells"
    assert found.fits
    (document,) = dry_run_document(found)["periods"]
    assert [level["name"] for level in document["levels"]][-1] == "sector"


def test_plans_with_a_margin_have_shares_and_errors_of_it(settings):
    found = compare_plans(settings, scale=1000.0)
    assert found.levels == ("level 0", "level 1", "level 2", "sector")
    assert [one.size for one in found.configured.expected] == [24_000, 2_000, 1_000, 12_000]
    of_margin = {plan.level_shares[-1] for plan in found.plans}
    assert {Fraction(0), Fraction(1, 4)} < of_margin
    for plan in found.plans:
        budget = plan.choice.keys.get("budget")
        if budget is not None:
            shares = [*budget["levels"], budget["margins"]["sector"]]
            assert tuple(map(Fraction, shares)) == plan.level_shares
            assert sum(plan.level_shares) == 1
    # the sum of a sector's cells, each with noise of its own, errs more than a sector that is measured
    same = {plan.level_shares[-1]: plan for plan in found.plans if "Laplace; levels 1/3" in plan.choice.label}
    laplace = next(plan for plan in found.plans if plan.choice.label == "as configured")
    assert all(plan.expected[3].error > laplace.expected[3].error for plan in same.values())


def test_a_proposal_with_a_margin_is_drawn_and_written(settings, tmp_path):
    budget = {"levels": ["1/8", "1/8", "1/4"], "margins": {"sector": "1/2"}}
    keys = {"budget": budget}
    write_proposal(settings, keys, tmp_path / "proposed.toml")
    proposed = load_settings(tmp_path / "proposed.toml")
    assert proposed.level_shares == tuple(map(Fraction, ("1/8", "1/8", "1/4", "1/2")))
    assert 'margins = { sector = "1/2" }' in as_toml(keys)
    advice = advise_plans([settings], [1000.0])
    draw_plans(advice, tmp_path / "plans.svg")
    assert ">sector<" in (tmp_path / "plans.svg").read_text()
    assert advice_document(advice)["streams"][0]["levels"][-1] == "sector"


def test_shares_are_chosen_without_a_word_in_the_folders_of_others(tmp_path):
    """A share beside those of other streams goes by their level shares, which are theirs to keep."""
    text = example_of(Kind("HistoryInformed", False, False, 2)).replace(
        "[privacy]\n", '[privacy]\nbudget_alpha = "10"\n'
    )
    for name, other in (("one", "two"), ("two", "one")):
        own = text.replace(
            "[budget]\n", f'[budget]\nstream_share = "model"\nshared_with = ["{other}.toml"]\n'
        )
        own = own.replace("french-load", name).replace('folder = "trusted"', f'folder = "trusted-{name}"')
        (tmp_path / f"{name}.toml").write_text(own)
        (tmp_path / f"trusted-{name}").mkdir(mode=0o700)
    settings = load_settings(tmp_path / "one.toml")
    assert settings.stream_share == Fraction(1, 2)
    assert list((tmp_path / "trusted-one").iterdir()) != []
    assert list((tmp_path / "trusted-two").iterdir()) == []
