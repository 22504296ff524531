"""`optstream run --dry-run` as its user meets it: tables or one document, and nothing touched."""

import json
import re
from fractions import Fraction

import pytest
from jsonschema import Draft202012Validator

from optstream.errors import ConfigurationError
from optstream.ledger import open_ledger
from tasks.config import load_settings
from tasks.schemas import schema_of
from tests.flows.command import invoke
from tests.tasks.products import POPULATION, SAID_THERE
from tests.tasks.two_regions import CONFIGURATION

DRY = ("run", "--date", "2016-02-01", "--dry-run")


def change(here, old, new):
    file = here / "optstream.toml"
    text = file.read_text()
    assert text.count(old) == 1
    file.write_text(text.replace(old, new))


@pytest.mark.slow
def test_it_prints_prices_bands_and_the_verdict_for_people(here, whole_spans):
    result = invoke(*DRY)
    assert result.exit_code == 0
    told = [" ".join(line.split()) for line in result.output.splitlines()]
    for line in (
        "french-load: a dry run; no reading is read, nothing is drawn or charged",
        "0 samples answers 0.25 400 565.685",
        "1 feature day answers 0.125 3840 5430.58",
        "1 all, in any window 0.5",
        "all this day alone 1",
        "1 12 403.69 301.231 532.133",
        "any 48 steps lose at most epsilon 1 by this plan, and may lose 1: it fits",
        "budget.restatement_share is 0: no day can be measured again",
    ):
        assert line in told
    assert any(line.startswith("a customer's 365 days: epsilon up to 3") for line in told)
    assert "\x1b" not in result.output
    assert max(map(len, result.output.splitlines())) <= 80
    change(here, 'restatement_share = "0"', 'restatement_share = "1/10"')
    kept = "first releases have 9/10, restatements 1/10 of it: budget.restatement_share"
    assert kept in invoke(*DRY).output


@pytest.mark.slow
def test_it_says_errors_beside_sizes_and_what_is_as_good_as_nothing(here):
    """HistoryInformed over regions that are publicly taken for 0.1 MW: an alpha of 10 hides them."""
    text = (here / "optstream.toml").read_text()
    text = re.sub(r"\[mechanism\].*\n(.+\n)+", '[mechanism]\nname = "HistoryInformed"\nscale = 0.1\n', text)
    for table in ("sampling", "features"):
        text = re.sub(rf"\[{table}\].*\n(.+\n)+", "", text)
    (here / "optstream.toml").write_text(text)
    result = invoke(*DRY)
    assert result.exit_code == 0, result.output
    told = " ".join(result.output.split())
    assert "expected error of a published value, beside the typical size of its node" in told
    assert "level nodes error typical size" in told
    assert re.search(r"level 1: error [\d.]+ at a typical 0.1: as good as nothing; give it", told)
    assert max(map(len, result.output.splitlines())) <= 80


@pytest.mark.slow
def test_it_prints_one_document_for_machines(here):
    document = json.loads(invoke(*DRY, "--date", "2016-03-27", "--json").output)
    assert document["format"] == "optstream.dry-run/2"
    assert [period["n_steps"] for period in document["periods"]] == [48, 46]
    assert document["fits"] is True
    Draft202012Validator(schema_of(document["format"])).validate(document)


@pytest.mark.slow
def test_it_needs_no_dump_and_spends_nothing(here):
    before = sorted(here.rglob("*"))
    assert invoke(*DRY).exit_code == 0
    assert sorted(here.rglob("*")) == before
    settings = load_settings(here / "optstream.toml")
    settings.trusted_folder.mkdir()
    open_ledger(settings.ledger_url).close()
    file = here / "trusted/ledger.sqlite"
    ledger, before = file.read_bytes(), sorted(here.rglob("*"))
    assert invoke(*DRY).exit_code == 0
    assert file.read_bytes() == ledger
    assert sorted(here.rglob("*")) == before


@pytest.mark.slow
def test_errors_are_those_of_the_project(here):
    change(here, '# threshold = "500"', 'threshold = "-1"')
    with pytest.raises(ConfigurationError):
        invoke(*DRY)
    change(here, 'threshold = "-1"', 'threshold = "500"')
    result = invoke(*DRY)
    assert "the draw chooses the points" in result.output
    assert max(map(len, result.output.splitlines())) <= 80


TOGETHER = ("run", "--date", "2016-02-01", "--dry-run", "--config", "population.toml")
ALPHAS = {"electricity": "1", "gas": "3", "heat": "2", "water": "0.1"}
SAMPLING = '[sampling]\nmethod = "equally_spaced"\nn_samples = 10\n'
INFORMED = '[mechanism]\nname = "HistoryInformed"\nscale = 2000\n'


@pytest.fixture
def four(tmp_path, monkeypatch):
    """Four products, a quarter of epsilon each; gas and heat by HistoryInformed, water of much less."""
    monkeypatch.chdir(tmp_path)
    listed = ", ".join(f'"{name}.toml"' for name in ALPHAS)
    text = re.sub(r"streams = \[.*\]", f"streams = [{listed}]", POPULATION)
    (tmp_path / "population.toml").write_text(text)
    for name, alpha in ALPHAS.items():
        text = CONFIGURATION.replace("two-regions", name).replace('"trusted"', f'"trusted/{name}"')
        for said in SAID_THERE:
            text = text.replace(said, "")
        text = text.replace("[privacy]", '[privacy]\npopulation_file = "population.toml"')
        text = text.replace('alpha = "1"', f'alpha = "{alpha}"')
        text = text.replace("[budget]", '[budget]\nstream_share = "1/4"')
        if name in ("gas", "heat"):
            text = text.replace('[mechanism]\nname = "OptStream"\n', INFORMED).replace(SAMPLING, "")
        (tmp_path / f"{name}.toml").write_text(text)
    return tmp_path


@pytest.mark.slow
def test_four_products_of_one_epsilon_are_shown_side_by_side(four):
    before = sorted(four.rglob("*"))
    result = invoke(*TOGETHER)
    assert result.exit_code == 0, result.output
    rows = [
        line.split()
        for line in result.output.splitlines()
        if re.match(r"(electricity|gas|heat|water) ", line)
    ]
    assert [row[:2] for row in rows] == [[name, "1/4"] for name in ALPHAS]
    assert "by these plans together, and may lose 1: they fit" in " ".join(result.output.split())
    assert max(map(len, result.output.splitlines())) <= 80
    document = json.loads(invoke(*TOGETHER, "--json").output)
    (budget,) = document["populations"]
    plans = [Fraction(one["plan"]["epsilon"]) for one in budget["streams"]]
    assert sum(plans) == Fraction(budget["plans"]) <= 1
    errors = {one["stream"]: one["periods"][0]["levels"][1]["expected"]["error"] for one in budget["streams"]}
    # the same plan at a tenth of alpha errs a tenth; a prior that knows the day errs less than none
    assert errors["water"] == pytest.approx(errors["electricity"] / 10, rel=0.01)
    assert errors["heat"] < errors["gas"]
    assert sorted(four.rglob("*")) == before
