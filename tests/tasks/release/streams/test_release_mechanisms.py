"""Every mechanism releases, real load too, in epsilon and in rho."""

import json
from datetime import UTC, date, datetime, timedelta
from fractions import Fraction

import numpy as np
import polars as pl
import pytest

from optstream import mechanisms
from optstream.catalogue import ReleaseStatement
from optstream.errors import LedgerError
from optstream.ledger import ReleaseState
from optstream.privacy import OrderSpend
from optstream.privacy.zero_concentrated import largest_rho
from tasks.config import load_settings
from tasks.config.schema import MECHANISMS
from tasks.operate.amend import declare, rehearse
from tasks.operate.first_configuration import write_configuration
from tasks.operate.survey import survey
from tasks.release import draw
from tasks.release.mechanism import mechanism_for
from tasks.release.outcomes import budget_of
from tasks.release.run import Status
from tasks.trusted.files import read_verified
from tests.by_night import few
from tests.failing import Death, raising
from tests.tasks.release.streams.conftest import DAYS
from tests.tasks.test_schemas import validator

OTHERS = [name for name, section in MECHANISMS.items() if "sampling" not in section.tables]
ADAPTIVE = [name for name in OTHERS if getattr(mechanisms, name).adaptive]


DAILY = ("Laplace", "Uniform", "Fast", "BudgetDistribution", "BudgetAbsorption")
"""Tried by day, the others by night: test_published_files has two days of each of those by day."""


@pytest.mark.parametrize("name", few(sorted(OTHERS, key=lambda name: name not in DAILY), len(DAILY)))
def test_a_fortnights_start_is_published_and_costs_no_more_than_the_grant(with_mechanism, name):
    installation = with_mechanism(name)
    assert installation.statuses(*DAYS) == {Status.PUBLISHED}
    budget = budget_of(installation.settings, installation.ledger)
    assert budget.grant / 4 < budget.spent <= budget.grant
    rows = installation.rows()
    assert rows.height == 4 * 3 * 48
    assert rows["load_mw"].min() >= 0
    wide = rows.pivot(on="node", index=["date", "step"], values="load_mw")
    assert (wide["FR"] - wide["84"] - wide["11"]).abs().max() < 1e-9
    mechanism = mechanism_for(installation.settings, DAYS[-1])
    release = mechanism.estimate(installation.measured(DAYS[-1]))
    columns = {"load_mw_noise_se": release.noise_standard_errors, "load_mw_se": release.standard_errors}
    for column, errors in columns.items():
        published = rows.filter(date=DAYS[-1]).pivot(on="step", index="node", values=column)
        found = published.sort("node").drop("node").to_numpy()
        if errors is None:
            assert np.isnan(found.astype(float)).all()
        else:
            order = np.argsort(installation.settings.tree_of(date.min).nodes)
            assert np.allclose(found.astype(float), errors[order], rtol=1e-5, atol=0, equal_nan=True)
    manifests = [json.loads(data) for path, data in installation.files("published/manifests").items()]
    assert len(manifests) == 4
    assert all(json.dumps(manifest).count(f'"name": "{name}"') == 1 for manifest in manifests)


@pytest.mark.parametrize("name", few(ADAPTIVE, 3))
def test_a_day_begins_with_what_the_day_before_left_and_a_lost_memory_stops_none(with_mechanism, name):
    """A late day, too, is released after the days around it."""
    installation = with_mechanism(name)
    installation.released(*DAYS[:2])
    first, second = installation.measured(DAYS[0]), installation.measured(DAYS[1])
    if not getattr(mechanisms, name).revises:
        assert first.before is None or "levels" in first.before
        for level, left in first.state["levels"].items():
            memory = {key: value for key, value in (left or {}).items() if key not in ("points", "spent")}
            assert all(second.before["levels"][level][key] == value for key, value in memory.items())
    assert installation.status(DAYS[3]) is Status.PUBLISHED
    for path in installation.files("trusted/measurements"):
        (installation.folder / path).unlink()
    assert installation.status(DAYS[2]) is Status.PUBLISHED
    assert budget_of(installation.settings, installation.ledger).spent <= 1


def test_the_open_groups_of_pegasus_lie_in_the_trusted_zone_until_the_next_day_takes_them(with_mechanism):
    installation = with_mechanism("PeGaSus")
    installation.released(DAYS[0])
    (path,) = installation.raw_files()
    assert (installation.folder / path).stat().st_mode & 0o077 == 0
    assert path.parent == (installation.settings.measurements_of(DAYS[0], 0)).relative_to(installation.folder)
    installation.release(DAYS[1])
    (later,) = installation.raw_files()
    assert str(DAYS[1]) in str(later)


