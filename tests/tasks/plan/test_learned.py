"""Expected errors and proposed blocks follow what a stream has learned from its noisy measurements."""

from datetime import date, timedelta

import numpy as np
import pytest

from optstream.noise import simulated_noise
from tasks.plan.advise import compare_plans
from tasks.plan.dry_run import dry_run
from tasks.release.mechanism import mechanism_for
from tests.tasks.two_regions import released_by

FIRST, N_DAYS = date(2025, 1, 6), 9
INFORMED = released_by("HistoryInformed", keys="scale = 5000.0")


@pytest.fixture
def jumping(load_text):
    """Nine days of two regions that jump from step to step, measured and stored, but not released."""
    settings, state = load_text(INFORMED, ('alpha = "1"', 'alpha = "20"')), None
    random = np.random.default_rng(3)
    for number in range(N_DAYS):
        day = FIRST + timedelta(number)
        values = 5000 * np.exp(random.normal(0, 0.2, (2, 48)))
        at = settings.calendar.first_step(day)
        mechanism = mechanism_for(settings, day)
        measured = mechanism.measure(
            np.minimum(values, 20_000).round(3), noise=simulated_noise(number), first_step=at, state=state
        )
        state = measured.state

    def store():
        folder = settings.measurements_of(FIRST + timedelta(N_DAYS - 1), 0)
        folder.mkdir(parents=True)
        (folder / "measured").write_bytes(measured.to_bytes())

    return settings, store


def test_dry_run_and_advice_expect_what_was_learned_and_propose_its_blocks(jumping):
    settings, store = jumping
    day = FIRST + timedelta(N_DAYS)
    general, general_plan = dry_run(settings, [day]).periods[0].levels, compare_plans(settings).configured
    assert general_plan.expected == tuple(level.expected for level in general)
    store()
    learned, found = dry_run(settings, [day]).periods[0].levels, compare_plans(settings)
    assert found.configured.expected == tuple(level.expected for level in learned)
    # the blocks that run stay as they are, and are known to miss more
    assert [level.stages for level in learned] == [level.stages for level in general]
    assert all(a.expected.error < b.expected.error for a, b in zip(general, learned, strict=True))
    informed = [one for one in found.plans if one.mechanism == "HistoryInformed"]
    proposed = min(informed, key=lambda one: one.relative)
    blocks = mechanism_for(settings, day).common_blocks
    assert proposed.choice.keys["mechanism"]["n_blocks"] > blocks["n_blocks"]
    assert proposed.relative < found.configured.relative
    assert mechanism_for(proposed.choice.settings, day).common_blocks["n_blocks"] > blocks["n_blocks"]
