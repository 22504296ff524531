"""Days that keep public facts: of each step, of changes, of the day; and what clashes is not drawn."""

import gzip
from hashlib import sha256

import numpy as np
import polars as pl
import pytest

from optstream.catalogue.backends import open_storage
from optstream.catalogue.read import read_statement
from optstream.estimation import constraints
from tasks.operate.doctor import examine
from tasks.plan.dry_run import dry_run
from tasks.release.mechanism import estimate_of
from tasks.release.run import Status
from tests.tasks.two_regions import DAYS, listed, night

BOTH = DAY, NEXT = DAYS[:2]
FACTS = """[[constraints]]
nodes = ["84"]
at_most = "300.00055"
[[constraints]]
nodes = 0
most_change = "150"
[[constraints]]
nodes = { 84 = 1, 11 = "-1" }
at_most = "50"
[[constraints]]
totals = "totals.csv"
[published]
"""
TOTALS = "node,date,total\nFR,2016-06-01,24000\nFR,2016-06-02,26000\n11,2016-06-02,14000\n"


@pytest.fixture
def facts(installation):
    (installation.folder / "totals.csv").write_text(TOTALS)
    installation.configure("[published]\n", FACTS)
    return installation


def rows_of(installation, day):
    rows = installation.rows()
    wide = rows.filter(pl.col("date") == day).sort("step").pivot("node", index="step", values="load_mw")
    return {node: wide[node].to_numpy() for node in ("FR", "84", "11")}


def stated(installation, day):
    return read_statement(open_storage(installation.settings.published_folder), installation.entry(day))


@pytest.mark.parametrize("mechanism", ["OptStream", "Laplace", "HistoryInformed"])
def test_published_values_keep_the_facts_and_say_so(facts, mechanism):
    facts.change_mechanism(mechanism, "scale = 100.0" if mechanism == "HistoryInformed" else "")
    assert facts.statuses(*BOTH) == {Status.PUBLISHED}
    for day, totals in ((DAY, {"FR": 24000}), (NEXT, {"FR": 26000, "11": 14000})):
        values, said = rows_of(facts, day), stated(facts, day).constraints
        assert np.allclose(values["FR"], values["84"] + values["11"], atol=1e-9)
        assert min(values["84"].min(), values["11"].min()) >= 0
        assert values["84"].max() <= 300.0  # the bound itself is no multiple of 1/1000
        gaps = [abs(values[node].sum() - total) for node, total in totals.items()]
        gaps += [np.abs(np.diff(values["FR"])).max() - 150, (values["84"] - values["11"]).max() - 50]
        assert max(gaps) <= said.residual + 1e-6 < 0.05
        assert said.converged
        assert 0 < said.gap < 1e-3
        assert said.to_json()["facts"] == [
            {"nodes": ["84"], "at_most": "6000011/20000"},
            {"nodes": 0, "most_change": "150"},
            {"nodes": {"84": "1", "11": "-1"}, "at_most": "50"},
            {"totals_sha256": sha256(TOTALS.encode()).hexdigest()},
        ]
        assert stated(facts, day).consistency is None
    assert facts.problems() == []
    assert facts.comes_back(DAY)


def test_a_day_that_keeps_its_facts_by_itself_has_the_bytes_of_one_without(installation):
    installation.once(type(installation).release, DAY)
    plain = rows_of(installation, DAY)
    loose = '[[constraints]]\nnodes = ["FR"]\nat_most = "1000000"\n[published]\n'
    installation.configure("[published]\n", loose)
    mechanism = installation.run().mechanism_of(DAY, 0)
    found = estimate_of(installation.settings, DAY, mechanism, installation.measured(DAY))
    assert np.array_equal(found.values, mechanism.estimate(installation.measured(DAY)).values)
    assert (found.kept.gap, found.kept.converged) == (0.0, True)
    assert plain["FR"].size == 48


