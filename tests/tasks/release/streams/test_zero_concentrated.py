"""A stream with a delta, from its configuration to what readers and operators are told."""

import json
from datetime import UTC, datetime
from fractions import Fraction

import polars as pl
import pytest

from optstream.catalogue import ReleaseStatement
from optstream.errors import ConfigurationError, LedgerError
from optstream.privacy import worst_window
from optstream.privacy.zero_concentrated import largest_rho
from tasks.config import load_settings
from tasks.ledger.documents import book_document
from tasks.ledger.export import export
from tasks.ledger.show import read_book, read_horizons
from tasks.ledger.verify import verify
from tasks.operate.amend import declare, rehearse
from tasks.plan.backfill import cost_of
from tasks.plan.dry_run import dry_run
from tasks.plan.expected import dry_run_document
from tasks.release.outcomes import budget_document, budget_of
from tasks.reports.write import write_pages
from tasks.ui.views.guarantees import guarantee_rows
from tests.tasks.release.streams.conftest import DAYS
from tests.tasks.schemas.test_schemas import validator

DELTA = Fraction(1, 10**6)
RHO = largest_rho(Fraction(1), DELTA)


@pytest.fixture
def released(with_mechanism):
    """Three days by Gaussian noise."""
    installation = with_mechanism("Gaussian")
    installation.released(*DAYS[:3])
    return installation


def test_readers_are_told_epsilon_at_delta_and_rho(released):
    manifests = [json.loads(data) for _, data in sorted(released.files("published/manifests").items())]
    assert len(manifests) == 3
    for manifest in manifests:
        assert list(validator("optstream.manifest/1").iter_errors(manifest)) == []
        statement = manifest.get("statement", manifest)
        assert statement["privacy_model"]["delta"] == str(DELTA)
        assert Fraction(statement["privacy_model"]["rho"]) == RHO
        assert Fraction(99, 100) < Fraction(statement["epsilon_plan"]) <= 1
        assert Fraction(1, 2) < Fraction(statement["epsilon_own"]) <= 1
        words = statement["privacy_in_words"]
        assert "by at most delta = 1e-06 added to any probability" in words
        assert "rho of zero-concentrated privacy: any window has at most 0.024356 of it" in words
        assert "costs at most c^2 times rho" in words
        assert {one["law"] for one in statement["noise"]} == {"discrete Gaussian"}
        assert {span["composed"] for span in statement["long_spans"]} == {"rho"}
        reread = ReleaseStatement.from_document(statement)
        assert reread.to_document() == statement


def test_operators_are_told_rho(released):
    settings, ledger = released.settings, released.ledger
    budget = budget_of(settings, ledger)
    assert budget.grant == RHO
    assert RHO * (1 - DELTA) < budget.spent <= RHO
    assert budget.in_words == "rho 0.024356 (epsilon 1 at delta 1e-06)"
    assert 0.99 < budget.told(budget.spent) <= 1
    document = budget_document(budget)
    assert (document["currency"], document["in_words"]) == ("rho", budget.in_words)
    (row,) = guarantee_rows(ledger.guarantees("two-regions"), {})
    assert row.epsilon == "1 at delta 1e-06"
    pages, horizons = read_book(settings, ledger), read_horizons(settings, ledger)
    (grant,) = book_document(pages, horizons, "two-regions", [])["grants"]
    assert (grant["currency"], grant["epsilon"], grant["delta"], grant["rho"]) == (
        "rho", "1", str(DELTA), str(RHO),
    )  # fmt: skip
    assert all(day["left_float"] <= float(RHO) for day in grant["days"])
    assert all(one.loss.composed == "rho" for one in horizons)
    assert verify(settings, ledger).problems == ()


def test_the_exported_ledger_has_columns_of_its_own_for_rho(released):
    done = export(released.settings, released.ledger, released.folder / "out")
    rows = pl.read_parquet(done.folder / "spends.parquet")
    assert rows["epsilon"].null_count() == rows["epsilon_float"].null_count() == rows.height > 0
    (spend, *_) = released.record(DAYS[0]).spends
    assert Fraction(rows["rho"][0]) == worst_window([spend], 48).epsilon
    assert rows["rho_float"][0] == float(Fraction(rows["rho"][0]))


def test_the_pages_are_written(released):
    write_pages(released.settings, released.ledger, datetime(2016, 6, 5, tzinfo=UTC))
    pages = {str(path): data.decode("utf-8", "replace") for path, data in released.files("").items()}
    public = next(text for path, text in pages.items() if path.endswith("published/index.html"))
    assert "(delta) added to any probability beside it" in public
    assert "any window has at most 0.024356" in public
    assert "standard deviation of its Gaussian noise" in public
    assert "Laplace noise" not in public


def test_the_dry_run_and_a_backfill_count_in_rho(released):
    found = dry_run(released.settings, [DAYS[3]])
    document = dry_run_document(found)
    assert found.fits
    assert (document["currency"], document["delta"]) == ("rho", str(DELTA))
    assert 0.99 < document["plan_at_delta"]["epsilon_float"] <= 1
    told = {key: value for key, value in document.items() if key not in ("plan_at_delta", "horizons")}
    assert set(told["plan"]) == set(told["periods"][0]["levels"][0]["plan"]) == {"rho", "rho_float"}
    assert document["horizons"][0]["plain_sum"].keys() == {"rho", "rho_float"}
    assert found.currencies.better == document["currencies"]["better"] == "rho"
    assert all(one.rho < one.epsilon for one in found.currencies.levels)
    cost = cost_of(released.settings, released.ledger, [DAYS[3]])
    assert (cost.grant, cost.refused) == (RHO, ())
    assert cost.after <= RHO


def test_a_window_of_few_steps_is_better_off_with_laplace_noise(released):
    released.configure("window = 48", "window = 4")
    settings = load_settings(released.folder / "optstream.toml")
    assert dry_run(settings, [DAYS[3]]).currencies.better == "epsilon"


def test_a_stream_does_not_change_its_currency(released):
    released.configure('delta = "1e-6"\n', "")
    released.configure('name = "Gaussian"', 'name = "Laplace"')
    with pytest.raises(LedgerError, match="has releases, made under another delta, rho: "):
        released.release(DAYS[3])
    settings = load_settings(released.folder / "optstream.toml")
    for ask in (
        rehearse,
        lambda *given: declare(*given, "another currency", datetime(2016, 7, 1, tzinfo=UTC)),
    ):
        with pytest.raises(LedgerError, match=r"currency .* cannot be amended.* a whole window or more"):
            ask(settings, released.ledger)


def test_a_delta_and_its_mechanism_come_together(released):
    released.configure('name = "Gaussian"', 'name = "Laplace"')
    with pytest.raises(ConfigurationError, match=r'privacy\.delta is for mechanism\.name "Gaussian"'):
        load_settings(released.folder / "optstream.toml")
    released.configure('name = "Laplace"', 'name = "Gaussian"')
    released.configure('delta = "1e-6"\n', "")
    with pytest.raises(ConfigurationError, match=r"privacy\.delta must be given"):
        load_settings(released.folder / "optstream.toml")
    released.configure('epsilon = "1"', 'epsilon = "1"\ndelta = "0.1"')
    with pytest.raises(ConfigurationError, match="delta"):
        load_settings(released.folder / "optstream.toml")
