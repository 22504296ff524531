"""Every mechanism through the protocol: the same ledger, lineage and publishing, memory from day to day."""

import json
import re
from datetime import date

import numpy as np
import pytest

from optstream import mechanisms, read_published
from optstream.errors import LedgerError
from optstream.ledger import ReleaseState
from optstream.noise import simulated_noise
from tasks.config.schema import MECHANISMS
from tasks.release import draw
from tasks.release.mechanism import mechanism_for
from tasks.release.outcomes import budget_of
from tasks.release.stages import Status
from tasks.trusted.files import read_verified
from tests.by_night import few
from tests.failing import Death, raising
from tests.tasks.release.streams.conftest import DAYS
from tests.tasks.two_regions import STEPS

OTHERS = [name for name, section in MECHANISMS.items() if "sampling" not in section.tables]
ADAPTIVE = [name for name in OTHERS if getattr(mechanisms, name).adaptive]


def release_of(installation, day):
    """The release of a day, once more from its stored measurements, and its standard errors."""
    release = mechanism_for(installation.settings, day).estimate(installation.measured(day))
    return release, (release.noise_standard_errors, release.standard_errors)


DAILY = ("Laplace", "Uniform", "Fast", "BudgetDistribution", "BudgetAbsorption")
"""Tried by day, the others by night: test_published_measurements has two days of each of those by day."""


@pytest.mark.parametrize("name", few(sorted(OTHERS, key=lambda name: name not in DAILY), len(DAILY)))
def test_a_fortnights_start_is_published_and_costs_no_more_than_the_grant(with_mechanism, name):
    installation = with_mechanism(name)
    works = installation.release(*DAYS)
    assert {work.outcome.status for work in works.values()} == {Status.PUBLISHED}
    budget = budget_of(installation.settings, installation.ledger)
    assert budget.grant / 4 < budget.spent <= budget.grant
    rows = read_published(installation.settings.published_folder, verify=True)
    assert rows.height == 4 * 3 * 48
    assert rows["load_mw"].min() >= 0
    wide = rows.pivot(on="node", index=["date", "step"], values="load_mw")
    assert (wide["FR"] - wide["84"] - wide["11"]).abs().max() < 1e-9
    _, standard_errors = release_of(installation, DAYS[-1])
    for column, errors in zip(("load_mw_noise_se", "load_mw_se"), standard_errors, strict=True):
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


@pytest.mark.parametrize("name", few(OTHERS, 2))
def test_a_second_run_does_nothing_and_a_dead_one_is_finished_from_its_measurements(with_mechanism, name):
    installation = with_mechanism(name)
    installation.released(DAYS[0])
    installation.release(DAYS[1], steps=STEPS[:6])
    drawn = {
        path: data
        for path, data in installation.files("trusted/measurements").items()
        if ".raw" not in path.name
    }
    installation.later(hours=1)
    works = installation.release(DAYS[0], DAYS[1], noise=None)
    assert [works[day].outcome.status for day in DAYS[:2]] == [Status.UNCHANGED, Status.PUBLISHED]
    assert drawn.items() <= installation.files("trusted/measurements").items()


@pytest.mark.parametrize("name", few([name for name in ADAPTIVE if not getattr(mechanisms, name).revises], 2))
def test_a_day_begins_with_what_the_day_before_left(with_mechanism, name):
    installation = with_mechanism(name)
    installation.released(*DAYS[:2])
    first, second = installation.measured(DAYS[0]), installation.measured(DAYS[1])
    assert first.before is None or "levels" in first.before
    for level, left in first.state["levels"].items():
        begun = second.before["levels"][level]
        memory = {key: value for key, value in left.items() if key not in ("points", "spent")}
        assert memory.items() <= begun.items()


@pytest.mark.parametrize("name", few(ADAPTIVE, 3))
def test_a_lost_memory_stops_no_day_and_overspends_nothing(with_mechanism, name):
    installation = with_mechanism(name)
    installation.released(*DAYS[:2])
    for path in installation.files("trusted/measurements"):
        (installation.folder / path).unlink()
    works = installation.release(DAYS[2])
    assert works[DAYS[2]].outcome.status is Status.PUBLISHED
    assert budget_of(installation.settings, installation.ledger).spent <= 1


@pytest.mark.parametrize("name", few(ADAPTIVE, 2))
def test_a_late_day_is_released_after_the_days_around_it(with_mechanism, name):
    installation = with_mechanism(name)
    works = installation.release(DAYS[0], DAYS[2]) | installation.release(DAYS[1])
    assert {work.outcome.status for work in works.values()} == {Status.PUBLISHED}
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


def test_no_raw_state_is_in_the_measurements(with_mechanism):
    """The raw file's own values and thresholds, sought in the measurements; seeded, so never by chance."""
    installation = with_mechanism("PeGaSus")
    installation.release(DAYS[0], noise=simulated_noise(1), steps=STEPS[:6])
    (path,) = installation.raw_files()
    raw = json.loads((installation.folder / path).read_text())
    groups = [
        group
        for level in raw["levels"].values()
        for group in level["raw"]["raw state"]["groups"]
        if group is not None
    ]
    secrets = {str(value) for group in groups for value in (group["limit"], *group["exact"])}
    assert len(secrets) > 5
    (data,) = (data for name, data in installation.files("trusted/measurements").items() if name != path)
    assert not secrets & set(re.findall(r"\d+", data.decode()))


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
    assert installation.release(DAYS[1])[DAYS[1]].outcome.status is Status.PUBLISHED
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
    installation.configure('name = "PeGaSus"', 'name = "Laplace"')
    installation.release(DAYS[2])
    assert installation.raw_files() == []