def test_a_draw_that_died_closes_the_open_groups(with_mechanism, monkeypatch):
    """The raw state was taken before the first sample, so the redraw cannot ask the same threshold again."""
    installation = with_mechanism("PeGaSus")
    installation.release(DAYS[0])
    monkeypatch.setattr(draw.DrawingFile, "destroy_orphans", raising(Death))
    with pytest.raises(Death):
        installation.release(DAYS[1])
    monkeypatch.undo()
    assert installation.record(DAYS[1]).state is ReleaseState.RESERVED
    assert installation.raw_files() == [
        path for path in installation.raw_files() if str(DAYS[1]) in str(path)
    ]
    installation.later(hours=1)
    assert installation.status(DAYS[1]) is Status.PUBLISHED
    origin = installation.measured(DAYS[1]).first_step
    for part in installation.measured(DAYS[1]).parts:
        assert min(min(groups) for groups in part.choices["groups"]) >= origin


def test_raw_state_that_belongs_to_other_measurements_is_not_taken(with_mechanism):
    installation = with_mechanism("PeGaSus")
    installation.released(DAYS[0])
    (path,) = installation.raw_files()
    (installation.folder / path).rename((installation.folder / path).with_name("1-0000.raw"))
    installation.release(DAYS[1])
    assert any(name.name == "1-0000.raw" for name in installation.raw_files())
    with pytest.raises(LedgerError, match="gone"):
        read_verified(installation.settings.measurements_of(DAYS[0], 0), "0" * 64)


def test_raw_state_is_destroyed_when_the_stream_turns_to_another_mechanism(with_mechanism):
    installation = with_mechanism("PeGaSus")
    installation.released(DAYS[0])
    assert installation.raw_files()
    installation.configure('name = "PeGaSus"', 'name = "Laplace"\nnoise = "laplace"')
    installation.release(DAYS[2])
    assert installation.raw_files() == []


def test_a_late_day_is_measured_with_the_joint_noise_that_was_kept_for_it(with_mechanism):
    """The root's noise of the day between lies, secret, with the day before it, and is used once."""
    installation = with_mechanism("Laplace")
    installation.released(DAYS[0])
    installation.released(DAYS[2])
    assert [path.parent.name[:10] for path in installation.raw_files()] == [str(DAYS[0]), str(DAYS[2])]
    installation.released(DAYS[1])
    assert [path.parent.name[:10] for path in installation.raw_files()] == [str(DAYS[1]), str(DAYS[2])]
    installation.released(DAYS[3])
    for day in DAYS[:4]:
        root, _ = installation.measured(day).parts
        assert (type(root.spends[0]), root.positions) == (OrderSpend, tuple(range(48)))
    assert budget_of(installation.settings, installation.ledger).spent <= 1
    # a state that is gone begins new noise: the day that would share windows with the old one is not measured
    for path in installation.raw_files():
        (installation.folder / path).unlink()
    after = [DAYS[3] + timedelta(days=number) for number in (1, 2)]
    installation.simulate(*after)
    installation.released(*after)
    measured = [len(installation.measured(day).parts[0].positions) for day in after]
    assert measured[0] <= 1
    assert measured[1] >= 47
    assert budget_of(installation.settings, installation.ledger).spent <= 1


@pytest.mark.nightly
def test_february_2016_is_published_whole_and_a_second_run_changes_nothing(installation, real_data):
    february = [date(2016, 2, 1) + timedelta(days=number) for number in range(29)]
    config, rte = installation.folder / "optstream.toml", installation.folder / "rte"
    config.unlink()
    rte.mkdir()
    for file in (real_data / "rte_2016_zips").iterdir():
        (rte / file.name).write_bytes(file.read_bytes())
    (rte / "_SUCCESS").touch()
    answers = {"zone": "Europe/Paris", "size": "5000"}
    write_configuration(survey(rte, "UTC"), lambda key, _, usual: answers.get(key, usual), config)
    assert installation.statuses(*february) == {Status.PUBLISHED}
    rows = installation.rows()
    value = rows.columns[6]
    assert rows["date"].n_unique() == 29
    assert rows[value].min() >= 0
    units = rows.with_columns((pl.col(value) * 1000).round().cast(pl.Int64).alias("units"))
    nation = units.filter(node="all").select("date", "step", "units")
    regions = units.filter(parent="all").group_by("date", "step").agg(pl.col("units").sum().alias("sum"))
    joined = nation.join(regions, on=["date", "step"], validate="1:1")
    assert joined.height == 29 * 48
    assert (joined["units"] == joined["sum"]).all()
    # 1,392 steps share little noise: a mean that is off by a hundredth is another month, or another unit.
    month = pl.col("timestamp_local").dt.date().is_between(february[0], february[-1])
    series = pl.read_parquet(real_data / "rte_regional_load_2013_2016.parquet")
    true = series.filter(month)["load_mw"].sum() / (29 * 48)
    assert rows.filter(node="all")[value].mean() == pytest.approx(true, rel=0.01)
    before = installation.files("published")
    assert installation.statuses(*february) == {Status.UNCHANGED}
    assert installation.files("published") == before


DELTA = Fraction(1, 10**6)
RHO = largest_rho(Fraction(1), DELTA)


@pytest.fixture
def released(with_mechanism):
    """Three days by Gaussian noise."""
    installation = with_mechanism("Gaussian")
    installation.released(*DAYS[:3])
    return installation


def test_readers_are_reported_epsilon_at_delta_and_rho(released):
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
        reread = ReleaseStatement.read(statement)
        assert reread.to_json() == statement


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
