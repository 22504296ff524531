"""Nights of a stream that turns to joint noise: the ledger refuses no day, and statements say what it is."""

import json
import re
from datetime import date

import pytest

from optstream.privacy import JointSpend, StepSpend, worst_window
from tasks.release.mechanism import mechanism_for

pytestmark = pytest.mark.slow

DAYS = [date(2016, 6, day) for day in (1, 2, 3)]
WORD = "leaves_per_period = 1"


@pytest.fixture(params=["Laplace", "OptStream"])
def independent(request, installation):
    """The small stream, with independent noise on all that it measures."""
    path = installation.folder / "optstream.toml"
    text = path.read_text().replace('name = "OptStream"', f'name = "{request.param}"\nnoise = "laplace"')
    if request.param == "Laplace":
        text = re.sub(r"\[sampling\]\n(?:[a-z].*\n)+", "", text)
    path.write_text(text.replace('name = "two-regions"', f'name = "two-regions"\n{WORD}'))
    installation.simulate(DAYS[0], DAYS[-1])
    return installation


def samples(installation, day):
    return [spend for spend in installation.record(day).spends if spend.stage == "samples"]


def test_the_night_of_the_change_leaves_out_groups_and_the_next_does_not(independent):
    independent.released(DAYS[0])
    independent.configure('noise = "laplace"', 'noise = "joint"')
    for day in DAYS[1:]:
        independent.released(day)
    first, second, third = (samples(independent, day) for day in DAYS)
    assert [type(spend) for spend in first] == [StepSpend] * 2
    assert [type(spend) for spend in (*second, *third)] == [JointSpend] * 4
    for before, after in zip(second, third, strict=True):
        assert len(before.groups) < len(after.groups)
    spends = [spend for day in DAYS for spend in independent.record(day).spends]
    assert worst_window(spends, 48).epsilon <= 1
    # nothing but the plan was drawn, and an estimate from what is stored is the same
    stored = independent.measured(DAYS[1])
    assert stored.spends == independent.record(DAYS[1]).spends
    assert mechanism_for(independent.settings, DAYS[1]).estimate(stored).values.min() >= 0


def test_statements_say_over_how_many_steps_and_for_whom(independent):
    independent.configure('noise = "laplace"', 'noise = "joint"')
    independent.released(DAYS[0])
    (manifest,) = (independent.folder / "published" / "manifests").iterdir()
    statement = json.loads(manifest.read_text())["statement"]
    told = [entry.get("noise") for entry in statement["noise"] if entry["stage"] == "samples"]
    # the root of one node, and the regions, each in groups of the same size
    assert len(told) == 2
    assert all(re.fullmatch("joint over [0-9]+ steps", words) for words in told)
    assert "whose readings of one period lie in at most 1 leaf." in statement["privacy_in_words"]
    assert statement["mechanism"]["leaves_per_period"] == 1
