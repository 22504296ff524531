"""Every mechanism releases, real load too, in epsilon and in rho."""

import json
from datetime import date
from fractions import Fraction

import numpy as np
import pytest

from optstream import mechanisms
from optstream.catalogue import ReleaseStatement
from optstream.errors import LedgerError
from optstream.ledger import ReleaseState
from optstream.privacy import OrderSpend
from optstream.privacy.zero_concentrated import largest_rho
from optstream.stream import PrivatePeriod
from tasks.config.schema import MECHANISMS
from tasks.release import draw, run
from tasks.release.mechanism import mechanism_for
from tasks.release.outcomes import budget_of
from tasks.release.reserve import look_at_folders, reserve
from tasks.release.run import Status, terms_of
from tasks.trusted.files import read_verified
from tests.by_night import few
from tests.failing import death_at
from tests.tasks.test_schemas import validator
from tests.tasks.two_regions import DAYS, STEPS

OTHERS = [name for name, section in MECHANISMS.items() if "sampling" not in section.tables]
ADAPTIVE = [name for name in OTHERS if getattr(mechanisms, name).adaptive]


DAILY = ("Laplace", "Fast", "BudgetAbsorption")
"""Tried by day, the others by night."""


@pytest.mark.parametrize("name", few(sorted(OTHERS, key=lambda name: name not in DAILY), len(DAILY)))
def test_a_fortnights_start_is_published_and_costs_no_more_than_the_grant(installation, name):
    installation.by(name)
    days = DAYS[:4]
    assert installation.statuses(*days) == {Status.PUBLISHED}
    budget = budget_of(installation.settings, installation.ledger)
    assert budget.grant / 4 < budget.spent <= budget.grant
    rows = installation.rows()
    assert rows.height == 4 * 3 * 48
    assert rows["load_mw"].min() >= 0
    wide = rows.pivot(on="node", index=["date", "step"], values="load_mw")
    assert (wide["FR"] - wide["84"] - wide["11"]).abs().max() < 1e-9
    release = mechanism_for(installation.settings, days[-1]).estimate(installation.measured(days[-1]))
    columns = {"load_mw_noise_se": release.noise_standard_errors, "load_mw_se": release.standard_errors}
    for column, errors in columns.items():
        published = rows.filter(date=days[-1]).pivot(on="step", index="node", values=column)
        found = published.sort("node").drop("node").to_numpy()
        if errors is None:
            assert np.isnan(found.astype(float)).all()
        else:
            order = np.argsort(installation.settings.tree_of(date.min).nodes)
            assert np.allclose(found.astype(float), errors[order], rtol=1e-5, atol=0, equal_nan=True)
    manifests = [json.loads(data) for path, data in installation.files("published/manifests").items()]
    assert len(manifests) == 4
    assert all(json.dumps(manifest).count(f'"name": "{name}"') == 1 for manifest in manifests)


@pytest.mark.parametrize("name", few(ADAPTIVE, 2))
def test_a_day_begins_with_what_the_day_before_left_and_a_lost_memory_stops_none(installation, name):
    installation.by(name)
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
    assert installation.spent <= 1


def test_a_draw_that_died_closes_the_open_groups(installation):
    """The raw state was taken before the first sample, so the redraw cannot ask the same threshold again."""
    installation.by("PeGaSus")
    installation.release(DAYS[0])
    with death_at(draw.DrawingFile, "destroy_orphans"):
        installation.release(DAYS[1])
    assert installation.record(DAYS[1]).state is ReleaseState.RESERVED
    assert all(str(DAYS[1]) in str(path) for path in installation.raw_files())
    installation.later(hours=1)
    assert installation.status(DAYS[1]) is Status.PUBLISHED
    origin = installation.measured(DAYS[1]).first_step
    for part in installation.measured(DAYS[1]).parts:
        assert min(min(groups) for groups in part.choices["groups"]) >= origin