CLASHING = [
    ('nodes = ["84"]\nat_most = "1"', "FR,2016-06-01,24000\n11,2016-06-01,23000\n",
     ["[[constraints]] 1, at_most 1 of '84'; ", "2, totals 24000 of 'FR'; ", "2, totals 23000 of '11'. "]),
    ('nodes = ["84", "11"]\nat_most = "-1"', "11,2016-06-02,5\n",
     ["privacy.lower_bound 0 of each leaf; ", "[[constraints]] 1, at_most -1 of "]),
]  # fmt: skip


@pytest.mark.parametrize(("fact", "totals", "parts"), CLASHING, ids=["totals", "lower bound"])
def test_what_clashes_is_named_and_nothing_is_drawn(facts, fact, totals, parts):
    (facts.folder / "totals.csv").write_text("node,date,total\n" + totals)
    facts.configure(FACTS, f'[[constraints]]\n{fact}\n[[constraints]]\ntotals = "totals.csv"\n[published]\n')
    (warning,) = (one for one in dry_run(facts.settings, [DAY]).warnings if "public facts" in one)
    facts.now = facts.now.replace(month=6, day=2)
    found = [one.rule for one in examine(facts.settings, {}, facts.now) if one.place == "[[constraints]]"]
    assert warning in found
    outcome = facts.ends(DAY, Status.FAILED)
    for message in (warning, outcome.message):
        assert "the public facts of 2016-06-01 clash" in message
        assert all(part in message for part in parts), message
    assert warning.count(";") == len(parts) - 1  # no fact that could be left out
    assert facts.record(DAY) is None


NO_TOTALS = (
    "", "node,day,total\n", "node,date,total\nFR,2016-06-01\n", "node,date,total\n75,2016-06-01,5\n",
    "node,date,total\nFR,2016-06-01,nan\n", "node,date,total\nFR,2016-06-01,1e19\n",
    "node,date,total\nFR,2016-06-01,secret\n", "node,date,total\nFR,2016-06-01,1\nFR,2016-06-01,2\n",
    "node,date,total\nFR,1.6.2016,1\n", None,
    gzip.compress(b"node,date,total\nFR,2016-06-01,1000\n", mtime=0),
)  # fmt: skip


def test_a_file_of_totals_that_is_none_draws_nothing_and_is_not_shown(facts):
    path = facts.folder / "totals.csv"
    for text in NO_TOTALS:
        path.unlink()
        if text is None:
            path.symlink_to(next((facts.folder / "dumps").rglob("*.parquet")))
        else:
            path.write_bytes(text.encode() if isinstance(text, str) else text)
        outcome = facts.ends(DAY, Status.FAILED, "[[constraints]] 4: totals 'totals.csv' must")
        assert "secret" not in outcome.message
        assert facts.record(DAY) is None


def test_new_estimates_keep_the_facts_too(learning):
    learning.configure("[published]\n", '[[constraints]]\nnodes = 1\nmost_change = "up"\n[published]\n')
    for day in DAYS[:3]:
        night(learning, day)
    assert listed(learning) == {DAYS[0]: 2, DAYS[1]: 1, DAYS[2]: 0}
    for day in DAYS[:3]:
        said = stated(learning, day).constraints
        assert said.residual <= 0.001 + 1e-9  # rounding up and down, one unit of the resolution
        assert min(np.diff(rows_of(learning, day)[node]).min() for node in ("84", "11")) >= -0.001 - 1e-9
    assert learning.problems() == []


def test_what_is_not_solved_to_the_end_is_stated_and_reported(facts, monkeypatch):
    monkeypatch.setattr(constraints, "TOLERANCES", (1e-300,))
    assert facts.status(DAY) is Status.PUBLISHED
    said = stated(facts, DAY).constraints
    assert not said.converged
    assert "was not solved to the end" in said.in_words
    assert said.in_words in facts.lineage()[-1]["run"]["facets"]["optstream_privacy"]["estimate"]
    facts.write_pages()
    assert said.in_words in (facts.folder / "published/index.html").read_text()
