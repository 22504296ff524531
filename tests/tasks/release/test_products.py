"""Products of one population, and nights of joint blocks."""

import json
import shutil
from dataclasses import replace
from fractions import Fraction

import polars as pl
import pytest
from typer.testing import CliRunner

from flows.cli.main import app
from optstream.catalogue import read_published
from optstream.catalogue.about import read_about
from optstream.catalogue.backends import open_storage
from optstream.errors import LedgerError
from optstream.ledger import Key
from optstream.privacy import OrderSpend, StepSpend, worst_window
from tasks.ledger.export import export
from tasks.monitor.alarms import Kind
from tasks.pages.public import deployment_of, write_pages, write_public_page
from tasks.release.run import Status, terms_of
from tests.optstream.ledger.brute_force import Charged, above, broken
from tests.tasks.two_regions import DAYS, FEW_BLOCKS, STEPS, Installation, night, two_products

pytestmark = pytest.mark.slow

DAY, NEXT, THIRD = DAYS[:3]


@pytest.fixture
def products(tmp_path):
    """Electricity with alpha 1, gas with alpha 3 and another resolution; half of epsilon each."""
    both = two_products(tmp_path)
    for one in both.values():
        one.simulate(DAY, NEXT)
    return both


def test_noise_of_one_that_became_known_is_said_by_all(products):
    electricity, gas = products["electricity"], products["gas"]
    for one in (electricity, gas):
        one.release(DAY, NEXT)
        write_pages(one.settings, one.ledger, one.now)
    published = gas.folder / "published"
    names = ["about", "datapackage", "croissant", "deployment-card"]
    names = ("index.html", "deployment-card.html", "dcat.jsonld", *(f"{name}.json" for name in names))
    assert not any("noise of" in path.read_text() for name in names if (path := published / name).exists())
    electricity.compromise(NEXT)
    assert gas.ledger.known_noise("gas") == (("electricity", "2016-06-02"),)
    assert gas.ledger.known_noise("nobody") == ()
    for one in (electricity, gas):
        for streams in (["electricity"], []):  # until readers know
            alarms = one.watch(live=False).alarms
            said = [alarm.node for alarm in alarms if alarm.kind is Kind.COMPROMISED and alarm.day is None]
            assert said == streams
            write_pages(one.settings, one.ledger, one.now)
    for name in names:
        said = (published / name).read_text()
        assert "2016-06-02" in said.replace("&nbsp;", " "), name
        assert "electricity 2016-06-02" in said or name == "about.json", name
    alone = gas.folder / "alone.html"
    write_public_page(published, alone)
    assert "electricity 2016-06-02" in alone.read_text()
    with pytest.warns(UserWarning, match="electricity 2016-06-02"):
        read_published(published)
    called = CliRunner().invoke(app, ["verify-published", str(published), "--json"])
    assert json.loads(called.stdout)["known_noise"] == [["electricity", "2016-06-02"]]
    rows = gas.folder / "rows.csv"
    called = CliRunner().invoke(app, ["export", str(published), "--output", str(rows), "--json"])
    assert json.loads(called.stdout)["known_noise"] == [["electricity", "2016-06-02"]]
    export(gas.settings, gas.ledger, gas.folder / "exported")
    exported = pl.read_parquet(gas.folder / "exported/releases.parquet").drop_nulls("compromised")
    assert exported.select("stream", "period").rows() == [("electricity", "2016-06-02")]
    # what later versions add is ignored
    document = json.loads((published / "about.json").read_text()) | {"later": 1}
    document["nodes"] = {"84": {"name": "Rhone", "later": 1}}
    (published / "about.json").write_text(json.dumps(document))
    assert read_about(open_storage(published)).known_noise == (("electricity", "2016-06-02"),)
    assert gas.problems() == []


def charges_of(records):
    """Each release under its own guarantee."""
    return [Charged(one.spends, one.amendment) for one in records if one]