def test_raw_state_that_belongs_to_other_measurements_is_not_taken(installation):
    installation.by("PeGaSus")
    installation.released(DAYS[0])
    (path,) = installation.raw_files()
    assert (installation.folder / path).stat().st_mode & 0o077 == 0
    assert path.parent == (installation.settings.measurements_of(DAYS[0], 0)).relative_to(installation.folder)
    (installation.folder / path).rename((installation.folder / path).with_name("1-0000.raw"))
    installation.release(DAYS[1])
    assert any(name.name == "1-0000.raw" for name in installation.raw_files())
    with pytest.raises(LedgerError, match="gone"):
        read_verified(installation.settings.measurements_of(DAYS[0], 0), "0" * 64)


TURNS = {
    "another mechanism": ('name = "PeGaSus"', 'name = "Laplace"\nnoise = "laplace"'),
    "an amendment": ('epsilon = "1"', 'epsilon = "2"'),
}


@pytest.mark.parametrize("change", TURNS.values(), ids=list(TURNS))
def test_raw_state_that_nothing_goes_on_from_is_destroyed_as_the_next_day_is_drawn(installation, change):
    installation.by("PeGaSus")
    installation.released(*DAYS[:2])
    folder = installation.settings.measurements_of(DAYS[1], 0)
    assert list(folder.glob("*.raw"))
    installation.configure(*change)
    if "epsilon" in change[0]:
        installation.ledger.amend(terms_of(installation.settings), "another epsilon", installation.now)
    assert installation.status(DAYS[3]) is Status.PUBLISHED  # DAYS[2] is charged by the old budget
    assert not list(folder.glob("*.raw"))


def test_a_late_day_is_measured_with_the_joint_noise_that_was_kept_for_it(installation):
    """The root's noise of the day between lies, secret, with the day before it, and is used once."""
    installation.by("Laplace")
    installation.released(DAYS[0])
    installation.released(DAYS[2])
    assert [path.parent.name[:10] for path in installation.raw_files()] == [str(DAYS[0]), str(DAYS[2])]
    installation.released(DAYS[1])
    assert [path.parent.name[:10] for path in installation.raw_files()] == [str(DAYS[1]), str(DAYS[2])]
    installation.released(DAYS[3])
    for day in DAYS[:4]:
        root, _ = installation.measured(day).parts
        assert (type(root.spends[0]), root.positions) == (OrderSpend, tuple(range(48)))
    assert installation.spent <= 1
    # a state that is gone begins new noise: the day that would share windows with the old one is not measured
    for path in installation.raw_files():
        (installation.folder / path).unlink()
    installation.released(*DAYS[4:])
    measured = [len(installation.measured(day).parts[0].positions) for day in DAYS[4:]]
    assert measured[0] <= 1
    assert measured[1] >= 47
    assert installation.spent <= 1


def test_a_stream_in_rho_states_delta_and_rho(installation):
    installation.by("Gaussian")
    installation.released(*DAYS[:3])
    delta = Fraction(1, 10**6)
    for _, data in sorted(installation.files("published/manifests").items()):
        manifest = json.loads(data)
        assert list(validator("optstream.manifest/1").iter_errors(manifest)) == []
        statement = manifest["statement"]
        assert statement["privacy_model"]["delta"] == str(delta)
        assert Fraction(statement["privacy_model"]["rho"]) == largest_rho(Fraction(1), delta)
        assert Fraction(99, 100) < Fraction(statement["epsilon_plan"]) <= 1
        assert {one["law"] for one in statement["noise"]} == {"discrete Gaussian"}
        assert ReleaseStatement.read(statement).to_json() == statement


def test_an_owner_that_wakes_up_leaves_its_successors_raw_state(installation):
    """The first owner reserved; the second takes the day over once the lease is over, and draws."""
    installation.by("PeGaSus")
    installation.release(DAYS[0], steps=STEPS[:5])
    stale = installation.run(owner="stale")
    found = run.look_up(stale, run.Requested(DAYS[0]))
    period = PrivatePeriod(np.zeros((2, 48), np.int64), resolution=Fraction(1), first_step=0)
    installation.later(hours=1)
    first = reserve(stale, run.Judged(found.day, found.revision, period, {}), look_at_folders(stale))
    installation.later(hours=1)
    installation.release(DAYS[0], steps=STEPS[:6])
    assert installation.record(DAYS[0]).state is ReleaseState.DRAWN
    before = installation.raw_files()
    assert before
    with pytest.raises(LedgerError):
        run.void(stale, first, "it raised")
    assert installation.raw_files() == before
