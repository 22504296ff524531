"""`optstream run --dry-run` of several streams: four products of one epsilon, their errors side by side."""

import json
import re
from fractions import Fraction

import pytest

from tests.flows.command import invoke
from tests.tasks.products import POPULATION, SAID_THERE
from tests.tasks.two_regions import CONFIGURATION

DRY = ("run", "--date", "2016-02-01", "--dry-run", "--config", "population.toml")
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
    result = invoke(*DRY)
    assert result.exit_code == 0, result.output
    rows = [
        line.split()
        for line in result.output.splitlines()
        if re.match(r"(electricity|gas|heat|water) ", line)
    ]
    assert [row[:2] for row in rows] == [[name, "1/4"] for name in ALPHAS]
    assert "by these plans together, and may lose 1: they fit" in " ".join(result.output.split())
    assert max(map(len, result.output.splitlines())) <= 80
    document = json.loads(invoke(*DRY, "--json").output)
    (budget,) = document["populations"]
    plans = [Fraction(one["plan"]["epsilon"]) for one in budget["streams"]]
    assert sum(plans) == Fraction(budget["plans"]) <= 1
    errors = {one["stream"]: one["periods"][0]["levels"][1]["expected"]["error"] for one in budget["streams"]}
    # the same plan at a tenth of alpha errs a tenth; a prior that knows the day errs less than none
    assert errors["water"] == pytest.approx(errors["electricity"] / 10, rel=0.01)
    assert errors["heat"] < errors["gas"]
    assert sorted(four.rglob("*")) == before