def test_an_amendment_of_one_product_is_one_of_all_and_a_later_stream_joins(products, tmp_path):
    electricity, gas = products["electricity"], products["gas"]
    electricity.configure('stream_share = "1/2"', 'stream_share = "1/4"')
    for one in (electricity, gas):
        one.simulate(THIRD)
        one.release(DAY)
    electricity.configure('alpha = "1"', 'alpha = "2"')
    population = tmp_path / "population.toml"
    text = population.read_text().replace('budget_alpha = "1"', 'budget_alpha = "2"')
    population.write_text(text.replace("streams = [", 'streams = ["heat/optstream.toml", '))
    electricity.ledger.amend(terms_of(electricity.settings), "larger customers", electricity.now)
    with pytest.raises(LedgerError, match="made under another own_alpha: "):
        gas.run()
    gas.configure('alpha = "3"', 'alpha = "6"')
    assert electricity.statuses(THIRD) == gas.statuses(THIRD) == {Status.PUBLISHED}
    # a third quantity has what the others leave: a quarter
    heat = Installation(tmp_path / "heat")
    shutil.copytree(gas.folder, heat.folder, ignore=shutil.ignore_patterns("trusted", "published"))
    heat.configure('name = "gas"', 'name = "heat"')
    heat.configure('alpha = "6"', 'alpha = "0.5"')
    heat.configure('resolution = "1"', 'resolution = "0.5"')
    assert heat.statuses(THIRD) == {Status.REFUSED}
    heat.configure('stream_share = "1/2"', 'stream_share = "1/4"')
    assert heat.statuses(THIRD) == {Status.PUBLISHED}
    ledger = gas.ledger
    assert [one.problems() for one in (electricity, gas, heat)] == [[]] * 3
    assert ledger.terms("heat").alpha_ratio == Fraction(1, 4)
    # and the card of each says how large a change of its own readings may be
    for one, alpha in ((electricity, 2), (gas, 6), (heat, Fraction(1, 2))):
        assert deployment_of(one.settings, ledger, ()).model.alpha == alpha
    guarantees = [replace(one.settings.model, alpha=Fraction(alpha)) for one, alpha in ((gas, 1), (gas, 2))]
    names = ("electricity", "gas", "heat")
    charged = charges_of(ledger.find(Key(name, str(day))) for name in names for day in (DAY, THIRD))
    assert len(charged) == 5
    assert not above(guarantees, charged)
    assert worst_window([spend for one in charged[1:] for spend in one.spends], 48).epsilon > Fraction(1, 2)


FIRST, SECOND, VOID, FOURTH, FIFTH, SIXTH = DAYS


def charged(installation):
    return charges_of(installation.record(day, revision) for day in DAYS for revision in (0, 1))


def blocks(installation, day, revision=0):
    record = installation.record(day, revision)
    if not revision:
        assert [(type(spend), spend.n_nodes) for spend in record.spends] == [(OrderSpend, 1), (OrderSpend, 2)]
    return [sum(map(bool, spend.weights)) for spend in record.spends]


def test_restated_void_and_amended_nights_keep_every_guarantee(learning):
    """Twelve blocks with joint noise at every level; a tenth of epsilon is kept for restatements."""
    learning.configure('name = "two-regions"', 'name = "two-regions"\nleaves_per_window = 1')
    learning.configure(FEW_BLOCKS, 'noise = "joint"\nscale = 1000.0')
    guarantees = [learning.settings.model]
    night(learning, FIRST)
    night(learning, SECOND)
    full = blocks(learning, SECOND)
    assert full[0] > 1
    # a restatement has its own part of epsilon, fewer blocks, and Laplace noise
    assert learning.status(FIRST, restate=True) is Status.PUBLISHED
    assert [0, 0] < blocks(learning, FIRST, 1) < full
    assert {type(spend) for spend in learning.record(FIRST, 1).spends} == {StepSpend}
    # a day that was reserved and given up stays charged for its plan
    learning.release(VOID, steps=STEPS[:5])
    learning.ledger.void(Key("two-regions", str(VOID)), "given up", learning.now)
    night(learning, FOURTH)
    assert [0, 0] < blocks(learning, FOURTH) < full, "no window holds a block of it and one of the void day"
    assert learning.problems() == []
    # larger changes: what was drawn counts twice, so windows across midnight are full, and a day waits
    learning.configure('alpha = "1"', 'alpha = "2"')
    learning.ledger.amend(terms_of(learning.settings), "larger customers", learning.now)
    guarantees.append(learning.settings.model)
    assert learning.status(FIFTH) is Status.REFUSED
    night(learning, SIXTH)
    assert [0, 0] < blocks(learning, SIXTH) <= full
    assert learning.problems() == []
    # what was drawn is what was charged, and no window of either guarantee is above it
    for day in (FIRST, SECOND, FOURTH, SIXTH):
        assert learning.measured(day).spends == learning.record(day).spends
    spends = charged(learning)
    assert not above(guarantees, spends)
    # the control: the same spends under half of epsilon
    assert list(broken([replace(one, epsilon=one.epsilon / 2) for one in guarantees], spends))
    # and a day that is withdrawn stays charged
    learning.withdraw(SECOND)
    assert charged(learning) == spends
    assert learning.problems() == []
