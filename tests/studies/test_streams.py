"""The study of streams of many kinds, in a short form."""

import numpy as np
import pytest

from optstream import simulated_noise
from studies.streams import KINDS, people, plan
from tests.studies.conftest import invoke


@pytest.mark.parametrize("kind", [kind for kind in KINDS if not kind.startswith("load")])
def test_each_made_up_stream_has_a_row_for_each_level(kind, tmp_path):
    done = invoke("streams", "--data", str(tmp_path), "--stream", kind, "--draws", "1", "--days", "8")
    assert done.exit_code == 0
    rows = [line.split() for line in done.stdout.splitlines() if line.startswith(f"{kind} ")]
    assert [row[1] for row in rows] == [str(level) for level in range(len(rows))]
    assert all(len(row) == 16 for row in rows)


def test_an_unknown_stream_is_refused(tmp_path):
    assert invoke("streams", "--data", str(tmp_path), "--stream", "gas").exit_code == 2


def test_the_search_for_hours_takes_no_overflow_for_a_likelihood(tmp_path):
    """On this stream an unbounded search takes a step to strengths of e^300."""
    stream = people(np.random.default_rng([2, 0]), tmp_path)
    mechanism, _ = plan(stream, "1")
    state = None
    for day in range(15):
        noise = simulated_noise([2, day])
        state = mechanism.measure(stream.values[day], noise=noise, first_step=24 * day, state=state).state
    assert np.abs(np.log(state["hours"])).max() < 10
