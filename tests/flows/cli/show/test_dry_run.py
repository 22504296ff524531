"""`optstream run --dry-run` as its user meets it: tables or one document, and nothing touched."""

import json

import pytest

from optstream.ledger import open_ledger
from tasks.config import load_settings
from tests.flows.command import invoke

DRY = ("run", "--date", "2016-02-01", "--dry-run")


@pytest.mark.slow
def test_it_prints_prices_bands_and_the_verdict_for_people(here, whole_spans):
    result = invoke(*DRY, "--lipschitz", "200")
    assert result.exit_code == 0
    told = [" ".join(line.split()) for line in result.output.splitlines()]
    for line in (
        "french-load: a dry run; nothing is read, drawn or charged",
        "0 samples answers 0.25 400 565.685",
        "1 feature day answers 0.125 3840 5430.58",
        "1 all, in any window 0.5",
        "all this day alone 1",
        "1 12 403.69 301.231 532.133",
        "1 11 744.167 744.444",
        "any 48 steps lose at most epsilon 1 by this plan, and may lose 1: it fits",
    ):
        assert line in told
    assert any(line.startswith("a customer's 365 days: epsilon up to 3") for line in told)
    assert "\x1b" not in result.output
    assert max(map(len, result.output.splitlines())) <= 80


@pytest.mark.slow
def test_it_prints_one_document_for_machines(here):
    document = json.loads(invoke(*DRY, "--date", "2016-03-27", "--json").output)
    assert document["format"] == "optstream.dry-run/1"
    assert [period["n_steps"] for period in document["periods"]] == [48, 46]
    assert document["fits"] is True
    assert document["suggestions"] == []


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
    assert invoke(*DRY, "--lipschitz", "1").exit_code == 0
    assert file.read_bytes() == ledger
    assert sorted(here.rglob("*")) == before
