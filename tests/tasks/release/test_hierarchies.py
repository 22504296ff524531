"""Days on both sides of a change of the hierarchy, and days with a second dimension."""

import shutil
from itertools import product

import numpy as np
import polars as pl
import pytest

import optstream
from optstream.errors import LedgerError, ParameterError
from tasks.ledger.verify import verify
from tasks.release.run import Status, terms_of
from tests.by_night import few
from tests.tasks.two_regions import DAYS, FEW_BLOCKS

CHANGED = DAYS[2]
CHANGE = f"[[hierarchy.changes]]\nvalid_from = {CHANGED}\n"
OPERATIONS = {
    "renamed": ('renamed = { 11 = "IDF" }', {"84", "IDF"}),
    "added": ('added = { 94 = "FR" }', {"84", "11", "94"}),
    "removed": ('removed = ["11"]', {"84"}),
    "split": ('split = { 84 = { 84N = "2", 84S = "1" } }', {"84N", "84S", "11"}),
    "merged": ('merged = { ALL = ["84", "11"] }', {"ALL"}),
}
MECHANISMS = ("OptStream", "PeGaSus", "HistoryInformed", "BudgetAbsorption")


BY_DAY = [*product(OPERATIONS, ["OptStream"]), ("merged", "HistoryInformed")]
CHANGES = [*BY_DAY, *(one for one in product(OPERATIONS, MECHANISMS) if one not in BY_DAY)]


@pytest.mark.parametrize("change", few(CHANGES, len(BY_DAY)))
def test_a_change_before_and_after_which_days_are_released(installation, change):
    operation, mechanism = change
    installation.change_mechanism(mechanism)
    done = installation.release(*DAYS[:2])
    text, leaves = OPERATIONS[operation]
    installation.configure("[budget]\n", f"{CHANGE}{text}\n[budget]\n")
    installation.simulate(*DAYS[2:4])
    done |= installation.release(*DAYS[2:4])
    assert {one.status for one in done.values()} == {Status.PUBLISHED}, done
    rows = installation.rows()
    for day in DAYS[:4]:
        own = rows.filter(date=day)
        expected = {"FR", "84", "11"} if day < CHANGED else {"FR", *leaves}
        assert set(own["node"]) == expected, day
        assert own.height == 48 * len(expected)
        wide = own.pivot(on="node", index="step", values="load_mw")
        gap = wide["FR"] - sum(wide[leaf] for leaf in expected - {"FR"})
        assert gap.abs().max() < 1e-6
    assert len(installation.ledger.event_times("two-regions", "hierarchy")) == 1
    assert installation.problems() == []


def test_no_raw_state_goes_over_a_change(installation):
    installation.change_mechanism("PeGaSus")
    installation.released(*DAYS[:2])
    installation.configure("[budget]\n", f"{CHANGE}{OPERATIONS['renamed'][0]}\n[budget]\n")
    installation.simulate(CHANGED)
    settings = installation.settings
    assert list(settings.measurements_of(DAYS[1], 0).glob("*.raw"))
    assert installation.status(CHANGED) is Status.PUBLISHED
    assert not list(settings.measurements_of(DAYS[1], 0).glob("*.raw"))
    groups = [series for part in installation.measured(CHANGED).parts for series in part.choices["groups"]]
    assert min(map(min, groups)) >= settings.calendar.first_step(CHANGED)


def test_a_hierarchy_that_was_amended_is_not_remembered_in_the_old_shape(installation):
    """The state of two regions failed the draw of three after its first sample: every later day was void."""
    installation.change_mechanism("HistoryInformed", FEW_BLOCKS)
    assert installation.status(DAYS[0]) is Status.PUBLISHED
    installation.configure('11 = "FR"', '11 = "FR"\n24 = "FR"')
    installation.simulate(*DAYS[:3])
    installation.ledger.amend(terms_of(installation.settings), "a region more", installation.now)
    for day in DAYS[1:3]:
        assert installation.status(day) is Status.PUBLISHED


LAPLACE = {
    'name = "OptStream"': 'name = "Laplace"',
    '[sampling]\nmethod = "equally_spaced"\nn_samples = 10\n': "",
    "[budget]\n": '[hierarchy.margins]\nsector = ["industry", "homes"]\n[budget]\nmargins.sector = "1/4"\n',
    'levels = ["1/2", "1/2"]': 'levels = ["1/4", "1/4", "1/4"]',
    'schema = "aggregated"': 'schema = "aggregated"\nregion = "region"\nmargin = "sector"',
    '[published]\nfolder = "published"': '[published]\nfolder = "published"\nmeasurements = true',
}
REGIONS, SECTORS = ("84", "11"), ("industry", "homes")


