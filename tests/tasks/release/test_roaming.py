"""Devices in several regions at a step: noise is for all of their readings, in however few leaves."""

from dataclasses import replace
from datetime import date, timedelta

import pytest

from optstream.errors import LedgerError
from optstream.privacy import worst_window
from tasks.release.mechanism import mechanism_for
from tasks.release.run import terms_of
from tests.tasks.two_regions import CONFIGURATION, FEW_BLOCKS, Installation, released_by

DAY, NEXT = date(2016, 6, 1), date(2016, 6, 2)
ROAMING = '[stream]\nunit = "roaming"\nleaves_per_step = {}\n'
TWO, ONE = '84 = "FR"\n11 = "FR"\n', 'ALL = "FR"\n'
DATED = (
    TWO
    + f"""[[hierarchy.changes]]
valid_from = {NEXT}
merged = {{ ALL = ["84", "11"] }}
"""
)
OPTSTREAM = CONFIGURATION.replace('"1"\nbounds', '"1"\nresolution = "1"\nbounds')
MECHANISMS = ("OptStream", "Laplace", "Gaussian", "HistoryInformed", "BudgetAbsorption", "Fast")
TEXTS = [
    OPTSTREAM,
    *(
        released_by(name, OPTSTREAM, FEW_BLOCKS if name == "HistoryInformed" else "")
        for name in MECHANISMS[1:]
    ),
]


def lost_to_all_readings(settings, day):
    """What a window loses to a device whose readings all move by alpha, also where they lie in one leaf."""
    plan = mechanism_for(settings, day).plan(settings.calendar.n_steps(day), 0)
    moved = [replace(spend, leaves_changed=settings.stream.leaves_per_step) for spend in plan]
    return worst_window(moved, settings.privacy.window).epsilon


@pytest.mark.parametrize("leaves", [2, 3])
@pytest.mark.parametrize("hierarchy", [TWO, ONE, DATED], ids=["two", "one", "dated"])
@pytest.mark.parametrize("text", TEXTS, ids=MECHANISMS)
def test_the_noise_of_any_tree_is_for_all_readings_in_one_leaf(load_text, text, hierarchy, leaves):
    text = text.replace("[stream]\n", ROAMING.format(leaves)).replace(TWO, hierarchy)
    settings = load_text(text)
    for day in (DAY, NEXT):
        assert lost_to_all_readings(settings, day) <= settings.model.budget


def test_the_ledger_takes_no_plan_that_is_priced_for_fewer_readings(tmp_path):
    (tmp_path / "optstream.toml").write_text(OPTSTREAM.replace("[stream]\n", ROAMING.format(2)))
    installation = Installation(tmp_path)
    run = installation.run()
    plan = mechanism_for(run.settings, DAY).plan(48, 0)
    fewer = [replace(spend, leaves_changed=1) for spend in plan]
    with pytest.raises(LedgerError, match="priced for another alpha or unit"):
        run.ledger.reserve(
            "two-regions",
            str(DAY),
            0,
            fewer,
            "a run",
            run.clock(),
            timedelta(hours=1),
            terms=terms_of(run.settings),
        )