@pytest.fixture
def cells(installation):
    shutil.rmtree(installation.folder / "dumps")
    for before, after in LAPLACE.items():
        installation.configure(before, after)
    installation.simulate(*DAYS[:2])
    return installation


def dump_of(installation, day):
    (path,) = (installation.folder / f"dumps/date={day}").glob("*.parquet")
    return path


def test_days_are_published_and_add_up_both_ways(cells):
    dump = pl.read_parquet(dump_of(cells, DAYS[0]))
    assert set(dump["region"]) == {*REGIONS}
    assert set(dump["sector"]) == {*SECTORS}
    cells.released(*DAYS[:2])
    rows = cells.rows()
    wide = rows.pivot("node", index=["date", "step"], values="load_mw")
    units = {name: np.rint(wide[name].to_numpy() * 1000).astype(np.int64) for name in wide.columns[2:]}
    for sector in SECTORS:
        assert np.array_equal(units[sector], sum(units[f"{region}-{sector}"] for region in REGIONS))
    for region in REGIONS:
        assert np.array_equal(units[region], sum(units[f"{region}-{sector}"] for sector in SECTORS))
    assert np.array_equal(units["FR"], sum(units[sector] for sector in SECTORS))
    labels = dict(rows.unique("node").select("node", "level").iter_rows())
    assert labels == {"FR": 0, "84": 1, "11": 1, **dict.fromkeys(SECTORS, 3), **{
        f"{region}-{sector}": 2 for region in REGIONS for sector in SECTORS
    }}  # fmt: skip
    # near the truth: each value within ten of its standard errors
    truth = dump.group_by("sector").agg(pl.col("load_mw").sum())
    first = rows.filter(pl.col("date") == DAYS[0])
    for sector, total in truth.iter_rows():
        own = first.filter(pl.col("node") == sector)
        assert abs(own["load_mw"].sum() - total) < 10 * own["load_mw_noise_se"].sum()
    # ledger, folder, measurements, sums and pages agree with it
    settings, folder = cells.settings, str(cells.settings.published_folder)
    cells.write_pages()
    assert verify(settings, cells.ledger).problems == ()
    assert optstream.read_measurements(folder, DAYS[0]).mechanism.tree == settings.tree_of(DAYS[0])
    published = optstream.read_published(folder).filter(pl.col("date") == DAYS[0])
    one = optstream.read_sum(folder, ["industry"], DAYS[0], DAYS[0])
    assert one.value == pytest.approx(published.filter(pl.col("node") == "industry")["load_mw"].sum())
    assert one.standard_error > 0
    both = optstream.read_sum(folder, [*SECTORS], DAYS[0], DAYS[0])
    nation = optstream.read_sum(folder, ["FR"], DAYS[0], DAYS[0])
    assert both.value == pytest.approx(nation.value)
    assert both.standard_error == pytest.approx(nation.standard_error, rel=1e-3)
    with pytest.raises(ParameterError, match="'industry' is of the margin, and others are not"):
        optstream.read_sum(folder, ["industry", "84"], DAYS[0], DAYS[0])
    assert "Margin sector" in (settings.published_folder / "index.html").read_text()


def test_a_row_of_an_unknown_cell_or_a_file_without_the_column_stops_the_day(cells):
    path = dump_of(cells, DAYS[0])
    rows = pl.read_parquet(path)
    homes = (pl.col("sector") == "homes") & (pl.col("region") == "84")
    shops = pl.when(homes).then(pl.lit("shops")).otherwise("sector")
    rows.with_columns(sector=shops).write_parquet(path)
    other = dump_of(cells, DAYS[1])
    pl.read_parquet(other).drop("sector").write_parquet(other)
    reasons = {day: work.message for day, work in cells.release(*DAYS[:2]).items()}
    assert "columns 'region' and 'sector': must be a leaf" in reasons[DAYS[0]]
    assert "'region' and 'sector': must hold these columns" in reasons[DAYS[1]]


def test_another_margin_after_a_release_is_an_amendment(cells):
    """Charges rest on the nodes that they were made for; an amendment says from when on these are others."""
    cells.released(DAYS[0])
    cells.configure('"homes"', '"households"')
    shutil.rmtree(cells.folder / f"dumps/date={DAYS[1]}")
    cells.simulate(DAYS[1])
    with pytest.raises(LedgerError, match="hierarchy"):
        cells.run()
    cells.ledger.amend(terms_of(cells.settings), "sectors called otherwise", cells.now)
    assert cells.status(DAYS[1]) is Status.PUBLISHED
    assert cells.problems() == []
    assert {"homes", "households"} <= set(cells.rows()["node"])
